//! The calibration of a whole run.

use fusion_cost_model::calibration::{
    EarlierState, FusionRecord, HardwareCalibration, MachineState, RunEnd, RuntimeUsed,
    SCHEMA_VERSION, Settings, Skipped,
};

use fusion_cost_model::FileKind;

use super::{Context, record};
use crate::build_info;
use crate::digits::rounded;
use crate::machine::Machine;
use crate::measure::States;
use crate::plan::Plan;
use crate::run::{Measured, Outcome, Part, RunSettings, State};

/// What a run was.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Where it was made.
    pub machine: &'a Machine,
    /// The runtimes whose kernels were to be measured.
    pub runtimes: &'a [RuntimeUsed],
    /// What was to be measured.
    pub plan: &'a Plan,
    /// How it was made.
    pub settings: &'a RunSettings,
    /// All of its parts together.
    pub parts: &'a Part,
    /// Whether it was shortened.
    pub quick: bool,
    /// States that the machine was in when it was calibrated before, and that this run did not meet.
    pub earlier_states: &'a [EarlierState],
}

/// The calibration that comes of a run.
#[must_use]
pub fn calibration(run: &Run<'_>, outcome: &Outcome) -> HardwareCalibration {
    let Run { machine, runtimes, plan, settings, parts, quick, earlier_states } = *run;
    let Outcome { measured, noise, ceilings, end, .. } = outcome;
    let records = records(measured, &Context::of(settings, outcome));
    let calibration = HardwareCalibration {
        kind: FileKind::Calibration,
        schema_version: SCHEMA_VERSION,
        num_records: records.len() as u64,
        tool: build_info::tool(parts.started_at.clone()),
        settings: Settings {
            requested_hardware: machine.requested.clone(),
            hardware_matches: machine.matches,
            shapes: plan.shapes.clone(),
            quick,
            seed: settings.seed,
            processes: settings.procedure.processes,
            most_processes: settings.procedure.most_processes,
            rounds: settings.procedure.rounds,
            spread_s: settings.spread.as_secs_f64(),
            time_budget_s: settings.time_budget.map(|budget| budget.as_secs_f64()),
            forced: parts.forced,
            end: *end,
        },
        hardware: machine.spec(ceilings),
        fingerprint: machine.fingerprint.clone(),
        additions: Vec::new(),
        checks: parts.checks.clone(),
        runtimes: runtimes.to_vec(),
        skipped: skipped(plan, measured, *end),
        states: outcome.machine.describe().iter().cloned().map(rounded_state).collect(),
        earlier_states: earlier_states.to_vec(),
        ceilings: ceilings.clone(),
        noise: noise.clone(),
        records,
    };
    without_contradictions(calibration)
}

/// No file has a record that contradicts itself, since no reader takes it. Nothing else that was
/// measured may be lost for it.
fn without_contradictions(mut calibration: HardwareCalibration) -> HardwareCalibration {
    for record in std::mem::take(&mut calibration.records) {
        match calibration.contradiction_of(&record) {
            None => calibration.records.push(record),
            Some(why) => calibration.skipped.push(Skipped {
                problem: record.problem,
                reason: format!(
                    "its record contradicts itself, which is a defect of this program: {why}"
                ),
                failure: None,
            }),
        }
    }
    calibration.num_records = calibration.records.len() as u64;
    calibration
}

/// A calibration in which nothing was measured yet.
#[must_use]
pub fn of_nothing(machine: &Machine, settings: &RunSettings) -> HardwareCalibration {
    let (shapes, subjects, skipped) = (String::new(), Vec::new(), Vec::new());
    let plan = &Plan { shapes, subjects, skipped, has_failures: false };
    let parts = &Part::now(settings.forced, Vec::new());
    let (runtimes, earlier_states) = (&[][..], &[][..]);
    let run = Run { machine, runtimes, plan, settings, parts, quick: false, earlier_states };
    let outcome = Outcome {
        measured: Vec::new(),
        controls: Vec::new(),
        noise: Vec::new(),
        ceilings: Vec::new(),
        machine: States::default(),
        end: RunEnd::Complete,
        left_over: Vec::new(),
        journal: None,
    };
    calibration(&run, &outcome)
}

/// The records of everything that was measured in one process at least and is not wrong.
fn records(measured: &[Measured], context: &Context<'_>) -> Vec<FusionRecord> {
    let usable = measured
        .iter()
        .filter(|measured| matches!(measured.state, State::Finished | State::Unfinished));
    let made = usable.filter_map(|Measured { subject, processes, estimate, .. }| {
        Some(record(subject, processes, estimate.as_ref()?, context))
    });
    made.collect()
}

