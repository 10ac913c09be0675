//! A calibration that later runs add to.

use fusion_cost_model::calibration::{
    Addition, Fingerprint, FusionRecord, HardwareCalibration, MeasuredCeilings, RunEnd, Tool,
};

use crate::build_info;
use crate::digits::rounded;
use crate::machine::Machine;

/// Why records of this program on a machine do not belong into a calibration, if they do not: those
/// of one file must be comparable.
#[must_use]
pub fn why_not_extended(base: &HardwareCalibration, machine: &Machine) -> Option<String> {
    let gpu =
        |of: &Fingerprint| of.gpu.as_ref().map(|gpu| (gpu.driver.clone(), gpu.compiler.clone()));
    let (known, now) = (&base.fingerprint, &machine.fingerprint);
    if !known.is_same_machine(now) || gpu(known) != gpu(now) {
        return Some(format!("it is of another machine, {}", base.machine()));
    }
    let same = |tool: &Tool| Tool { started_at: String::new(), ..tool.clone() };
    let own = build_info::tool(String::new());
    (same(&base.tool) != own).then(|| {
        let Tool { version, build, compiler, .. } = &base.tool;
        format!("it was made by another build of the program ({version}, {build}, {compiler})")
    })
}

/// A calibration with the records of another run on the same machine. A record of what both measured
/// is the one of the later run.
///
/// Of the checks before the runs, the worse result of each stays.
///
/// States of the machine keep apart: those of the later run come after the earlier ones, even where a
/// machine was in the same one.
#[must_use]
pub fn extended(base: HardwareCalibration, added: HardwareCalibration) -> HardwareCalibration {
    let mut all = base;
    // Records that later runs added to that file are counted in the entries of those runs.
    let by_others: u64 = added.additions.iter().map(|one| one.records).sum();
    all.additions.push(Addition {
        started_at: added.tool.started_at,
        shapes: added.settings.shapes,
        seed: added.settings.seed,
        quick: added.settings.quick,
        forced: added.settings.forced,
        records: added.num_records.saturating_sub(by_others),
    });
    all.additions.extend(added.additions);
    let states = u32::try_from(all.states.len()).unwrap_or(u32::MAX);
    let later = |state: u32| state.saturating_add(states);
    all.states.extend(added.states.into_iter().map(|mut state| {
        state.id = later(state.id);
        state
    }));
    all.ceilings.extend(added.ceilings.into_iter().map(|mut ceilings| {
        ceilings.state = ceilings.state.map(later);
        ceilings
    }));
    for runtime in added.runtimes {
        match all.runtimes.iter_mut().find(|one| one.implementation == runtime.implementation) {
            Some(known) => *known = runtime,
            None => all.runtimes.push(runtime),
        }
    }
    for check in added.checks {
        match all.checks.iter_mut().find(|one| one.name == check.name) {
            Some(known) if known.status >= check.status => {}
            Some(known) => *known = check,
            None => all.checks.push(check),
        }
    }
    for state in added.earlier_states {
        if !all.earlier_states.contains(&state) {
            all.earlier_states.push(state);
        }
    }
    all.noise.extend(added.noise);
    for mut record in added.records {
        record.states.iter_mut().for_each(|state| *state = later(*state));
        record.by_state.iter_mut().for_each(|one| one.state = later(one.state));
        match all.records.iter_mut().find(|known| is_same(known, &record)) {
            Some(known) => *known = record,
            None => all.records.push(record),
        }
    }
    all.num_records = all.records.len() as u64;
    all.skipped.extend(added.skipped);
    let records = &all.records;
    all.skipped.retain(|one| records.iter().all(|record| record.problem != one.problem));
    all.settings.forced |= added.settings.forced;
    if added.settings.end != RunEnd::Complete {
        all.settings.end = added.settings.end;
    }
    for record in &mut all.records {
        hold_against(record, &all.ceilings);
    }
    all
}

