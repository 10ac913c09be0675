//! The files that a run writes.

use std::path::{Path, PathBuf, absolute};

use anyhow::Context;
use cli_support::output::check_writable;
use fusion_cost_model::calibration::{HardwareCalibration, RunEnd};

use crate::exit::UsageError;
use crate::run::Journal;

/// Where a run writes what.
#[derive(Debug, Clone)]
pub struct Files {
    calibration: PathBuf,
    samples: Option<PathBuf>,
}

impl Files {
    /// The calibration file that was named, else one named after the observed machine; and the
    /// file of samples, if one was named. Both are checked before anything is measured.
    ///
    /// # Errors
    ///
    /// [`UsageError`] when one of them cannot be written, or they are the same.
    pub fn choose(
        machine_id: &str,
        calibration: Option<&Path>,
        samples: Option<&Path>,
    ) -> Result<Self, UsageError> {
        let default = || Self::usual(machine_id);
        let calibration = calibration.map_or_else(default, Path::to_owned);
        let files = Self { calibration, samples: samples.map(Path::to_owned) };
        check_writable(&files.calibration)?;
        if let Some(samples) = &files.samples {
            check_writable(samples)?;
            let own = [files.calibration.clone(), files.partial(), files.journal()];
            if own.iter().any(|own| absolute(own).ok() == absolute(samples).ok()) {
                let text = format!("--samples {} is the calibration's own file", samples.display());
                return Err(UsageError(text));
            }
        }
        Ok(files)
    }

    /// The calibration file that is named after a machine.
    #[must_use]
    pub fn usual(machine_id: &str) -> PathBuf {
        PathBuf::from(format!("calibration-{machine_id}.toml"))
    }

    /// The journal of the calibration.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        Journal::path_for(&self.calibration)
    }

    /// The file that every sample goes to, if one was named.
    #[must_use]
    pub fn samples(&self) -> Option<&Path> {
        self.samples.as_deref()
    }

    /// Where an interrupted run writes when there already is a whole calibration, so that the whole
    /// one is not lost.
    fn partial(&self) -> PathBuf {
        self.calibration.with_extension("partial.toml")
    }

    /// Writes the calibration and says where; `None` if there is nothing to write.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn save(&self, calibration: &HardwareCalibration) -> anyhow::Result<Option<PathBuf>> {
        let is_part = calibration.settings.end != RunEnd::Complete;
        if calibration.records.is_empty() && is_part {
            return Ok(None);
        }
        let partial = self.partial();
        let target =
            if is_part && self.has_whole_calibration() { &partial } else { &self.calibration };
        calibration.save(target)?;
        eprintln!("wrote {}", target.display());
        if !is_part && partial.exists() {
            std::fs::remove_file(&partial)
                .with_context(|| format!("cannot remove {}", partial.display()))?;
        }
        Ok(Some(target.clone()))
    }

    /// Whether there is a file that a part of a run must not replace. One that cannot be read is.
    fn has_whole_calibration(&self) -> bool {
        self.calibration.exists()
            && !HardwareCalibration::load(&self.calibration)
                .is_ok_and(|calibration| calibration.settings.end != RunEnd::Complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_named_after_the_observed_machine() {
        let named = |name: Option<&str>| Files {
            calibration: name.map_or_else(|| "x.toml".into(), PathBuf::from),
            samples: None,
        };
        let default = Files::choose("i7-12700k", None, None).unwrap();
        assert_eq!(default.calibration, Path::new("calibration-i7-12700k.toml"));
        assert_eq!(named(Some("a/b.toml")).partial(), Path::new("a/b.partial.toml"));
    }

    #[test]
    fn samples_never_replace_a_file_of_the_calibration() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("x.toml"), folder.path().join("samples"));
        assert!(Files::choose("m", Some(&file), Some(&other)).is_ok());
        for own in ["x.toml", "x.partial.toml", "x.toml.journal"] {
            let own = folder.path().join(own);
            assert!(Files::choose("m", Some(&file), Some(&own)).is_err(), "{}", own.display());
        }
    }
}
