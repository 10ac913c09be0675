//! Calibrations of parts of a plan as one.

use std::collections::HashMap;

use anyhow::Context;
use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration};
use serde_json::{Map, Value};

use super::extended::extended;
use crate::flat;

/// Keys in which files may differ: when and with which seed each was measured, how it ended, and
/// which one of equal machines it was.
const MAY_DIFFER: [&str; 7] = [
    "tool.started_at",
    "settings.seed",
    "settings.time_budget_s",
    "settings.end",
    "settings.forced",
    "fingerprint.gpu.bus_id",
    "fingerprint.memory_bytes",
];

/// Memory of equal machines differs by what their systems keep for themselves: by this share.
const MEMORY_SHARE: f64 = 0.05;

/// Lines about what differs, so that they can be read.
const MOST_LINES: usize = 12;

/// Joins calibrations of different problems, made by the same program with the same settings on
/// machines of one kind. The earliest comes first. States and ceilings of each stay its own.
///
/// # Errors
///
/// What differs, key by key; or which records are in several files.
pub fn merged(
    mut files: Vec<(String, HardwareCalibration)>,
) -> anyhow::Result<HardwareCalibration> {
    // Tasks of one array begin in the same second.
    files.sort_by_cached_key(|(_, one)| {
        (one.tool.started_at.clone(), one.settings.seed, one.to_toml().unwrap_or_default())
    });
    check_kind(&files)?;
    check_records(&files)?;
    check_states(&files)?;
    let mut files = files.into_iter().map(|(_, calibration)| calibration);
    let first = files.next().context("there is no file to merge")?;
    Ok(files.fold(first, extended))
}

/// Fails if a file is not of the same kind of machine, program and settings as the first one.
fn check_kind(files: &[(String, HardwareCalibration)]) -> anyhow::Result<()> {
    let Some(((first_name, first), others)) = files.split_first() else { return Ok(()) };
    let known = facts(first)?;
    for (name, other) in others {
        let facts = facts(other)?;
        let mut lines = Vec::new();
        for key in known.keys().chain(facts.keys().filter(|key| !known.contains_key(*key))) {
            let [before, after] =
                [&known, &facts].map(|facts| facts.get(key).unwrap_or(&Value::Null));
            if before != after {
                lines.push(format!("\n  {key}: {before} and {after}"));
            }
        }
        if !is_as_large(first, other) {
            let memory = |of: &HardwareCalibration| of.fingerprint.memory_bytes;
            let (before, after) = (memory(first), memory(other));
            lines.push(format!("\n  fingerprint.memory_bytes: {before} and {after}"));
        }
        if !lines.is_empty() {
            anyhow::bail!(
                "{first_name} and {name} cannot be one calibration, as they differ in:{}\nmerge the \
                 files of each kind of machine, program and settings by themselves; calibrate \
                 compare sets them side by side",
                shortened(lines)
            );
        }
    }
    Ok(())
}

/// What must be the same.
fn facts(calibration: &HardwareCalibration) -> anyhow::Result<Map<String, Value>> {
    let HardwareCalibration { hardware, tool, settings, fingerprint, .. } = calibration;
    let mut facts = Map::new();
    facts.insert("hardware.id".to_owned(), hardware.id.as_str().into());
    flat::put(&mut facts, "tool.", tool)?;
    flat::put(&mut facts, "settings.", settings)?;
    flat::put(&mut facts, "fingerprint.", fingerprint)?;
    facts.retain(|key, _| !MAY_DIFFER.contains(&key.as_str()));
    Ok(facts)
}

fn is_as_large(a: &HardwareCalibration, b: &HardwareCalibration) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let [a, b] = [a, b].map(|of| of.fingerprint.memory_bytes as f64);
    (a / b - 1.0).abs() <= MEMORY_SHARE
}

/// Fails if two files answer the same question.
fn check_records(files: &[(String, HardwareCalibration)]) -> anyhow::Result<()> {
    let mut known: HashMap<_, &str> = HashMap::new();
    let mut lines = Vec::new();
    for (name, calibration) in files {
        for record in &calibration.records {
            let FusionRecord { problem, backend, threads, cache_state, .. } = *record;
            let FusionRecord { clock, implementation, rewrite, .. } = *record;
            let target = (backend, threads, cache_state, clock, implementation, rewrite);
            if let Some(other) = known.insert((problem, target), name) {
                lines.push(format!(
                    "\n  {problem} on {backend}, {threads} threads: {other} and {name}"
                ));
            }
        }
    }
    anyhow::ensure!(
        lines.is_empty(),
        "{} {} in several files, and only one can be kept:{}\nleave one of the \
         files out",
        lines.len(),
        if lines.len() == 1 { "record is" } else { "records are" },
        shortened(lines)
    );
    Ok(())
}

