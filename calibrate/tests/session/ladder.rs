//! Kernels that fail on a core of a GPU, and what is left of a run.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use calibrate::run::{Journal, Measured, Outcome, RunSettings, Seed, Session, State};
use calibrate::stop::Stop;
use calibrate::worker::{CoreChoice, MeasureAnswer, MeasureTask, NoAnswer, Workers};
use fusion_cost_model::Core;
use fusion_cost_model::calibration::{FailedCore, KernelFailure};

use super::scripted::{Answer, Asked, SETTINGS, Scripted, key, processes, run, subjects};

const ON_A_GPU: RunSettings = RunSettings { cores: CoreChoice::From(Core::Wgmma), ..SETTINGS };

/// What is measured of the problem, on which core.
fn asked(workers: &Scripted) -> Vec<Core> {
    let of = |task: &Asked| match task {
        Asked::Measure(task) if task.subject.problem.to_string().contains("m1.") => {
            task.ladder.core
        }
        _ => None,
    };
    workers.tasks.iter().filter_map(of).collect()
}

fn is_it(task: &MeasureTask, core: Core) -> bool {
    task.subject.problem.to_string().contains("m1.") && task.ladder.core == Some(core)
}

fn wrong() -> Answer {
    let wrong = serde_json::from_str(r#""the fused variant is off by 3""#).unwrap();
    Ok(MeasureAnswer::Wrong(wrong))
}

/// What a worker answers for kernels that fail so.
fn failing(failure: KernelFailure) -> Answer {
    let reason = failure.to_string();
    match failure {
        KernelFailure::Wrong => wrong(),
        KernelFailure::Hung => Err(NoAnswer::Hung { reason, in_kernel: true }),
        KernelFailure::Crash => Err(NoAnswer::Crashed(reason)),
        failure => Err(NoAnswer::Kernels { failure, reason }),
    }
}

fn failures(measured: &Measured) -> Vec<(Core, KernelFailure)> {
    measured.ladder.failed.iter().map(|failed| (failed.core, failed.failure)).collect()
}

/// Every failure on every core, alone.
#[test]
fn each_failure_on_each_core_ends_on_the_next_one() {
    macro_rules! case {
        ($core:ident, $failure:ident) => {{
            let answer = |task: &MeasureTask| {
                is_it(task, Core::$core).then(|| failing(KernelFailure::$failure))
            };
            let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
            let choice = CoreChoice::From(Core::$core);
            let settings = RunSettings { cores: choice, ..SETTINGS };
            let outcome = run(&mut workers, settings, &subjects(2));
            let measured = &outcome.measured[0];
            assert_eq!(failures(measured), [(Core::$core, KernelFailure::$failure)]);
            // A crash can be somebody else's doing, and is tried once more.
            let tries = 1 + usize::from(KernelFailure::$failure == KernelFailure::Crash);
            assert_eq!(asked(&workers)[..tries], vec![Core::$core; tries]);
            match Core::$core.next() {
                Some(next) => {
                    assert_eq!(processes(&outcome.measured), [10, 10]);
                    assert!(asked(&workers)[tries..].iter().all(|core| *core == next));
                    assert_eq!(measured.ladder.core, Some(next));
                }
                None => {
                    assert_eq!(processes(&outcome.measured), [0, 10]);
                    let (failure, _) = measured.state.failure().unwrap();
                    assert_eq!(failure, Some(KernelFailure::$failure));
                    assert!(outcome.has_failures());
                }
            }
        }};
    }
    macro_rules! core {
        ($core:ident) => {
            case!($core, Compile);
            case!($core, Launch);
            case!($core, Crash);
            case!($core, Hung);
            case!($core, Wrong);
        };
    }
    core!(Wgmma);
    core!(Mma);
    core!(Mfma);
    core!(Wmma);
    core!(Plain);
}

/// In the third pass, or after the samples: what was measured on that core counts for nothing.
#[test]
fn a_later_failure_takes_the_earlier_processes_with_it() {
    static ON_WGMMA: AtomicUsize = AtomicUsize::new(0);
    let late = |task: &MeasureTask| {
        let is_it = is_it(task, Core::Wgmma);
        (is_it && ON_WGMMA.fetch_add(1, Ordering::Relaxed) == 2).then(wrong)
    };
    let mut workers = Scripted { answer: Some(late), ..Scripted::new() };
    let outcome = run(&mut workers, ON_A_GPU, &subjects(1));
    let asked = asked(&workers);
    let on_wgmma = asked.iter().filter(|core| **core == Core::Wgmma).count();
    assert_eq!(on_wgmma, 3);
    assert_eq!(outcome.measured[0].processes.len(), asked.len() - on_wgmma);

    let wrong_after = |task: &MeasureTask| {
        let Ok(MeasureAnswer::Measured(mut report)) = Scripted::new().measure(task.clone(), None)
        else {
            return None;
        };
        let Ok(MeasureAnswer::Wrong(wrong)) = wrong() else { return None };
        report.wrong_after = Some(wrong);
        is_it(task, Core::Wgmma).then_some(Ok(MeasureAnswer::Measured(report)))
    };
    let mut workers = Scripted { answer: Some(wrong_after), ..Scripted::new() };
    let outcome = run(&mut workers, ON_A_GPU, &subjects(1));
    assert_eq!(failures(&outcome.measured[0]), [(Core::Wgmma, KernelFailure::Wrong)]);
    assert!(outcome.measured[0].processes.iter().all(|report| report.wrong_after.is_none()));
}

#[test]
fn kernels_that_are_the_same_on_another_core_are_not_run_again() {
    let answer = |task: &MeasureTask| {
        let is_next = is_it(task, Core::Mma) || is_it(task, Core::Plain);
        match task.ladder.failed.is_empty() {
            true => is_it(task, Core::Wgmma).then(|| failing(KernelFailure::Hung)),
            false => is_next.then_some(Ok(MeasureAnswer::SameKernels)),
        }
    };
    let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
    let outcome = run(&mut workers, ON_A_GPU, &subjects(1));
    assert_eq!(asked(&workers), [Core::Wgmma, Core::Mma, Core::Plain]);
    assert_eq!(outcome.measured[0].state, State::Hung("hung".to_owned()));
}

#[test]
fn the_same_kernels_on_another_clock_do_not_hang_again() {
    let answer =
        |task: &MeasureTask| is_it(task, Core::Wgmma).then(|| failing(KernelFailure::Hung));
    let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
    let mut both = [subjects(1), subjects(1)].concat();
    both[1].clock = fusion_cost_model::Clock::Device;
    let outcome = run(&mut workers, ON_A_GPU, &both);
    let hung = asked(&workers).into_iter().filter(|core| *core == Core::Wgmma).count();
    assert_eq!(hung, 1);
    for measured in &outcome.measured {
        assert_eq!(failures(measured), [(Core::Wgmma, KernelFailure::Hung)]);
    }
}

/// A run with a journal, or what is left of it.
fn part(path: &Path, workers: &mut Scripted) -> Outcome {
    let (journal, recovered) = Journal::open(path, &key(), Seed::Given(1)).unwrap();
    let (stop, subjects) = (Stop::default(), subjects(1));
    let session = Session::new(workers, ON_A_GPU, &subjects, &stop).unwrap();
    session.with_journal(journal, recovered.entries).run().unwrap()
}

/// A run that goes on knows what failed, and takes nothing over that ran on the failed core.
#[test]
fn a_failed_core_is_in_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    let hangs = |task: &MeasureTask| is_it(task, Core::Wgmma).then(|| failing(KernelFailure::Hung));
    let mut first = Scripted { answer: Some(hangs), stop_before: Some(12), ..Scripted::new() };
    part(&path, &mut first);
    let mut second = Scripted { answer: Some(hangs), ..Scripted::new() };
    let outcome = part(&path, &mut second);
    assert!(asked(&second).iter().all(|core| *core == Core::Mma));
    assert_eq!(processes(&outcome.measured), [10]);
    assert!(asked(&second).len() < 10, "some were recovered");

    let failed =
        FailedCore { core: Core::Wgmma, failure: KernelFailure::Hung, reason: "hung".to_owned() };
    assert_eq!(outcome.measured[0].ladder.failed, [failed]);
}

