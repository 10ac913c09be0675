//! Reads an index, and believes nothing in it.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use memmap2::{Mmap, MmapMut};

use super::Unfit;
use super::layout::{self, FORMAT, Header, MAGIC, Section, WITH_FRAMES};
use super::stamp::Stamp;
use super::write::{
    DESCRIPTION, Description, MESSAGES_END, MESSAGES_TEXT, NAMES_END, NAMES_TEXT, SHAPES_END,
    SHAPES_TEXT,
};
use crate::section::{Damage, Element, Sections};
use crate::{Annotations, Column, Frames, Kernels, Launches, NameId, Names, Ops, Trace};

/// Whether checksums are compared.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksums {
    /// As in every load.
    Verified,
    /// What else is checked must be enough to be safe; for fuzzing, which finds no checksums.
    Ignored,
}

/// An index whose header and sections are where they must be.
pub(super) struct Index {
    map: Arc<Mmap>,
    header: Header,
    sections: Vec<Section>,
}

impl Index {
    /// Maps an index.
    pub(super) fn open(path: &Path) -> Result<Self, Unfit> {
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Unfit::Missing,
            kind => Unfit::Unreadable(kind),
        };
        // Not by the open file, as opening a pipe can take forever.
        if !fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(Unfit::Unreadable(io::ErrorKind::InvalidInput));
        }
        let file = File::open(path).map_err(unreadable)?;
        // SAFETY: the mapping is read only, and an index is not written any more from the moment
        // it has its name: a newer one is another file that takes the name over. That no other
        // program writes into it cannot be enforced, as with every program that maps files; it is
        // assumed because its name says whose it is. The columns that stay mapped are of types
        // that all bytes are.
        let map = unsafe { Mmap::map(&file) }.map_err(unreadable)?;
        Self::new(map, Checksums::Verified)
    }

    /// The index that some bytes are.
    fn new(map: Mmap, checksums: Checksums) -> Result<Self, Unfit> {
        let head = map.get(..size_of::<Header>()).ok_or(Damage::Header)?;
        let header: Header = bytemuck::pod_read_unaligned(head);
        if header.magic != MAGIC {
            return Err(Damage::Header.into());
        }
        if header.format != FORMAT {
            return Err(Unfit::OtherVersion);
        }
        let table = (header.sections as usize).checked_mul(size_of::<Section>());
        let entries = table
            .and_then(|bytes| map.get(size_of::<Header>()..)?.get(..bytes))
            .ok_or(Damage::Header)?;
        let entries = entries.chunks_exact(size_of::<Section>());
        let sections: Vec<Section> = entries.map(bytemuck::pod_read_unaligned).collect();
        let is_whole = checksums == Checksums::Ignored
            || header.checksum == layout::header_checksum(&header, &sections);
        if !is_whole || header.bytes != map.len() as u64 {
            return Err(Damage::Header.into());
        }
        if header.reader != layout::reader() {
            return Err(Unfit::OtherVersion);
        }
        let index = Self { map: Arc::new(map), header, sections };
        index.check_places()?;
        Ok(index)
    }

    /// Whether it serves a load of a trace in that state.
    pub(super) fn fits(&self, stamp: &Stamp, needs_frames: bool) -> Result<(), Unfit> {
        if self.header.stamp != *stamp {
            Err(Unfit::Stale)
        } else if needs_frames && !self.has_frames() {
            Err(Unfit::NoFrames)
        } else {
            Ok(())
        }
    }

    pub(super) fn has_frames(&self) -> bool {
        self.header.options & WITH_FRAMES != 0
    }

    pub(super) fn bytes(&self) -> u64 {
        self.header.bytes
    }

    pub(super) fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Whether each section follows the one before it, and the last one ends with the file.
    fn check_places(&self) -> Result<(), Damage> {
        let mut at = size_of::<Header>() + size_of_val(self.sections.as_slice());
        for section in &self.sections {
            let misplaced = || Damage::Place { section: layout::text_of(&section.name) };
            let range = range(section).ok_or_else(misplaced)?;
            let gap = self.map.get(at..range.start).ok_or_else(misplaced)?;
            let is_next = at.next_multiple_of(layout::ALIGNMENT) == range.start;
            if !is_next || gap.iter().any(|&byte| byte != 0) || range.end > self.map.len() {
                return Err(misplaced());
            }
            at = range.end;
        }
        if at == self.map.len() { Ok(()) } else { Err(Damage::Header) }
    }

    /// Compares the checksums of all sections.
    fn check_sums(&self, threads: usize) -> Result<(), Damage> {
        let next = AtomicUsize::new(0);
        let check = || {
            while let Some(section) = self.sections.get(next.fetch_add(1, Ordering::Relaxed)) {
                let bytes = range(section).and_then(|range| self.map.get(range));
                if bytes.map(layout::checksum) != Some(section.checksum) {
                    return Err(Damage::Checksum { section: layout::text_of(&section.name) });
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let helpers: Vec<_> = (1..threads)
                .map_while(|_| thread::Builder::new().spawn_scoped(scope, check).ok())
                .collect();
            let mut result = check();
            for helper in helpers {
                // A helper that did not end well has not said that its sections are whole.
                result = result.and(helper.join().unwrap_or(Err(Damage::Header)));
            }
            result
        })
    }

    /// The trace, whose columns stay in the file.
    pub(super) fn trace(&self, checksums: Checksums, threads: usize) -> Result<Trace, Damage> {
        if checksums == Checksums::Verified {
            // Before they are touched one by one. It only makes it faster.
            #[cfg(target_os = "linux")]
            let _ = self.map.advise(memmap2::Advice::PopulateRead);
            self.check_sums(threads)?;
        }
        let mut sections = InOrder { index: self, next: 0 };
        let description = sections.bytes(DESCRIPTION, "json")?;
        let description: Description =
            serde_json::from_slice(description).map_err(|_| impossible(DESCRIPTION))?;
        let names = names_of(&mut sections, NAMES_TEXT, NAMES_END)?;
        let shapes = names_of(&mut sections, SHAPES_TEXT, SHAPES_END)?;
        let messages = names_of(&mut sections, MESSAGES_TEXT, MESSAGES_END)?;
        let trace = Trace {
            metadata: description.metadata,
            names,
            shapes,
            messages,
            threads: description.threads,
            lanes: description.lanes,
            events: description.events,
            bytes: description.bytes,
            warnings: description.warnings,
            kernels: Kernels::from_sections(&mut sections)?,
            launches: Launches::from_sections(&mut sections)?,
            annotations: Annotations::from_sections(&mut sections)?,
            ops: Ops::from_sections(&mut sections)?,
            frames: Frames::from_sections(&mut sections)?,
        };
        if let Some(section) = self.sections.get(sections.next) {
            return Err(Damage::Place { section: layout::text_of(&section.name) });
        }
        check_ids(&trace)?;
        Ok(trace)
    }
}

