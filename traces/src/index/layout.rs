//! What an index file looks like. All numbers are little-endian.
//!
//! A [`Header`], a [`Section`] entry for each section, and then the sections in the order of their
//! entries. Each begins at the next multiple of [`ALIGNMENT`] bytes, with zeros before it, and the
//! file ends with the last one. A reader that finds a section anywhere else, or another one than
//! the version of the format has at that place, takes the file as damaged.
//!
//! The first section, `description`, is JSON: the metadata, warnings, threads and streams. Two
//! more have the names: `names.text` all of them without anything between, and `names.end` where
//! in that text each one ends; `shapes.text` and `shapes.end` have the shapes in the same form, and
//! `messages.text` and `messages.end` the messages of collectives. The others are the columns of
//! the tables, as `Kernels.start_ns`, with as many bytes a row as in memory, so that nothing has to
//! be unpacked: 57 for a kernel, 40 for a launch, 36 for an operator, 24 for a Python frame.

use bytemuck::{Pod, Zeroable};
use twox_hash::XxHash3_64;

use super::stamp::Stamp;

/// The first bytes of every index.
pub(super) const MAGIC: [u8; 8] = *b"ktindex\0";

/// The version of what this module describes.
pub(super) const FORMAT: u32 = 4;

/// The version of what the loader makes of a file. Raise it with every change after which some
/// file gives other rows, names, metadata or warnings: indexes of before are rebuilt then.
pub(super) const PARSER: u32 = 5;

/// Where a section may begin: where a cache line does, and every element may.
pub(super) const ALIGNMENT: usize = 64;

/// The bit of [`Header::options`] for an index with Python frames.
pub(super) const WITH_FRAMES: u64 = 1;

/// The beginning of an index.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: [u8; 8],
    pub(super) format: u32,
    /// How many sections there are.
    pub(super) sections: u32,
    /// The size of the index.
    pub(super) bytes: u64,
    /// What [`reader`] gives for the library that wrote it.
    pub(super) reader: u64,
    /// The trace that it is of.
    pub(super) stamp: Stamp,
    /// What the trace was loaded with.
    pub(super) options: u64,
    /// Of the header without this number, and of the entries of the sections.
    pub(super) checksum: u64,
}

/// Where a section is, and what it should be.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Section {
    /// Its name, with zeros behind it.
    pub(super) name: [u8; 32],
    /// The type of its elements, with zeros behind it.
    pub(super) element: [u8; 8],
    /// Where in the file it begins.
    pub(super) offset: u64,
    /// Its size.
    pub(super) bytes: u64,
    /// XXH3 of it.
    pub(super) checksum: u64,
}

/// Tells which library reads traces this way: its version, and that of its parser.
pub(super) fn reader() -> u64 {
    checksum(format!("{} {PARSER}", env!("CARGO_PKG_VERSION")).as_bytes())
}

/// The checksum of a section.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// The checksum of a header and of the entries behind it.
pub(super) fn header_checksum(header: &Header, sections: &[Section]) -> u64 {
    let mut bytes = bytemuck::bytes_of(&Header { checksum: 0, ..*header }).to_vec();
    bytes.extend_from_slice(bytemuck::cast_slice(sections));
    checksum(&bytes)
}

/// Where the first section begins after a table of `entries`; `None` if no file can hold them.
pub(super) fn first_section(entries: usize) -> Option<usize> {
    let table = entries.checked_mul(size_of::<Section>())?;
    size_of::<Header>().checked_add(table)?.checked_next_multiple_of(ALIGNMENT)
}

/// A short text, with zeros behind it; longer ones are cut.
pub(super) const fn label<const LENGTH: usize>(text: &str) -> [u8; LENGTH] {
    let mut label = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH && at < text.len() {
        label[at] = text.as_bytes()[at];
        at += 1;
    }
    label
}

/// The text of a label.
pub(super) fn text_of(label: &[u8]) -> String {
    String::from_utf8_lossy(label).trim_end_matches('\0').to_owned()
}
