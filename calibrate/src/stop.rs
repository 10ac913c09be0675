//! Ctrl-C: the first one ends the run in order, the second one at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cli_support::say;
use fused_kernels::worker::Input;

use crate::exit;

/// Whether the user wants the run to end.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    requested: AtomicBool,
    /// The input of the worker that is running.
    held: Mutex<Option<Input>>,
}

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
            if listening.request() {
                std::process::exit(i32::from(exit::INTERRUPTED));
            }
            say!("\nstopping: writing what is done (once more to quit at once)");
        })?;
        Ok(stop)
    }

    /// Asks the run to end; whether that was asked before.
    pub(crate) fn request(&self) -> bool {
        let before = self.0.requested.swap(true, Ordering::SeqCst);
        self.release();
        before
    }

    /// Whether it was asked for.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.requested.load(Ordering::SeqCst)
    }

    /// Keeps a worker's input open until the returned value is dropped or the run is to end,
    /// whichever is first.
    #[must_use]
    pub fn hold(&self, input: Input) -> Held<'_> {
        *self.0.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(input);
        // The request may have come just before.
        if self.requested() {
            self.release();
        }
        Held(self)
    }

    fn release(&self) {
        let held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(input) = held {
            input.close();
        }
    }
}

/// A worker's input that is kept open.
#[derive(Debug)]
pub struct Held<'a>(&'a Stop);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    #[test]
    fn a_request_ends_the_worker_that_runs_and_the_one_that_starts() {
        use super::*;
        use std::process::{Command, Stdio};

        // It ends when its input is closed, as a worker does.
        let cat =
            || Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let stop = Stop::default();
        let mut running = cat();
        let held = stop.hold(Input::new(running.stdin.take().unwrap()));
        assert!(running.try_wait().unwrap().is_none());
        assert!(!stop.request());
        assert!(running.wait().unwrap().success());
        drop(held);
        let mut late = cat();
        let _held = stop.hold(Input::new(late.stdin.take().unwrap()));
        assert!(late.wait().unwrap().success());
        assert!(stop.requested() && stop.request());
    }
}
