//! What each pass makes, how passes are spread over time, and when there are enough.

use std::time::Duration;

use calibrate::plan::Comparison;
use calibrate::run::{RunSettings, State};
use fusion_cost_model::Problem;
use fusion_cost_model::calibration::RunEnd;

use super::scripted::{Asked, SETTINGS, Scripted, processes, run, subjects};

#[test]
fn each_pass_makes_one_process_of_everything() {
    let mut workers = Scripted::new();
    let subjects = subjects(3);
    let outcome = run(&mut workers, SETTINGS, &subjects);
    assert_eq!(outcome.end, RunEnd::Complete);
    assert_eq!(processes(&outcome.measured), [10, 10, 10]);
    assert!(outcome.measured.iter().all(|measured| measured.state == State::Finished));
    // Two controls and three problems in each pass.
    let measured = workers.measured();
    assert_eq!(measured.len(), 10 * 5);
    for pass in measured.chunks(5) {
        let mut problems: Vec<String> = pass.iter().map(|(one, _)| one.to_string()).collect();
        problems.sort();
        problems.dedup();
        assert_eq!(problems.len(), 5);
        let controls = pass.iter().filter(|(_, what)| *what == Comparison::UnfusedCopy);
        assert_eq!(controls.count(), 2);
    }
    assert_eq!(outcome.noise.len(), 2);
    assert!(outcome.noise.iter().all(|noise| noise.processes == 10 && noise.own_tensors));
}

#[test]
fn every_process_has_a_seed_of_its_own_and_every_problem_the_same_inputs() {
    let mut workers = Scripted::new();
    let _ = run(&mut workers, SETTINGS, &subjects(3));
    let mut process_seeds = Vec::new();
    let mut inputs = Vec::new();
    for task in &workers.tasks {
        let Asked::Measure(task) = task else { continue };
        process_seeds.push(task.process_seed);
        inputs.push((task.subject.problem.to_string(), task.input_seed));
    }
    let count = process_seeds.len();
    process_seeds.sort_unstable();
    process_seeds.dedup();
    assert_eq!(process_seeds.len(), count);
    inputs.sort();
    inputs.dedup();
    assert_eq!(inputs.len(), 5, "one per problem and control");
    let mut again = Scripted::new();
    let _ = run(&mut again, SETTINGS, &subjects(3));
    assert_eq!(again.tasks, workers.tasks);
    let mut other = Scripted::new();
    let _ = run(&mut other, RunSettings { seed: 2, ..SETTINGS }, &subjects(3));
    assert_ne!(other.tasks, workers.tasks);
}

#[test]
fn what_is_undecided_gets_more_processes_and_nothing_else_does() {
    let wide = |problem: &Problem| if problem.to_string().contains("m2.") { 0.5 } else { 0.001 };
    let mut workers = Scripted { spread: wide, ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(3));
    assert_eq!(processes(&outcome.measured), [10, 20, 10]);
    assert_eq!(outcome.end, RunEnd::Complete);
    // The controls go on as the yardstick of what goes on.
    assert!(outcome.noise.iter().all(|noise| noise.processes == 20));
}

#[test]
fn passes_of_a_short_run_are_spread_over_time() {
    let mut workers = Scripted::new();
    let spread = Duration::from_secs(90);
    let _ = run(&mut workers, RunSettings { spread, ..SETTINGS }, &subjects(1));
    // Nothing takes any time here, so each pass waits until its own time since the start.
    assert_eq!(workers.waited.len(), 9);
    for (waited, pass) in workers.waited.iter().zip(1..) {
        // A little late, by a time that is drawn.
        let until = Duration::from_secs(10 * pass);
        let [least, most] = [until, until + Duration::from_secs(5)];
        assert!(*waited <= most && *waited + Duration::from_secs(5) > least, "{waited:?}");
    }
    let mut hurried = Scripted::new();
    let _ = run(&mut hurried, SETTINGS, &subjects(1));
    assert!(hurried.waited.is_empty());
    // Nor is there a wait beyond the time that the whole run has.
    let settings = RunSettings { spread, time_budget: Some(Duration::from_secs(25)), ..SETTINGS };
    let mut short = Scripted::new();
    assert_eq!(run(&mut short, settings, &subjects(1)).end, RunEnd::TimeBudget);
    assert_eq!(short.waited.len(), 2);
}

#[test]
fn the_processes_that_a_problem_needs_more_are_spread_too() {
    let mut workers = Scripted { spread: |_| 0.5, ..Scripted::new() };
    let spread = Duration::from_secs(90);
    let outcome = run(&mut workers, RunSettings { spread, ..SETTINGS }, &subjects(1));
    assert_eq!(processes(&outcome.measured), [20]);
    // The first ten within 90 s, and the others at half their distance.
    assert_eq!(workers.waited.len(), 19);
    let last = *workers.waited.last().unwrap();
    assert!((135.0..145.0).contains(&last.as_secs_f64()), "{last:?}");
}

#[test]
fn the_time_budget_ends_the_run_between_processes() {
    let pause = Duration::from_millis(5);
    let mut workers = Scripted { pause, ..Scripted::new() };
    let time_budget = Some(pause * 8);
    let outcome = run(&mut workers, RunSettings { time_budget, ..SETTINGS }, &subjects(20));
    assert_eq!(outcome.end, RunEnd::TimeBudget);
    assert!((1..=8).contains(&workers.tasks.len()), "{}", workers.tasks.len());
    assert!(outcome.measured.iter().any(|measured| measured.processes.is_empty()));
    assert!(outcome.measured.iter().all(|measured| measured.state == State::Unfinished));
}
