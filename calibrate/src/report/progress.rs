//! Progress on stderr: a bar with the time left on a terminal; elsewhere a line per finished
//! problem, and one now and then while none is finished.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::plan::Subject;
use crate::run::{Measured, Observer, State};
use crate::units::ratio;

/// How long a log stays silent at most while processes are measured.
const SILENCE: Duration = Duration::from_secs(10);

/// The progress of a run.
#[derive(Debug)]
pub struct Progress {
    /// On a terminal, once the run has started.
    bar: Option<ProgressBar>,
    processes: u64,
    processes_expected: u64,
    finished: u64,
    problems: u64,
    spoke: Instant,
}

impl Progress {
    /// Of a run that has not started.
    #[must_use]
    pub fn new() -> Self {
        let (processes, processes_expected, finished, problems) = (0, 0, 0, 0);
        let spoke = Instant::now();
        Self { bar: None, processes, processes_expected, finished, problems, spoke }
    }

    /// Says what is being done.
    fn start(&mut self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None if self.spoke.elapsed() > SILENCE => {
                let Self { processes, processes_expected, .. } = *self;
                self.note(&format!("{processes}/{processes_expected} processes: {what}"));
            }
            None => {}
        }
    }

    /// Prints a line that stays.
    fn note(&mut self, line: &str) {
        self.spoke = Instant::now();
        match &self.bar {
            Some(bar) => bar.suspend(|| print(line)),
            None => print(line),
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Observer for Progress {
    fn run_starts(&mut self, processes: u64, problems: u64) {
        (self.processes_expected, self.problems) = (processes, problems);
        self.bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(processes);
            let style = "{bar:24} {pos}/{len} processes, {eta} left: {wide_msg}";
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
            // No steady tick: its thread would run between the samples.
            bar
        });
    }

    fn ceilings_start(&mut self) {
        self.start("measuring the machine's ceilings");
    }

    fn process_starts(&mut self, subject: &Subject, pass: u32) {
        // Kernels of a GPU come from the compiler in the first pass, and then from its cache.
        let compiles = if pass == 0 && !subject.clock.is_host() { ", compiling" } else { "" };
        self.start(&format!("process {}{compiles}, {subject}", pass + 1));
    }

    fn process_ends(&mut self) {
        self.processes += 1;
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    fn process_added(&mut self) {
        self.processes_expected += 1;
        if let Some(bar) = &self.bar {
            bar.inc_length(1);
        }
    }

    fn problem_ends(&mut self, measured: &Measured) {
        let Measured { subject, estimate, state, .. } = measured;
        self.finished += 1;
        let (result, error) = match (state, estimate) {
            (State::Wrong(wrong), _) => ("WRONG".to_owned(), Some(wrong)),
            (State::Failed(reason), _) => ("failed".to_owned(), Some(reason)),
            (State::Finished | State::Unfinished, Some(estimate)) => {
                let several = if estimate.processes == 1 { "process" } else { "processes" };
                let speedup = ratio(estimate.ratio, estimate.low, estimate.high);
                (format!("{speedup}, {} {several}", estimate.processes), None)
            }
            _ => ("no kernels".to_owned(), None),
        };
        if self.bar.is_none() {
            self.note(&format!("[{}/{}] {subject}: {result}", self.finished, self.problems));
        }
        if let Some(error) = error {
            self.note(&format!("error: {subject}: {error}"));
        }
    }

    fn warn(&mut self, warning: &str) {
        self.note(&format!("warning: {warning}"));
    }
}

/// Prints a line on stderr. A closed stderr does not end the run.
fn print(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
