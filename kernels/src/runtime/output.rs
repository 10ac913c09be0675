//! The file that an output comes in.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom, Write};

use fusion_cost_model::DType;

use crate::numbers::{NAN_PATTERN, decode};

/// Numbers that are written or read at a time: an even count, so that they are whole patterns of NaN.
pub(super) const PART: usize = 1 << 14;

/// The file that an output comes in.
pub(super) struct OutputFile {
    pub(super) file: File,
    /// How a number is written.
    pub(super) dtype: DType,
    /// How many there are.
    pub(super) numbers: usize,
}

impl OutputFile {
    /// The bytes of some numbers.
    fn bytes(&self, numbers: usize) -> usize {
        // At most eight each.
        numbers * self.dtype.bytes() as usize
    }

    /// Writes NaN over all of it.
    pub(super) fn fill_with_nan(&mut self) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        let part = NAN_PATTERN.to_le_bytes().repeat(PART);
        let mut left = self.numbers;
        while left > 0 {
            let now = left.min(PART);
            self.file.write_all(&part[..self.bytes(now)])?;
            left -= now;
        }
        Ok(())
    }

    /// All of it; it must have the size that it had.
    pub(super) fn read(&mut self) -> std::io::Result<Vec<f32>> {
        let (found, expected) = (self.file.metadata()?.len(), self.bytes(self.numbers) as u64);
        if found != expected {
            let text = format!("its output has {found} bytes, and {expected} were expected");
            return Err(Error::new(ErrorKind::InvalidData, text));
        }
        self.file.seek(SeekFrom::Start(0))?;
        let mut output = Vec::with_capacity(self.numbers);
        let mut bytes = vec![0; self.bytes(PART)];
        while output.len() < self.numbers {
            let now = self.bytes(PART.min(self.numbers - output.len()));
            self.file.read_exact(&mut bytes[..now])?;
            output.extend(decode(self.dtype, &bytes[..now]));
        }
        Ok(output)
    }
}
