//! Reading and writing calibration files.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::check::invalid;
use super::{HardwareCalibration, SCHEMA_VERSION};
use crate::error::{Error, ErrorKind};
use crate::file_kind::FileKind;

impl HardwareCalibration {
    /// Reads a calibration file.
    ///
    /// # Errors
    ///
    /// An error with the file, and the key and line of what is wrong.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = fs::read_to_string(path)
            .map_err(|source| ErrorKind::Read { path: path.to_owned(), source })?;
        Self::from_toml(&text).map_err(|error| error.in_file(path))
    }

    /// Reads the text of a calibration file.
    ///
    /// # Errors
    ///
    /// An error with the key and line of what is wrong.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        FileKind::Calibration.expect(text, SCHEMA_VERSION)?;
        if !text.ends_with('\n') {
            return Err(invalid("it is incomplete: its last line has no end; calibrate again"));
        }
        let calibration: Self = toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
        calibration.check(text)?;
        Ok(calibration)
    }

    /// The text of the calibration file.
    ///
    /// # Errors
    ///
    /// When a value has no TOML form.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string_pretty(self).map_err(|error| invalid(error.to_string()))
    }

    /// Writes the file so that a reader sees the old contents or the new, never a part: into a
    /// temporary file next to it, flushed to the disk, then renamed over it.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, or a value is one that no reader would accept.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let text = self.to_toml()?;
        // What could not be read back must not take the place of what can.
        self.check(&text).map_err(|error| error.in_file(path))?;
        let temporary = temporary_beside(path);
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, path)
        };
        write().map_err(|source| {
            // Best effort: the error that matters is the one above.
            let _ = fs::remove_file(&temporary);
            ErrorKind::Write { path: path.to_owned(), source }.into()
        })
    }
}

/// A name in the same folder, so that the rename stays on one file system.
fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}
