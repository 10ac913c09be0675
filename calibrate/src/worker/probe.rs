//! Asking about a GPU before anything is measured, in a process of its own: a driver in a bad state
//! ends or blocks the process that calls it.

use std::io::{Read, Write};
use std::process::{Child, ChildStderr, ChildStdout};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::processes::{failure, start, this_program};
use super::{Device, Report, Task};

/// How long a device may take to answer: opening the first of many GPUs takes some seconds.
pub const PROBE_LIMIT: Duration = Duration::from_secs(120);

/// The same where somebody waits for a list.
pub const SURVEY_LIMIT: Duration = Duration::from_secs(30);

/// Asks a worker that has the device. Whatever becomes of it, there is an answer:
/// [`Report::NoDevice`] with the reason where the worker gave none in that time.
#[must_use]
pub fn probe(device: &Device, task: &Task, limit: Duration) -> Report {
    ask(device, task, limit).unwrap_or_else(|error| Report::NoDevice(crate::exit::message(&error)))
}

fn ask(device: &Device, task: &Task, limit: Duration) -> anyhow::Result<Report> {
    let mut line = serde_json::to_string(&(device, None::<Duration>, task))?;
    line.push('\n');
    let mut worker = start(&this_program()?)?;
    let (sender, answers) = mpsc::channel();
    // It ends when the worker does, also when that has a lot to complain about.
    if let (Some(output), Some(errors)) = (worker.stdout.take(), worker.stderr.take()) {
        std::thread::spawn(move || sender.send(read(output, errors)));
    }
    if let Some(input) = &mut worker.stdin {
        // A worker that ends before it has read its task says why below.
        let _ = input.write_all(line.as_bytes());
    }
    let answer = answers.recv_timeout(limit);
    let Some(status) = wait_or_end(&mut worker, answer.is_ok())? else {
        anyhow::bail!(
            "the {} driver gave no answer in {} s, and the process that asked it was ended",
            device.backend,
            limit.as_secs()
        );
    };
    let (report, complaint) = answer.unwrap_or_default();
    if let Ok(report) = serde_json::from_str(&report) {
        return Ok(report);
    }
    anyhow::bail!("looking for a {} device: {}", device.backend, failure(status, &complaint))
}

/// How a worker ended; `None` if it had to be made to.
fn wait_or_end(
    worker: &mut Child,
    has_answered: bool,
) -> std::io::Result<Option<std::process::ExitStatus>> {
    /// What an answer may take to end: a driver has things to give back.
    const PATIENCE: Duration = Duration::from_secs(5);
    let since = Instant::now();
    while has_answered && since.elapsed() < PATIENCE {
        if let Some(status) = worker.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    worker.kill()?;
    // One that a driver holds in the system's kernel does not end even then, and is not waited for.
    if has_answered { worker.wait().map(Some) } else { Ok(None) }
}

/// All that a worker writes, and then what it complains about.
fn read(mut output: ChildStdout, mut errors: ChildStderr) -> (String, String) {
    let complaints = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = errors.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut report = Vec::new();
    let _ = output.read_to_end(&mut report);
    (String::from_utf8_lossy(&report).into_owned(), complaints.join().unwrap_or_default())
}
