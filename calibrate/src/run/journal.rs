//! The journal: one line of JSON per process, flushed, so that a crash loses nothing.
//!
//! The first line says which run the records belong to. The same run started again goes on from
//! them; a journal of another machine, program or setting is put aside and not mixed in.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use cli_support::say;
use serde::Serialize;
use tempfile::NamedTempFile;

use super::entry::{Entry, Header, Part, RunKey};
use super::line;
use super::seed::Seed;
use crate::exit::UsageError;

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// What was found of an earlier run.
#[derive(Debug, Default)]
pub struct Recovered {
    /// What it measured, if it is the same run.
    pub entries: Vec<Entry>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The seed of the earlier run, if it is the same run.
    seed: Option<u64>,
    /// Whether it was another run.
    foreign: bool,
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
        let (mut file, mut recovered, whole) = Self::open_existing(path, key, seed)?;
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
        file.set_len(whole).with_context(context)?;
        file.seek(SeekFrom::End(0)).with_context(context)?;
        let mut journal = Self { path: path.to_owned(), file };
        if whole == 0 {
            journal.write_line(&Header { key, seed: seed.number() })?;
        }
        Ok((journal, recovered))
    }

    fn open_locked(path: &Path) -> anyhow::Result<File> {
        // A FIFO or a device would wait for ever, or forget what it was given.
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
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

    /// Opens and reads a journal; also says how many of its bytes are whole lines of this run.
    fn open_existing(
        path: &Path,
        key: &RunKey,
        seed: Seed,
    ) -> anyhow::Result<(File, Recovered, u64)> {
        let mut file = Self::open_locked(path)?;
        // Bytes and not text: what a crash left need not be UTF-8.
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
        let mut recovered = Recovered::default();
        let mut whole = 0;
        for (line, number) in bytes.split_inclusive(|&byte| byte == b'\n').zip(1..) {
            let is_whole = line.ends_with(b"\n");
            if number == 1 && !line::may_begin_journal(line) {
                return Err(not_a_journal(path).into());
            }
            if number == 1 && !is_whole {
                // Nothing was measured when the first line was cut.
                return Ok((file, recovered, 0));
            }
            if number == 1 {
                let header = line::read::<Header>(line).ok();
                let same = header.filter(|it| it.key == *key && seed.continues(it.seed));
                recovered.seed = same.map(|header| header.seed);
                if recovered.seed.is_none() {
                    recovered.foreign = true;
                    return Ok((file, recovered, 0));
                }
            }
            if number > 1 && is_whole {
                match line::read::<Entry>(line) {
                    Ok(entry) => recovered.entries.push(entry),
                    Err(error) => recovered.notes.push(format!(
                        "{}, line {number}: cannot be read ({error}); it is measured again",
                        path.display()
                    )),
                }
            }
            if is_whole {
                whole += line.len() as u64;
            } else {
                recovered.notes.push(format!(
                    "{}: an incomplete line was dropped; its process is measured again",
                    path.display()
                ));
            }
        }
        let is_process = |entry: &&Entry| matches!(entry, Entry::Process { .. });
        let processes = recovered.entries.iter().filter(is_process).count();
        if processes > 0 {
            recovered.notes.push(format!(
                "continuing from {}: {processes} processes are done",
                path.display()
            ));
        }
        Ok((file, recovered, whole))
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

    /// Copies the journal, which holds every sample.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or the copy cannot be written.
    pub fn copy_to(&mut self, copy: &mut impl Write) -> io::Result<()> {
        // Through the open file: some systems let no other one read what is locked.
        self.file.rewind()?;
        io::copy(&mut self.file, copy)?;
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
    (1..u32::MAX).map(numbered).find(|name| !name.exists()).unwrap_or_else(|| numbered(0))
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Order, Pair, Procedure, Round, Samples, Surroundings};
    use crate::plan::Subject;
    use crate::worker::{CeilingsReport, Device, Gpu, ProcessReport};
    use fusion_cost_model::calibration::{HardwareCalibration, Verification};
    use fusion_cost_model::cost::Ceilings;
    use fusion_cost_model::{CacheState, Clock, DType};

    const SEED: Seed = Seed::Given(1);

    fn key() -> RunKey {
        let example = include_str!("../../../tests/data/example.toml");
        RunKey {
            tool_version: "1".to_owned(),
            program: "0".to_owned(),
            fingerprint: HardwareCalibration::from_toml(example).unwrap().fingerprint,
            device: Device::cpu(2, true),
            cache: CacheState::Warm,
            procedure: Procedure::QUICK,
        }
    }

    fn entries() -> Vec<Entry> {
        let pair = |ratio| Pair {
            seconds: [ratio * 0.1, 0.3],
            order: Order::SecondFirst,
            causes: Vec::new(),
        };
        let process = |index| Entry::Process {
            subject: Subject::fusion("add_relu/f32/m4.n4".parse().unwrap()),
            index,
            report: Box::new(ProcessReport {
                samples: Samples {
                    rounds: vec![Round { pairs: vec![pair(1.7), pair(f64::from(index))] }],
                    iterations: [3, 5],
                    ticks: 1000,
                    back_to_back: 0.1,
                    observable: Vec::new(),
                    sensors: None,
                },
                kernels: [vec!["add".to_owned()], vec!["add+relu".to_owned()]],
                verification: Verification {
                    reference_rows: 4,
                    rows: 4,
                    unfused_error: 1e-9,
                    fused_error: 0.0,
                    tolerance: 1e-6,
                },
                outputs: None,
                wrong_after: None,
                pinned: true,
                processors: vec![0, 1],
                huge_page_share: None,
                steps: Vec::new(),
                scratch_bytes: [0; 2],
                gpu_kernels: Default::default(),
                surroundings: Default::default(),
            }),
        };
        let ceilings = Ceilings { peak_gflops: 0.1 + 0.2, launch_us: 0.5, bandwidth: Vec::new() };
        let report = CeilingsReport { ceilings, surroundings: Surroundings::default() };
        vec![
            process(0),
            Entry::Ceilings { dtype: DType::F32, clock: Clock::Host, pass: 0, report },
            process(1),
        ]
    }

    #[test]
    fn processes_survive_and_a_torn_line_does_not_matter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let entries = entries();
        let (mut journal, recovered) = Journal::open(&path, &key(), SEED).unwrap();
        assert!(recovered.entries.is_empty() && recovered.notes.is_empty());
        for entry in &entries {
            journal.append(entry).unwrap();
        }
        drop(journal);
        let whole = fs::read(&path).unwrap();
        let header = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        for cut in header..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let (_, recovered) = Journal::open(&path, &key(), SEED).unwrap();
            let lines = whole[header..cut].iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(recovered.entries[..], entries[..lines], "cut at {cut}");
            // The torn line is gone, so that the next one starts on its own.
            assert!(fs::read(&path).unwrap().ends_with(b"\n"));
        }
    }

    #[test]
    fn a_torn_header_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        drop(Journal::open(&path, &key(), SEED).unwrap());
        let whole = fs::read(&path).unwrap();
        for cut in (1..whole.len()).step_by(7) {
            fs::write(&path, &whole[..cut]).unwrap();
            let (_, recovered) = Journal::open(&path, &key(), SEED).unwrap();
            assert!(recovered.entries.is_empty() && recovered.notes.is_empty(), "cut at {cut}");
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was put aside");
    }

    #[test]
    fn copies_and_what_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let (mut journal, _) = Journal::open(&path, &key(), SEED).unwrap();
        let entries = entries();
        entries[..2].iter().for_each(|entry| journal.append(entry).unwrap());
        let mut copy = Vec::new();
        journal.copy_to(&mut copy).unwrap();
        assert_eq!(copy, fs::read(&path).unwrap());
        assert!(Journal::is_one(&path));
        journal.append(&entries[2]).unwrap();
        let part = Part { started_at: "1".to_owned(), forced: true, checks: Vec::new() };
        journal.keep_only(part.clone(), &entries[2..]).unwrap();
        let kept = [&[Entry::Part(part)], &entries[2..]].concat();
        assert_eq!(Journal::open(&path, &key(), SEED).unwrap().1.entries, kept);
    }

    #[test]
    fn two_runs_cannot_share_a_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let first = Journal::open(&path, &key(), SEED).unwrap();
        let message = Journal::open(&path, &key(), SEED).unwrap_err().to_string();
        assert!(message.contains("another run is writing"), "{message}");
        drop(first);
        assert!(Journal::open(&path, &key(), SEED).is_ok());
    }

    #[test]
    fn another_run_is_put_aside_and_kept() {
        let other_keys: [fn(&mut RunKey); 6] = [
            |key| key.program = "1".to_owned(),
            |key| key.device.threads = 1,
            |key| key.cache = CacheState::Cold,
            |key| key.procedure.rounds += 1,
            |key| key.fingerprint.cpu_model.push('x'),
            |key| key.device.gpu = Some(Gpu { index: 1, ..Gpu::default() }),
        ];
        for change in other_keys {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x.journal");
            Journal::open(&path, &key(), SEED).unwrap().0.append(&entries()[0]).unwrap();
            let mut other = key();
            change(&mut other);
            let (_, recovered) = Journal::open(&path, &other, Seed::Drawn(2)).unwrap();
            assert!(recovered.entries.is_empty());
            assert!(recovered.notes[0].contains("put aside"));
            assert!(folder.path().join("x.journal.old1").exists());
            fs::write(&path, b"{\"tool_version\":\"0.0.1\",\"of\":\"old\"}\n").unwrap();
            assert!(Journal::open(&path, &other, Seed::Drawn(2)).unwrap().1.entries.is_empty());
            assert!(folder.path().join("x.journal.old2").exists());
        }
    }

    #[test]
    fn what_is_no_journal_is_never_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        for text in [&b"\xff\xfe garbage\n"[..], b"one line without an end", b"{\"a\": 1}\nmore\n"]
        {
            fs::write(&path, text).unwrap();
            let message = Journal::open(&path, &key(), SEED).unwrap_err().to_string();
            assert!(message.contains("is not a journal"), "{message}");
            assert_eq!(fs::read(&path).unwrap(), text);
            assert!(!Journal::is_one(&path));
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(Journal::open(&path, &key(), SEED).is_err());
        assert!(!Journal::is_one(&folder.path().join("no")));
    }

    #[cfg(unix)]
    #[test]
    fn a_fifo_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let message = Journal::open(&path, &key(), SEED).unwrap_err().to_string();
        assert!(message.contains("is not a journal"), "{message}");
    }

    #[test]
    fn a_changed_number_is_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let (mut journal, _) = Journal::open(&path, &key(), SEED).unwrap();
        let entries = entries();
        entries.iter().for_each(|entry| journal.append(entry).unwrap());
        drop(journal);
        let text = fs::read_to_string(&path).unwrap();
        let changed = text.replacen("0.3,", "0.9,", 1).replacen("0.3]", "0.9]", 1);
        assert_ne!(changed, text);
        fs::write(&path, changed).unwrap();
        let (_, recovered) = Journal::open(&path, &key(), SEED).unwrap();
        assert_eq!(recovered.entries[..], entries[1..]);
        assert!(recovered.notes[0].contains("checksum"), "{:?}", recovered.notes);
    }

    #[test]
    fn a_drawn_seed_yields_to_that_of_the_run_and_a_given_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let begin = |seed| {
            let part = Part { started_at: "1".to_owned(), forced: false, checks: Vec::new() };
            Journal::begin(&path, &key(), seed, part).unwrap()
        };
        let mut begun = begin(Seed::Drawn(5));
        assert_eq!((begun.seed, begun.entries.len()), (5, 0));
        begun.journal.append(&entries()[0]).unwrap();
        drop(begun);
        for seed in [Seed::Drawn(6), Seed::Given(5), Seed::Drawn(7)] {
            let begun = begin(seed);
            assert_eq!(begun.seed, 5, "{seed:?}");
            assert!(begun.entries.contains(&entries()[0]));
        }
        assert!(!folder.path().join("x.journal.old1").exists());
        // What is put aside cannot give its seed to the run that begins anew.
        let begun = begin(Seed::Given(6));
        assert_eq!((begun.seed, begun.entries.len()), (6, 0));
        drop(begun);
        assert!(folder.path().join("x.journal.old1").exists());
        assert_eq!(begin(Seed::Drawn(8)).seed, 6);
    }
}
