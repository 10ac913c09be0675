//! A table of kernels as CSV.

use csv::{ByteRecord, Reader, ReaderBuilder};

/// A table whose columns are found by their names.
pub(super) struct Table<'b> {
    bytes: &'b [u8],
    reader: Reader<&'b [u8]>,
    header: Vec<String>,
}

/// A row.
pub(super) struct TableRow<'b> {
    record: ByteRecord,
    bytes: &'b [u8],
}

/// The number of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column(usize);

impl<'b> Table<'b> {
    /// Reads the header. Spaces and tabs around names do not count.
    pub(super) fn new(bytes: &'b [u8]) -> Result<Self, String> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
            return Err("it is UTF-16; save it as UTF-8".to_owned());
        }
        // Rows may lack fields: a file that was cut ends so.
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(bytes);
        let header = reader.byte_headers().map_err(|error| error.to_string())?;
        let header: Vec<String> =
            header.iter().map(|name| String::from_utf8_lossy(name).trim().to_owned()).collect();
        if header.iter().all(String::is_empty) {
            return Err("it is empty".to_owned());
        }
        Ok(Self { bytes, reader, header })
    }

    /// A column that may be missing.
    pub(super) fn find(&self, name: &str) -> Result<Option<Column>, String> {
        let mut found = self.header.iter().enumerate().filter(|(_, column)| *column == name);
        let first = found.next();
        if found.next().is_some() {
            return Err(format!("it has two columns `{name}`"));
        }
        Ok(first.map(|(index, _)| Column(index)))
    }

    /// A column that must be there.
    pub(super) fn need(&self, name: &str) -> Result<Column, String> {
        let missing = || format!("it has no column `{name}`; its columns are {}", self.columns());
        self.find(name)?.ok_or_else(missing)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.header.iter().any(|column| column == name)
    }

    /// The names of the columns, for a message.
    pub(super) fn columns(&self) -> String {
        const MOST: usize = 12;
        let shown = self.header.iter().take(MOST).map(|name| {
            let start: String = name.chars().take(40).collect();
            format!("`{}`", start.escape_debug())
        });
        let mut text = shown.collect::<Vec<_>>().join(", ");
        if self.header.len() > MOST {
            text.push_str(", …");
        }
        text
    }

    /// Calls `each` with every row.
    pub(super) fn rows(mut self, mut each: impl FnMut(&TableRow<'_>)) -> Result<(), String> {
        let mut row = TableRow { record: ByteRecord::new(), bytes: self.bytes };
        while self.reader.read_byte_record(&mut row.record).map_err(|error| error.to_string())? {
            each(&row);
        }
        Ok(())
    }
}

impl TableRow<'_> {
    /// The line in which it begins. The reader's own count lags where lines end with CR and LF.
    fn line(&self) -> u64 {
        let start = self.record.position().map_or(0, csv::Position::byte);
        let (before, rest) = self.bytes.split_at((start as usize).min(self.bytes.len()));
        let ends = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        let ends = ends.filter(|byte| **byte == b'\n').count();
        1 + (memchr::memchr_iter(b'\n', before).count() + ends) as u64
    }

    /// A field without spaces and tabs around it, and whether it is UTF-8; empty if the row has no
    /// such field.
    pub(super) fn text(&self, column: Column) -> (String, bool) {
        let bytes = self.record.get(column.0).unwrap_or_default();
        match std::str::from_utf8(bytes) {
            Ok(text) => (text.trim().to_owned(), true),
            Err(_) => (String::from_utf8_lossy(bytes).trim().to_owned(), false),
        }
    }

    /// A number that is not negative.
    pub(super) fn duration(&self, column: Column) -> Option<f64> {
        let number: f64 = self.text(column).0.parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    }
}

/// Rows with something wrong: how many, and the line of the first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BadRows {
    pub(super) count: u64,
    pub(super) line: u64,
}

impl BadRows {
    pub(super) fn add(&mut self, row: &TableRow<'_>) {
        if self.count == 0 {
            self.line = row.line();
        }
        self.count += 1;
    }
}
