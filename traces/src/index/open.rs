//! The load that reads an index, or writes one.

use std::path::{Path, PathBuf};

use super::place::{path_of, store};
use super::read::{Checksums, Index};
use super::stamp::Stamp;
use super::write::write;
use super::{IndexError, IndexPolicy, IndexUse, Unfit};
use crate::{Frames, Options, Trace, TraceError};

/// How much JSON is worth an index, in bytes. Less of it takes some milliseconds to read, and a
/// folder of small traces need not have twice as many files for that.
const WORTH_IT: u64 = 4 << 20;

impl Trace {
    /// Loads a trace like [`Trace::load`], from its index if that is what the trace is now; else
    /// it writes the index for the next time.
    ///
    /// An index that cannot be used or written is not a reason to fail; what became of it is the
    /// second result. Without Python frames in [`Options`], an index that has them serves as well:
    /// the table of frames is empty then, but their names are among the names and their threads
    /// among the threads, and the warnings count them. No index is written for a trace of less
    /// than 4 MiB of JSON, see [`index::build`](crate::index::build), and none is used with
    /// [`Options::strict`].
    ///
    /// # Errors
    ///
    /// As [`Trace::load`].
    pub fn open(
        path: impl AsRef<Path>,
        options: &Options,
        policy: &IndexPolicy,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(Self, IndexUse), TraceError> {
        let trace = path.as_ref();
        let place = if options.strict { None } else { path_of(trace, policy) };
        let Some(place) = place else {
            return Ok((Self::load(trace, options, progress)?, IndexUse::Off));
        };
        // What cannot be read says so when it is loaded.
        let Ok(stamp) = Stamp::of(trace) else {
            return Ok((Self::load(trace, options, progress)?, IndexUse::Off));
        };
        let was = match read(&place, &stamp, options) {
            Ok(trace) => {
                progress(stamp.bytes, stamp.bytes);
                return Ok((trace, IndexUse::Read));
            }
            Err(was) => was,
        };
        let loaded = Self::load(trace, options, progress)?;
        if was == Unfit::Missing && loaded.bytes < WORTH_IT {
            return Ok((loaded, IndexUse::TooSmall));
        }
        let index = match save(&loaded, trace, stamp, options, place) {
            Ok(_) => IndexUse::Written { was },
            Err(error) => IndexUse::NotWritten { was, error },
        };
        Ok((loaded, index))
    }
}

/// Whether [`Trace::open`] would find an index of the trace as it is now. Only its beginning is
/// read, so a damaged one is not seen: a load that needs little memory if it is true may need more.
#[must_use]
pub fn is_there(trace: &Path, options: &Options, policy: &IndexPolicy) -> bool {
    let fits = || {
        let stamp = Stamp::of(trace).ok()?;
        Index::open(&path_of(trace, policy)?).ok()?.fits(&stamp, options.frames).ok()
    };
    !options.strict && fits().is_some()
}

/// Writes the index of a trace of any size, also if there is one already: where it is.
///
/// # Errors
///
/// When the trace cannot be loaded, or the index cannot be written.
pub fn build(
    trace: &Path,
    options: &Options,
    policy: &IndexPolicy,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<PathBuf, IndexError> {
    let read_error = |source| TraceError::Read { path: trace.to_owned(), source };
    let stamp = Stamp::of(trace).map_err(read_error)?;
    let no_place = || IndexError::NoPlace { trace: trace.to_owned() };
    let place = path_of(trace, policy).ok_or_else(no_place)?;
    save(&Trace::load(trace, options, progress)?, trace, stamp, options, place)
}

fn read(place: &Path, stamp: &Stamp, options: &Options) -> Result<Trace, Unfit> {
    let index = Index::open(place)?;
    index.fits(stamp, options.frames)?;
    let mut trace = index.trace(Checksums::Verified, options.threads())?;
    if !options.frames {
        trace.frames = Frames::default();
    }
    Ok(trace)
}

/// Writes the index of a trace that was loaded, if the file still is in the state of before.
fn save(
    loaded: &Trace,
    trace: &Path,
    stamp: Stamp,
    options: &Options,
    place: PathBuf,
) -> Result<PathBuf, IndexError> {
    if !Stamp::of(trace).is_ok_and(|now| now == stamp) {
        return Err(IndexError::Changed { trace: trace.to_owned() });
    }
    match store(&place, trace, |out| write(loaded, stamp, options.frames, out)) {
        Ok(_) => Ok(place),
        Err(source) => Err(IndexError::Write { path: place, source }),
    }
}
