//! Parts of a calibration file that stand far from each other and cannot both be true: each such file is
//! refused with the key and its line.

mod records;

use crate::on_a_gpu;
use fusion_cost_model::calibration::{
    Check, CheckStatus, EarlierState, Fingerprint, HardwareCalibration, NoiseFloor, RunEnd, Skipped,
};
use fusion_cost_model::hardware::PeakUnit;
use fusion_cost_model::{Backend, DType, Implementation};

use crate::changed::{Change, grown, read};

fn example() -> HardwareCalibration {
    HardwareCalibration::from_toml(include_str!("../data/example.toml")).unwrap()
}

fn profile(name: &str) -> HardwareCalibration {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/calibrate/profiles/calibrations");
    HardwareCalibration::load(format!("{folder}/{name}.toml")).unwrap()
}

/// A run on a machine that was in two states.
fn of_states() -> HardwareCalibration {
    profile("amd-epyc-2-threads")
}

/// Fails unless each change is refused with a message that has its words.
fn refused(calibration: &HardwareCalibration, changes: &[(&str, Change<'_>)]) {
    for (words, change) in changes {
        match read(calibration, change) {
            Ok(()) => panic!("it was accepted: {words}"),
            Err(message) => assert!(message.contains(words), "{message}\n{words}"),
        }
    }
}

fn accepted(calibration: &HardwareCalibration, changes: &[Change<'_>]) {
    for (index, change) in changes.iter().enumerate() {
        assert_eq!(read(calibration, change), Ok(()), "change {index}");
    }
}

fn found(calibration: &mut HardwareCalibration, name: &str, status: CheckStatus, text: &str) {
    let advice = (status != CheckStatus::Pass).then(|| "mend it".to_owned());
    calibration.checks.retain(|check| check.name != name);
    let (name, found) = (name.to_owned(), text.to_owned());
    calibration.checks.push(Check { name, status, found, advice });
}

#[test]
fn the_fingerprint_is_what_the_checks_found() {
    let line = |key: &str| {
        example().to_toml().unwrap().lines().position(|line| line.starts_with(&format!("{key} = ")))
    };
    let virtualized =
        format!("fingerprint.virtualized at line {}: ", line("virtualized").unwrap() + 1);
    refused(
        &example(),
        &[
            (&virtualized, &|one| one.fingerprint.virtualized = Some(false)),
            ("virtualized: it is missing", &|one| one.fingerprint.virtualized = None),
            ("it is false, and the check \"virtual machine\" found \"yes; steal", &|one| {
                one.fingerprint.virtualized = Some(false);
            }),
            ("physical_cores at line ", &|one| one.fingerprint.physical_cores = Some(4)),
            ("physical_cores: it is missing", &|one| one.fingerprint.physical_cores = None),
            ("turbo at line ", &|one| one.fingerprint.turbo = Some(true)),
            ("turbo: it is missing, and the check", &|one| {
                found(one, "turbo", CheckStatus::Pass, "off; ratios do not depend on it");
            }),
            ("governor at line ", &|one| one.fingerprint.governor = Some("ondemand".to_owned())),
            ("governor: it is missing", &|one| {
                found(one, "governor", CheckStatus::Warn, "ondemand (acpi-cpufreq)");
            }),
            ("huge_pages at line ", &|one| one.fingerprint.huge_pages = Some("never".to_owned())),
            ("memory_bytes at line ", &|one| one.fingerprint.memory_bytes /= 2),
            ("tool.build at line ", &|one| {
                one.tool.build = "release, opt-level 3, aarch64-linux".to_owned();
            }),
            ("logical_cores at line ", &|one| {
                found(one, "threads", CheckStatus::Pass, "2 threads on 4 usable processors");
            }),
        ],
    );
}

/// A process may be allowed to use fewer processors than there are cores, and words that are none of
/// the program's say nothing.
#[test]
fn what_a_check_does_not_say_is_not_held_against_anything() {
    let few = |one: &mut HardwareCalibration| {
        one.fingerprint.physical_cores = Some(64);
        found(one, "threads", CheckStatus::Pass, "2 threads on 64 cores, 2 processors usable");
    };
    let unknown = |one: &mut HardwareCalibration| {
        one.fingerprint.physical_cores = None;
        found(one, "threads", CheckStatus::Pass, "2 threads on 0 cores, 2 processors usable");
    };
    let stolen = |one: &mut HardwareCalibration| {
        one.fingerprint.virtualized = None;
        let text = "yes; the hypervisor took 5 % of the time away";
        found(one, "virtual machine", CheckStatus::Warn, text);
    };
    let other_words = |one: &mut HardwareCalibration| {
        for name in ["virtual machine", "turbo", "governor", "huge pages", "threads", "memory"] {
            found(one, name, CheckStatus::Pass, "all is well with it");
        }
    };
    let no_checks = |one: &mut HardwareCalibration| one.checks.clear();
    accepted(&example(), &[&few, &unknown, &stolen, &other_words, &no_checks]);
    // A later run may have found a worse governor than that of the first one.
    let worse = |one: &mut HardwareCalibration| {
        found(one, "governor", CheckStatus::Warn, "ondemand (acpi-cpufreq)");
    };
    accepted(&grown(example()), &[&worse]);
}

#[test]
fn the_memory_of_a_gpu_is_what_the_check_found() {
    let of_a_gpu = on_a_gpu::calibration();
    let in_use = |text: &'static str| {
        move |one: &mut HardwareCalibration| found(one, "gpu in use", CheckStatus::Pass, text)
    };
    accepted(&of_a_gpu, &[&in_use("0.5 GiB of 141.0 GiB in use")]);
    let words = "gpu.memory_bytes at line ";
    refused(&of_a_gpu, &[(words, &in_use("0.5 GiB of 80.0 GiB in use"))]);
    let is_bound = |one: &mut HardwareCalibration| one.records[0].placement.pinned = true;
    refused(&of_a_gpu, &[("placement.pinned at line ", &is_bound)]);
}

#[test]
fn a_run_has_one_number_of_threads() {
    let of_noise = |one: &mut HardwareCalibration| one.noise[1].threads = 1;
    let words = "threads at line ";
    refused(
        &example(),
        &[
            (words, &of_noise),
            ("it is 1, and the check \"threads\" found 2 threads", &of_noise),
            ("it is 1, and 2 elsewhere; a run has one number of threads", &|one| {
                one.checks.clear();
                one.noise[1].threads = 1;
            }),
            ("there were 2 runs", &|one| {
                *one = grown(one.clone());
                one.fingerprint.logical_cores = 3;
                one.hardware.cores.source = "a data sheet".to_owned();
                one.checks.clear();
                (one.noise[0].threads, one.noise[1].threads) = (1, 3);
            }),
        ],
    );
    // A later run may have another one, which comes second.
    accepted(&grown(example()), &[&of_noise]);
}

#[test]
fn where_the_machine_was_looked_at_each_record_has_a_state() {
    let calibration = of_states();
    refused(
        &calibration,
        &[
            ("states: there are none, and the file has 2 [[state]]", &|one| {
                one.records[0].states.clear();
            }),
            ("each state stands once", &|one| one.records[0].states = vec![1, 1]),
            ("processes at line ", &|one| one.states[1].processes = 100_000),
            ("processes at line ", &|one| one.states[0].processes = 1),
            ("handoff_us: it is missing, and there are 2 threads", &|one| {
                one.states[0].handoff_us = None;
            }),
        ],
    );
    refused(
        &example(),
        &[("there is no [[state]]", &|one| {
            one.earlier_states.push(EarlierState {
                seen_at: "2026-11-20T00:00:00Z".to_owned(),
                threads: 2,
                handoff_us: Some(0.5),
                triad_gb_per_s: 30.0,
            });
        })],
    );
    let states = calibration.states.clone();
    let on_a_gpu = on_a_gpu::calibration();
    refused(&on_a_gpu, &[("the fingerprint has a GPU", &|one| one.states.clone_from(&states))]);
    // Ceilings without a state are of a run that found none, which may be that of the record.
    let of_two_runs = |one: &mut HardwareCalibration| {
        one.ceilings.push(one.ceilings[0].clone());
        one.ceilings.last_mut().unwrap().state = None;
        one.records[0].states.clear();
        one.records[0].by_state.clear();
    };
    let message = read(&grown(calibration), &of_two_runs);
    assert!(!message.is_err_and(|error| error.contains("there are none")));
}

#[test]
fn a_run_has_added_no_more_than_there_is() {
    refused(
        &grown(example()),
        &[("it is 42, and the file has 3; correct it if you took records out yourself", &|one| {
            one.additions[0].records = 42;
        })],
    );
    accepted(&grown(example()), &[&|one| one.additions[0].records = 3]);
}

#[test]
fn an_a_a_run_is_what_its_kind_is() {
    let single = |one: &HardwareCalibration| {
        one.noise.iter().position(|noise| noise.problem.chain().is_single()).unwrap()
    };
    refused(
        &of_states(),
        &[
            ("is a single op, which is measured against a copy", &|one| {
                let at = single(one);
                one.noise[at].own_tensors = false;
            }),
            ("own_tensors: it is false, and that of ", &|one| one.noise[1].own_tensors = false),
            ("processes at line ", &|one| {
                let at = single(one);
                one.noise[at].processes += 1;
            }),
            ("disturbed at line ", &|one| {
                let at = single(one);
                one.noise[at].disturbed = true;
            }),
            ("it is one too many: there are 8 A/A runs at most", &|one| {
                let problem = "add_relu/f32/m3.n4".parse().unwrap();
                one.noise.push(NoiseFloor { problem, ..one.noise[0].clone() });
            }),
        ],
    );
    refused(
        &on_a_gpu::calibration(),
        &[
            ("on a GPU both sides of an A/A run share", &|one| {
                one.noise.iter_mut().for_each(|noise| noise.own_tensors = true);
            }),
            ("the A/A runs for it are those of native kernels", &|one| {
                one.noise[0].implementation = Implementation::Vendor;
            }),
        ],
    );
    // Whoever takes a record out of a file may leave the others as they are.
    accepted(
        &of_states(),
        &[&|one| {
            one.records.retain(|record| !record.problem.chain().is_single());
            one.num_records = one.records.len() as u64;
        }],
    );
}

#[test]
fn hardware_without_a_data_sheet_is_what_was_observed() {
    refused(
        &example(),
        &[
            ("the fingerprint has 3 caches", &|one| {
                let cache = one.hardware.caches[2].clone();
                one.hardware.caches.push(cache);
            }),
            ("boost_clock_mhz at line ", &|one| one.hardware.cores.boost_clock_mhz = Some(3000)),
            ("base_clock_mhz at line ", &|one| one.hardware.cores.base_clock_mhz = Some(3000)),
            ("capacity_gib at line ", &|one| one.hardware.memory.capacity_gib = Some(24.0)),
            ("what is measured is that of vector units", &|one| {
                one.hardware.peaks[0].unit = PeakUnit::Matrix;
            }),
            ("there are 0 peaks, and 1 [[ceilings]] with one", &|one| one.hardware.peaks.clear()),
            ("the [[ceilings]] end with 34.9424 at most", &|one| {
                one.hardware.memory.bandwidth_gb_per_s = 58.1541;
            }),
        ],
    );
}

#[test]
fn a_peak_is_of_the_unit_that_multiplies_its_dtype() {
    let mut seen = example().fingerprint;
    assert_eq!(seen.peak_unit(DType::Bf16), PeakUnit::Vector);
    seen.features.push(Fingerprint::AMX.to_owned());
    assert_eq!(seen.peak_unit(DType::F32), PeakUnit::Vector);
    for dtype in [DType::Bf16, DType::I8] {
        assert_eq!(seen.peak_unit(dtype), PeakUnit::Matrix);
    }
    assert_eq!(seen.peak_unit(DType::F16), PeakUnit::Vector);
    seen.features.push(Fingerprint::AMX_FP16.to_owned());
    assert_eq!(seen.peak_unit(DType::F16), PeakUnit::Matrix);
}

#[test]
fn the_settings_are_those_of_what_was_made() {
    refused(
        &example(),
        &[
            ("settings.end at line ", &|one| one.settings.end = RunEnd::TimeBudget),
            ("settings.end at line ", &|one| one.settings.end = RunEnd::Disturbed),
            ("pairs at line ", &|one| one.records[0].pairs = 641),
            ("rounds at line ", &|one| {
                (one.records[0].rounds, one.records[0].processes) = (11, 10);
            }),
            ("process_correlation at line ", &|one| {
                one.records[0].process_correlation = Some(-0.5);
            }),
            ("interval_method at line ", &|one| {
                one.records[0].interval_method = "95 % t interval over rounds".to_owned();
            }),
            ("interval_method at line ", &|one| {
                one.records[0].interval_method = "a bootstrap over rounds".to_owned();
            }),
        ],
    );
    let in_time = |one: &mut HardwareCalibration| {
        (one.settings.end, one.settings.time_budget_s) = (RunEnd::TimeBudget, Some(60.0));
    };
    accepted(&example(), &[&in_time]);
}

#[test]
fn what_a_later_run_has_measured_is_not_missing() {
    let skipped = |one: &mut HardwareCalibration| {
        let problem = one.records[0].problem;
        let reason = "the time was up before it was measured".to_owned();
        one.skipped.push(Skipped { problem, reason, failure: None });
    };
    // One run may have it by another clock.
    accepted(&example(), &[&skipped]);
    refused(&grown(example()), &[("problem at line ", &skipped)]);
}

/// Most checks are of one run; merged files of a backend stay what they were.
#[test]
fn files_of_several_runs_stay_sound() {
    for calibration in [example(), of_states(), profile("intel-xeon-2-threads")] {
        assert!(calibration.records.iter().all(|record| record.backend == Backend::Cpu));
        let text = grown(calibration).to_toml().unwrap();
        assert!(HardwareCalibration::from_toml(&text).is_ok());
    }
}
