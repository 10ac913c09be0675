//! Whatever a crash, another run or an editor leaves.

use super::*;
use crate::measure::{Order, Pair, Procedure, Round, Samples, Surroundings};
use crate::plan::Subject;
use crate::worker::{CeilingsReport, Device, Gpu, Ladder, ProcessReport};
use fusion_cost_model::calibration::{HardwareCalibration, Verification};
use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{CacheState, Clock, DType};

const SEED: Seed = Seed::Given(1);

fn key() -> RunKey {
    let example = include_str!("../../../../tests/data/example.toml");
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
        clock_changed: [false; 2],
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
            ladder: Default::default(),
            surroundings: Default::default(),
        }),
    };
    let ceilings = Ceilings { peak_gflops: 0.1 + 0.2, launch_us: 0.5, bandwidth: Vec::new() };
    let report = CeilingsReport {
        ceilings,
        surroundings: Surroundings::default(),
        ladder: Ladder::default(),
    };
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
    // As after joining two journals. Of parts there can be several that are alike.
    let part = Part { started_at: "1".to_owned(), forced: true, checks: Vec::new() };
    for entry in [&entries[0], &Entry::Part(part.clone()), &Entry::Part(part.clone())] {
        journal.append(entry).unwrap();
    }
    let mut once = Vec::new();
    journal.copy_to(&mut once).unwrap();
    assert!(once.starts_with(&copy));
    let line = line::write(&Entry::Part(part.clone())).unwrap();
    assert_eq!(once[copy.len()..], *line.repeat(2).as_bytes());
    // A line that was edited, one that is none, and the head of another journal.
    let edited = line::write(&entries[1]).unwrap().replacen(':', ": ", 1);
    let head = copy.split_inclusive(|byte| *byte == b'\n').next().unwrap();
    for other in [edited.as_bytes(), b"years of work\n", head] {
        journal.file.write_all(other).unwrap();
    }
    let mut again = Vec::new();
    journal.copy_to(&mut again).unwrap();
    assert_eq!(again, once);
    journal.append(&entries[2]).unwrap();
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
    for text in [&b"\xff\xfe garbage\n"[..], b"one line without an end", b"{\"a\": 1}\nmore\n"] {
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

/// Nor a link that leads nowhere yet: a disk may come back.
#[cfg(unix)]
#[test]
fn what_is_put_aside_takes_no_name_that_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (path, taken) = (folder.path().join("j.journal"), folder.path().join("j.journal.old1"));
    std::os::unix::fs::symlink(folder.path().join("nowhere"), &taken).unwrap();
    drop(Journal::open(&path, &key(), SEED).unwrap());
    assert!(Journal::open(&path, &key(), Seed::Given(2)).is_ok());
    assert!(taken.is_symlink() && folder.path().join("j.journal.old2").is_file());
}

/// As with `--output`: only the file that a link leads to is named by it.
#[cfg(unix)]
#[test]
fn no_journal_is_made_where_a_link_leads_to_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, target) = (folder.path().join("j.journal"), folder.path().join("target"));
    std::os::unix::fs::symlink(&target, &path).unwrap();
    assert!(Journal::open(&path, &key(), SEED).is_err());
    assert!(!target.exists() && path.is_symlink());
    fs::write(&target, "").unwrap();
    assert!(Journal::open(&path, &key(), SEED).is_ok());
}
