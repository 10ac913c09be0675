//! Why a worker gave no answer.

use std::io;
use std::time::Duration;

use thiserror::Error;

use super::{Note, VERSION};

/// Why a worker gave no answer. Each text is about "its process", the worker's.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// There is no process.
    #[error("its process cannot be started: {0}")]
    Start(#[source] io::Error),
    /// It ended by itself, such as by a signal; this is how.
    #[error("{0}")]
    Ended(String),
    /// It was killed because its time was over.
    #[error(
        "its process gave no answer in {} s{} and was killed{}",
        .limit.as_secs_f64(),
        .note.as_ref().map(|note| format!(" while it {},", note.doing)).unwrap_or_default(),
        if *.is_stuck { ", but does not end: a driver holds it" } else { "" }
    )]
    TimeLimit {
        /// The time that it had: for the answer, or for what its last note says.
        limit: Duration,
        /// What it said last that it was doing.
        note: Option<Note>,
        /// Whether it is the time of what that note says that was over.
        is_of_note: bool,
        /// Whether it was still there some time after it was killed.
        is_stuck: bool,
    },
    /// It is another program.
    #[error("its process is not a worker: it writes, but not the greeting of one")]
    NotAWorker,
    /// It is another version of the program.
    #[error(
        "its process has version {0} of the worker protocol and this program version {VERSION}; \
         use one build of both"
    )]
    Version(String),
    /// It replied to this question with something that is not an answer.
    #[error("its process answered `{asked}` with something that cannot be read: {reason}")]
    Unreadable {
        /// The question.
        asked: &'static str,
        /// What is wrong with the answer.
        reason: String,
    },
    /// It answered another question than it was asked.
    #[error("its process was asked `{asked}` and answered `{answered}`")]
    OtherAnswer {
        /// The question that it was asked.
        asked: &'static str,
        /// The one that it answered.
        answered: String,
    },
    /// It does not answer this question, or could not read it.
    #[error("its process refused `{asked}`: {reason}")]
    Refused {
        /// The question.
        asked: &'static str,
        /// What it says.
        reason: String,
    },
    /// The question has no form in which it could be sent.
    #[error("`{asked}` cannot be sent to a worker: {reason}")]
    Unsendable {
        /// The question.
        asked: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}
