//! The caller's side: start a worker, hand it its task, wait for its report.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::{Device, Launcher, Report, Task, WORKER};
use crate::stop::Stop;

/// Starts this program again for every task.
pub struct Processes<'a> {
    program: PathBuf,
    device: Device,
    stop: &'a Stop,
}

impl<'a> Processes<'a> {
    /// Workers for a device.
    ///
    /// # Errors
    ///
    /// When the system does not tell where this program is.
    pub fn new(device: Device, stop: &'a Stop) -> anyhow::Result<Self> {
        Ok(Self { program: this_program()?, device, stop })
    }
}

/// The file of this program.
pub(super) fn this_program() -> anyhow::Result<PathBuf> {
    // On Linux this file is the running program itself, also when the one with its name was
    // replaced in the meantime.
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() {
        return Ok(running);
    }
    std::env::current_exe().context("cannot find this program to start workers")
}

/// Starts a worker, which waits for its task.
pub(super) fn start(program: &Path) -> anyhow::Result<Child> {
    let mut command = Command::new(program);
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        // A group of its own, so that Ctrl-C in a terminal reaches only this process, which
        // decides what becomes of the worker.
        command.arg0("calibrate").process_group(0);
    }
    command.arg(WORKER).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().context("cannot start a worker")
}

impl Launcher for Processes<'_> {
    fn launch(&mut self, task: &Task, time_left: Option<Duration>) -> anyhow::Result<Report> {
        let mut line = serde_json::to_string(&(&self.device, time_left, task))?;
        line.push('\n');
        let began = Instant::now();
        let mut worker = start(&self.program)?;
        let input = worker.stdin.take().context("a worker has no input")?;
        // A worker that ends before it has read its task says why below.
        let _ = (&input).write_all(line.as_bytes());
        // Ctrl-C closes the input, upon which the worker ends and the reading below too. This
        // process sleeps meanwhile: whatever it did would disturb the measurement.
        let input = self.stop.hold(input);
        // In a thread of its own: a worker that has much to complain about would wait for its
        // reader, and this one for its report.
        let complaint = worker.stderr.take().map(|mut errors| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                // Best effort: it only makes a message a better one.
                let _ = errors.read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        let mut report = String::new();
        if let Some(output) = &mut worker.stdout {
            output.read_to_string(&mut report).context("cannot read a worker's report")?;
        }
        drop(input);
        let complaint = complaint.and_then(|thread| thread.join().ok()).unwrap_or_default();
        let status = worker.wait().context("cannot wait for a worker")?;
        if let Ok(report) = serde_json::from_str(&report) {
            return Ok(report);
        }
        if self.stop.requested() {
            return Ok(Report::Stopped);
        }
        if time_left.is_some_and(|time_left| began.elapsed() >= time_left) {
            return Ok(Report::TimeUp);
        }
        Ok(Report::Failed(failure(status, &complaint)))
    }
}

/// Why a worker gave no report.
pub(super) fn failure(status: ExitStatus, complaint: &str) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let why = if signal == SIGKILL { "; most likely it needed too much memory" } else { "" };
        return format!("its process was ended by signal {signal}{why}");
    }
    let complaint = complaint.trim();
    let complaint = complaint.strip_prefix("error: ").unwrap_or(complaint);
    if complaint.is_empty() {
        format!("its process ended without a report ({status})")
    } else {
        format!("its process failed: {complaint}")
    }
}

/// The signal that no process can catch, with which Linux ends processes when memory runs out.
#[cfg(unix)]
const SIGKILL: i32 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_worker_without_a_report_says_why() {
        use std::os::unix::process::ExitStatusExt;
        let killed = failure(ExitStatus::from_raw(9), "");
        assert!(killed.contains("signal 9") && killed.contains("memory"), "{killed}");
        let crashed = failure(ExitStatus::from_raw(11), "");
        assert!(crashed.contains("signal 11") && !crashed.contains("memory"), "{crashed}");
        let failed = failure(ExitStatus::from_raw(1 << 8), "error: cannot start 2 threads\n");
        assert_eq!(failed, "its process failed: cannot start 2 threads");
        assert!(failure(ExitStatus::from_raw(0), "").contains("without a report"));
    }
}
