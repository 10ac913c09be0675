//! The input of a worker, which ends the worker when it is closed.

use std::fmt;
use std::io::{self, Write};
use std::process::ChildStdin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The input of a running worker, shared by everybody who may end it.
///
/// The worker leaves when its input is closed, in the middle of whatever it does.
#[derive(Clone)]
pub struct Input {
    state: Arc<Mutex<State>>,
    /// Whoever waits for the worker, which may be stopped and never leave.
    on_close: Option<Arc<dyn Fn() + Send + Sync>>,
}

enum State {
    Open(ChildStdin),
    /// A question is being written.
    InUse,
    Closed,
}

impl Input {
    /// The input of a process that ends when it is closed.
    #[must_use]
    pub fn new(input: ChildStdin) -> Self {
        Self { state: Arc::new(Mutex::new(State::Open(input))), on_close: None }
    }

    /// The same, which calls a function whenever it is closed.
    pub(super) fn on_close(self, call: impl Fn() + Send + Sync + 'static) -> Self {
        Self { on_close: Some(Arc::new(call)), ..self }
    }

    /// Closes it, at the latest when a question that is just being written has been.
    pub fn close(&self) {
        // First, so that whoever waits does not take the end of the worker for its own doing.
        if let Some(call) = &self.on_close {
            call();
        }
        *self.state() = State::Closed;
    }

    /// Writes without keeping anybody from closing it.
    pub(super) fn write(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let before = std::mem::replace(&mut *self.state(), State::InUse);
        let State::Open(mut input) = before else {
            self.close();
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let result = write(&mut input);
        let mut state = self.state();
        if matches!(*state, State::InUse) {
            *state = State::Open(input);
        }
        result
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self.state() {
            State::Open(_) => "Input(open)",
            State::InUse => "Input(in use)",
            State::Closed => "Input(closed)",
        })
    }
}