/// Takes the sections in the order in which the format has them.
struct InOrder<'i> {
    index: &'i Index,
    next: usize,
}

impl<'i> InOrder<'i> {
    fn range(&mut self, name: &'static str, kind: &'static str) -> Result<Range<usize>, Damage> {
        let section = self.index.sections.get(self.next).filter(|section| {
            section.name == layout::label(name) && section.element == layout::label(kind)
        });
        self.next += 1;
        section.and_then(range).ok_or_else(|| Damage::Place { section: name.to_owned() })
    }

    fn bytes(&mut self, name: &'static str, kind: &'static str) -> Result<&'i [u8], Damage> {
        let range = self.range(name, kind)?;
        self.index.map.get(range).ok_or_else(|| Damage::Place { section: name.to_owned() })
    }
}

impl Sections for InOrder<'_> {
    fn column<T: Element>(&mut self, name: &'static str) -> Result<Column<T>, Damage> {
        let range = self.range(name, T::KIND)?;
        T::column(&self.index.map, range.start, range.len()).ok_or_else(|| impossible(name))
    }
}

/// Where a section is, if memory can have such a place.
fn range(section: &Section) -> Option<Range<usize>> {
    let start = usize::try_from(section.offset).ok()?;
    Some(start..start.checked_add(usize::try_from(section.bytes).ok()?)?)
}

