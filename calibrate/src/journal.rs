//! The journal: one JSON line per finished problem, flushed, so that a crash loses nothing.
//!
//! The first line says which run the records belong to. The same run started again goes on from
//! them; a journal of another machine, version or setting is put aside and not mixed in.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use fusion_cost_model::calibration::{Fingerprint, FusionRecord};
use serde::{Deserialize, Serialize};

/// What makes records of two runs comparable: everything but the list of problems.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunKey {
    /// The version of the program.
    pub tool_version: String,
    /// The machine.
    pub fingerprint: Fingerprint,
    /// Threads of the kernels.
    pub threads: u32,
    /// Whether the procedure was shortened.
    pub quick: bool,
    /// The seed.
    pub seed: u64,
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// What was found of an earlier run.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Its records, if it is the same run.
    pub records: Vec<FusionRecord>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// Whether it was another run.
    foreign: bool,
}

impl Journal {
    /// The journal that belongs to a calibration file.
    #[must_use]
    pub fn path_for(output: &Path) -> PathBuf {
        let mut name = output.file_name().unwrap_or_default().to_owned();
        name.push(".journal");
        output.with_file_name(name)
    }

    /// Opens the journal of a run, with the records that an earlier part of the run left.
    ///
    /// The journal is locked: two runs that write one calibration would mix their records.
    ///
    /// # Errors
    ///
    /// When it cannot be read or written, or another run has it.
    pub fn open(path: &Path, key: &RunKey) -> anyhow::Result<(Self, Recovered)> {
        let (mut file, mut recovered, whole) = Self::open_existing(path, key)?;
        if recovered.foreign {
            let aside = aside(path);
            fs::rename(path, &aside)
                .with_context(|| format!("cannot rename {}", path.display()))?;
            recovered.notes.push(format!(
                "{} is of another machine, version or setting; it was put aside as {}",
                path.display(),
                aside.display()
            ));
            file = Self::open_locked(path)?;
        }
        // A torn last line goes; the lines before it are never written again.
        let context = || format!("cannot write {}", path.display());
        file.set_len(whole).with_context(context)?;
        file.seek(SeekFrom::End(0)).with_context(context)?;
        let mut journal = Self { path: path.to_owned(), file };
        if whole == 0 {
            journal.write_line(key)?;
        }
        Ok((journal, recovered))
    }

    fn open_locked(path: &Path) -> anyhow::Result<File> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(anyhow::anyhow!(
                "another run is writing {}; wait for it, or name another --output",
                path.display()
            )),
            // Some file systems know no locks; the run is worth more than the protection.
            Err(TryLockError::Error(_)) => Ok(file),
        }
    }

    /// Opens and reads a journal; also says how many of its bytes are whole lines of this run.
    fn open_existing(path: &Path, key: &RunKey) -> anyhow::Result<(File, Recovered, u64)> {
        let mut file = Self::open_locked(path)?;
        // Bytes and not text: what a crash left need not be UTF-8.
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
        let mut recovered = Recovered::default();
        let mut whole = 0;
        for (line, number) in bytes.split_inclusive(|&byte| byte == b'\n').zip(1..) {
            let is_whole = line.ends_with(b"\n");
            if number == 1 && serde_json::from_slice::<RunKey>(line).ok().as_ref() != Some(key) {
                recovered.foreign = true;
                return Ok((file, recovered, 0));
            }
            if number > 1 && is_whole {
                match serde_json::from_slice(line) {
                    Ok(record) => recovered.records.push(record),
                    Err(error) => recovered.notes.push(format!(
                        "{}, line {number}: not a record ({error}); that problem is measured again",
                        path.display()
                    )),
                }
            }
            if is_whole {
                whole += line.len() as u64;
            } else {
                recovered.notes.push(format!(
                    "{}: an incomplete line was dropped; that problem is measured again",
                    path.display()
                ));
            }
        }
        if !recovered.records.is_empty() {
            recovered.notes.push(format!(
                "going on from {}: {} problems are done",
                path.display(),
                recovered.records.len()
            ));
        }
        Ok((file, recovered, whole))
    }

    /// Adds a finished problem and hands it to the disk.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn append(&mut self, record: &FusionRecord) -> anyhow::Result<()> {
        self.write_line(record)
    }

    fn write_line(&mut self, line: &impl Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        let write = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        write.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Removes the journal: its records are in the calibration file.
    ///
    /// # Errors
    ///
    /// When it cannot be removed.
    pub fn finish(self) -> anyhow::Result<()> {
        fs::remove_file(&self.path)
            .with_context(|| format!("cannot remove {}", self.path.display()))
    }
}

/// A name for a journal that is put aside, which no file has yet.
fn aside(path: &Path) -> PathBuf {
    let numbered = |number: u32| {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".old{number}"));
        path.with_file_name(name)
    };
    (1..u32::MAX).map(numbered).find(|name| !name.exists()).unwrap_or_else(|| numbered(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fusion_cost_model::calibration::HardwareCalibration;

    fn key(seed: u64) -> RunKey {
        RunKey {
            tool_version: "1".to_owned(),
            fingerprint: example().fingerprint,
            threads: 2,
            quick: true,
            seed,
        }
    }

    fn example() -> HardwareCalibration {
        HardwareCalibration::from_toml(include_str!("../../tests/data/example.toml")).unwrap()
    }

    #[test]
    fn records_survive_and_a_torn_line_does_not_matter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let records = example().records;
        let (mut journal, recovered) = Journal::open(&path, &key(1)).unwrap();
        assert!(recovered.records.is_empty() && recovered.notes.is_empty());
        for record in &records {
            journal.append(record).unwrap();
        }
        drop(journal);
        let whole = fs::read(&path).unwrap();
        let header = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        for cut in header..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let (_, recovered) = Journal::open(&path, &key(1)).unwrap();
            let lines = whole[header..cut].iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(recovered.records[..], records[..lines], "cut at {cut}");
            // The torn line is gone, so that the next one starts on its own.
            assert!(fs::read(&path).unwrap().ends_with(b"\n"));
        }
    }

    #[test]
    fn two_runs_cannot_share_a_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let first = Journal::open(&path, &key(1)).unwrap();
        let message = Journal::open(&path, &key(1)).unwrap_err().to_string();
        assert!(message.contains("another run is writing"), "{message}");
        drop(first);
        assert!(Journal::open(&path, &key(1)).is_ok());
    }

    #[test]
    fn another_run_is_put_aside_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let record = &example().records[0];
        Journal::open(&path, &key(1)).unwrap().0.append(record).unwrap();
        let (_, recovered) = Journal::open(&path, &key(2)).unwrap();
        assert!(recovered.records.is_empty());
        assert!(recovered.notes[0].contains("put aside"));
        assert!(folder.path().join("x.journal.old1").exists());
        fs::write(&path, b"\xff\xfe garbage").unwrap();
        assert!(Journal::open(&path, &key(2)).unwrap().1.records.is_empty());
        assert!(folder.path().join("x.journal.old2").exists());
    }
}
