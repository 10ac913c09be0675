//! Going on after an end.

use calibrate::run::{Entry, Journal, Outcome, RunSettings, Seed, Session};
use calibrate::stop::Stop;
use fusion_cost_model::calibration::RunEnd;

use super::scripted::{SETTINGS, Scripted, disturbed, key, processes, run, subjects};

/// Wherever a run ends, going on from its journal leads to the same result as never ending, and
/// no process is made twice.
#[test]
fn a_run_that_goes_on_makes_every_process_once() {
    let subjects = subjects(3);
    let mut whole = Scripted::new();
    let expected = run(&mut whole, SETTINGS, &subjects);
    for end in 0..whole.tasks.len() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let part = |workers: &mut Scripted| {
            let (journal, recovered) = Journal::open(&path, &key(), Seed::Given(1)).unwrap();
            let stop = Stop::default();
            let session = Session::new(workers, SETTINGS, &subjects, &stop).unwrap();
            session.with_journal(journal, recovered.entries).run().unwrap()
        };
        let mut first = Scripted { stop_before: Some(end), ..Scripted::new() };
        assert_eq!(part(&mut first).end, RunEnd::Interrupted);
        let mut second = Scripted::new();
        let outcome = part(&mut second);
        assert_eq!(outcome.end, RunEnd::Complete);
        assert!(outcome.left_over.is_empty());
        assert_eq!(first.tasks.len() + second.tasks.len(), whole.tasks.len(), "ended at {end}");
        assert_eq!([first.tasks, second.tasks].concat(), whole.tasks);
        let results = |outcome: &Outcome| -> Vec<_> {
            let all = outcome.measured.iter();
            all.map(|measured| (measured.processes.clone(), measured.estimate.clone())).collect()
        };
        assert_eq!(results(&outcome), results(&expected));
        assert_eq!(outcome.noise, expected.noise);
    }
}

/// Whoever runs the same command again, since the machine is quiet now, is not told once more that
/// it was busy.
#[test]
fn a_first_pass_in_which_everything_was_disturbed_is_made_anew() {
    let subjects = subjects(3);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    let part = |workers: &mut Scripted, settings: RunSettings, of: usize| {
        let (journal, recovered) = Journal::open(&path, &key(), Seed::Given(1)).unwrap();
        let stop = Stop::default();
        let session = Session::new(workers, settings, &subjects[..of], &stop).unwrap();
        let outcome = session.with_journal(journal, recovered.entries).run().unwrap();
        // Whoever has the journal is still writing it.
        Outcome { journal: None, ..outcome }
    };
    let busy = || Scripted { answer: Some(disturbed), ..Scripted::new() };
    for _ in 0..2 {
        let mut workers = busy();
        let outcome = part(&mut workers, SETTINGS, 3);
        assert_eq!(outcome.end, RunEnd::Disturbed);
        assert!(!workers.tasks.is_empty(), "the first pass is not made anew");
    }
    // Whoever wants it all the same keeps what there is: the first process of each problem is made.
    let forced = RunSettings { forced: true, ..SETTINGS };
    let mut workers = Scripted { stop_before: Some(0), ..Scripted::new() };
    let outcome = part(&mut workers, forced, 3);
    assert_eq!((outcome.end, processes(&outcome.measured)), (RunEnd::Interrupted, vec![1, 1, 1]));

    // What belongs to another selection stays, and what was made on the quiet machine counts.
    let outcome = part(&mut Scripted::new(), SETTINGS, 2);
    assert_eq!((outcome.end, outcome.left_over.len()), (RunEnd::Complete, 1));
    let all = outcome.controls.iter().chain(&outcome.measured).flat_map(|one| &one.processes);
    assert!(all.into_iter().all(|process| !process.samples.is_mostly_disturbed()));
    let mut nobody = Scripted::new();
    let again = part(&mut nobody, SETTINGS, 2);
    assert!(nobody.tasks.is_empty(), "{} processes were made again", nobody.tasks.len());
    assert_eq!(again.ceilings, outcome.ceilings);
    for (again, outcome) in again.measured.iter().zip(&outcome.measured) {
        assert_eq!(again.processes, outcome.processes);
    }
}

/// Whoever joins two journals may have lines twice.
#[test]
fn lines_that_stand_twice_count_once() {
    let subjects = subjects(2);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    let go_on = |workers: &mut Scripted| {
        let (journal, recovered) = Journal::open(&path, &key(), Seed::Given(1)).unwrap();
        let stop = Stop::default();
        let session = Session::new(workers, SETTINGS, &subjects, &stop).unwrap();
        session.with_journal(journal, recovered.entries).run().unwrap()
    };
    let mut once = go_on(&mut Scripted::new());
    // Whoever has the journal is still writing it.
    once.journal = None;
    assert!(!once.ceilings.is_empty());
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, lines) = text.split_once('\n').unwrap();
    std::fs::write(&path, format!("{head}\n{lines}{lines}")).unwrap();
    let mut nobody = Scripted::new();
    let twice = go_on(&mut nobody);
    assert!(nobody.tasks.is_empty());
    assert_eq!(twice.ceilings, once.ceilings);
    assert_eq!(twice.noise, once.noise);
    for (twice, once) in twice.measured.iter().zip(&once.measured) {
        assert_eq!(twice.processes, once.processes);
    }
}

#[test]
fn launches_of_other_problems_stay_in_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    for (count, left_over) in [(3, 0), (1, 20)] {
        let (journal, recovered) = Journal::open(&path, &key(), Seed::Given(1)).unwrap();
        let stop = Stop::default();
        let (mut workers, subjects) = (Scripted::new(), subjects(count));
        let session = Session::new(&mut workers, SETTINGS, &subjects, &stop).unwrap();
        let outcome = session.with_journal(journal, recovered.entries).run().unwrap();
        assert_eq!((outcome.end, outcome.left_over.len()), (RunEnd::Complete, left_over));
    }
    let (_, recovered) = Journal::open(&path, &key(), Seed::Given(1)).unwrap();
    let is_process = |entry: &&Entry| matches!(entry, Entry::Process { .. });
    assert_eq!(recovered.entries.iter().filter(is_process).count(), 5 * 10);
}
