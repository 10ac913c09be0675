//! Why a runtime gave no answer that can be used.

use std::io;
use std::time::Duration;

use thiserror::Error;

/// Why a runtime gave no answer that can be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// There is no process.
    #[error("`{program}` cannot be started: {source}")]
    Start {
        /// What was to be started.
        program: String,
        /// Why it was not.
        source: io::Error,
    },
    /// It lacks something that can be installed, as it says itself.
    #[error("{0}")]
    Missing(String),
    /// It does not run a problem, as it says itself.
    #[error("{0}")]
    Unsupported(String),
    /// It failed, as it says itself.
    #[error("its `{step}` failed: {reason}")]
    Failed {
        /// What it was asked.
        step: &'static str,
        /// What it says.
        reason: String,
    },
    /// It ended by itself; this is how.
    #[error("{how} (at `{step}`)")]
    Ended {
        /// What it was asked.
        step: &'static str,
        /// How it ended.
        how: String,
    },
    /// It was killed because its time was over.
    #[error("it gave no answer to `{step}` in {} s and was killed", .limit.as_secs_f64())]
    TimeLimit {
        /// What it was asked.
        step: &'static str,
        /// The time that it had.
        limit: Duration,
    },
    /// It wrote more than an answer can have.
    #[error("its answer to `{step}` has more than {} MiB and no end of a line", .most_bytes >> 20)]
    TooLong {
        /// What it was asked.
        step: &'static str,
        /// The most bytes that an answer has.
        most_bytes: usize,
    },
    /// It wrote something that is not an answer.
    #[error("its answer to `{step}` cannot be read: {reason}; it begins with {shown:?}")]
    Unreadable {
        /// What it was asked.
        step: &'static str,
        /// What is wrong with the answer.
        reason: String,
        /// Its beginning.
        shown: String,
    },
    /// It wrote without being asked, or answered another request.
    #[error("it answered out of turn at `{step}`: {reason}")]
    OutOfTurn {
        /// What it was asked.
        step: &'static str,
        /// What it did.
        reason: String,
    },
    /// Its output still has numbers after `poison`.
    #[error("after `poison`, {left} of {elements} numbers of its output are not NaN")]
    Unpoisoned {
        /// Numbers that are not NaN.
        left: usize,
        /// All of them.
        elements: usize,
    },
    /// Its clock does not agree with the one here.
    #[error("its clock cannot be right: {0}")]
    Clock(String),
    /// It computes on more threads than it may.
    #[error("it keeps {found} threads busy and was given {allowed}")]
    Threads {
        /// How many it keeps busy.
        found: usize,
        /// How many it was given.
        allowed: usize,
    },
    /// Its runs had more of the processors than its threads can.
    #[error(
        "the runs of its {variant} variant took {processors:.1?} of processor time in {elapsed:.1?}, \
         and it was given {allowed} thread{}: threads that end are counted too",
        if *.allowed == 1 { "" } else { "s" }
    )]
    ProcessorTime {
        /// Which variant.
        variant: &'static str,
        /// What all of its threads had.
        processors: Duration,
        /// In how much time.
        elapsed: Duration,
        /// How many threads it was given.
        allowed: usize,
    },
    /// It computes in other processes.
    #[error(
        "processes that it has started took {others:.1?} of processor time while its runs took \
         {runs:.1?}; it must compute in its own process, on the threads that it was given"
    )]
    OtherProcesses {
        /// What they had.
        others: Duration,
        /// The time of the runs.
        runs: Duration,
    },
    /// The tensors cannot be passed to it, or its output not be read.
    #[error("its tensors: {0}")]
    Tensors(#[source] io::Error),
    /// It is used after it had failed before.
    #[error("it was ended before")]
    Gone,
}
