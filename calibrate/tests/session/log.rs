//! What a log says of a run.

use calibrate::report::Progress;
use calibrate::run::Session;
use calibrate::stop::Stop;
use calibrate::worker::{MeasureTask, NoAnswer};
use fusion_cost_model::Problem;

use super::scripted::{SETTINGS, Scripted, subjects};

/// What a log says of a run: never more problems than there are, and no time left before it is
/// known.
#[test]
fn a_log_says_how_far_a_run_is() {
    let wide = |problem: &Problem| if problem.to_string().contains("m2.") { 0.5 } else { 0.001 };
    let answer = |task: &MeasureTask| match task.subject.problem.to_string() {
        name if name.contains("m3.") || name.contains("m4096.") => {
            Some(Err(NoAnswer::Failed("its process was ended by signal 11".to_owned())))
        }
        _ => None,
    };
    let mut workers = Scripted { spread: wide, answer: Some(answer), ..Scripted::new() };
    let (mut log, stop, subjects) = (Vec::new(), Stop::default(), subjects(4));
    let session = Session::new(&mut workers, SETTINGS, &subjects, &stop).unwrap();
    session.observed_by(Box::new(Progress::log(&mut log))).run().unwrap();
    insta::assert_snapshot!("progress_log", String::from_utf8(log).unwrap());
}