/// Whether the ceilings were asked for on a core.
fn asked_for_ceilings(workers: &Scripted, core: Core) -> bool {
    workers.tasks.contains(&Asked::Ceilings(Some(core)))
}

/// Of several passes, those on the core that they ended on: the best of two cores would be called one of
/// the second.
#[test]
fn ceilings_are_those_of_one_core() {
    // Asked before the passes 0, 4 and 8 of three processes; each is lower than the one before.
    let late = |core, task| core == Some(Core::Wgmma) && task > 1;
    let mut workers = Scripted { ceilings_hang: late, ..Scripted::new() };
    let outcome = run(&mut workers, ON_A_GPU, &subjects(1));
    let [measured] = &outcome.ceilings[..] else { panic!("{:?}", outcome.ceilings) };
    assert_eq!(measured.core, Some(Core::Mma));
    let [failed] = &measured.failed_cores[..] else { panic!("{:?}", measured.failed_cores) };
    assert_eq!((failed.core, failed.failure), (Core::Wgmma, KernelFailure::Hung));
    assert!(measured.ceilings.peak_gflops < 99.0, "{measured:?}");
    assert_eq!(measured.spread.unwrap().measurements, 2);
}

/// Nor are they tried again there by a run that goes on.
#[test]
fn a_failed_core_of_the_ceilings_is_in_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    let hang = |core, _| core == Some(Core::Wgmma);
    let mut first = Scripted { ceilings_hang: hang, stop_before: Some(12), ..Scripted::new() };
    part(&path, &mut first);
    assert!(asked_for_ceilings(&first, Core::Wgmma) && asked_for_ceilings(&first, Core::Mma));
    let mut second = Scripted { ceilings_hang: hang, ..Scripted::new() };
    let outcome = part(&path, &mut second);
    assert!(asked_for_ceilings(&second, Core::Mma) && !asked_for_ceilings(&second, Core::Wgmma));
    assert_eq!(outcome.ceilings[0].failed_cores.len(), 1);
}

/// Nothing else fails with them, and a device that is gone is not a failure of kernels.
#[test]
fn what_is_no_failure_of_kernels_does_not_descend() {
    let answer = |task: &MeasureTask| {
        is_it(task, Core::Wgmma).then(|| Err(NoAnswer::NoDevice("it fell off the bus".to_owned())))
    };
    let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
    let outcome = run(&mut workers, ON_A_GPU, &subjects(2));
    assert_eq!(asked(&workers), [Core::Wgmma]);
    assert!(matches!(&outcome.measured[0].state, State::Failed(reason) if reason.contains("bus")));
    assert_eq!(processes(&outcome.measured), [0, 10]);
}
