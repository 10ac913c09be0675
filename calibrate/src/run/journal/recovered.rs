//! What an earlier part of a run left in its journal.

use std::collections::HashSet;
use std::path::Path;

use super::super::entry::{Entry, Header, RunKey};
use super::super::line;
use super::super::seed::Seed;
use super::not_a_journal;
use crate::exit::UsageError;

/// What was found of an earlier run.
#[derive(Debug, Default)]
pub struct Recovered {
    /// What it measured, if it is the same run.
    pub entries: Vec<Entry>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The seed of the earlier run, if it is the same run.
    pub(super) seed: Option<u64>,
    /// Whether it was another run.
    pub(super) foreign: bool,
    /// How many bytes are whole lines of this run.
    pub(super) whole: u64,
}

impl Recovered {
    /// Reads the bytes of a journal, as far as they are of this run.
    pub(super) fn of(
        bytes: &[u8],
        path: &Path,
        key: &RunKey,
        seed: Seed,
    ) -> Result<Self, UsageError> {
        let mut lines = bytes.split_inclusive(|&byte| byte == b'\n').zip(1..);
        let mut recovered = Self::default();
        let Some((header, _)) = lines.next() else { return Ok(recovered) };
        if !line::may_begin_journal(header) {
            return Err(not_a_journal(path));
        }
        if !header.ends_with(b"\n") {
            // Nothing was measured when the first line was cut.
            return Ok(recovered);
        }
        let known = line::read::<Header>(header).ok();
        let same = known.filter(|it| it.key == *key && seed.continues(it.seed));
        recovered.seed = same.map(|header| header.seed);
        recovered.foreign = recovered.seed.is_none();
        if recovered.foreign {
            return Ok(recovered);
        }
        recovered.whole = header.len() as u64;
        for (line, number) in lines {
            recovered.add(line, number, path);
        }
        let process = |entry: &Entry| match entry {
            Entry::Process { subject, index, .. } => Some((*subject, *index)),
            _ => None,
        };
        let processes = recovered.entries.iter().filter_map(process).collect::<HashSet<_>>().len();
        if processes > 0 {
            recovered.notes.push(format!(
                "continuing from {}: {processes} processes are done",
                path.display()
            ));
        }
        Ok(recovered)
    }

    /// Adds a line behind the first one.
    fn add(&mut self, line: &[u8], number: usize, path: &Path) {
        let path = path.display();
        if !line.ends_with(b"\n") {
            self.notes.push(format!(
                "{path}: an incomplete line was dropped; its process is measured again"
            ));
            return;
        }
        self.whole += line.len() as u64;
        match line::read::<Entry>(line) {
            Ok(entry) => self.entries.push(entry),
            Err(error) => self.notes.push(format!(
                "{path}, line {number}: cannot be read ({error}); it is measured again"
            )),
        }
    }
}
