//! What can be wrong with a calibration file.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::SCHEMA_VERSION;

/// A calibration file that cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not a whole and undamaged calibration file.
    #[error("{}not a valid calibration file: {reason}", Prefix(.path))]
    Invalid {
        /// The file, where the text came from one.
        path: Option<PathBuf>,
        /// What is wrong and where.
        reason: String,
    },
    /// Written by another version.
    #[error(
        "{}schema_version is {found}, but this version reads only {SCHEMA_VERSION}; {}",
        Prefix(.path),
        if *.found > i64::from(SCHEMA_VERSION) {
            "use a newer version of the tool, or calibrate again"
        } else {
            "calibrate again"
        }
    )]
    Version {
        /// The file, where the text came from one.
        path: Option<PathBuf>,
        /// The version in the file.
        found: i64,
    },
}

struct Prefix<'a>(&'a Option<PathBuf>);

impl std::fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(path) => write!(f, "{}: ", path.display()),
            None => Ok(()),
        }
    }
}

impl CalibrationError {
    pub(super) fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid { path: None, reason: reason.into() }
    }

    /// The same error, naming the file that the text came from.
    pub(super) fn in_file(self, file: &Path) -> Self {
        match self {
            Self::Invalid { reason, .. } => Self::Invalid { path: Some(file.to_owned()), reason },
            Self::Version { found, .. } => Self::Version { path: Some(file.to_owned()), found },
            other => other,
        }
    }
}
