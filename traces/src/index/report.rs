//! Looks into an index.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::layout;
use super::place::path_of;
use super::read::{Checksums, Index};
use super::stamp::Stamp;
use super::{IndexError, IndexPolicy, Unfit};
use crate::{Options, RankFile, TraceError};

/// What an index is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Where it is, or would be.
    pub path: PathBuf,
    /// Why a load would not use it; none if it would, after all of it was verified.
    pub unfit: Option<Unfit>,
    /// Its size in bytes; 0 if it cannot be read.
    pub bytes: u64,
    /// Whether it has the calls of Python functions.
    pub has_frames: bool,
    /// Its parts, in their order; none if it cannot be read.
    pub sections: Vec<Section>,
}

/// The indexes of the traces of a run, as `trace-tool index --json` prints them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IndexStates {
    /// One of each trace.
    pub indexes: Vec<IndexState>,
}

/// The index of one trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IndexState {
    /// The trace.
    pub file: String,
    /// Its index.
    pub index: String,
    /// Whether the next load would use it.
    pub is_fresh: bool,
    /// Why not.
    pub unfit: Option<String>,
    /// The size of the trace, in bytes.
    pub trace_bytes: u64,
    /// The size of the index, in bytes; 0 if it cannot be read.
    pub index_bytes: u64,
    /// Whether it has the calls of Python functions.
    pub has_frames: bool,
}

impl IndexStates {
    /// The states of several indexes.
    #[must_use]
    pub const fn new(indexes: Vec<IndexState>) -> Self {
        Self { indexes }
    }

    /// Whether the next load would use all of them.
    #[must_use]
    pub fn are_fresh(&self) -> bool {
        self.indexes.iter().all(|index| index.is_fresh)
    }
}

impl IndexState {
    /// [Looks into](inspect) the index of a trace.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read, or the policy has no place for its index.
    pub fn of(file: &RankFile, policy: &IndexPolicy) -> Result<Self, IndexError> {
        let Report { path, unfit, bytes, has_frames, .. } = inspect(&file.path, policy)?;
        Ok(Self {
            file: file.path.display().to_string(),
            index: path.display().to_string(),
            is_fresh: unfit.is_none(),
            unfit: unfit.map(|unfit| unfit.to_string()),
            trace_bytes: file.bytes,
            index_bytes: bytes,
            has_frames,
        })
    }
}

/// A part of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    /// Its name; of a column the table and the column, as `Kernels.start_ns`.
    pub name: String,
    /// The type of its elements.
    pub element: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Looks into the index of a trace, and writes nothing.
///
/// # Errors
///
/// When the trace cannot be read, or the policy has no place for its index. That there is no
/// index is a report.
pub fn inspect(trace: &Path, policy: &IndexPolicy) -> Result<Report, IndexError> {
    let read_error = |source| TraceError::Read { path: trace.to_owned(), source };
    let stamp = Stamp::of(trace).map_err(read_error)?;
    let no_place = || IndexError::NoPlace { trace: trace.to_owned() };
    let path = path_of(trace, policy).ok_or_else(no_place)?;
    let index = match Index::open(&path) {
        Ok(index) => index,
        Err(unfit) => {
            let unfit = Some(unfit);
            return Ok(Report { path, unfit, bytes: 0, has_frames: false, sections: Vec::new() });
        }
    };
    let threads = Options::default().threads();
    let is_whole = || index.trace(Checksums::Verified, threads).map_err(Unfit::from);
    let unfit = index.fits(&stamp, false).and_then(|()| is_whole().map(drop)).err();
    let sections = index.sections().iter().map(|section| Section {
        name: layout::text_of(&section.name),
        element: layout::text_of(&section.element),
        bytes: section.bytes,
    });
    Ok(Report {
        path,
        unfit,
        bytes: index.bytes(),
        has_frames: index.has_frames(),
        sections: sections.collect(),
    })
}
