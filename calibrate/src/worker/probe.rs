//! Asking about a device before anything is measured, in a process of its own: a driver in a bad
//! state ends or blocks the process that calls it.

use std::time::Duration;

use cli_support::say;
use fused_kernels::worker::{Program, Question, Worker, WorkerError};

use super::processes::NoAnswer;
use super::task::OnDevice;
use super::{Device, Task};
use crate::stop::Stop;

/// How long a device may take to answer: opening the first of many GPUs takes some seconds.
pub const PROBE_LIMIT: Duration = Duration::from_secs(120);

/// The same for a listing, where the user waits.
pub const SURVEY_LIMIT: Duration = Duration::from_secs(30);

/// Asks a worker that has the device. One that crashes is asked once more, as it is when it measures.
///
/// # Errors
///
/// [`NoAnswer`], whatever becomes of the worker.
pub fn probe<T: Task>(
    device: &Device,
    task: T,
    limit: Duration,
    stop: &Stop,
) -> Result<T::Answer, NoAnswer> {
    let backend = device.backend;
    let (device, _folder) = device.with_folder().map_err(NoAnswer::NotStarted)?;
    let is_gpu = device.gpu.is_some();
    let question = OnDevice { device, time_left: None, kernel_limit: limit, task };
    let program = Program::this().map_err(WorkerError::Start);
    let answer = program.and_then(|program| ask(&program, &question, limit, stop));
    let answer = answer.map_err(|error| {
        if stop.requested() {
            return NoAnswer::Stopped;
        }
        if !is_gpu {
            return NoAnswer::Failed(error.to_string());
        }
        NoAnswer::NoDevice(match error {
            WorkerError::TimeLimit { .. } => format!(
                "the {backend} driver gave no answer in {} s, and the process that asked it was \
                 ended",
                limit.as_secs()
            ),
            other => format!("looking for a {backend} device: {other}"),
        })
    })?;
    Ok(answer?)
}

/// Asks a worker, and once more if it crashes.
fn ask<Q: Question>(
    program: &Program,
    question: &Q,
    limit: Duration,
    stop: &Stop,
) -> Result<Q::Answer, WorkerError> {
    match ask_once(program, question, limit, stop) {
        Err(error @ WorkerError::Ended(_)) if !stop.requested() => {
            say!("{}: {error}; it is tried once more", Q::NAME);
            ask_once(program, question, limit, stop)
        }
        answer => answer,
    }
}

fn ask_once<Q: Question>(
    program: &Program,
    question: &Q,
    limit: Duration,
    stop: &Stop,
) -> Result<Q::Answer, WorkerError> {
    let mut worker = Worker::start(program)?;
    // Ctrl-C closes the input, upon which the worker leaves with all that it has started.
    let _held = stop.hold(worker.input());
    let answer = worker.ask(question, Some(limit))?;
    worker.finish();
    Ok(answer)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::super::SurveyTask;
    use super::*;

    /// How often a shell is asked that notes down that it was, and does this.
    fn asked(does: &str) -> (WorkerError, usize) {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes");
        let script = format!("echo asked >> '{}'; {does}", notes.display());
        let program = Program::new("/bin/sh".into(), vec!["-c".into(), script.into()]);
        let device = Device::cpu(1, false);
        let limit = Duration::from_millis(500);
        let question = OnDevice { device, time_left: None, kernel_limit: limit, task: SurveyTask };
        let error = ask(&program, &question, limit, &Stop::default()).unwrap_err();
        (error, std::fs::read_to_string(notes).unwrap().lines().count())
    }

    #[test]
    fn a_worker_that_dies_at_its_start_is_asked_once_more_and_one_that_hangs_is_not() {
        for does in ["exit 3", "kill -KILL $$", "kill -SEGV $$"] {
            let (error, times) = asked(does);
            assert!(matches!(error, WorkerError::Ended(_)), "{does}: {error}");
            assert_eq!(times, 2, "{does}: {error}");
        }
        let (error, times) = asked("exec cat");
        assert!(matches!(error, WorkerError::TimeLimit { .. }), "{error}");
        assert_eq!(times, 1);
        let (error, times) = asked("echo who is there; exec cat");
        assert!(
            matches!(error, WorkerError::TimeLimit { .. } | WorkerError::NotAWorker),
            "{error}"
        );
        assert_eq!(times, 1);
    }
}
