//! From a file to columns.
//!
//! [`source`] gives the bytes, [`walk`] finds the metadata and the events at the top level,
//! [`list`] goes from event to event, [`fast`] or else [`strict`] reads one unless [`repeats`] has
//! one that is written alike, and [`builder`] puts it into columns, without the [`strays`].
//! [`parallel`] does a long list on several threads, and [`pages`] gives back the
//! memory of a mapped file behind them. [`profilers`] reads the recordings of other profilers.

mod block;
mod boundary;
mod builder;
mod digits;
mod event;
mod fast;
mod layout;
mod list;
mod messages;
mod nesting;
mod pages;
mod parallel;
mod profilers;
mod repeats;
mod row;
mod scan;
mod shapes;
mod source;
mod strays;
mod strict;
mod tail;
mod template;
mod walk;

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread;

use memmap2::Mmap;

use crate::{Metadata, Trace, TraceError, Warning};
pub(crate) use builder::Builder;
use source::Feed;
use walk::{End, Taker, Walk, Wanted};

/// The first bytes of what gzip compressed.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// How a trace is loaded.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many threads read a plain file; none means as many as there are processors.
    pub threads: Option<NonZero<usize>>,
    /// Whether calls of Python functions are kept. Traces with stacks have more of them than of
    /// everything else.
    pub frames: bool,
    /// Whether every event goes through the strict parser: slow, and the same result.
    pub strict: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: None, frames: true, strict: false }
    }
}

impl Options {
    pub(crate) fn threads(&self) -> usize {
        let wanted = self.threads.or_else(|| thread::available_parallelism().ok());
        wanted.map_or(1, NonZero::get)
    }
}

