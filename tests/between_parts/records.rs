//! Records that contradict themselves, the machine or the program.

use fusion_cost_model::Implementation;
use fusion_cost_model::calibration::{CheckStatus, FusionRecord, HardwareCalibration};

use super::{accepted, example, found, of_states, refused};

/// The first record of a chain of one op, or of several.
fn of_ops(one: &HardwareCalibration, is_single: bool) -> usize {
    let records = &one.records;
    records.iter().position(|record| record.problem.chain().is_single() == is_single).unwrap()
}

#[test]
fn no_interval_is_narrower_than_what_its_processes_resolve() {
    refused(
        &of_states(),
        &[
            ("ratio_low at line ", &|one| {
                let noise = &mut one.noise[0];
                (noise.ratio_low, noise.ratio_high) = (noise.ratio / 1.005, noise.ratio * 1.005);
                noise.standard_error = 1e-6;
            }),
            ("speedup_low at line ", &|one| {
                let of_chains = one
                    .records
                    .iter()
                    .position(|one| one.states.len() < 2 && one.num_operators > 1);
                let record = &mut one.records[of_chains.unwrap()];
                record.speedup_low = record.speedup_factor;
                record.speedup_high = record.speedup_factor;
            }),
            ("unfused_timing.low_ms at line ", &|one| {
                let record = &mut one.records[0];
                let time = record.unfused_latency_ms;
                record.unfused_timing.low_ms = Some(time / 1.002);
                record.unfused_timing.high_ms = Some(time * 1.002);
            }),
            ("by_state.speedup_low at line ", &|one| {
                let differing = one.records.iter().position(|one| !one.by_state.is_empty());
                let state = &mut one.records[differing.unwrap()].by_state[0];
                state.speedup_low = state.speedup_factor;
                state.speedup_high = state.speedup_factor;
            }),
        ],
    );
}

/// Two processes trade the same factor, so that the means stay what they were.
#[test]
fn no_interval_is_narrower_than_its_processes_lie_apart() {
    let in_one_state = |one: &HardwareCalibration| {
        let is_it = |one: &FusionRecord| one.num_operators > 1 && one.states.len() < 2;
        one.records.iter().position(is_it).unwrap()
    };
    refused(
        &of_states(),
        &[
            ("unfused_timing.low_ms at line ", &|one| {
                let at = in_one_state(one);
                one.records[at].unfused_timing.process_ms[0] *= 2.0;
                one.records[at].unfused_timing.process_ms[1] /= 2.0;
            }),
            ("speedup_low at line ", &|one| {
                let at = in_one_state(one);
                let record = &mut one.records[at];
                record.speedup_low = record.speedup_factor / 1.0101;
                record.speedup_high = record.speedup_factor * 1.0101;
            }),
            ("lie so far apart that it reaches", &|one| {
                let at = in_one_state(one);
                one.records[at].fused_timing.process_ms[0] *= 1.5;
                one.records[at].fused_timing.process_ms[1] /= 1.5;
            }),
        ],
    );
}

#[test]
fn both_variants_of_a_single_op_are_one_kernel() {
    refused(
        &of_states(),
        &[
            ("fused_timing.q3_ms at line ", &|one| {
                let at = of_ops(one, true);
                one.records[at].fused_timing.q3_ms *= 1.01;
            }),
            ("fused_timing.q1_ms at line ", &|one| {
                let at = of_ops(one, true);
                one.records[at].fused_timing.q1_ms *= 0.99;
            }),
            ("fused_scratch_bytes at line ", &|one| {
                let at = of_ops(one, true);
                one.records[at].fused_scratch_bytes = Some(64);
            }),
            ("fused_kernel at line ", &|one| {
                let at = of_ops(one, true);
                one.records[at].fused_kernel += ", in two passes";
            }),
        ],
    );
    // Each copy finds out by itself how many runs make a sample.
    accepted(
        &of_states(),
        &[&|one| {
            let at = of_ops(one, true);
            one.records[at].fused_timing.inner_iterations += 1;
        }],
    );
}

#[test]
fn the_kernels_are_those_of_a_processor() {
    let words = "unfused_kernels at line ";
    refused(
        &of_states(),
        &[
            (words, &|one| {
                let at = of_ops(one, false);
                one.records[at].unfused_kernels.pop();
            }),
            (words, &|one| {
                let at = of_ops(one, false);
                one.records[at].unfused_kernels.reverse();
            }),
            ("implementation at line ", &|one| {
                one.records[0].implementation = Implementation::Vendor;
            }),
            ("placement.processors at line ", &|one| {
                one.records[0].placement.processors = vec![0, 1, 2];
            }),
            ("span_s at line ", &|one| one.records[0].span_s = Some(1e-9)),
        ],
    );
}

#[test]
fn the_program_ran_where_it_was_built_for() {
    let words = "tool.build at line ";
    refused(
        &example(),
        &[
            (words, &|one| one.fingerprint.os = "Windows 11".to_owned()),
            (words, &|one| one.fingerprint.os = "Darwin".to_owned()),
            (words, &|one| {
                one.checks.clear();
                one.tool.build = "release, opt-level 3, x86_64-freebsd".to_owned();
            }),
            (words, &|one| one.fingerprint.features.push("neon".to_owned())),
            (words, &|one| one.hardware.architecture = "aarch64".to_owned()),
            ("features at line ", &|one| {
                let first = one.fingerprint.features[0].clone();
                one.fingerprint.features.push(first);
            }),
        ],
    );
    accepted(&example(), &[&|one| one.fingerprint.os = "unknown".to_owned()]);
}

#[test]
fn a_check_ends_as_what_it_found() {
    let load = |percent: u32| format!("{percent} % of the processors are used by cargo (12)");
    refused(
        &example(),
        &[
            ("status at line ", &|one| found(one, "load", CheckStatus::Warn, &load(3))),
            ("it is pass, and \"93 % of the processors", &|one| {
                found(one, "load", CheckStatus::Pass, &load(93));
            }),
            ("name at line ", &|one| found(one, "gpu memory", CheckStatus::Pass, "enough")),
        ],
    );
    accepted(&example(), &[&|one| found(one, "load", CheckStatus::Warn, &load(12))]);
}
