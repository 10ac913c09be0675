//! What a worker says that it is doing, before it answers.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{frame, message};

/// The name of a note among the bodies; no question has it.
pub(super) const NAME: &str = "note";

/// What a worker is doing while its caller waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// In words that follow "while it": `proved the result`.
    pub doing: String,
    /// How long that may take; `None` for as long as the whole answer.
    pub limit: Option<Duration>,
}

/// The note that a body is; `None` for anything else.
pub(super) fn of(body: &[u8]) -> Option<Result<Note, String>> {
    let message = message::Message::of(body).ok().filter(|message| message.name == NAME)?;
    Some(message.content())
}

/// Where a worker says what it is doing.
#[derive(Debug, Clone, Default)]
pub struct Notes(Option<Arc<Mutex<File>>>);

impl Notes {
    pub(super) fn new(output: &Arc<Mutex<File>>) -> Self {
        Self(Some(Arc::clone(output)))
    }

    /// Says what is done from now on, and how long that may take by itself. The caller kills this
    /// process when the time is over, and says that this was being done.
    pub fn doing(&self, doing: impl Into<String>, limit: Option<Duration>) {
        let Some(output) = &self.0 else { return };
        if let Ok(body) = message::body(NAME, &Note { doing: doing.into(), limit }) {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            // A caller that is gone closes the input too, which ends this process.
            let _ = frame::write(&mut *output, &body);
        }
    }
}