/// Fails if a file's ceilings would count for the records of the others.
fn check_states(files: &[(String, HardwareCalibration)]) -> anyhow::Result<()> {
    let has_none = |calibration: &HardwareCalibration| {
        calibration.ceilings.iter().any(|one| one.state.is_none())
    };
    match files.iter().find(|(_, calibration)| files.len() > 1 && has_none(calibration)) {
        None => Ok(()),
        Some((name, _)) => anyhow::bail!(
            "the ceilings of {name} are of no state of the machine, so that they cannot be told from \
             those of the other files; calibrate it again"
        ),
    }
}

fn shortened(mut lines: Vec<String>) -> String {
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    if more > 0 {
        lines.push(format!("\n  and {more} more"));
    }
    lines.concat()
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::super::extended::tests::in_a_state;
    use super::*;

    fn part(name: &str, records: Range<usize>) -> (String, HardwareCalibration) {
        let mut one = in_a_state(records.clone());
        one.settings.seed = records.start as u64;
        one.tool.started_at = format!("2026-11-22T00:00:0{}Z", records.start);
        (name.to_owned(), one)
    }

    fn refusal(files: Vec<(String, HardwareCalibration)>) -> String {
        merged(files).unwrap_err().to_string()
    }

    #[test]
    fn parts_become_one_file_in_any_order() {
        let parts = [part("a", 0..1), part("b", 1..2), part("c", 2..3)];
        let all = merged(parts.to_vec()).unwrap();
        let turned = merged(parts.into_iter().rev().collect()).unwrap();
        assert_eq!(all, turned);
        assert_eq!(HardwareCalibration::from_toml(&all.to_toml().unwrap()).unwrap(), all);
        assert_eq!((all.records.len(), all.states.len(), all.additions.len()), (3, 3, 2));
        let states: Vec<u32> = all.records.iter().map(|record| record.states[0]).collect();
        assert_eq!(states, [1, 2, 3]);
        assert_eq!(merged(vec![part("a", 0..2)]).unwrap(), part("a", 0..2).1);
    }

    #[test]
    fn parts_that_began_together_have_one_order() {
        for seeds in [[1, 2, 3], [7, 7, 7]] {
            let mut parts = [part("a", 0..1), part("b", 1..2), part("c", 2..3)];
            for ((_, part), seed) in parts.iter_mut().zip(seeds) {
                part.tool.started_at = "2026-11-22T00:00:00Z".to_owned();
                part.settings.seed = seed;
            }
            let all = merged(parts.to_vec()).unwrap();
            for turn in 0..3 {
                parts.rotate_left(1);
                assert_eq!(merged(parts.to_vec()).unwrap(), all, "{turn}");
                parts.swap(0, 1);
                assert_eq!(merged(parts.to_vec()).unwrap(), all, "{turn}");
            }
        }
    }

    #[test]
    fn what_differs_is_listed_key_by_key() {
        let mut other = part("b", 1..2);
        other.1.tool.version = "9.9.9".to_owned();
        other.1.settings.rounds += 1;
        other.1.fingerprint.microcode = Some("0x2".to_owned());
        other.1.fingerprint.memory_bytes *= 2;
        let message = refusal(vec![part("a", 0..1), other]);
        for expected in [
            "a and b cannot be one calibration",
            "tool.version: \"0.1.0\" and \"9.9.9\"",
            "settings.rounds: ",
            "fingerprint.microcode: ",
            "fingerprint.memory_bytes: ",
        ] {
            assert!(message.contains(expected), "{message}");
        }
        assert!(!message.contains("settings.seed") && !message.contains("started_at"), "{message}");
    }

    #[test]
    fn records_of_several_files_are_listed() {
        let message = refusal(vec![part("a", 0..2), part("b", 1..3)]);
        let problem = part("a", 1..2).1.records[0].problem;
        assert!(message.contains("1 record is in several files"), "{message}");
        assert!(message.contains(&format!("{problem} on cpu, 2 threads: a and b")), "{message}");
    }

    #[test]
    fn ceilings_must_be_of_a_state() {
        let mut without = part("b", 1..2);
        without.1.ceilings[0].state = None;
        assert!(refusal(vec![part("a", 0..1), without]).contains("ceilings of b are of no state"));
    }
}
