//! The files that a run writes.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use cli_support::output::{Destination, Replace, Target, begins_with_line};
use fusion_cost_model::calibration::{HardwareCalibration, RunEnd};

use crate::exit::UsageError;
use crate::run::Journal;

/// Where a run writes what.
#[derive(Debug, Clone)]
pub struct Files {
    calibration: Target,
    /// Where an interrupted run writes when there already is a whole calibration, so that the whole
    /// one is not lost.
    partial: Target,
    samples: Option<Target>,
}

impl Files {
    /// The calibration file that was named, else one named after the observed machine; and the
    /// file of samples, if one was named. They are checked before anything is measured: what an
    /// earlier run wrote is replaced, and any other file only with `overwrite`.
    ///
    /// # Errors
    ///
    /// [`UsageError`] when one of them cannot be written, or they are the same.
    pub fn choose(
        machine_id: &str,
        calibration: Option<&Path>,
        samples: Option<&Path>,
        overwrite: bool,
    ) -> Result<Self, UsageError> {
        let default = || Self::usual(machine_id);
        let named = calibration.map_or_else(default, Path::to_owned);
        let calibration = Target::new(&named, Replace::known(overwrite, is_calibration))?;
        if calibration.is_device() {
            let text = format!("cannot write {}: it is a device, not a file", named.display());
            return Err(UsageError(text));
        }
        let partial = named.with_extension("partial.toml");
        if partial.is_symlink() {
            // A complete run deletes its partial file, and this link may lead to any other file.
            let text = format!(
                "cannot write {}: it is a link, in the place of the calibration's own file for a \
                 part of a run; remove it, or name another --output",
                partial.display()
            );
            return Err(UsageError(text));
        }
        let partial = Target::new(&partial, Replace::known(false, is_part))?;
        let replace = Replace::known(overwrite, is_samples);
        let samples = samples.map(|samples| Target::new(samples, replace)).transpose()?;
        let files = Self { calibration, partial, samples };
        if let Some(samples) = &files.samples {
            let journal = Target::place_of(&files.journal());
            let own = [files.calibration.path(), files.partial.path(), &journal];
            if own.contains(&samples.path()) {
                let text = format!(
                    "--samples {} is the calibration's own file",
                    samples.named().display()
                );
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
        Journal::path_for(self.calibration.named())
    }

    /// The file that every sample goes to, if one was named.
    #[must_use]
    pub fn samples(&self) -> Option<Target> {
        self.samples.clone()
    }

    /// Refuses to measure where that would replace a calibration that the user wants to keep.
    ///
    /// # Errors
    ///
    /// [`UsageError`] with the option that names the calibration.
    pub fn keep(&self, option: &str, calibration: &Path) -> Result<(), UsageError> {
        let place = Target::place_of(calibration);
        if [&self.calibration, &self.partial].iter().all(|own| own.path() != place) {
            return Ok(());
        }
        let named = calibration.display();
        let text = format!("{option} {named} is what the run would write; name another --output");
        Err(UsageError(text))
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
        let is_beside = is_part && self.has_whole_calibration();
        let target = if is_beside { &self.partial } else { &self.calibration };
        let text = calibration.to_toml()?;
        // What could not be read back must not take the place of what can.
        HardwareCalibration::from_toml(&text)
            .with_context(|| format!("cannot write {}", target.named().display()))?;
        let mut file = Destination::new(Some(target.clone()))?;
        file.write_all(text.as_bytes())?;
        file.finish()?;
        let partial = self.partial.path();
        if !is_part && partial.exists() {
            std::fs::remove_file(partial)
                .with_context(|| format!("cannot remove {}", partial.display()))?;
        }
        Ok(Some(target.named().to_owned()))
    }

    /// Whether there is a file that a part of a run must not replace. One that cannot be read is.
    fn has_whole_calibration(&self) -> bool {
        let path = self.calibration.path();
        is_calibration(path)
            && !HardwareCalibration::load(path)
                .is_ok_and(|calibration| calibration.settings.end != RunEnd::Complete)
    }
}

/// Whether a file says that it is a calibration, be it whole or damaged.
fn is_calibration(path: &Path) -> bool {
    begins_with_line(path, |line| line == "kind = \"calibration\"")
}

/// Whether a file says that it is a part of a calibration, be it whole or damaged. A complete one is
/// not of an interrupted run, whatever its name is.
fn is_part(path: &Path) -> bool {
    let is_complete = |one: HardwareCalibration| one.settings.end == RunEnd::Complete;
    is_calibration(path) && !HardwareCalibration::load(path).is_ok_and(is_complete)
}

/// Whether a file is the copy of a journal, by which samples are kept. A journal itself may be all that
/// there is of another run.
fn is_samples(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !name.contains(".journal") && Journal::is_one(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn choose(
        calibration: &Path,
        samples: Option<&Path>,
        overwrite: bool,
    ) -> Result<Files, String> {
        Files::choose("m", Some(calibration), samples, overwrite).map_err(|error| error.to_string())
    }

    #[test]
    fn the_file_is_named_after_the_observed_machine() {
        let default = Files::choose("i7-12700k", None, None, false).unwrap();
        assert_eq!(default.calibration.named(), Path::new("calibration-i7-12700k.toml"));
        let folder = tempfile::tempdir().unwrap();
        let files = choose(&folder.path().join("b.toml"), None, false).unwrap();
        assert_eq!(files.partial.named(), folder.path().join("b.partial.toml"));
    }

    #[test]
    fn samples_never_replace_a_file_of_the_calibration() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("x.toml"), folder.path().join("samples"));
        assert!(choose(&file, Some(&other), false).is_ok());
        for own in ["x.toml", "x.partial.toml", "x.toml.journal", "./x.toml"] {
            let own = folder.path().join(own);
            for overwrite in [false, true] {
                assert!(choose(&file, Some(&own), overwrite).is_err(), "{}", own.display());
            }
        }
        #[cfg(unix)]
        {
            fs::write(&file, "kind = \"calibration\"\n").unwrap();
            std::os::unix::fs::symlink(&file, &other).unwrap();
            assert!(choose(&file, Some(&other), true).unwrap_err().contains("own file"));
        }
    }

    #[test]
    fn a_calibration_in_the_place_of_a_part_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [file, partial, mine] =
            ["x.toml", "x.partial.toml", "mine.toml"].map(|name| folder.path().join(name));
        let example = include_str!("../../../tests/data/example.toml");
        assert!(example.contains("end = \"complete\""));
        fs::write(&partial, example).unwrap();
        assert!(choose(&file, None, false).unwrap_err().contains("x.partial.toml"));
        fs::write(&partial, example.replace("end = \"complete\"", "end = \"interrupted\""))
            .unwrap();
        let files = choose(&file, None, false).unwrap();
        assert!(files.save(&HardwareCalibration::from_toml(example).unwrap()).is_ok());
        assert!(!partial.exists(), "the part is in the whole");
        #[cfg(unix)]
        {
            fs::write(&mine, example).unwrap();
            std::os::unix::fs::symlink(&mine, &partial).unwrap();
            for overwrite in [false, true] {
                let message = choose(&file, None, overwrite).unwrap_err();
                assert!(message.contains("x.partial.toml: it is a link"), "{message}");
            }
        }
    }

