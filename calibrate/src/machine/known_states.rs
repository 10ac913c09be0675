//! The states that this machine was in when it was calibrated before.
//!
//! A state can last longer than a run. A run that meets one state only cannot know that there are
//! others, but one an hour ago may have met them. So each run leaves its states in a file among the
//! user's caches, and the next one says what it did not meet.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cli_support::input;
use fusion_cost_model::calibration::{EarlierState, Fingerprint, MachineState};
use serde::{Deserialize, Serialize};

use crate::digits::rounded;
use crate::timestamp;

/// Hand-off times that differ by less than this factor are of one state.
const OTHER_HANDOFF: f64 = 2.0;

/// Triads that differ by less than this factor are of one state.
const OTHER_TRIAD: f64 = 1.4;

/// A state that was not seen for so long says nothing of the machine as it is.
const FORGET_AFTER: Duration = Duration::from_hours(24 * 30);

/// At most this many states are kept, the last ones that were seen.
const MOST_STATES: usize = 16;

/// The most bytes of the file.
const MOST_BYTES: u64 = 1 << 20;

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Seen {
    /// What makes machines comparable.
    machine: String,
    #[serde(flatten)]
    state: EarlierState,
}

/// The states of earlier runs. Without a file, or with one that cannot be read, there are none.
#[derive(Debug, Clone, Default)]
pub struct KnownStates {
    path: Option<PathBuf>,
    machine: String,
    threads: u32,
    seen: Vec<Seen>,
}

impl KnownStates {
    /// What was left among the user's caches.
    #[must_use]
    pub fn of_user(fingerprint: &Fingerprint, threads: u32) -> Self {
        let folder = fused_kernels::gpu::user_cache_folder();
        Self::in_folder(folder.as_deref(), fingerprint, threads)
    }

    /// What was left in a folder; `None` keeps nothing.
    #[must_use]
    pub fn in_folder(folder: Option<&Path>, fingerprint: &Fingerprint, threads: u32) -> Self {
        let Fingerprint { cpu_model, logical_cores, memory_bytes, .. } = fingerprint;
        let machine = format!("{cpu_model}, {logical_cores} processors, {memory_bytes} bytes");
        let path = folder.map(|folder| folder.join("machine-states.jsonl"));
        let text = path.as_ref().and_then(|path| text_of(path)).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let seen = lines.filter(|one: &Seen| is_recent(&one.state)).collect();
        Self { path, machine, threads, seen }
    }

    /// The states that none of those that a run met is like.
    #[must_use]
    pub fn other_than(&self, met: &[MachineState]) -> Vec<EarlierState> {
        if met.is_empty() {
            return Vec::new();
        }
        let is_here =
            |one: &&Seen| one.machine == self.machine && one.state.threads == self.threads;
        let is_other = |state: &&EarlierState| !met.iter().any(|one| is_like(one, state));
        self.seen.iter().filter(is_here).map(|one| &one.state).filter(is_other).cloned().collect()
    }

    /// Adds the states of a run, and takes those off that are like them. What cannot be kept is no
    /// reason to lose a calibration over.
    pub fn remember(mut self, met: &[MachineState]) {
        let Some(path) = self.path.take().filter(|_| !met.is_empty()) else { return };
        let (machine, threads) = (self.machine, self.threads);
        self.seen.retain(|one| {
            let is_here = one.machine == machine && one.state.threads == threads;
            !(is_here && met.iter().any(|state| is_like(state, &one.state)))
        });
        let seen_at = timestamp::now();
        self.seen.extend(met.iter().map(|state| {
            let triad_gb_per_s = rounded(state.triad_gb_per_s);
            let handoff_us = state.handoff_us.map(rounded);
            let seen_at = seen_at.clone();
            let state = EarlierState { seen_at, threads, handoff_us, triad_gb_per_s };
            Seen { machine: machine.clone(), state }
        }));
        let first = self.seen.len().saturating_sub(MOST_STATES);
        let _ = write(&path, &self.seen[first..]);
    }
}

