//! Writes an index.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::layout::{self, FORMAT, Header, MAGIC, Section, WITH_FRAMES};
use super::stamp::Stamp;
use crate::section::Part;
use crate::{Lane, Metadata, Names, Thread, Trace, Warning};

/// The name of the section that is a [`Description`].
pub(super) const DESCRIPTION: &str = "description";
/// The name of the section with the text of all names.
pub(super) const NAMES_TEXT: &str = "names.text";
/// The name of the section that says where in that text each name ends.
pub(super) const NAMES_END: &str = "names.end";

/// The names of the sections with the shapes, in the same form.
pub(super) const SHAPES_TEXT: &str = "shapes.text";
pub(super) const SHAPES_END: &str = "shapes.end";

/// The same for the messages of collectives.
pub(super) const MESSAGES_TEXT: &str = "messages.text";
pub(super) const MESSAGES_END: &str = "messages.end";

/// Everything in a trace except columns and names.
#[derive(Serialize, Deserialize)]
pub(super) struct Description {
    /// The library that wrote it, for people.
    pub(super) writer: String,
    pub(super) metadata: Metadata,
    pub(super) threads: Vec<Thread>,
    pub(super) lanes: Vec<Lane>,
    pub(super) events: u64,
    pub(super) bytes: u64,
    pub(super) warnings: Vec<Warning>,
}

/// Writes the index of a trace in that state: how large it is.
pub(super) fn write(
    trace: &Trace,
    stamp: Stamp,
    has_frames: bool,
    out: &mut impl Write,
) -> io::Result<u64> {
    let description = serde_json::to_vec(&Description {
        writer: concat!("kernel-traces ", env!("CARGO_PKG_VERSION")).to_owned(),
        metadata: trace.metadata.clone(),
        threads: trace.threads.clone(),
        lanes: trace.lanes.clone(),
        events: trace.events,
        bytes: trace.bytes,
        warnings: trace.warnings.clone(),
    })?;
    let (text, ends) = joined(&trace.names);
    let (shapes_text, shapes_ends) = joined(&trace.shapes);
    let (messages_text, messages_ends) = joined(&trace.messages);
    let mut parts = vec![
        Part { name: DESCRIPTION, kind: "json", bytes: &description },
        Part { name: NAMES_TEXT, kind: "utf-8", bytes: text.as_bytes() },
        Part::of(NAMES_END, &ends),
        Part { name: SHAPES_TEXT, kind: "utf-8", bytes: shapes_text.as_bytes() },
        Part::of(SHAPES_END, &shapes_ends),
        Part { name: MESSAGES_TEXT, kind: "utf-8", bytes: messages_text.as_bytes() },
        Part::of(MESSAGES_END, &messages_ends),
    ];
    parts.extend(trace.kernels.columns());
    parts.extend(trace.launches.columns());
    parts.extend(trace.annotations.columns());
    parts.extend(trace.ops.columns());
    parts.extend(trace.frames.columns());
    write_parts(&parts, stamp, has_frames, out)
}

/// All names without anything between, and where each one ends.
fn joined(names: &Names) -> (String, Vec<u64>) {
    let mut text = String::new();
    let mut ends = Vec::with_capacity(names.len());
    for (_, name) in names.iter() {
        text.push_str(name);
        ends.push(text.len() as u64);
    }
    (text, ends)
}

fn write_parts(
    parts: &[Part<'_>],
    stamp: Stamp,
    has_frames: bool,
    out: &mut impl Write,
) -> io::Result<u64> {
    let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
    let mut end = layout::first_section(parts.len()).ok_or_else(too_large)?;
    let mut sections = Vec::with_capacity(parts.len());
    for part in parts {
        let offset = end.checked_next_multiple_of(layout::ALIGNMENT).ok_or_else(too_large)?;
        end = offset.checked_add(part.bytes.len()).ok_or_else(too_large)?;
        sections.push(Section {
            name: layout::label(part.name),
            element: layout::label(part.kind),
            offset: offset as u64,
            bytes: part.bytes.len() as u64,
            checksum: layout::checksum(part.bytes),
        });
    }
    let mut header = Header {
        magic: MAGIC,
        format: FORMAT,
        sections: u32::try_from(parts.len()).map_err(|_| too_large())?,
        bytes: end as u64,
        reader: layout::reader(),
        stamp,
        options: if has_frames { WITH_FRAMES } else { 0 },
        checksum: 0,
    };
    header.checksum = layout::header_checksum(&header, &sections);
    out.write_all(bytemuck::bytes_of(&header))?;
    out.write_all(bytemuck::cast_slice(&sections))?;
    let mut at = size_of::<Header>() + size_of_val(sections.as_slice());
    for part in parts {
        let padding = at.next_multiple_of(layout::ALIGNMENT) - at;
        out.write_all([0; layout::ALIGNMENT].get(..padding).unwrap_or_default())?;
        out.write_all(part.bytes)?;
        at += padding + part.bytes.len();
    }
    out.flush()?;
    Ok(end as u64)
}

/// The index of a trace in memory, as of a file that is not there: for tests and fuzzing.
///
/// # Errors
///
/// None that a vector could give.
#[doc(hidden)]
pub fn to_bytes(trace: &Trace) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(trace, bytemuck::Zeroable::zeroed(), true, &mut bytes)?;
    Ok(bytes)
}