    #[test]
    fn what_came_to_its_place_during_the_run_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.toml");
        let example = include_str!("../../../tests/data/example.toml");
        let calibration = HardwareCalibration::from_toml(example).unwrap();
        let files = choose(&file, None, false).unwrap();
        fs::write(&file, "another's").unwrap();
        let error = format!("{:#}", files.save(&calibration).unwrap_err());
        assert!(error.contains("x.toml") && error.contains("meanwhile"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "another's");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");

        // What was there before the run is replaced, as it was said then.
        let files = choose(&file, None, true).unwrap();
        assert_eq!(files.save(&calibration).unwrap(), Some(file.clone()));
        assert_eq!(HardwareCalibration::load(&file).unwrap(), calibration);
    }

    #[test]
    fn only_what_an_earlier_run_wrote_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [file, partial, samples] =
            ["x.toml", "x.partial.toml", "samples"].map(|name| folder.path().join(name));
        let example = include_str!("../../../tests/data/example.toml");
        for text in [example, &example[..example.len() / 2], ""] {
            fs::write(&file, text).unwrap();
            assert!(choose(&file, None, false).is_ok());
        }
        fs::write(&samples, "{\"tool_version\":\"0.1.0\"}\n").unwrap();
        assert!(choose(&file, Some(&samples), false).is_ok());
        for other in [&file, &samples, &partial] {
            let before = fs::read(other).ok();
            fs::write(other, "kind = \"hardware\"\n").unwrap();
            let message = choose(&file, Some(&samples), false).unwrap_err();
            assert!(message.contains("--overwrite"), "{message}");
            // Nobody named the file of an interrupted run.
            assert_eq!(choose(&file, Some(&samples), true).is_ok(), other != &partial);
            match before {
                Some(before) => fs::write(other, before).unwrap(),
                None => fs::remove_file(other).unwrap(),
            }
        }
    }

    #[test]
    fn samples_never_replace_the_journal_of_another_run() {
        let folder = tempfile::tempdir().unwrap();
        let [file, journal, put_aside] =
            ["x.toml", "y.toml.journal", "y.toml.journal.old1"].map(|one| folder.path().join(one));
        for other in [&journal, &put_aside] {
            fs::write(other, "{\"tool_version\":\"0.1.0\"}\n").unwrap();
            let message = choose(&file, Some(other), false).unwrap_err();
            assert!(message.contains("--overwrite"), "{message}");
        }
        #[cfg(unix)]
        {
            let link = folder.path().join("samples");
            std::os::unix::fs::symlink(&journal, &link).unwrap();
            assert!(choose(&file, Some(&link), false).unwrap_err().contains("--overwrite"));
        }
    }

    #[test]
    fn a_calibration_to_compare_with_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other, link] = ["x.toml", "y.toml", "z.toml"].map(|one| folder.path().join(one));
        let files = choose(&file, None, false).unwrap();
        let keep = |one: &Path| files.keep("--baseline", one).map_err(|error| error.to_string());
        assert!(keep(&other).is_ok() && keep(Path::new("/no/such")).is_ok());
        for own in ["x.toml", "./x.toml", "x.partial.toml"] {
            let message = keep(&folder.path().join(own)).unwrap_err();
            assert!(message.starts_with("--baseline ") && message.contains("another --output"));
        }
        #[cfg(unix)]
        {
            fs::write(&file, "kind = \"calibration\"\n").unwrap();
            std::os::unix::fs::symlink(&file, &link).unwrap();
            assert!(keep(&link).is_err());
        }
    }
}
