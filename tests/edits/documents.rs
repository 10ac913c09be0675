//! Files that have every key between them.

use fusion_cost_model::calibration::{
    Addition, CheckStatus, EarlierState, HardwareCalibration, KernelFailure, MachineState,
    NoiseFloor, RuntimeUsed, Skipped,
};
use fusion_cost_model::{Family, Implementation, Problem, Rewrite};

use crate::on_a_gpu;

const EXAMPLE: &str = include_str!("../data/example.toml");

const MEASURED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/calibrate/profiles/calibrations/amd-epyc-2-threads.toml");

/// A fusion in two states of the machine, one that can be rewritten, and a single op.
const PROBLEMS: [&str; 3] = [
    "linear_bias_relu/f32/m128.k128.n128",
    "conv_bn_relu/f32/n1.c67.h29.w29.k93.r3.s3.pad1",
    "linear/f32/m77.k333.n515",
];

/// The files by kind.
pub(crate) fn documents() -> [(&'static str, HardwareCalibration); 3] {
    [("measured", measured()), ("grown", grown()), ("of a GPU", of_a_gpu())]
}

/// A few records of a file that was measured.
fn measured() -> HardwareCalibration {
    let mut calibration = HardwareCalibration::load(MEASURED).unwrap();
    calibration.records.retain(|one| PROBLEMS.contains(&one.problem.to_string().as_str()));
    calibration.num_records = calibration.records.len() as u64;
    assert_eq!(calibration.num_records, PROBLEMS.len() as u64);
    let folded = calibration.records.iter_mut().find(|one| one.problem.to_string() == PROBLEMS[1]);
    folded.unwrap().rewrite = Some(Rewrite::BnFolded);
    // Those that the noise floors are made of.
    let family = |problem: &Problem| Family::of(problem.chain().form());
    let families: Vec<Family> =
        calibration.records.iter().map(|record| family(&record.problem)).collect();
    calibration.noise.retain(|noise| families.contains(&family(&noise.problem)));
    calibration
}

/// One that a later run has added to, with all that is said where something is not as it should be.
fn grown() -> HardwareCalibration {
    let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    let started_at = "2026-11-22T00:00:00Z".to_owned();
    calibration.settings.time_budget_s = Some(3600.0);
    calibration.settings.spread_s = 120.0;
    calibration.settings.forced = true;
    calibration.additions.push(Addition {
        started_at: started_at.clone(),
        shapes: "standard".to_owned(),
        seed: 7,
        quick: true,
        forced: true,
        records: 1,
    });
    for check in &mut calibration.checks {
        match check.name.as_str() {
            "governor" => check.found = "performance (acpi-cpufreq)".to_owned(),
            "turbo" => check.found = "on; ratios do not depend on it".to_owned(),
            _ => {}
        }
    }
    let last = calibration.checks.last_mut().unwrap();
    last.status = CheckStatus::Fail;
    last.found = "somebody pulls the plug".to_owned();
    last.advice = Some("plug it in".to_owned());
    let fingerprint = &mut calibration.fingerprint;
    fingerprint.governor = Some("performance".to_owned());
    fingerprint.turbo = Some(true);
    calibration.states.push(MachineState {
        id: 1,
        handoff_us: Some(0.2),
        triad_gb_per_s: 40.0,
        triad_range: [35.0, 45.0],
        processes: 40,
    });
    calibration.records.iter_mut().for_each(|record| record.states = vec![1]);
    calibration.ceilings.iter_mut().for_each(|ceilings| ceilings.state = Some(1));
    calibration.earlier_states.push(EarlierState {
        seen_at: started_at,
        threads: 2,
        handoff_us: Some(0.5),
        triad_gb_per_s: 30.0,
    });
    let tiny: Implementation = "tiny@1.2".parse().unwrap();
    calibration.runtimes.push(RuntimeUsed {
        implementation: tiny,
        name: "tiny".to_owned(),
        version: "1.2".to_owned(),
        device: "cpu".to_owned(),
        options: std::iter::once(("threads".to_owned(), "2".to_owned())).collect(),
    });
    calibration.noise.iter_mut().for_each(|noise| noise.own_tensors = true);
    let noise = calibration.noise[0].clone();
    calibration.noise = vec![
        noise.clone(),
        NoiseFloor { disturbed: true, ..noise.clone() },
        NoiseFloor { implementation: tiny, ..noise },
    ];
    calibration.records[2].implementation = tiny;
    calibration.skipped.push(Skipped {
        problem: "mlp/f32/m1.k2.n3.o4".parse().unwrap(),
        reason: "its process was ended by signal 11".to_owned(),
        failure: Some(KernelFailure::Crash),
    });
    calibration
}

/// One of a GPU with a data sheet.
fn of_a_gpu() -> HardwareCalibration {
    let mut calibration = on_a_gpu::calibration();
    let hardware = &mut calibration.hardware;
    hardware.aliases = vec!["made-up".to_owned()];
    hardware.detect_except = vec!["A made-up GPU Ti".to_owned()];
    hardware.detect_if_named = vec!["A made-up GPU of others".to_owned()];
    hardware.cores.count = 132;
    hardware.cores.threads = None;
    hardware.cores.base_clock_mhz = Some(1000);
    hardware.cores.boost_clock_mhz = Some(1980);
    hardware.cores.note = Some("made up".to_owned());
    hardware.memory.capacity_gib = Some(141.0);
    hardware.memory.source = "made up".to_owned();
    for cache in &mut hardware.caches {
        cache.source = "made up".to_owned();
        cache.note = Some("made up".to_owned());
    }
    for peak in &mut hardware.peaks {
        peak.source = "made up".to_owned();
    }
    calibration
}