/// Whether two records answer the same question.
fn is_same(a: &FusionRecord, b: &FusionRecord) -> bool {
    (a.problem, a.backend, a.threads, a.cache_state)
        == (b.problem, b.backend, b.threads, b.cache_state)
        && (a.clock, a.implementation, a.rewrite) == (b.clock, b.implementation, b.rewrite)
}

/// Recomputes what follows from the ceilings: a file may have more of them than when the record was
/// measured.
fn hold_against(record: &mut FusionRecord, ceilings: &[MeasuredCeilings]) {
    let is_of_kind = |one: &MeasuredCeilings| {
        (one.backend, one.dtype, one.threads) == (record.backend, record.dtype, record.threads)
            && (one.cache_state, one.clock) == (record.cache_state, record.clock)
    };
    let met = MeasuredCeilings::met(ceilings, is_of_kind, &record.states);
    let rooflines = met.filter_map(|ceilings| ceilings.roofline(&record.problem));
    let best = rooflines.max_by(|a, b| a.speedup().total_cmp(&b.speedup()));
    let (speedup, unfused, fused) = (
        best.map(|time| rounded(time.speedup())),
        best.map(|time| time.unfused_bottleneck),
        best.map(|time| time.fused_bottleneck),
    );
    record.ceiling_speedup = speedup;
    record.bottleneck_unfused = unfused;
    record.bottleneck_fused = fused;
}

#[cfg(test)]
pub(super) mod tests {
    use fusion_cost_model::calibration::{Check, CheckStatus, MachineState, Skipped};

    use super::*;

    const EXAMPLE: &str = include_str!("../../../tests/data/example.toml");

    fn example() -> HardwareCalibration {
        HardwareCalibration::from_toml(EXAMPLE).unwrap()
    }

    /// One whose records were measured in a state of the machine.
    pub(in crate::record) fn in_a_state(records: std::ops::Range<usize>) -> HardwareCalibration {
        let mut one = example();
        one.records = one.records[records].to_vec();
        one.num_records = one.records.len() as u64;
        one.states = vec![MachineState {
            id: 1,
            handoff_us: Some(2.0),
            triad_gb_per_s: 10.0,
            triad_range: [9.0, 11.0],
            processes: 5,
        }];
        one.ceilings.iter_mut().for_each(|ceilings| ceilings.state = Some(1));
        one.records.iter_mut().for_each(|record| record.states = vec![1]);
        one
    }

