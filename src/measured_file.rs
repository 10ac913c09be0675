//! Files of times, whoever measured them.

use std::path::Path;

use crate::calibration::HardwareCalibration;
use crate::error::Error;
use crate::file_kind::FileKind;
use crate::imported::ImportedProfile;
use crate::text_file;

/// What a machine was found to do: a calibration, or what another calibrator measured.
#[derive(Debug, Clone, PartialEq)]
pub enum MeasuredFile {
    /// A calibration.
    Calibration(Box<HardwareCalibration>),
    /// The profile of another calibrator.
    Imported(Box<ImportedProfile>),
}

impl MeasuredFile {
    /// Reads a file of either kind, which can be a pipe.
    ///
    /// # Errors
    ///
    /// An error with the file, and the key and line of what is wrong. What is neither is held to be a
    /// calibration.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = text_file::read(path)?;
        Self::from_toml(&text).map_err(|error| error.in_file(path))
    }

    /// Reads the text of a file of either kind.
    ///
    /// # Errors
    ///
    /// An error with the key and line of what is wrong.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        Ok(if FileKind::of(text) == Some(FileKind::Imported) {
            Self::Imported(Box::new(ImportedProfile::from_toml(text)?))
        } else {
            Self::Calibration(Box::new(HardwareCalibration::from_toml(text)?))
        })
    }
}
