//! Processes that crash, are disturbed or compute something wrong, and what is left of a run.

use std::sync::atomic::{AtomicUsize, Ordering};

use calibrate::measure::{Cause, Procedure};
use calibrate::plan::Comparison;
use calibrate::record::{Context, record};
use calibrate::run::{Journal, Measured, RunSettings, Seed, Session, State};
use calibrate::stop::Stop;
use calibrate::worker::{MeasureAnswer, MeasureTask, NoAnswer, Workers};
use fusion_cost_model::Problem;
use fusion_cost_model::calibration::{KernelFailure, RunEnd, Verdict};

use super::scripted::{
    Answer, Asked, SETTINGS, Scripted, disturbed, key, processes, run, subjects,
};

/// What was measured of a control stays when its next process fails, however disturbed it was.
#[test]
fn a_control_that_fails_keeps_its_processes() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let answer = |task: &MeasureTask| {
        if task.subject.problem.to_string() != "add_relu/f32/m64.n1024" {
            return None;
        }
        match ASKED.fetch_add(1, Ordering::Relaxed) {
            // The first process and both times that it is made again.
            0..3 => disturbed(task),
            _ => Some(Err(NoAnswer::Failed("its process was ended by signal 9".to_owned()))),
        }
    };
    let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(1));
    assert_eq!(outcome.controls[0].processes.len(), 1);
    assert_eq!(ASKED.load(Ordering::Relaxed), 4, "a failure is not tried again");
}

/// Those of a runtime, whose process is not that of the worker.
#[test]
fn kernels_whose_process_crashes_are_tried_once_more_and_no_longer() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let crashes = |task: &MeasureTask| {
        if task.subject.comparison != Comparison::UnfusedFused {
            return None;
        }
        // In its first process once, and in its second one twice.
        let crashes = [true, false, true, true];
        let crashes = crashes.get(ASKED.fetch_add(1, Ordering::Relaxed)).copied()?;
        let (failure, reason) = (KernelFailure::Crash, "signal 11".to_owned());
        crashes.then_some(Err(NoAnswer::Kernels { failure, reason }))
    };
    let mut workers = Scripted { answer: Some(crashes), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(1));
    assert_eq!(ASKED.load(Ordering::Relaxed), 4);
    let state = &outcome.measured[0].state;
    assert_eq!(state.failure(), Some((Some(KernelFailure::Crash), "signal 11")));
    assert_eq!(processes(&outcome.measured), [1]);
}

#[test]
fn a_run_in_which_everything_is_disturbed_ends_after_its_first_pass() {
    let mut workers = Scripted { answer: Some(disturbed), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(3));
    assert_eq!((outcome.end, processes(&outcome.measured)), (RunEnd::Disturbed, vec![1, 1, 1]));
    // However lucky an A/A run was, which is repeated.
    let but_controls = |task: &MeasureTask| {
        if task.subject.comparison.has_copy() { None } else { disturbed(task) }
    };
    let mut workers = Scripted { answer: Some(but_controls), ..Scripted::new() };
    assert_eq!(run(&mut workers, SETTINGS, &subjects(3)).end, RunEnd::Disturbed);
    // Unless the user wants it so, or something was undisturbed.
    let mut forced = Scripted { answer: Some(disturbed), ..Scripted::new() };
    let outcome = run(&mut forced, RunSettings { forced: true, ..SETTINGS }, &subjects(1));
    assert_eq!(outcome.end, RunEnd::Complete);
    let but_one = |task: &MeasureTask| {
        let is_spared = task.subject.problem.to_string().contains("m2.");
        if is_spared { None } else { disturbed(task) }
    };
    let mut workers = Scripted { answer: Some(but_one), ..Scripted::new() };
    assert_eq!(run(&mut workers, SETTINGS, &subjects(3)).end, RunEnd::Complete);
}

#[test]
fn a_disturbed_process_of_a_control_is_made_again() {
    // The third pass finds the machine busy, and the next process of the same control does not.
    let busy = |task: &MeasureTask| {
        let is_hit = task.process_seed % 8 == 1 && task.subject.comparison.has_copy();
        if is_hit { disturbed(task) } else { None }
    };
    let mut workers = Scripted { answer: Some(busy), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(1));
    let made = workers.measured().iter().filter(|(_, what)| what.has_copy()).count();
    assert!(made > 20, "{made} processes of two controls in ten passes");
    for control in &outcome.controls {
        let disturbed = control.processes.iter().filter(|one| one.samples.is_mostly_disturbed());
        assert_eq!((control.processes.len(), disturbed.count()), (10, 0));
    }
}

#[test]
fn one_problem_that_fails_costs_only_itself() {
    let answer = |task: &MeasureTask| match task.subject.problem.to_string() {
        name if name.contains("m2.") => {
            Some(Err(NoAnswer::Failed("its process was ended by signal 11".to_owned())))
        }
        name if name.contains("m3.") => Some(Ok(MeasureAnswer::NoKernels)),
        _ => None,
    };
    let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(4));
    assert_eq!(processes(&outcome.measured), [10, 0, 0, 10]);
    let states: Vec<&State> = outcome.measured.iter().map(|measured| &measured.state).collect();
    assert!(matches!(states[1], State::Failed(reason) if reason.contains("signal 11")));
    assert_eq!(*states[2], State::NoKernels);
    assert_eq!(outcome.end, RunEnd::Complete);
}

