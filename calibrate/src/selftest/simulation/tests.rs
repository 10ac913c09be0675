//! The promise of the procedure, with fixed seeds.

use std::time::{Duration, Instant};

use fusion_cost_model::calibration::{HardwareCalibration, ReasonCode};

use super::*;
use crate::machine::Machine as RealMachine;
use crate::plan::Plan;
use crate::record::{Run, calibration};
use crate::run::Part;
use crate::selftest::{Answer, LEAST_COVERAGE};

fn simulation(disturbance: Disturbance, problems: u32, seed: u64) -> Simulation {
    Simulation { disturbance, problems, procedure: Procedure::STANDARD, seed }
}

/// What an interval may have as half its width, in the logarithm, in the mean: one that contains
/// everything would be easy.
fn widest(disturbance: Disturbance) -> f64 {
    match disturbance {
        Disturbance::LayoutEffect | Disturbance::MoreInTenthOfProcesses => 0.08,
        Disturbance::ProcessEffect
        | Disturbance::TenthOfLayouts
        | Disturbance::FiftiethOfLayouts
        | Disturbance::HalfOfProcesses
        | Disturbance::FifthOfProcesses
        | Disturbance::TenthOfProcesses
        | Disturbance::OneSided
        | Disturbance::Correlated
        | Disturbance::StronglyCorrelated => 0.04,
        Disturbance::SeenStates
        | Disturbance::LongSeenStates
        | Disturbance::HiddenStates
        | Disturbance::LongHiddenStates
        | Disturbance::Neighbour => 0.12,
        _ => 0.025,
    }
}

/// Otherwise the sessions that are left would each begin, and end at once.
#[test]
fn a_simulation_that_is_stopped_begins_no_other_run() {
    let stop = Stop::default();
    stop.request(Instant::now());
    let millions = simulation(Disturbance::ALL[0], 4, 1).run(u32::MAX, &stop).unwrap();
    assert!(millions.interrupted);
    assert_eq!(millions.calibrations, 0);
}

/// What answers otherwise than it should, of all disturbances, which are simulated beside each other.
fn missed(problems: u32, calibrations: u32) -> Vec<Simulated> {
    let simulated = |disturbance| {
        let simulation = simulation(disturbance, problems, 1);
        let result = simulation.run(calibrations, &Stop::default()).unwrap();
        assert_eq!(result.calibrations, calibrations as usize);
        eprintln!(
            "{:26} {problems:4} {:5.1} % flagged {:5.1} % half-width {:.2} % processes {:.1} dropped {:.1} %",
            disturbance.name(),
            100.0 * result.coverage(),
            100.0 * share(result.state_changed, result.calibrations),
            100.0 * result.half_width,
            result.processes,
            100.0 * result.dropped
        );
        let is_missed =
            result.answer() != Answer::Passed || result.half_width > widest(disturbance);
        is_missed.then_some(result)
    };
    std::thread::scope(|scope| {
        let all = Disturbance::ALL.map(|one| scope.spawn(move || simulated(one)));
        all.into_iter().filter_map(|one| one.join().unwrap()).collect()
    })
}

#[test]
fn the_intervals_of_large_runs_contain_the_truth() {
    assert_eq!(missed(100, 500), []);
}

#[test]
fn the_intervals_of_small_runs_contain_the_truth() {
    assert_eq!(missed(4, 200), []);
}