/// The text of a file, and of nothing that has no end or waits for a writer.
fn text_of(path: &Path) -> Option<String> {
    let is_file = fs::metadata(path).ok()?.is_file();
    is_file.then(|| input::text(path, MOST_BYTES).ok()).flatten()
}

/// Whole or not at all, since another run may read it.
fn write(path: &Path, seen: &[Seen]) -> anyhow::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    for one in seen {
        writeln!(file, "{}", serde_json::to_string(one)?)?;
    }
    file.persist(path)?;
    Ok(())
}

fn is_like(met: &MachineState, known: &EarlierState) -> bool {
    let differ = |one: f64, other: f64| (one / other).ln().abs();
    let handoff = met.handoff_us.zip(known.handoff_us).map_or(0.0, |(a, b)| differ(a, b));
    handoff < OTHER_HANDOFF.ln()
        && differ(met.triad_gb_per_s, known.triad_gb_per_s) < OTHER_TRIAD.ln()
}

fn is_recent(state: &EarlierState) -> bool {
    let seen = humantime::parse_rfc3339(&state.seen_at);
    // A time in the future is that of a clock that was set.
    seen.is_ok_and(|at| at.elapsed().unwrap_or_default() < FORGET_AFTER)
        && state.triad_gb_per_s > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use fusion_cost_model::calibration::HardwareCalibration;

    fn fingerprint() -> Fingerprint {
        let example = include_str!("../../../tests/data/example.toml");
        HardwareCalibration::from_toml(example).unwrap().fingerprint
    }

    fn state(handoff_us: f64, triad_gb_per_s: f64) -> MachineState {
        let triad_range = [triad_gb_per_s; 2];
        let handoff_us = Some(handoff_us);
        MachineState { id: 1, handoff_us, triad_gb_per_s, triad_range, processes: 5 }
    }

    #[test]
    fn a_run_knows_the_states_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let known = |threads| KnownStates::in_folder(Some(folder.path()), &fingerprint(), threads);
        let (shared, apart) = (state(0.11, 57.0), state(0.57, 112.0));
        assert!(known(2).other_than(std::slice::from_ref(&shared)).is_empty());
        known(2).remember(std::slice::from_ref(&shared));
        let others = known(2).other_than(std::slice::from_ref(&apart));
        assert_eq!(others.len(), 1);
        assert_eq!((others[0].handoff_us, others[0].threads), (Some(0.11), 2));
        // The same state a little off, another number of threads, and another machine say nothing.
        assert!(known(2).other_than(&[state(0.13, 60.0)]).is_empty());
        assert!(known(1).other_than(std::slice::from_ref(&apart)).is_empty());
        let other = Fingerprint { memory_bytes: 1, ..fingerprint() };
        let of_other = KnownStates::in_folder(Some(folder.path()), &other, 2);
        assert!(of_other.other_than(std::slice::from_ref(&apart)).is_empty());
        // Both are kept, each once.
        for _ in 0..3 {
            known(2).remember(&[shared.clone(), apart.clone()]);
        }
        let text = fs::read_to_string(folder.path().join("machine-states.jsonl")).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    #[test]
    fn damaged_and_old_lines_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine-states.jsonl");
        let known = || KnownStates::in_folder(Some(folder.path()), &fingerprint(), 2);
        known().remember(&[state(0.11, 57.0)]);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{{\nnonsense\n{text}")).unwrap();
        assert_eq!(known().other_than(&[state(0.57, 112.0)]).len(), 1);
        let (before, after) = text.split_once("\"seen_at\":\"").unwrap();
        fs::write(&path, format!("{before}\"seen_at\":\"2001{}", &after[4..])).unwrap();
        assert!(known().other_than(&[state(0.57, 112.0)]).is_empty());
        fs::write(&path, b"\xff\xfe").unwrap();
        assert!(known().other_than(&[state(0.57, 112.0)]).is_empty());
        // Without a folder nothing is kept, and nothing fails.
        KnownStates::in_folder(None, &fingerprint(), 2).remember(&[state(0.11, 57.0)]);
    }
}