/// As when the system ends a process for its memory, or somebody sends it a signal.
#[test]
fn a_process_that_crashes_is_tried_once_more() {
    static CRASHES: AtomicUsize = AtomicUsize::new(0);
    let answer = |task: &MeasureTask| {
        let crash = || Some(Err(NoAnswer::Crashed("it was ended by signal 9".to_owned())));
        match task.subject.problem.to_string() {
            name if name.contains("m2.") => crash(),
            name if name.contains("m3.") && CRASHES.fetch_add(1, Ordering::Relaxed) == 4 => crash(),
            _ => None,
        }
    };
    let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(4));
    assert_eq!(processes(&outcome.measured), [10, 0, 10, 10]);
    assert_eq!(CRASHES.load(Ordering::Relaxed), 11);
    let of_second = |task: &&Asked| match task {
        Asked::Measure(task) => task.subject.problem.to_string().contains("m2."),
        _ => false,
    };
    assert_eq!(workers.tasks.iter().filter(of_second).count(), 2);
    let state = &outcome.measured[1].state;
    let (failure, reason) = state.failure().unwrap();
    assert_eq!(failure, Some(KernelFailure::Crash));
    assert!(reason.contains("signal 9"), "{reason}");
}

/// From disturbed samples to an INVALID record that says why.
#[test]
fn a_record_of_disturbed_samples_is_invalid_and_says_why() {
    let disturbed = |task: &MeasureTask| {
        let answer = Scripted::new().measure(task.clone(), None);
        let Ok(MeasureAnswer::Measured(mut report)) = answer else { return None };
        report.samples.observable = vec![Cause::Migration, Cause::Steal];
        if task.subject.comparison == Comparison::UnfusedFused {
            // In five of eight rounds.
            for round in report.samples.rounds.iter_mut().take(5) {
                round.pairs.iter_mut().for_each(|pair| pair.causes = vec![Cause::Migration]);
            }
        }
        Some(Ok(MeasureAnswer::Measured(report)))
    };
    let mut workers = Scripted { answer: Some(disturbed), ..Scripted::new() };
    let procedure = Procedure::STANDARD.with(Some(5), Some(8));
    // Or the run would end after its first pass.
    let settings = RunSettings { procedure, forced: true, ..SETTINGS };
    let outcome = run(&mut workers, settings, &subjects(1));
    let context = Context::of(&settings, &outcome);
    let Measured { subject, processes, estimate, .. } = &outcome.measured[0];
    let record = record(subject, processes, estimate.as_ref().unwrap(), &context);
    assert_eq!(record.verdict, Verdict::Invalid);
    assert_eq!((record.pairs, record.pairs_kept), (80, 30));
    assert_eq!((record.disturbed.migration, record.disturbed.steal), (Some(50), Some(0)));
    assert_eq!(record.disturbed.page_fault, None);
    let codes: Vec<&str> = record.reasons.iter().map(|reason| reason.code.name()).collect();
    assert_eq!(codes, ["mostly-disturbed", "unobserved"]);
    assert!(record.reasons[0].text.contains("only 30 of 80 pairs were undisturbed (migration 50)"));
}

/// What is wrong once stays wrong, whatever was measured before and however noisy the machine
/// becomes.
#[test]
fn a_variant_that_turns_wrong_is_never_finished() {
    let wide = |problem: &Problem| if problem.to_string().contains("m1.") { 0.5 } else { 0.001 };
    let mut workers = Scripted { spread: wide, wrong_from: Some(10), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(1));
    assert_eq!(processes(&outcome.measured), [10]);
    assert!(matches!(&outcome.measured[0].state, State::Wrong(reason) if reason.contains("off")));

    // Nor is it forgotten when the run goes on.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    for wrong_from in [Some(10), None] {
        let mut workers = Scripted { spread: wide, wrong_from, ..Scripted::new() };
        let (journal, recovered) = Journal::open(&path, &key(), Seed::Given(1)).unwrap();
        let (stop, subjects) = (Stop::default(), subjects(1));
        let session = Session::new(&mut workers, SETTINGS, &subjects, &stop).unwrap();
        let outcome = session.with_journal(journal, recovered.entries).run().unwrap();
        assert!(matches!(outcome.measured[0].state, State::Wrong(_)));
    }
}

/// Without an A/A run there is no noise floor, and without it no verdict; one of them suffices.
#[test]
fn failed_controls_make_every_record_invalid() {
    let one: fn(&MeasureTask) -> Option<Answer> = |task| {
        let fails = task.subject.problem.to_string() == "add_relu/f32/m4096.n1024";
        fails.then(|| Err(NoAnswer::Failed("its process was ended by signal 9".to_owned())))
    };
    let both: fn(&MeasureTask) -> Option<Answer> = |task| {
        let fails = task.subject.comparison.has_copy();
        fails.then(|| Err(NoAnswer::Failed("its process was ended by signal 9".to_owned())))
    };
    for (answer, usable) in [(one, 1), (both, 0)] {
        let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
        let outcome = run(&mut workers, SETTINGS, &subjects(1));
        assert_eq!((outcome.end, outcome.noise.len()), (RunEnd::Complete, usable));
        assert!(matches!(outcome.controls[1].state, State::Failed(_)));
        let context = Context::of(&SETTINGS, &outcome);
        let Measured { subject, processes, estimate, .. } = &outcome.measured[0];
        let record = record(subject, processes, estimate.as_ref().unwrap(), &context);
        assert_eq!(record.verdict == Verdict::Invalid, usable == 0, "{:?}", record.reasons);
        let named = record.reasons.iter().any(|reason| reason.code.name() == "no-control");
        assert_eq!(named, usable == 0);
    }
}
