//! Reading and writing calibration files.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::check::invalid;
use super::{HardwareCalibration, SCHEMA_VERSION};
use crate::error::{Error, ErrorKind};
use crate::file_kind::FileKind;
use crate::text_file;

impl HardwareCalibration {
    /// Reads a calibration file.
    ///
    /// # Errors
    ///
    /// An error with the file, and the key and line of what is wrong.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = text_file::read(path)?;
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
        let calibration: Self = toml::from_str(text).map_err(|error| refusal(text, &error))?;
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
    /// temporary file next to it, flushed to the disk, then renamed over it. Where the path is a
    /// symbolic link, the file that it leads to is written and the link stays.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, or a value is one that no reader would accept.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let text = self.to_toml()?;
        // What could not be read back must not take the place of what can.
        self.check(&text).map_err(|error| error.in_file(path))?;
        let failed = |source| ErrorKind::Write { path: path.to_owned(), source }.into();
        replace(path, text.as_bytes()).map_err(failed)
    }
}

/// Why a text is no calibration. Where keys are missing since the file was cut behind a line, the parser
/// says no more than that they are.
fn refusal(text: &str, error: &toml::de::Error) -> Error {
    let top: Option<toml::Table> = text.parse().ok();
    let count = top.as_ref().and_then(|top| top.get("num_records")?.as_integer()?.try_into().ok());
    let records = text.match_indices("\n[[fusion]]");
    let is_short = count.is_some_and(|count: usize| records.clone().count() < count);
    let last = records.map(|(at, _)| at).last().unwrap_or(text.len());
    let is_at_the_end = error.span().is_some_and(|span| span.start > last);
    if error.message().starts_with("missing field") && (is_short || is_at_the_end) {
        let lines = text.lines().count();
        return invalid(format!(
            "it seems to be incomplete, cut behind line {lines}; calibrate again: {error}"
        ));
    }
    invalid(error.to_string())
}

/// Puts a file in the place of another one, or where there is none.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&place).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let (mut file, temporary) = create_beside(&place)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, &place));
    written.inspect_err(|_| {
        // Best effort: the error that matters is the one above.
        let _ = fs::remove_file(&temporary);
    })
}

/// Makes a file in the same folder, so that the rename stays on one file system, under a name that
/// nobody can foresee; whatever has that name already is left alone.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let mut attempts = 0;
    loop {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        // Its keys are random numbers of the system.
        name.push(format!(".{:016x}.tmp", RandomState::new().build_hasher().finish()));
        let temporary = path.with_file_name(name);
        match File::options().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((file, temporary)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < 10 => {
                attempts += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn links_lead_on_and_nothing_but_files_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(replace(folder.path(), b"new").is_err());
        assert!(replace(Path::new("/dev/null"), b"new").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left");
    }
}
