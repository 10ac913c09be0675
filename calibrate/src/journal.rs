//! The journal: one JSON line per finished problem, flushed, so that a crash loses nothing.
//!
//! The first line says which run the records belong to. The same run started again goes on from
//! them; a journal of another machine, version or setting is put aside and not mixed in.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
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
    /// # Errors
    ///
    /// When it cannot be read or written.
    pub fn open(path: &Path, key: &RunKey) -> anyhow::Result<(Self, Recovered)> {
        let mut recovered = Recovered::default();
        if path.exists() {
            recovered = recover(path, key)?;
        }
        // Written anew, so that a torn last line is gone and the next one starts on its own.
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut journal = Self { path: path.to_owned(), file };
        journal.write_line(key)?;
        for record in &recovered.records {
            journal.append(record)?;
        }
        Ok((journal, recovered))
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

fn recover(path: &Path, key: &RunKey) -> anyhow::Result<Recovered> {
    let context = || format!("cannot read {}", path.display());
    let file = OpenOptions::new().read(true).open(path).with_context(context)?;
    let mut recovered = Recovered::default();
    // Bytes and not text: what a crash left need not be UTF-8.
    let mut lines = BufReader::new(file).split(b'\n');
    let header = lines.next().transpose().with_context(context)?.unwrap_or_default();
    if serde_json::from_slice::<RunKey>(&header).ok().as_ref() != Some(key) {
        let aside = aside(path);
        fs::rename(path, &aside).with_context(|| format!("cannot rename {}", path.display()))?;
        recovered.notes.push(format!(
            "{} is of another machine, version or setting; it was put aside as {}",
            path.display(),
            aside.display()
        ));
        return Ok(recovered);
    }
    for line in lines {
        let line = line.with_context(context)?;
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(record) => recovered.records.push(record),
            Err(_) => recovered.notes.push(format!(
                "{}: an incomplete line was dropped; that problem is measured again",
                path.display()
            )),
        }
    }
    if !recovered.records.is_empty() {
        recovered.notes.push(format!(
            "going on from {}: {} problems are done",
            path.display(),
            recovered.records.len()
        ));
    }
    Ok(recovered)
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
            // A line that lacks only its end is complete.
            assert!((lines..=lines + 1).contains(&recovered.records.len()), "cut at {cut}");
            assert_eq!(recovered.records[..], records[..recovered.records.len()]);
        }
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
