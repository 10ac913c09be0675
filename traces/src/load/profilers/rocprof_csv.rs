//! The table of kernels of rocprofv3, `*_kernel_trace.csv`.
//!
//! A row for each dispatch, under a header whose columns differ between versions. It names the
//! agent and no device, and has neither calls nor marks.

use csv::{ByteRecord, ReaderBuilder};

use super::super::event::{Category, Event};
use super::super::scan::Stop;
use super::events::{OnDevice, Span, event};
use super::{Extent, Reader};

/// Whether a text begins as the header of such a table does.
pub(super) fn is_one(text: &[u8]) -> bool {
    let begins = |start: &str| {
        text.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start.as_bytes()))
    };
    ["\"Kind\",", "Kind,", "\"Guid\",\"Kind\",", "Guid,Kind,"].into_iter().any(begins)
}

/// Where the columns are.
struct Columns {
    name: usize,
    start: usize,
    end: usize,
    agent: Option<usize>,
    stream: Option<usize>,
    correlation: Option<usize>,
}

impl Columns {
    /// The columns by their names; or which one is missing.
    fn of(header: &ByteRecord) -> Result<Self, String> {
        let column = |name: &str| {
            let is_it = |field: &[u8]| field.eq_ignore_ascii_case(name.as_bytes());
            header.iter().position(is_it)
        };
        let needed = |name: &str| {
            column(name).ok_or_else(|| {
                format!(
                    "it looks like a table of rocprofv3, and has no column {name}; of these tables \
                     the one of kernels, *_kernel_trace.csv, can be read"
                )
            })
        };
        Ok(Self {
            name: needed("Kernel_Name")?,
            start: needed("Start_Timestamp")?,
            end: needed("End_Timestamp")?,
            agent: column("Agent_Id"),
            // Older versions know queues only.
            stream: column("Stream_Id").or_else(|| column("Queue_Id")),
            correlation: column("Correlation_Id"),
        })
    }
}

/// Reads a table; or why it is none.
pub(super) fn read(text: &[u8], reader: &mut Reader<'_>) -> Result<Extent, String> {
    let mut table = ReaderBuilder::new().flexible(true).from_reader(text);
    let header = table.byte_headers().map_err(|error| error.to_string())?.clone();
    // A column may be cut in its name, or be missing behind the cut.
    if !text.contains(&b'\n') {
        return Ok((0, Err(Stop::Incomplete)));
    }
    let columns = Columns::of(&header)?;
    if reader.head_only {
        return Ok((0, Ok(())));
    }
    let ends_with_a_row = text.ends_with(b"\n");
    let mut row = ByteRecord::new();
    loop {
        let at = place(table.position().byte());
        // The bytes are in memory, and rows may have any length.
        if !table.read_byte_record(&mut row).map_err(|error| error.to_string())? {
            return Ok((text.len(), Ok(())));
        }
        let next = place(table.position().byte());
        if next >= text.len() && !ends_with_a_row && row.len() < header.len() {
            return Ok((at, Err(Stop::Incomplete)));
        }
        // Where a comma too many stands, numbers are not in their columns.
        let is_whole = row.len() == header.len();
        match found(&columns, &row).filter(|_| is_whole) {
            Some((name, event)) => {
                let event = Event { name: name.into(), ..event };
                reader.builder.add(Some(&event), at as u64);
            }
            None => reader.builder.broken(at as u64, next.saturating_sub(at) as u64),
        }
    }
}

fn place(byte: u64) -> usize {
    usize::try_from(byte).unwrap_or(usize::MAX)
}

/// A row: the name of the kernel, and all else about it. None if a needed one is missing.
fn found<'r>(columns: &Columns, row: &'r ByteRecord) -> Option<(&'r [u8], Event<'static>)> {
    let number = |column: usize| str::from_utf8(row.get(column)?).ok()?.trim().parse::<i64>().ok();
    let name = row.get(columns.name)?;
    let span = Span { start: number(columns.start), end: number(columns.end) };
    let place = OnDevice {
        device: columns.agent.and_then(|column| last_number(row.get(column)?)),
        stream: columns.stream.and_then(number),
        correlation: columns.correlation.and_then(number).and_then(|id| id.try_into().ok()),
        graph_node: None,
    };
    Some((name, Event { args: place.args(), ..event(Category::Kernel, "", span) }))
}

/// The number of `Agent 2`, `GPU 0` or `4`.
fn last_number(text: &[u8]) -> Option<i64> {
    let text = str::from_utf8(text).ok()?.trim_end();
    let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
    text.get(text.len() - digits..)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_agents() {
        let of = |text: &str| last_number(text.as_bytes());
        assert_eq!([of("Agent 2"), of("GPU 13 "), of("4")], [Some(2), Some(13), Some(4)]);
        assert_eq!([of("Agent"), of(""), of("é")], [None, None, None]);
        assert_eq!(of("é3"), Some(3));
    }
}
