//! Ctrl-C: the first one ends the run in order, a later one at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use cli_support::say;
use fused_kernels::worker::Input;

use crate::exit;

/// Signals within this time of the first one are the same wish. `timeout`, shells and launchers of jobs
/// send one to the program and one to its group.
const SAME_WISH: Duration = Duration::from_millis(500);

/// Whether the user wants the run to end.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// When the user first wanted it.
    first: OnceLock<Instant>,
    /// The inputs of the workers that are running, by number.
    held: Mutex<BTreeMap<u64, Input>>,
    /// How many were held so far.
    count: AtomicU64,
}

/// What a thread is needed for.
pub(crate) const CANNOT_LISTEN: &str =
    "no thread listens for Ctrl-C; is there a limit of processes (ulimit -u)?";

impl Stop {
    /// Listens for Ctrl-C, and on Unix for SIGTERM and SIGHUP.
    ///
    /// # Errors
    ///
    /// When the system refuses the handler.
    pub fn listen() -> anyhow::Result<Self> {
        let stop = Self::default();
        let listening = stop.clone();
        ctrlc::set_handler(move || {
            let now = Instant::now();
            match listening.wished_for(now) {
                // Before the request, upon which the program may end at once.
                None => say!("\nstopping (once more to quit at once)"),
                Some(time) if time > SAME_WISH => {
                    std::process::exit(i32::from(exit::INTERRUPTED));
                }
                Some(_) => {}
            }
            listening.request(now);
        })
        .context(CANNOT_LISTEN)?;
        Ok(stop)
    }

    /// How long ago that was first asked; `None` where it was not.
    fn wished_for(&self, now: Instant) -> Option<Duration> {
        self.0.first.get().map(|first| now.saturating_duration_since(*first))
    }

    /// Asks the run to end.
    pub(crate) fn request(&self, now: Instant) {
        self.0.first.get_or_init(|| now);
        self.release();
    }

    /// Whether it was asked for.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.first.get().is_some()
    }

    /// Keeps a worker's input open until the returned value is dropped or the run is to end,
    /// whichever is first.
    #[must_use]
    pub fn hold(&self, input: Input) -> Held<'_> {
        let number = self.0.count.fetch_add(1, Ordering::Relaxed);
        self.held().insert(number, input);
        // The request may have come just before.
        if self.requested() {
            self.release();
        }
        Held { stop: self, number }
    }

    fn release(&self) {
        let held = std::mem::take(&mut *self.held());
        held.values().for_each(Input::close);
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<u64, Input>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker's input that is kept open.
#[derive(Debug)]
pub struct Held<'a> {
    stop: &'a Stop,
    number: u64,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let input = self.stop.held().remove(&self.number);
        if let Some(input) = input {
            input.close();
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    #[test]
    fn a_request_ends_the_workers_that_run_and_the_one_that_starts() {
        use super::*;
        use std::process::{Command, Stdio};

        // It ends when its input is closed, as a worker does.
        let cat =
            || Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let stop = Stop::default();
        let [mut other, mut running, mut beside] = [cat(), cat(), cat()];
        let of_other = stop.hold(Input::new(other.stdin.take().unwrap()));
        let held = stop.hold(Input::new(running.stdin.take().unwrap()));
        let of_beside = stop.hold(Input::new(beside.stdin.take().unwrap()));
        drop(of_other);
        assert!(other.wait().unwrap().success());
        assert!(running.try_wait().unwrap().is_none() && beside.try_wait().unwrap().is_none());
        let now = Instant::now();
        assert_eq!(stop.wished_for(now), None);
        stop.request(now);
        assert!(running.wait().unwrap().success() && beside.wait().unwrap().success());
        drop((held, of_beside));
        let mut late = cat();
        let _held = stop.hold(Input::new(late.stdin.take().unwrap()));
        assert!(late.wait().unwrap().success());
        assert!(stop.requested());
        stop.request(now + SAME_WISH);
        let later = stop.wished_for(now + 2 * SAME_WISH);
        assert_eq!(later, Some(2 * SAME_WISH), "since the first one");
    }
}
