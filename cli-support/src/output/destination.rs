//! Results on their way to stdout or to a file.

use std::io::{self, BufWriter, Stdout, Write};

use serde::Serialize;

use super::{OutputFile, Target};
use crate::colour;
use crate::plain::{self, Cells};

/// Results on their way.
#[derive(Debug)]
pub struct Destination {
    out: Out,
    passed: Passed,
}

/// What is done to results that are not text for people: nothing in them may be what a terminal obeys.
#[derive(Debug)]
enum Passed {
    /// They are plain already, or binary.
    AsTheyAre,
    /// CSV whose cells are made plain.
    Csv(Cells),
    /// Lines of JSON that are made plain, and the beginning of the next one.
    JsonLines(Vec<u8>),
}

#[derive(Debug)]
enum Out {
    Stdout(BufWriter<Stdout>),
    File(BufWriter<OutputFile>),
}

impl Destination {
    /// The file, else stdout.
    ///
    /// # Errors
    ///
    /// When no file can be written there.
    pub fn new(target: Option<Target>) -> anyhow::Result<Self> {
        let out = match target {
            None => Out::Stdout(BufWriter::new(io::stdout())),
            Some(target) => Out::File(BufWriter::new(target.create()?)),
        };
        Ok(Self { out, passed: Passed::AsTheyAre })
    }

    /// The same for CSV, without what a terminal would obey, and without cells that a spreadsheet
    /// would take for formulas, unless these are to stay as they are.
    ///
    /// # Errors
    ///
    /// When no file can be written there.
    pub fn for_csv(target: Option<Target>, raw_cells: bool) -> anyhow::Result<Self> {
        let cells = if raw_cells { Cells::with_formulas() } else { Cells::default() };
        Ok(Self { passed: Passed::Csv(cells), ..Self::new(target)? })
    }

    /// The same for lines of JSON, without what a terminal would obey.
    ///
    /// # Errors
    ///
    /// When no file can be written there.
    pub fn for_json_lines(target: Option<Target>) -> anyhow::Result<Self> {
        Ok(Self { passed: Passed::JsonLines(Vec::new()), ..Self::new(target)? })
    }

    /// Writes a text for people, without what a terminal would obey but for colours of its own.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write_text(&mut self, text: &str) -> io::Result<()> {
        let plain = plain::text(text);
        match self.out {
            Out::Stdout(_) => self.write_all(colour::on_stdout(&plain).as_bytes()),
            Out::File(_) => self.write_all(plain.as_bytes()),
        }
    }

    /// The results are whole: gives the file its name.
    ///
    /// # Errors
    ///
    /// When the last of them cannot be written.
    pub fn finish(mut self) -> anyhow::Result<()> {
        match std::mem::replace(&mut self.passed, Passed::AsTheyAre) {
            Passed::AsTheyAre => {}
            Passed::Csv(mut cells) => {
                let mut rest = Vec::new();
                cells.finish(&mut rest);
                self.write_all(&rest)?;
            }
            Passed::JsonLines(rest) => {
                self.write_all(plain::json(&String::from_utf8_lossy(&rest)).as_bytes())?;
            }
        }
        match self.out {
            Out::Stdout(mut out) => Ok(out.flush()?),
            Out::File(writer) => writer.into_inner().map_err(io::Error::from)?.finish(),
        }
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut plain = Vec::new();
        let passed = match &mut self.passed {
            Passed::AsTheyAre => bytes,
            Passed::Csv(cells) => {
                plain.reserve(bytes.len());
                cells.pass(bytes, &mut plain);
                &plain
            }
            Passed::JsonLines(rest) => {
                rest.extend_from_slice(bytes);
                let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let lines = String::from_utf8_lossy(&rest[..end]);
                plain.extend_from_slice(plain::json(&lines).as_bytes());
                rest.drain(..end);
                &plain
            }
        };
        match &mut self.out {
            Out::Stdout(out) => out.write_all(passed)?,
            Out::File(writer) => writer.write_all(passed)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Out::Stdout(out) => out.flush(),
            Out::File(writer) => writer.flush(),
        }
    }
}

/// Writes a value as JSON, on several lines and without what a terminal would obey.
///
/// # Errors
///
/// When it cannot be written.
pub fn write_json(out: &mut Destination, value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
    out.write_all(plain::json(&text).as_bytes())?;
    Ok(out.write_all(b"\n")?)
}
