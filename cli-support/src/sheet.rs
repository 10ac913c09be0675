//! Tables for programs.

use csv::{Terminator, WriterBuilder};

/// A table of texts under a header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sheet {
    /// The names of the columns.
    pub header: Vec<String>,
    /// The rows, with a cell for every column.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    /// The table as CSV (RFC 4180), with its header also where there are no rows.
    ///
    /// # Errors
    ///
    /// When a row has more or fewer cells than the header.
    pub fn csv(&self) -> csv::Result<Vec<u8>> {
        let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
        writer.write_record(&self.header)?;
        for row in &self.rows {
            writer.write_record(row)?;
        }
        writer.flush()?;
        Ok(writer.get_ref().clone())
    }
}

/// A number as programs read it; numbers that are none are empty.
#[must_use]
pub fn number(value: impl Into<Option<f64>>) -> String {
    let value = value.into().filter(|value| value.is_finite());
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let cells = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let sheet = Sheet {
            header: cells(["name", "ratio"]),
            rows: vec![cells(["a, b", &number(1.5)]), cells(["c", &number(f64::NAN)])],
        };
        assert_eq!(sheet.csv().unwrap(), b"name,ratio\r\n\"a, b\",1.5\r\nc,\r\n");
        assert!(Sheet { rows: vec![vec![String::new()]], ..sheet }.csv().is_err());
    }
}