    /// What the checks before any of the runs found stays in the file.
    #[test]
    fn the_worse_result_of_each_check_stays() {
        let check = |name: &str, status: CheckStatus| Check {
            name: name.to_owned(),
            status,
            found: format!("{status}"),
            advice: (status != CheckStatus::Pass).then(|| "mend it".to_owned()),
        };
        let (mut first, mut second) = (in_a_state(0..2), in_a_state(2..3));
        first.checks = vec![check("load", CheckStatus::Pass), check("swap", CheckStatus::Warn)];
        second.checks = vec![
            check("load", CheckStatus::Fail),
            check("swap", CheckStatus::Pass),
            check("clock", CheckStatus::Warn),
        ];
        second.settings.forced = true;
        let all = extended(first, second);
        assert_eq!(HardwareCalibration::from_toml(&all.to_toml().unwrap()).unwrap(), all);
        let found: Vec<_> = all.checks.iter().map(|one| (&one.name[..], one.status)).collect();
        let expected = [
            ("load", CheckStatus::Fail),
            ("swap", CheckStatus::Warn),
            ("clock", CheckStatus::Warn),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_file_that_grew_is_one_that_can_be_read() {
        let (first, mut second) = (in_a_state(0..2), in_a_state(1..3));
        second.records[0].fused_kernel = "the later one".to_owned();
        let all = extended(first.clone(), second.clone());
        assert_eq!(HardwareCalibration::from_toml(&all.to_toml().unwrap()).unwrap(), all);
        assert_eq!((all.records.len(), all.num_records), (3, 3));
        assert_eq!(all.records[1].fused_kernel, "the later one");
        let states: Vec<_> = all.records.iter().map(|record| record.states[0]).collect();
        assert_eq!(states, [1, 2, 2]);
        let ids: Vec<u32> = all.states.iter().map(|state| state.id).collect();
        assert_eq!((ids, all.ceilings[1].state), (vec![1, 2], Some(2)));
        let [Addition { records: 2, seed: 0, .. }] = &all.additions[..] else {
            panic!("{:?}", all.additions)
        };
        // And once more.
        let again = extended(all, second);
        assert_eq!((again.additions.len(), again.states.len(), again.records.len()), (2, 3, 3));
        assert!(HardwareCalibration::from_toml(&again.to_toml().unwrap()).is_ok());
    }

    /// As a run leaves it whose problems could not be measured.
    #[test]
    fn a_file_without_records_can_be_added_to() {
        let mut nothing = in_a_state(0..1);
        nothing.records.clear();
        nothing.num_records = 0;
        assert!(HardwareCalibration::from_toml(&nothing.to_toml().unwrap()).is_ok());
        let all = extended(nothing.clone(), in_a_state(1..2));
        assert_eq!(HardwareCalibration::from_toml(&all.to_toml().unwrap()).unwrap(), all);
        let still = extended(nothing.clone(), nothing);
        assert_eq!(HardwareCalibration::from_toml(&still.to_toml().unwrap()).unwrap(), still);
    }

    #[test]
    fn the_history_of_what_is_added_is_kept() {
        let [mut first, second, third] = [0..1, 1..2, 2..3].map(in_a_state);
        first.tool.started_at = "2026-11-22T00:00:00Z".to_owned();
        let grown = |one: HardwareCalibration, later: &str, added: HardwareCalibration| {
            let mut added = added;
            added.tool.started_at = later.to_owned();
            extended(one, added)
        };
        let part = grown(second, "2026-11-22T02:00:00Z", third);
        let all = extended(first, part.clone());
        let records: Vec<u64> = all.additions.iter().map(|one| one.records).collect();
        assert_eq!(records, [1, 1]);
        let began: Vec<&str> = all.additions.iter().map(|one| &one.started_at[..]).collect();
        assert_eq!(began, [&part.tool.started_at[..], "2026-11-22T02:00:00Z"]);
        assert_eq!(HardwareCalibration::from_toml(&all.to_toml().unwrap()).unwrap(), all);
    }

    #[test]
    fn ceilings_that_are_of_no_state_count_for_all_records() {
        let mut second = example();
        second.ceilings[0].ceilings.peak_gflops *= 2.0;
        second.records.truncate(1);
        second.num_records = 1;
        let first = example();
        let before = first.records[0].ceiling_speedup;
        let all = extended(first, second);
        assert!(all.records[0].ceiling_speedup > before);
        assert!(HardwareCalibration::from_toml(&all.to_toml().unwrap()).is_ok());
    }

    #[test]
    fn what_was_skipped_before_and_has_a_record_now_is_not_missing() {
        let (mut first, second) = (in_a_state(0..1), in_a_state(1..2));
        let skip = |problem| Skipped { problem, reason: "no time".to_owned(), failure: None };
        let never = "mlp/f32/m1.k2.n3.o4".parse().unwrap();
        first.skipped = vec![skip(second.records[0].problem), skip(never)];
        assert_eq!(extended(first, second).skipped, [skip(never)]);
    }

    #[test]
    fn a_run_that_ended_early_leaves_a_file_that_did() {
        let mut second = in_a_state(1..2);
        second.settings.end = RunEnd::TimeBudget;
        assert_eq!(extended(in_a_state(0..1), second).settings.end, RunEnd::TimeBudget);
    }
}
