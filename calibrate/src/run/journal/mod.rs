//! The journal: one line of JSON per process, flushed, so that a crash loses nothing.
//!
//! The first line says which run the records belong to. The same run started again goes on from
//! them; a journal of another machine, program or setting is put aside and not mixed in.

mod recovered;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use cli_support::say;
use serde::Serialize;
use tempfile::NamedTempFile;
use twox_hash::XxHash3_64;

use super::entry::{Entry, Header, Part, RunKey};
use super::line;
use super::seed::Seed;
use crate::exit::UsageError;

pub use recovered::Recovered;

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// A journal with a new part of its run.
#[derive(Debug)]
pub struct Begun {
    /// The journal.
    pub journal: Journal,
    /// What earlier parts of the run left.
    pub entries: Vec<Entry>,
    /// All parts together, with the new one.
    pub parts: Part,
    /// The seed of all parts.
    pub seed: u64,
}

/// How long a journal may be locked without another run: a process that is just being started has
/// the files of this one, with their locks, until it runs its own program.
const LOCK_PATIENCE: Duration = Duration::from_millis(250);

impl Journal {
    /// The journal that belongs to a calibration file.
    #[must_use]
    pub fn path_for(output: &Path) -> PathBuf {
        let mut name = output.file_name().unwrap_or_default().to_owned();
        name.push(".journal");
        output.with_file_name(name)
    }

    /// Whether a file is a journal, or a copy of one: the samples of a run.
    #[must_use]
    pub fn is_one(path: &Path) -> bool {
        let mut beginning = Vec::new();
        let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut beginning));
        read.is_ok() && line::may_begin_journal(&beginning)
    }

    /// Opens the journal of a run and begins a part of it. What the user should know of earlier
    /// parts goes to stderr.
    ///
    /// # Errors
    ///
    /// Those of [`Self::open`].
    pub fn begin(path: &Path, key: &RunKey, seed: Seed, part: Part) -> anyhow::Result<Begun> {
        let (mut journal, recovered) = Self::open(path, key, seed)?;
        let seed = recovered.seed.unwrap_or(seed.number());
        let Recovered { entries, notes, .. } = recovered;
        notes.iter().for_each(|note| say!("note: {note}"));
        journal.append(&Entry::Part(part.clone()))?;
        let earlier = entries.iter().filter_map(|entry| match entry {
            Entry::Part(part) => Some(part.clone()),
            _ => None,
        });
        let parts: Vec<Part> = earlier.chain([part.clone()]).collect();
        let parts = Part::all(&parts).unwrap_or(part);
        Ok(Begun { journal, entries, parts, seed })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the journal of a run, with what an earlier part of the run left.
    ///
    /// The journal is locked: two runs that write one calibration would mix their records. A run
    /// whose seed is drawn continues one with any seed, and takes its seed over.
    ///
    /// # Errors
    ///
    /// When it cannot be read or written, or another run has it.
    pub fn open(path: &Path, key: &RunKey, seed: Seed) -> anyhow::Result<(Self, Recovered)> {
        let mut file = Self::open_locked(path)?;
        // Where it is a link, the link stays, and what it leads to is replaced or removed.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
        // Bytes and not text: what a crash left need not be UTF-8.
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
        let mut recovered = Recovered::of(&bytes, path, key, seed)?;
        if recovered.foreign {
            let aside = aside(path);
            fs::rename(path, &aside)
                .with_context(|| format!("cannot rename {}", path.display()))?;
            recovered.notes.push(format!(
                "{} is of another machine, program or setting; it was put aside as {}",
                path.display(),
                aside.display()
            ));
            file = Self::open_locked(path)?;
        }
        // A torn last line goes; the lines before it are never written again.
        let context = || format!("cannot write {}", path.display());
        file.set_len(recovered.whole).with_context(context)?;
        file.seek(SeekFrom::End(0)).with_context(context)?;
        let mut journal = Self { path: path.to_owned(), file };
        if recovered.whole == 0 {
            journal.write_line(&Header { key, seed: seed.number() })?;
        }
        Ok((journal, recovered))
    }

    fn open_locked(path: &Path) -> anyhow::Result<File> {
        // A FIFO or a device would wait for ever, or forget what it was given.
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(not_a_journal(path).into());
        }
        // Nor is a file made where only a link says that there is one, as with --output.
        if path.is_symlink() && !path.exists() {
            return Err(not_a_journal(path).into());
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        let patient_until = Instant::now() + LOCK_PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < patient_until => {
                    thread::sleep(LOCK_PATIENCE / 25);
                }
                Err(TryLockError::WouldBlock) => anyhow::bail!(
                    "another run is writing {}; wait for it, or name another --output",
                    path.display()
                ),
                // Some file systems know no locks; the run is worth more than the protection.
                Err(TryLockError::Error(_)) => return Ok(file),
            }
        }
    }

    /// Adds a line and hands it to the disk.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn append(&mut self, entry: &Entry) -> anyhow::Result<()> {
        self.write_line(entry)
    }

    fn write_line(&mut self, line: &impl Serialize) -> anyhow::Result<()> {
        let text = line::write(line)?;
        let write = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        write.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Copies the journal, which holds every sample. A process that stands in it twice, since somebody
    /// has joined two journals, is copied once. Lines that the journal's reader refuses are not copied.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or the copy cannot be written.
    pub fn copy_to(&mut self, copy: &mut impl Write) -> io::Result<()> {
        // Through the open file: some systems let no other one read what is locked.
        self.file.rewind()?;
        let mut lines = BufReader::new(&self.file);
        let mut known = HashSet::new();
        let mut line = Vec::new();
        lines.read_until(b'\n', &mut line)?;
        copy.write_all(&line)?;
        line.clear();
        while lines.read_until(b'\n', &mut line)? > 0 {
            let is_new = match line::read::<Entry>(&line) {
                Ok(Entry::Process { .. }) => known.insert(XxHash3_64::oneshot(&line)),
                // Parts of a run that begin in the same second can be alike, and are several all
                // the same.
                Ok(_) => true,
                Err(_) => false,
            };
            if is_new {
                copy.write_all(&line)?;
            }
            line.clear();
        }
        self.file.seek(SeekFrom::End(0)).map(drop)
    }

    /// Keeps only some processes, which no calibration file holds, and how they were measured.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the journal is then as it was.
    pub fn keep_only(self, part: Part, processes: &[Entry]) -> anyhow::Result<()> {
        let Self { path, mut file } = self;
        let rewrite = || -> anyhow::Result<()> {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let mut rewritten = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
            let mut header = Vec::new();
            file.rewind()?;
            BufReader::new(&file).read_until(b'\n', &mut header)?;
            rewritten.write_all(&header)?;
            for entry in [Entry::Part(part)].iter().chain(processes) {
                rewritten.write_all(line::write(entry)?.as_bytes())?;
            }
            rewritten.as_file().sync_all()?;
            rewritten.persist(&path)?;
            Ok(())
        };
        rewrite().with_context(|| format!("cannot write {}", path.display()))
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

fn not_a_journal(path: &Path) -> UsageError {
    UsageError(format!(
        "{} is not a journal of this program, whose place it takes; move it away, or name another \
         --output",
        path.display()
    ))
}

/// A name for a journal that is put aside, which no file has yet.
fn aside(path: &Path) -> PathBuf {
    let numbered = |number: u32| {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".old{number}"));
        path.with_file_name(name)
    };
    (1..u32::MAX)
        .map(numbered)
        .find(|name| name.symlink_metadata().is_err())
        .unwrap_or_else(|| numbered(0))
}
