//! Signals at random moments, and the same command again after those that end a run: nothing that
//! was finished is lost or measured twice, no worker is left, and the file that comes out in the end
//! is valid.
//!
//! A few kills here; `.ci/signals` sends a hundred signals of every kind to longer runs.

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

/// The lines that a run which was ended left, after those that were there before.
fn left_of(folder: &Path, journaled: &[String]) -> Vec<String> {
    let (now, _) = lines(&folder.join("t.toml.journal"));
    // Unless the end came between the last record and the removal of the journal.
    if now.is_empty() && folder.join("t.toml").exists() {
        return Vec::new();
    }
    assert!(now.starts_with(journaled), "a line was lost");
    now
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
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut folder = tempfile::tempdir().unwrap();
    let mut journaled: Vec<String> = Vec::new();
    let (mut killed, mut torn_lines, mut wholes, mut most_lines) = (0, 0, 0, 0);
    while killed < KILLS {
        let mut child = start(folder.path(), false);
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
        torn_lines += u32::from(lines(&folder.path().join("t.toml.journal")).1);
        journaled = left_of(folder.path(), &journaled);
        most_lines = most_lines.max(journaled.len());
    }
    assert!(most_lines > 3, "no kill came after a process");
    let mut child = start(folder.path(), false);
    assert!(ended_before(&mut child, Instant::now() + Duration::from_secs(300)));
    check_whole(folder.path(), &journaled);
    println!(
        "{killed} kills, {} whole calibrations, {torn_lines} torn lines, nothing lost",
        wholes + 1
    );
}

/// All kinds of signals, to runs of minutes and to their workers.
#[cfg(target_os = "linux")]
mod series {
    use std::collections::BTreeMap;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    /// What happens to a run.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Blow {
        KillRun,
        HangUpRun,
        StopRun,
        KillWorker,
        HangUpWorker,
        StopWorker,
        /// The run ends while its worker is stopped.
        KillRunOfStopped,
    }

    const BLOWS: [Blow; 7] = [
        Blow::KillRun,
        Blow::HangUpRun,
        Blow::StopRun,
        Blow::KillWorker,
        Blow::HangUpWorker,
        Blow::StopWorker,
        Blow::KillRunOfStopped,
    ];

    /// Sends a signal; the process may have ended before.
    fn send(signal: &str, process: u32) {
        let mut command = Command::new("kill");
        command.args([format!("-{signal}"), process.to_string()]).stderr(Stdio::null());
        command.status().unwrap();
    }

    /// The state of a process and its parent.
    fn state_and_parent(process: u32) -> Option<(char, u32)> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let (_, after_name) = stat.rsplit_once(')')?;
        let mut words = after_name.split_whitespace();
        Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
    }

    /// The processes that a run has started and that still run.
    fn workers(run: u32) -> Vec<u32> {
        let names = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
        let numbers = names.filter_map(|name| name.to_str()?.parse().ok());
        numbers
            .filter(|process| state_and_parent(*process).is_some_and(|(_, of)| of == run))
            .collect()
    }

    /// Waits until the workers of a run that has ended have ended too.
    fn assert_gone(workers: &[u32]) {
        let until = Instant::now() + Duration::from_secs(20);
        let runs = |worker: &u32| state_and_parent(*worker).is_some_and(|(state, _)| state != 'Z');
        while let Some(left) = workers.iter().find(|worker| runs(worker)) {
            assert!(Instant::now() < until, "worker {left} is left behind");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// How a run ends that must.
    fn status_of(child: &mut Child) -> ExitStatus {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends what belongs to a blow; whether it ends the run. `None` between two workers.
    fn strike(blow: Blow, run: u32, worker: Option<u32>, random: &mut ChaCha8Rng) -> Option<bool> {
        let pause = Duration::from_millis(1500).mul_f64(random.random());
        let stop = |process| {
            send("STOP", process);
            std::thread::sleep(pause);
            send("CONT", process);
        };
        match blow {
            Blow::KillRun => send("KILL", run),
            Blow::HangUpRun => send("HUP", run),
            Blow::StopRun => stop(run),
            Blow::KillWorker => send("KILL", worker?),
            Blow::HangUpWorker => send("HUP", worker?),
            Blow::StopWorker => stop(worker?),
            Blow::KillRunOfStopped => {
                send("STOP", worker?);
                send("KILL", run);
            }
        }
        Some(matches!(blow, Blow::KillRun | Blow::HangUpRun | Blow::KillRunOfStopped))
    }

    /// `SIGNALS` of them, 100 unless the environment says otherwise.
    #[test]
    #[ignore = "takes some minutes: .ci/signals runs it, and so does the workflow"]
    fn nothing_is_lost_or_measured_twice_whatever_signals_come() {
        let signals: u32 = std::env::var("SIGNALS").map_or(100, |text| text.parse().unwrap());
        let mut random = ChaCha8Rng::seed_from_u64(2);
        let mut folder = tempfile::tempdir().unwrap();
        let mut journaled: Vec<String> = Vec::new();
        let (mut sent, mut wholes) = (BTreeMap::new(), 0);
        let mut child = start(folder.path(), true);
        let mut lines_at_last = 0;
        while sent.values().sum::<u32>() < signals {
            // After a further process, so that one that is tried once more is not ended again.
            let more = random.random_range(1..4);
            let delay = Duration::from_millis(500).mul_f64(random.random());
            let mut is_whole = wait_for_lines(&mut child, folder.path(), lines_at_last + more)
                || ended_before(&mut child, Instant::now() + delay);
            if !is_whole {
                let blow = BLOWS[random.random_range(0..BLOWS.len())];
                let seen = workers(child.id());
                let struck = strike(blow, child.id(), seen.first().copied(), &mut random);
                *sent.entry(blow).or_insert(0) += u32::from(struck.is_some());
                if struck == Some(true) {
                    let status = status_of(&mut child);
                    let is_expected = match blow {
                        Blow::HangUpRun => status.code() == Some(130),
                        _ => status.signal() == Some(9),
                    };
                    // It may have been done at that moment.
                    is_whole = status.success();
                    assert!(is_expected || is_whole, "{blow:?}: {status}");
                    assert_gone(&seen);
                    if !is_whole {
                        journaled = left_of(folder.path(), &journaled);
                        child = start(folder.path(), true);
                    }
                }
            }
            if is_whole {
                check_whole(folder.path(), &journaled);
                wholes += 1;
                folder = tempfile::tempdir().unwrap();
                journaled.clear();
                child = start(folder.path(), true);
            }
            lines_at_last = lines(&folder.path().join("t.toml.journal")).0.len();
        }
        assert!(ended_before(&mut child, Instant::now() + Duration::from_secs(1200)));
        check_whole(folder.path(), &journaled);
        println!("{sent:?}: {} whole calibrations, nothing lost or twice, no orphan", wholes + 1);
    }
}
