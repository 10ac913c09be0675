//! The index of a trace: its columns in a file, which a second load maps instead of reading JSON.
//!
//! `layout` says what the file looks like, `write` writes it and `read` reads it, `element`
//! ties the columns of the tables to their bytes, `stamp` tells one state of a trace from
//! another, `place` says where indexes are and puts them there, `report` looks into one, and
//! `open` is the load that uses all of these.
//!
//! An index is never trusted. It is used only if it was made of the trace as it is now, by this
//! version of the reader; if all of it is where the format wants it, with the right checksums; and
//! if no row refers to a name, a thread or a stream that is not there. Else the trace is read as
//! if there were no index, and a new one is written. The checksums are for accidents: whoever may
//! write the file can write another trace into it, but nothing that a reader would trip over.

mod element;
mod layout;
mod open;
mod place;
mod read;
mod report;
mod stamp;
#[cfg(test)]
mod tests;
mod write;

use std::io;
use std::path::PathBuf;

pub use open::{build, is_there};
pub use place::path_of;
#[doc(hidden)]
pub use read::{Checksums, read_bytes};
pub use report::{IndexState, IndexStates, Report, Section, inspect};
#[doc(hidden)]
pub use write::to_bytes;

use crate::TraceError;
pub use crate::section::Damage;

/// Where the indexes of traces are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum IndexPolicy {
    /// Beside the trace: its name, and `.ktindex` behind it.
    #[default]
    Beside,
    /// In a folder for all traces, which is made if it is missing.
    In(PathBuf),
    /// Nowhere: none is read and none is written.
    Off,
}

/// What the index did for a load.
#[derive(Debug)]
pub enum IndexUse {
    /// None was wanted, or the load was to show what the strict parser reads.
    Off,
    /// The trace comes from the index.
    Read,
    /// The trace was read, and so fast that no index was written.
    TooSmall,
    /// The trace was read, and a new index was written.
    Written {
        /// Why the old one did not serve.
        was: Unfit,
    },
    /// The trace was read, and no index could be written.
    NotWritten {
        /// Why the old one did not serve.
        was: Unfit,
        /// Why there is no new one.
        error: IndexError,
    },
}

/// Why an index does not serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// There is none.
    #[error("there is no index")]
    Missing,
    /// The file cannot be read.
    #[error("the index cannot be read: {0}")]
    Unreadable(io::ErrorKind),
    /// The trace is not what it was when the index was written.
    #[error("the trace has changed since the index was written")]
    Stale,
    /// Another version of this library wrote it.
    #[error("another version wrote the index")]
    OtherVersion,
    /// It was written without the calls of Python functions, and they are wanted.
    #[error("the index has no Python frames")]
    NoFrames,
    /// It is not what was written.
    #[error("the index is damaged: {0}")]
    Damaged(#[from] Damage),
}

/// Why an index was not written.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The trace cannot be loaded.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// There is no place for it.
    #[error("there is no place for an index of {}", trace.display())]
    NoPlace {
        /// The trace.
        trace: PathBuf,
    },
    /// The trace became another one while it was read.
    #[error("{} was written while it was read", trace.display())]
    Changed {
        /// The trace.
        trace: PathBuf,
    },
    /// The system does not let it be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The index.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}