impl Trace {
    /// Loads a trace, plain or compressed with gzip.
    ///
    /// `progress` is called with the bytes of the file that are done, and with all of them.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not a trace. A trace that is damaged is loaded as far as
    /// it is whole, with a [`Warning`].
    pub fn load(
        path: impl AsRef<Path>,
        options: &Options,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, TraceError> {
        let path = path.as_ref();
        with_file(path, |feed, size| {
            let mut report = |_: &mut Builder, done: u64| {
                progress(done.min(size), size);
                ControlFlow::Continue(())
            };
            let loaded = load(feed, options, &mut report).map_err(|reason| not(path, reason))?;
            progress(size, size);
            Ok(loaded.trace)
        })
    }

    /// Loads a trace from its text.
    ///
    /// # Errors
    ///
    /// When it is not a trace, under the name `<memory>`.
    pub fn from_json(text: &[u8], options: &Options) -> Result<Self, TraceError> {
        Self::from_text_of(Path::new("<memory>"), text, options)
    }

    /// Reads a trace that was read from a file.
    pub(crate) fn from_text_of(
        path: &Path,
        text: &[u8],
        options: &Options,
    ) -> Result<Self, TraceError> {
        let feed = Feed::whole(text);
        let loaded = load(feed, options, &mut |_, _| ControlFlow::Continue(()));
        Ok(loaded.map_err(|reason| not(path, reason))?.trace)
    }

    /// Reads what a trace says about its run without its events, which takes no longer for a
    /// larger file. Profilers write the devices before the events; some tools move them behind,
    /// where they are found in a plain file, and in a compressed one only by [`Trace::load`].
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not a trace.
    pub fn metadata(path: impl AsRef<Path>) -> Result<Metadata, TraceError> {
        let path = path.as_ref();
        with_file(path, |feed, _| {
            let mut ignore = |_: &mut Builder, _| ControlFlow::Continue(());
            let mut walk = new_walk(feed, &Options::default(), &mut ignore);
            walk.wanted = Wanted::Head;
            match walk.run() {
                Err(End::NotATrace(reason)) => {
                    let decompression = walk.feed.decompression_error();
                    Err(not(path, decompression.map_or(reason, undone)))
                }
                Err(End::Truncated) => {
                    let decompression = walk.feed.decompression_error();
                    Err(not(path, decompression.map_or_else(|| NO_EVENTS.to_owned(), undone)))
                }
                Err(End::Enough) => {
                    walk.tail();
                    Ok(walk.metadata)
                }
                Ok(()) if walk.has_events => Ok(walk.metadata),
                Ok(()) => Err(not(path, "it has no traceEvents".to_owned())),
            }
        })
    }
}

/// What the names of traces end with, apart from `.gz` behind it.
const ENDS: [&str; 4] = [".json", ".jsonl", ".sqlite", "kernel_trace.csv"];

/// The traces that a path names: the file itself, or every `.json`, `.jsonl`, `.sqlite` and
/// `kernel_trace.csv` in a folder, with or without `.gz`, as one for each rank of a distributed run,
/// by name.
///
/// # Errors
///
/// When the folder cannot be read.
pub fn trace_files(path: impl AsRef<Path>) -> Result<Vec<PathBuf>, TraceError> {
    let path = path.as_ref();
    let read_error = |source| TraceError::Read { path: path.to_owned(), source };
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(read_error)? {
        let file = entry.map_err(read_error)?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        if ENDS.iter().any(|end| plain.ends_with(end)) && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// Why what is cut early is not a trace.
const NO_EVENTS: &str = "it ends before its events";

/// Why what was decompressed is not a trace.
fn undone(error: String) -> String {
    format!("it cannot be decompressed: {error}")
}

pub(crate) fn not(path: &Path, reason: String) -> TraceError {
    TraceError::NotATrace { path: path.to_owned(), reason }
}

/// Opens a file and gives its text and its size.
pub(crate) fn with_file<T>(
    path: &Path,
    read: impl FnOnce(Feed<'_>, u64) -> Result<T, TraceError>,
) -> Result<T, TraceError> {
    let read_error = |source| TraceError::Read { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(read_error)?;
    let information = file.metadata().map_err(read_error)?;
    if !information.is_file() {
        let reason = io::Error::new(io::ErrorKind::InvalidInput, "it is not a file");
        return Err(read_error(reason));
    }
    let size = information.len();
    let mut start = Vec::new();
    Read::by_ref(&mut file).take(2).read_to_end(&mut start).map_err(read_error)?;
    file.rewind().map_err(read_error)?;
    if start == GZIP {
        return read(Feed::gzip(file), size);
    }
    if size == 0 {
        return read(Feed::whole(&[]), 0);
    }
    // SAFETY: the mapping is read only, and this process neither writes the file nor maps it
    // twice. That no other process changes it meanwhile cannot be enforced, as with every program
    // that maps files; it is assumed because a trace is written once, by a profiler that has ended
    // its recording, and only read after that.
    let map = unsafe { Mmap::map(&file) }.map_err(read_error)?;
    // It only makes reading ahead faster.
    #[cfg(unix)]
    let _ = map.advise(memmap2::Advice::Sequential);
    read(Feed::mapped(&map, path), size)
}

fn new_walk<'w, 's>(feed: Feed<'s>, options: &Options, taker: &'w mut Taker<'w>) -> Walk<'w, 's> {
    Walk {
        feed,
        builder: Builder::new(options.frames),
        metadata: Metadata::default(),
        warnings: Vec::new(),
        bad_keys: Vec::new(),
        options: options.clone(),
        has_events: false,
        wanted: Wanted::Whole,
        taker,
    }
}

/// What was read of a trace: all but the rows that were taken away.
pub(crate) struct Loaded {
    pub(crate) trace: Trace,
    /// Whether the file was read to its end.
    pub(crate) is_complete: bool,
}

/// Reads a trace from its bytes, or says why it is none.
pub(crate) fn load<'t>(
    feed: Feed<'_>,
    options: &Options,
    taker: &'t mut Taker<'t>,
) -> Result<Loaded, String> {
    read(new_walk(feed, options, taker))
}

/// Whether a file is a trace as far as its first complete event shows it.
pub(crate) fn has_event(path: &Path) -> Result<(), TraceError> {
    with_file(path, |feed, _| {
        let mut until_first = |builder: &mut Builder, _| match builder.events() {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let mut walk = new_walk(feed, &Options::default(), &mut until_first);
        walk.wanted = Wanted::FirstEvent;
        read(walk).map(drop).map_err(|reason| not(path, reason))
    })
}

/// Reads a trace as far as it is wanted.
fn read(mut walk: Walk<'_, '_>) -> Result<Loaded, String> {
    let end = walk.run();
    let complete_bytes = walk.feed.offset();
    let is_complete = end != Err(End::Enough);
    // Of what is not a trace, not more is read than shows that.
    let is_drained = walk.has_events && is_complete;
    let dropped_bytes = if is_drained { walk.feed.drain() } else { 0 };
    let decompression = walk.feed.decompression_error();
    // What is wrong behind the events is not a reason to throw them away.
    let (is_truncated, is_broken) = match end.clone() {
        Err(End::NotATrace(reason)) if !walk.has_events => {
            return Err(decompression.map_or(reason, undone));
        }
        Ok(()) if !walk.has_events => return Err("it has no traceEvents".to_owned()),
        Err(_) if !walk.has_events => return Err(NO_EVENTS.to_owned()),
        // What follows the end of the compressed text, such as padding, is not of the trace.
        Ok(()) => (decompression.is_some() && !walk.feed.is_broken_behind(), false),
        Err(End::NotATrace(_)) => (decompression.is_some(), true),
        Err(End::Truncated) => (true, false),
        Err(End::Enough) => (false, false),
    };
    let has_other = (is_truncated && dropped_bytes > 0) || walk.builder.has_broken();
    if walk.builder.events() == 0 && has_other {
        return Err("its list has no complete event".to_owned());
    }
    let mut warnings = walk.warnings;
    if let (Ok(()), false, Some(decompression)) = (&end, is_truncated, &decompression) {
        warnings.push(Warning::TrailingBytes { decompression: decompression.clone() });
    }
    if is_broken {
        warnings.push(Warning::BrokenEnd { at: complete_bytes, dropped_bytes });
    }
    if is_truncated {
        warnings.push(Warning::Truncated { complete_bytes, dropped_bytes, decompression });
    }
    if !walk.bad_keys.is_empty() {
        warnings.push(Warning::BadMetadata { keys: walk.bad_keys });
    }
    let mut trace = walk.builder.finish();
    trace.metadata = walk.metadata;
    trace.bytes = complete_bytes + dropped_bytes;
    warnings.append(&mut trace.warnings);
    trace.warnings = warnings;
    Ok(Loaded { trace, is_complete })
}