fn impossible(section: &'static str) -> Damage {
    Damage::Values { section: section.to_owned() }
}

/// Takes two sections: a text, and where in it the names end.
fn names_of(
    sections: &mut InOrder<'_>,
    text_name: &'static str,
    ends_name: &'static str,
) -> Result<Names, Damage> {
    let text = sections.bytes(text_name, "utf-8")?;
    let ends: Column<u64> = sections.column(ends_name)?;
    let text = str::from_utf8(text).map_err(|_| impossible(text_name))?;
    let mut start = 0;
    let cut = ends.iter().map(|&end| {
        let end = usize::try_from(end).ok()?;
        // None as well if it is within a character.
        let name = text.get(start..end)?;
        start = end;
        Some(name.into())
    });
    let texts: Vec<Box<str>> = cut.collect::<Option<_>>().ok_or_else(|| impossible(ends_name))?;
    if start == text.len() { Ok(Names::from_texts(texts)) } else { Err(impossible(ends_name)) }
}

/// Whether all that rows refer to is there.
fn check_ids(trace: &Trace) -> Result<(), Damage> {
    let names: [(&'static str, &[NameId]); 5] = [
        ("Kernels.name", &trace.kernels.name),
        ("Launches.name", &trace.launches.name),
        ("Annotations.name", &trace.annotations.name),
        ("Ops.name", &trace.ops.name),
        ("Frames.name", &trace.frames.name),
    ];
    let others: [(&'static str, &[u32], usize); 7] = [
        ("Kernels.lane", &trace.kernels.lane, trace.lanes.len()),
        ("Launches.thread", &trace.launches.thread, trace.threads.len()),
        ("Annotations.thread", &trace.annotations.thread, trace.threads.len()),
        ("Ops.thread", &trace.ops.thread, trace.threads.len()),
        ("Frames.thread", &trace.frames.thread, trace.threads.len()),
        ("Annotations.shape", &trace.annotations.shape, trace.shapes.len()),
        ("Ops.shape", &trace.ops.shape, trace.shapes.len()),
    ];
    // Of a trace whose kernels all do not say, there is no message to refer to.
    let messages = trace.messages.len().max(1);
    let others = others.into_iter().chain([("Kernels.message", &*trace.kernels.message, messages)]);
    let names = names
        .into_iter()
        .map(|(section, ids)| (section, ids.iter().map(|id| id.0).max(), trace.names.len()));
    let others = others.map(|(section, ids, count)| (section, ids.iter().copied().max(), count));
    for (section, most, count) in names.chain(others) {
        if most.is_some_and(|most| most as usize >= count) {
            return Err(impossible(section));
        }
    }
    Ok(())
}

/// The trace of an index in memory, whatever file it is of: for tests and fuzzing.
///
/// # Errors
///
/// When it is not an index, or not one of this version.
#[doc(hidden)]
pub fn read_bytes(bytes: &[u8], checksums: Checksums) -> Result<Trace, Unfit> {
    let unreadable = |error: io::Error| Unfit::Unreadable(error.kind());
    let mut map = MmapMut::map_anon(bytes.len().max(1)).map_err(unreadable)?;
    map.get_mut(..bytes.len()).unwrap_or_default().copy_from_slice(bytes);
    let index = Index::new(map.make_read_only().map_err(unreadable)?, checksums)?;
    Ok(index.trace(checksums, 1)?)
}
