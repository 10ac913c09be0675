//! SIGKILL at random moments, each followed by the same command: nothing that was finished is lost
//! or measured twice, and the file that comes out in the end is valid.
//!
//! A few kills here; the whole exercise is
//! `KILLS=100 cargo test --release -p calibrate --test kill -- --nocapture`.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use calibrate::plan::Comparison;
use calibrate::run::Entry;
use fusion_cost_model::calibration::{HardwareCalibration, RunEnd};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Kills unless the environment asks for more.
const KILLS: u32 = 6;

const PROBLEMS: [&str; 4] = [
    "linear_bias_relu/f32/m8.k16.n8",
    "add_relu/f32/m64.n64",
    "conv_bn/f32/n1.c4.h8.w8.k4.r3.s3",
    "attention_head/f32/b1.h1.q16.d8",
];

fn start(folder: &Path, is_long: bool) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.current_dir(folder).args(["--quick", "--force", "--output", "t.toml"]);
    command.args(["--samples", "samples.jsonl"]).env("XDG_CACHE_HOME", "/dev/null");
    if is_long {
        command.args(["--fusion", "all"]);
    } else {
        command.args(["--threads", "1", "--rounds", "2"]);
        PROBLEMS.iter().for_each(|problem| _ = command.args(["--problem", problem]));
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The whole lines of a journal, and whether its last one is torn.
fn lines(path: &Path) -> (Vec<String>, bool) {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8(text).unwrap();
    let torn = !text.is_empty() && !text.ends_with('\n');
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if torn {
        lines.pop();
    }
    (lines, torn)
}

/// Waits until the process ends, but no longer than until `end`; whether it ended.
fn ended_before(child: &mut Child, end: Instant) -> bool {
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the journal has `count` lines; returns whether the process ended before.
fn wait_for_lines(child: &mut Child, folder: &Path, count: usize) -> bool {
    while lines(&folder.join("t.toml.journal")).0.len() < count {
        if ended_before(child, Instant::now()) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

/// Checks what a run that came to its end left.
fn check_whole(folder: &Path, journaled: &[String]) {
    let calibration = HardwareCalibration::load(folder.join("t.toml")).unwrap();
    assert_eq!(calibration.settings.end, RunEnd::Complete);
    assert!(calibration.skipped.is_empty(), "{:?}", calibration.skipped);
    assert!(!folder.join("t.toml.journal").exists());
    // Every line that was written before a kill is still there, in its place.
    let (samples, torn) = lines(&folder.join("samples.jsonl"));
    assert!(!torn);
    assert_eq!(samples[..journaled.len()], *journaled);
    let (mut processes, mut problems) = (HashSet::new(), 0);
    for line in &samples[1..] {
        if let Entry::Process { subject, index, .. } = Entry::from_line(line).unwrap() {
            problems += usize::from(subject.comparison == Comparison::UnfusedFused);
            assert!(processes.insert((subject, index)), "{subject:?} was measured twice");
        }
    }
    assert_eq!(problems, 3 * calibration.records.len(), "three processes of each problem");
    assert!(processes.len() >= problems + 3 * calibration.noise.len(), "and of each A/A run");
}

#[test]
fn nothing_is_lost_or_measured_twice_whenever_the_run_is_killed() {
    let kills: u32 = std::env::var("KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let is_long = kills > KILLS;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut folder = tempfile::tempdir().unwrap();
    let mut journaled: Vec<String> = Vec::new();
    let (mut killed, mut torn_lines, mut wholes, mut most_lines) = (0, 0, 0, 0);
    while killed < kills {
        let mut child = start(folder.path(), is_long);
        // At a random moment after `more` further lines, or before the first one.
        let more = random.random_range(0..6);
        let delay = Duration::from_millis(300).mul_f64(random.random());
        let ended = wait_for_lines(&mut child, folder.path(), journaled.len() + more);
        if ended || ended_before(&mut child, Instant::now() + delay) {
            check_whole(folder.path(), &journaled);
            wholes += 1;
            folder = tempfile::tempdir().unwrap();
            journaled.clear();
            continue;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        killed += 1;
        let (now, torn) = lines(&folder.path().join("t.toml.journal"));
        // Unless the kill came between the last record and the removal of the journal.
        if !folder.path().join("t.toml").exists() || !now.is_empty() {
            assert!(now.starts_with(&journaled), "a line was lost");
            journaled = now;
        } else {
            journaled.clear();
        }
        torn_lines += u32::from(torn);
        most_lines = most_lines.max(journaled.len());
    }
    assert!(most_lines > 3, "no kill came after a process");
    let mut child = start(folder.path(), is_long);
    assert!(ended_before(&mut child, Instant::now() + Duration::from_secs(300)));
    check_whole(folder.path(), &journaled);
    println!(
        "{killed} kills, {} whole calibrations, {torn_lines} torn lines, nothing lost",
        wholes + 1
    );
}
