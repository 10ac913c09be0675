//! Recordings of other profilers than PyTorch's: NVIDIA's Nsight Systems and AMD's rocprofv3.
//!
//! [`Format::of`] knows them by their first bytes. `nsys_lines`, `nsys_sqlite`, `rocprof` and
//! `rocprof_csv` each read one format and give its events in the form in which the parsers of
//! PyTorch's traces give theirs, so that everything behind them is the same. `json` walks through
//! JSON text, `scalar` reads numbers that may be strings, and `events` has what the formats share.

mod events;
mod json;
mod nsys_lines;
#[cfg(feature = "sqlite")]
mod nsys_sqlite;
mod rocprof;
mod rocprof_csv;
mod scalar;

use std::path::Path;

use super::builder::Builder;
use super::scan::{Cursor, Stop};
use crate::{EventForm, Metadata, Vendor, Warning};

/// How many bytes [`Format::of`] needs.
pub(super) const HEAD: usize = 64;

/// The first bytes of an SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// The form of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Lines of JSON, as `nsys export --type jsonlines` writes them.
    NsysLines,
    /// A database, as `nsys export --type sqlite` writes it.
    Sqlite,
    /// JSON, as `rocprofv3 --output-format json` writes it.
    Rocprof,
    /// The table of kernels of `rocprofv3 --output-format csv`.
    RocprofCsv,
}

/// What a recording is read into.
pub(super) struct Reader<'r> {
    pub(super) builder: &'r mut Builder,
    pub(super) metadata: &'r mut Metadata,
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "for parts of databases"))]
    pub(super) warnings: &'r mut Vec<Warning>,
    /// Only the metadata is wanted.
    pub(super) head_only: bool,
}

/// How far a text was read, and why not to its end.
pub(super) type Extent = (usize, Result<(), Stop>);

impl Format {
    /// The format of a text by its first bytes; none if it is none of these.
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        if text.starts_with(SQLITE) {
            return Some(Self::Sqlite);
        }
        if rocprof_csv::is_one(text) {
            return Some(Self::RocprofCsv);
        }
        let mut at = Cursor::new(text);
        at.skip_space();
        at.expect(b'{').ok()?;
        at.skip_space();
        match at.short_key().ok()? {
            b"rocprofiler-sdk-tool" => Some(Self::Rocprof),
            b"data" | b"files" | b"Type" => Some(Self::NsysLines),
            _ => None,
        }
    }

    const fn event_form(self) -> EventForm {
        match self {
            Self::NsysLines => EventForm::Line,
            Self::Sqlite => EventForm::DatabaseRow,
            Self::Rocprof => EventForm::Record,
            Self::RocprofCsv => EventForm::Row,
        }
    }

    /// Who makes the profiler.
    const fn vendor(self) -> Vendor {
        match self {
            Self::NsysLines | Self::Sqlite => Vendor::Nvidia,
            Self::Rocprof | Self::RocprofCsv => Vendor::Amd,
        }
    }

    /// Reads a recording; or why it is none.
    pub(super) fn read(
        self,
        text: &[u8],
        path: Option<&Path>,
        reader: &mut Reader<'_>,
    ) -> Result<Extent, String> {
        reader.builder.set_form(self.event_form());
        reader.metadata.profiler = Some(self.vendor());
        match self {
            Self::NsysLines => Ok(nsys_lines::read(text, reader)),
            Self::Rocprof => Ok(rocprof::read(text, reader)),
            Self::RocprofCsv => rocprof_csv::read(text, reader),
            Self::Sqlite => sqlite(text, path, reader),
        }
    }
}

#[cfg(feature = "sqlite")]
fn sqlite(text: &[u8], path: Option<&Path>, reader: &mut Reader<'_>) -> Result<Extent, String> {
    let Some(path) = path else {
        return Err("it is an SQLite database, which must be a file, not compressed".to_owned());
    };
    nsys_sqlite::read(path, reader)?;
    Ok((text.len(), Ok(())))
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_: &[u8], _: Option<&Path>, _: &mut Reader<'_>) -> Result<Extent, String> {
    Err("it is an SQLite database, and this program was built without SQLite; build it with \
         --features sqlite, or export lines of JSON with nsys export --type jsonlines"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_by_their_first_bytes() {
        let of = |text: &str| Format::of(text.as_bytes());
        assert_eq!(of("{\"rocprofiler-sdk-tool\":[{"), Some(Format::Rocprof));
        assert_eq!(of(" {\n \"rocprofiler-sdk-tool\" : ["), Some(Format::Rocprof));
        assert_eq!(of("{\"data\":[\"a\","), Some(Format::NsysLines));
        assert_eq!(of("{\"Type\":79,\"CudaEvent\""), Some(Format::NsysLines));
        assert_eq!(of("SQLite format 3\0\x10"), Some(Format::Sqlite));
        assert_eq!(of("\"Kind\",\"Agent_Id\","), Some(Format::RocprofCsv));
        assert_eq!(of("\"Guid\",\"Kind\",\"Agent_Id\""), Some(Format::RocprofCsv));
        for text in ["", "{", "{\"schemaVersion\": 1", "[{\"ph\"", "{\"traceEvents\"", "Kinds"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