/// The file of a run on a scripted machine, written and read.
fn read_back(disturbance: Disturbance, time_budget: Option<Duration>) -> HardwareCalibration {
    let example = include_str!("../../../../tests/data/example.toml");
    let fingerprint = HardwareCalibration::from_toml(example).unwrap().fingerprint;
    let simulation = simulation(disturbance, 20, 3);
    let settings = RunSettings { time_budget, ..simulation.settings(3) };
    let subjects: Vec<Subject> = (0..20).map(|number| subject(number).unwrap()).collect();
    let (mut machine, stop) = (Machine::new(disturbance, 3), Stop::default());
    let session = Session::new(&mut machine, settings, &subjects, &stop);
    let outcome = session.and_then(Session::run).unwrap();
    let run = Run {
        machine: &RealMachine::identify("auto", fingerprint).unwrap(),
        runtimes: &[],
        plan: &Plan {
            shapes: "test".to_owned(),
            subjects,
            skipped: Vec::new(),
            has_failures: false,
        },
        settings: &settings,
        parts: &Part::now(false, Vec::new()),
        quick: false,
        earlier_states: &[],
    };
    let written = calibration(&run, &outcome).to_toml();
    let written = written.unwrap_or_else(|error| panic!("{disturbance:?}: {error}"));
    HardwareCalibration::from_toml(&written).unwrap()
}

/// Whatever a machine does and whenever a run ends, its file is one that can be read.
#[test]
fn the_calibration_of_every_machine_can_be_written_and_read() {
    let mut codes = Vec::new();
    for disturbance in Disturbance::ALL {
        let whole = read_back(disturbance, None);
        assert_eq!(whole.records.len(), 20, "{disturbance:?}");
        codes.extend(whole.records.iter().flat_map(|record| &record.reasons).map(|one| one.code));
        for seconds in [12, 25, 60] {
            let part = read_back(disturbance, Some(Duration::from_secs(seconds)));
            assert_eq!(part.settings.end, RunEnd::TimeBudget, "{disturbance:?} {seconds}");
        }
    }
    assert!(codes.contains(&ReasonCode::SlowChange));
}

/// The disturbances that the sensors show make them drop pairs, and no others do.
#[test]
fn what_the_counters_show_is_dropped() {
    for disturbance in Disturbance::ALL {
        let result = simulation(disturbance, 4, 1).run(8, &Stop::default()).unwrap();
        let shows = matches!(
            disturbance,
            Disturbance::Preemption
                | Disturbance::StolenMostlyNoticed
                | Disturbance::StolenHalfNoticed
        );
        assert_eq!(result.dropped > 0.05, shows, "{result:?}");
    }
}

/// The simulation can fail: an effect that is larger than what intervals are made for, and that most
/// processes do not have, is missed.
#[test]
fn what_processes_did_not_meet_is_missed() {
    let simulation = simulation(Disturbance::MoreInTenthOfProcesses, 100, 1);
    let result = simulation.run(500, &Stop::default()).unwrap();
    assert!((0.5..0.8).contains(&result.coverage()), "{result:?}");
}

/// One process shows nothing of the spread between processes, and its interval assumes one.
#[test]
fn one_process_allows_for_others() {
    let procedure = Procedure { rounds: 8, ..Procedure::STANDARD.with(Some(1), None) };
    let within = Simulation { procedure, ..simulation(Disturbance::ProcessEffect, 100, 1) };
    let result = within.run(200, &Stop::default()).unwrap();
    assert!(result.coverage() >= LEAST_COVERAGE, "{result:?}");
    assert!(result.half_width < 0.12, "{result:?}");
}

/// The fewest processes that an interval over processes can have, and slow problems, whose rounds
/// have a single pair in each order and lose one of them now and then.
#[test]
fn fewer_processes_and_pairs_keep_the_promise() {
    let procedure = Procedure { rounds: 8, pairs: 2, ..Procedure::STANDARD.with(Some(3), None) };
    for disturbance in [Disturbance::Preemption, Disturbance::ProcessEffect] {
        let small = Simulation { procedure, ..simulation(disturbance, 100, 2) };
        let result = small.run(1000, &Stop::default()).unwrap();
        assert!(result.coverage() >= LEAST_COVERAGE, "{result:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_answer() {
    let run = |seed| {
        let procedure = Procedure::QUICK;
        let simulation = Simulation { procedure, ..simulation(Disturbance::Spikes, 10, seed) };
        simulation.run(20, &Stop::default()).unwrap()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}
