//! Journals.

use std::fs;
use std::sync::LazyLock;

use calibrate::measure::{Order, Pair, Procedure, Round, Samples, Surroundings};
use calibrate::plan::Subject;
use calibrate::run::{Entry, Journal, Part, RunKey, Seed};
use calibrate::worker::{CeilingsReport, Device, Ladder, ProcessReport};
use fusion_cost_model::calibration::{HardwareCalibration, Verification};
use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{CacheState, Clock, DType};
use twox_hash::XxHash3_64;

use super::{file_with, folder, said_of};
use crate::Target;

/// A journal that is opened is whole from then on: opened again, it has the same entries. Of most
/// inputs the checksums are mended, or nothing behind them would be looked at.
pub(super) const JOURNAL: Target = Target {
    name: "journal",
    seeds: || vec![with_mode(0, &journal()), with_mode(1, &journal())],
    run,
};

fn run(bytes: &[u8]) -> String {
    let Some((mode, lines)) = bytes.split_first() else { return String::new() };
    let lines = if mode % 4 == 0 { lines.to_vec() } else { mended(lines) };
    let path = file_with("x.journal", &lines);
    let open = || Journal::open(&path, &KEY, Seed::Drawn(1)).map(|(_, recovered)| recovered);
    match open() {
        Ok(first) => {
            let second = open().expect("what was opened can be opened again");
            // A number may be none in JSON only, so that texts are compared.
            assert_eq!(format!("{:?}", second.entries), format!("{:?}", first.entries));
            let kept = fs::read(&path).unwrap();
            assert!(lines.starts_with(&kept) || first.entries.is_empty(), "a line was changed");
            said_of(&path, &first.notes.concat())
        }
        Err(error) => {
            assert_eq!(fs::read(&path).unwrap(), lines, "what is refused is left as it is");
            said_of(&path, &format!("{error:#}"))
        }
    }
}

fn with_mode(mode: u8, journal: &[u8]) -> Vec<u8> {
    [&[mode], journal].concat()
}

/// The same lines with the checksum that each must have.
fn mended(lines: &[u8]) -> Vec<u8> {
    let mut mended = Vec::new();
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        let sum = line.windows(8).rposition(|part| part == b",\"sum\":\"");
        match (sum, line.ends_with(b"\n")) {
            (Some(end), true) => {
                let object = [&line[..end], b"}"].concat();
                mended.extend(&line[..end]);
                let sum = XxHash3_64::oneshot(&object);
                mended.extend(format!(",\"sum\":\"{sum:016x}\"}}\n").bytes());
            }
            _ => mended.extend(line),
        }
    }
    mended
}

static KEY: LazyLock<RunKey> = LazyLock::new(|| {
    let example = include_str!("../../../tests/data/example.toml");
    RunKey {
        tool_version: "1".to_owned(),
        program: "0".to_owned(),
        fingerprint: HardwareCalibration::from_toml(example).unwrap().fingerprint,
        device: Device::cpu(2, true),
        cache: CacheState::Warm,
        procedure: Procedure::QUICK,
    }
});

/// A journal with a line of each kind.
fn journal() -> Vec<u8> {
    let folder = folder();
    let path = folder.path().join("x.journal");
    let (mut journal, _) = Journal::open(&path, &KEY, Seed::Given(1)).unwrap();
    for entry in entries() {
        journal.append(&entry).unwrap();
    }
    drop(journal);
    fs::read(&path).unwrap()
}

fn entries() -> [Entry; 4] {
    let subject = Subject::fusion("add_relu/f32/m4.n4".parse().unwrap());
    let ceilings = Ceilings { peak_gflops: 0.1 + 0.2, launch_us: 0.5, bandwidth: Vec::new() };
    let surroundings = Surroundings::default();
    let report = CeilingsReport { ceilings, surroundings, ladder: Ladder::default() };
    [
        Entry::Part(Part { started_at: "1".to_owned(), forced: false, checks: Vec::new() }),
        Entry::Process { subject, index: 0, report: Box::new(process()) },
        Entry::Ceilings { dtype: DType::F32, clock: Clock::Host, pass: 0, report },
        Entry::Wrong { subject, reason: "row 3 is off".to_owned() },
    ]
}

/// What a process may have measured.
pub(super) fn process() -> ProcessReport {
    let pair = Pair {
        seconds: [0.17, 0.3],
        order: Order::SecondFirst,
        causes: Vec::new(),
        clock_changed: [false; 2],
    };
    ProcessReport {
        samples: Samples {
            rounds: vec![Round { pairs: vec![pair] }],
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
        surroundings: Surroundings::default(),
    }
}
