//! The measured side: kernels and their times, by type.
//!
//! [`Measured::load`] recognizes a file by its content: `kernel_details` reads the table that
//! Ascend's profiler writes, `rows` the one that `calibrate trace kernels --rows` does, and `trace`
//! a profiler trace itself. `table` is what the two tables have in common.

mod kernel_details;
mod rows;
mod table;
mod trace;

use std::path::Path;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::{InputWarning, PredictedError, Rules, file};
use crate::load::GZIP;
use table::Table;

/// What is taken as the type of the kernels of a trace or its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MeasuredBy {
    /// Their name.
    #[default]
    Name,
    /// Their class.
    Class,
}

/// What was measured of each type of kernel, over all passes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measured {
    /// The types, in the order in which they first occur.
    pub kernels: Vec<MeasuredKernels>,
    /// How many rows or kernels the file has.
    pub rows: u64,
    /// How many of them were left out.
    pub skipped: Skipped,
    /// What is to be known of it.
    pub warnings: Vec<InputWarning>,
    ids: FxHashMap<String, usize>,
}

/// What was measured of a type of kernel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MeasuredKernels {
    /// The type.
    pub kernel_type: String,
    /// The sum of the durations.
    pub total_us: f64,
    /// How many there are.
    pub count: u64,
}

/// How many measured rows were left out, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Skipped {
    /// They have no type.
    pub no_type: u64,
    /// They are the processor's part of a collective (`*AicpuKernel`).
    pub aicpu: u64,
    /// They are the shorter record of a collective that was recorded on several streams.
    pub recorded_twice: u64,
    /// They have no readable duration, or a negative one.
    pub bad_duration: u64,
}

impl Skipped {
    /// All of them.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.no_type + self.aicpu + self.recorded_twice + self.bad_duration
    }
}

impl Measured {
    /// Reads what was measured. `by` is for traces and their rows, and by name if it is none. A pipe is
    /// read once, and into memory.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is none of the known kinds, or `by` is given for a table
    /// with types of its own.
    pub fn load(
        path: impl AsRef<Path>,
        by: Option<MeasuredBy>,
        rules: Rules,
    ) -> Result<Self, PredictedError> {
        let path = path.as_ref();
        let is_json = |text: &[u8]| matches!(text.trim_ascii_start().first(), Some(b'{' | b'['));
        if path.is_file() {
            let head = file::head(path)?;
            if head.starts_with(&GZIP) || is_json(&head) {
                return trace::read(path, by.unwrap_or_default());
            }
        }
        let bytes = file::read(path)?;
        if is_json(&bytes) {
            return trace::of_text(&bytes, path, by.unwrap_or_default());
        }
        Self::from_csv(&bytes, path, by, rules)
    }

    /// Reads a table from the bytes of a file.
    ///
    /// # Errors
    ///
    /// When it has not the columns of a known table, or `by` is given for one with types of its
    /// own.
    pub fn from_csv(
        csv: &[u8],
        path: impl AsRef<Path>,
        by: Option<MeasuredBy>,
        rules: Rules,
    ) -> Result<Self, PredictedError> {
        let path = path.as_ref();
        let failure = |reason| PredictedError::NotMeasured { path: path.to_owned(), reason };
        let table = Table::new(csv).map_err(failure)?;
        let mut measured = if kernel_details::is_one(&table) {
            if by.is_some() {
                return Err(PredictedError::HasTypes { path: path.to_owned() });
            }
            kernel_details::read(table, rules)
        } else if rows::is_one(&table) {
            rows::read(table, by.unwrap_or_default())
        } else {
            Err(format!("its columns are {}", table.columns()))
        }
        .map_err(failure)?;
        measured.warn_if_empty();
        Ok(measured)
    }

    pub(super) fn add(&mut self, kernel_type: &str, duration_us: f64) {
        let id = self.ids.get(kernel_type).copied().unwrap_or_else(|| {
            let new = MeasuredKernels { kernel_type: kernel_type.to_owned(), ..Default::default() };
            self.kernels.push(new);
            self.ids.insert(kernel_type.to_owned(), self.kernels.len() - 1);
            self.kernels.len() - 1
        });
        let kernels = &mut self.kernels[id];
        kernels.total_us += duration_us;
        kernels.count += 1;
    }

    /// Keeps a warning of what occurred at all.
    fn warn(&mut self, count: u64, warning: InputWarning) {
        if count > 0 {
            self.warnings.push(warning);
        }
    }

    fn warn_if_empty(&mut self) {
        if self.kernels.is_empty() {
            self.warnings.push(InputWarning::NothingMeasured);
        }
    }
}
