//! Reasons of a record that its figures speak against, and figures that ask for a reason.

use crate::on_a_gpu;
use fusion_cost_model::calibration::{
    FusionRecord, HardwareCalibration, Reason, ReasonCode, Timing, Verdict,
};

use crate::changed::{Change, grown, read};

fn example() -> HardwareCalibration {
    HardwareCalibration::from_toml(include_str!("data/example.toml")).unwrap()
}

fn of_states() -> HardwareCalibration {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/calibrate/profiles/calibrations");
    HardwareCalibration::load(format!("{folder}/amd-epyc-2-threads.toml")).unwrap()
}

fn refused(calibration: &HardwareCalibration, changes: &[(&str, Change<'_>)]) {
    for (words, change) in changes {
        match read(calibration, change) {
            Ok(()) => panic!("it was accepted: {words}"),
            Err(message) => {
                assert!(message.contains(words), "{message}\n{words}");
                assert!(message.contains(" at line "), "{message}");
            }
        }
    }
}

/// Gives a record a reason, and the verdict that follows from it.
fn add(record: &mut FusionRecord, code: ReasonCode, text: &str) {
    if code.is_invalidity() {
        record.verdict = Verdict::Invalid;
        record.reasons.retain(|reason| reason.code != ReasonCode::Undecided);
    }
    record.reasons.push(Reason { code, text: text.to_owned() });
}

fn take(record: &mut FusionRecord, code: ReasonCode) {
    let before = record.reasons.len();
    record.reasons.retain(|reason| reason.code != code);
    assert!(record.reasons.len() < before, "there is no {code}");
}

/// The second record of the example is the only one of its family.
#[test]
fn a_reason_that_the_figures_speak_against_is_refused() {
    for (code, why) in [
        (ReasonCode::NoControl, "there are [[noise]] that can be used"),
        (ReasonCode::ControlOff, "no [[noise]] for it is off"),
        (ReasonCode::TooFewTicks, "sample_ticks is "),
        (ReasonCode::FasterThanTheMachine, "both medians are above what the ceilings allow"),
        (ReasonCode::MostlyDisturbed, " pairs were used, which are of several rounds"),
        (ReasonCode::AboveCeiling, "the speedup is not far above ceiling_speedup"),
        (ReasonCode::OrderSensitive, "order_sensitivity is "),
        (ReasonCode::SlowChange, "there is no process_correlation"),
        (ReasonCode::Neighbour, "the text does not say how many processors"),
        (ReasonCode::Unobserved, "have numbers"),
        (ReasonCode::StateChanged, "there is no [[fusion.by_state]]"),
    ] {
        let words = format!("it is {code}, but ");
        let change = |one: &mut HardwareCalibration| add(&mut one.records[1], code, "by hand");
        refused(&example(), &[(&words, &change), (why, &change)]);
    }
    let single = |one: &HardwareCalibration| {
        one.records.iter().position(|record| record.problem.chain().is_single()).unwrap()
    };
    for code in [ReasonCode::WarmingUp, ReasonCode::NoControl] {
        let change = |one: &mut HardwareCalibration| {
            let at = single(one);
            add(&mut one.records[at], code, "by hand");
        };
        refused(&of_states(), &[("a single op is compared with nothing", &change)]);
    }
    refused(
        &of_states(),
        &[("a single op is one kernel, which has no order", &|one| {
            let at = single(one);
            one.records[at].order_sensitivity = Some(0.0);
        })],
    );
}

#[test]
fn a_change_within_processes_takes_several_rounds_of_two_of_them() {
    let with = |processes: u32, rounds: u32, kept: u32| {
        move |one: &mut HardwareCalibration| {
            one.settings.rounds = 1;
            one.settings.processes = processes;
            let record = &mut one.records[1];
            (record.processes, record.rounds) = (processes, rounds);
            (record.pairs, record.pairs_kept) = (kept, kept);
            record.disturbed = Default::default();
            add(record, ReasonCode::WarmingUp, "by hand");
            add(record, ReasonCode::Unobserved, "by hand");
            *one = grown(one.clone());
        }
    };
    refused(
        &example(),
        &[
            ("it is warming-up, but each process had one round", &with(5, 5, 10)),
            ("it is warming-up, but only one process had more than one", &with(5, 6, 12)),
        ],
    );
    let warming = |one: &mut HardwareCalibration| {
        add(&mut one.records[1], ReasonCode::WarmingUp, "by hand");
    };
    assert_eq!(read(&example(), &warming), Ok(()));
    let of_one_round = |one: &mut HardwareCalibration| {
        one.settings.rounds = 1;
        one.settings.most_processes = 80;
        warming(one);
    };
    refused(&example(), &[("it is warming-up, but each process had one round", &of_one_round)]);
}

/// How busy the neighbours were is in the text alone.
#[test]
fn a_neighbour_is_worth_a_word_and_seen_by_looks() {
    let says = |text: &'static str| {
        move |one: &mut HardwareCalibration| {
            let record = &mut one.records[1];
            record.reasons.retain(|reason| reason.code != ReasonCode::Neighbour);
            add(record, ReasonCode::Neighbour, text);
        }
    };
    let busy = "other programs kept 0.4 processors busy; stop them";
    let of_memory =
        "other programs kept 0.4 processors busy, and memory gave 21 GB/s at its lowest";
    let idle = "other programs kept 0.1 processors busy; stop them";
    assert_eq!(read(&example(), &says(busy)), Ok(()));
    assert_eq!(read(&of_states(), &says(of_memory)), Ok(()));
    refused(&example(), &[("0.1 processors are not worth a word", &says(idle))]);
    refused(&example(), &[("the record is of no state of the machine", &says(of_memory))]);
    refused(&of_states(), &[("the text does not say what memory gave", &says(busy))]);
}

#[test]
fn figures_ask_for_their_reason() {
    let tiny = |timing: &mut Timing| {
        (timing.median_ms, timing.q1_ms, timing.q3_ms) = (1e-9, 1e-9, 1e-9);
    };
    refused(
        &example(),
        &[
            ("there is no reason no-control", &|one| one.noise.clear()),
            ("there is no reason no-control", &|one| {
                one.noise.iter_mut().for_each(|noise| noise.disturbed = true);
            }),
            ("there is no reason control-off", &|one| {
                let noise = &mut one.noise[0];
                (noise.ratio, noise.ratio_low, noise.ratio_high) = (0.9, 0.9 / 1.01, 0.9 * 1.01);
            }),
            ("there is no reason faster-than-the-machine", &|one| {
                tiny(&mut one.records[1].fused_timing);
            }),
            ("there is no reason faster-than-the-machine", &|one| {
                tiny(&mut one.records[1].unfused_timing);
            }),
        ],
    );
    // Of several runs, one may have had no use of them.
    let later = grown(example());
    let without = |one: &mut HardwareCalibration| {
        add(&mut one.records[1], ReasonCode::NoControl, "no A/A run can be used");
    };
    assert_eq!(read(&later, &without), Ok(()));
}

#[test]
fn what_only_a_gpu_reports_has_its_reasons() {
    let calibration = on_a_gpu::calibration();
    let changed = |samples: [u32; 2]| {
        move |one: &mut HardwareCalibration| {
            let record = &mut one.records[0];
            record.disturbed.clock_change = Some(samples[0] + samples[1]);
            record.gpu.as_mut().unwrap().clock_changes = Some(samples);
        }
    };
    let says = |words: &'static [&'static str]| {
        move |one: &mut HardwareCalibration| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            one.records[0].gpu.as_mut().unwrap().throttle_reasons = Some(words);
        }
    };
    refused(
        &calibration,
        &[
            ("there is no reason lower-core", &|one| {
                take(&mut one.records[0], ReasonCode::LowerCore);
            }),
            ("it is lower-core, but its kernels failed on no core", &|one| {
                one.records[0].gpu.as_mut().unwrap().failed_cores.clear();
            }),
            ("sw-power-cap holds the clock down, and there is no reason throttled", &|one| {
                take(&mut one.records[0], ReasonCode::Throttled);
            }),
            ("it is throttled, but no throttle_reasons hold the clock down", &says(&["idle"])),
            ("it is throttled, but ", &says(&[])),
            ("samples, and there is no reason clock-changed", &changed([200, 330])),
            ("it is clock-changed, but clock_changes has 3 samples at most", &|one| {
                add(&mut one.records[0], ReasonCode::ClockChanged, "by hand");
            }),
        ],
    );
    assert_eq!(read(&calibration, &says(&["idle", "hw-slowdown"])), Ok(()));
}