/// Everything that has no record, with the reason.
fn skipped(plan: &Plan, measured: &[Measured], end: RunEnd) -> Vec<Skipped> {
    let mut skipped = plan.skipped.clone();
    for Measured { subject, processes, state, .. } in measured {
        let problem = subject.problem;
        let reason = match state {
            State::Wrong(reason)
            | State::Hung(reason)
            | State::Broken(_, reason)
            | State::Unsupported(reason)
            | State::Failed(reason) => format!("{subject}: {reason}"),
            State::NoKernels => format!("{subject}: the backend has no kernels for it"),
            State::Unfinished if processes.is_empty() => {
                let why = match end {
                    RunEnd::TimeBudget => "the time was up before it was measured",
                    RunEnd::Disturbed => "the run ended, since everything was disturbed",
                    _ => "the run was interrupted before it was measured",
                };
                format!("{subject}: {why}; run the same command again to continue")
            }
            State::Finished | State::Unfinished => continue,
        };
        let failure = state.failure().and_then(|(failure, _)| failure);
        skipped.push(Skipped { problem, reason, failure });
    }
    skipped
}

/// A state with as many digits as it deserves.
fn rounded_state(mut state: MachineState) -> MachineState {
    state.handoff_us = state.handoff_us.map(rounded);
    state.triad_gb_per_s = rounded(state.triad_gb_per_s);
    state.triad_range = state.triad_range.map(rounded);
    state
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fusion_cost_model::calibration::{Fingerprint, ObservedGpu};
    use fusion_cost_model::{Backend, CacheState};

    use super::*;
    use crate::measure::Procedure;
    use crate::worker::CoreChoice;

    const EXAMPLE: &str = include_str!("../../../tests/data/example.toml");

    const SETTINGS: RunSettings = RunSettings {
        procedure: Procedure::STANDARD,
        backend: Backend::Cpu,
        threads: 1,
        cache: CacheState::Warm,
        l2_bytes: None,
        seed: 1,
        spread: Duration::ZERO,
        forced: false,
        time_budget: None,
        cores: CoreChoice::None,
    };

    /// Nothing that was measured may be lost for one record.
    #[test]
    fn a_record_that_contradicts_itself_is_left_out_with_the_reason() {
        let whole = HardwareCalibration::from_toml(EXAMPLE).unwrap();
        assert_eq!(without_contradictions(whole.clone()), whole);
        let mut one_wrong = whole.clone();
        one_wrong.records[1].verification.tolerance = 22.2;
        let problem = one_wrong.records[1].problem;
        let made = without_contradictions(one_wrong);
        assert_eq!(HardwareCalibration::from_toml(&made.to_toml().unwrap()).unwrap(), made);
        assert_eq!(made.records.len() + 1, whole.records.len());
        let left_out = made.skipped.last().unwrap();
        assert_eq!(left_out.problem, problem);
        assert!(left_out.reason.contains("verification.tolerance: it is 22.2"), "{left_out:?}");
    }

    /// Nothing that was measured may be lost for what the machine does not say.
    #[test]
    fn machines_that_say_little_have_a_file_without_ceilings_too() {
        let whole = HardwareCalibration::from_toml(EXAMPLE).unwrap().fingerprint;
        let gpu = ObservedGpu {
            name: String::new(),
            architecture: "gfx1100".to_owned(),
            processors: 1,
            memory_bytes: 1 << 30,
            l2_bytes: 0,
            clock_mhz: 0,
            bus_id: String::new(),
            driver: String::new(),
            runtime: String::new(),
            compiler: String::new(),
            libraries: Vec::new(),
        };
        let fingerprints = [
            whole.clone(),
            // Bound to one of two processors.
            Fingerprint { logical_cores: 1, ..whole.clone() },
            Fingerprint { physical_cores: None, caches: Vec::new(), ..whole.clone() },
            Fingerprint { cpu_model: "unknown".to_owned(), ..whole.clone() },
            Fingerprint { gpu: Some(gpu), ..whole },
        ];
        for fingerprint in fingerprints {
            let machine = Machine::identify("auto", fingerprint).unwrap();
            let calibration = of_nothing(&machine, &SETTINGS);
            let read = HardwareCalibration::from_toml(&calibration.to_toml().unwrap());
            assert_eq!(read.unwrap(), calibration, "{machine:?}");
        }
    }
}
