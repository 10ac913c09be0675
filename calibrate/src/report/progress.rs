//! Progress on stderr: a bar with the time left on a terminal; elsewhere a line per finished
//! problem, and one now and then while none is finished.

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How long a log stays silent at most while launches are made.
const SILENCE: Duration = Duration::from_secs(10);

/// The progress of a run.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    is_silent: bool,
    launches: u64,
    launches_expected: u64,
    finished: u64,
    problems: u64,
    spoke: Cell<Instant>,
}

impl Progress {
    /// For so many launches of so many problems.
    #[must_use]
    pub fn new(launches: u64, problems: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(launches);
            let style = "{bar:24} {pos}/{len} launches, {eta} left: {wide_msg}";
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
            // No steady tick: its thread would run between the samples.
            bar
        });
        let spoke = Cell::new(Instant::now());
        Self {
            bar,
            is_silent: false,
            launches: 0,
            launches_expected: launches,
            finished: 0,
            problems,
            spoke,
        }
    }

    /// Without a word.
    #[must_use]
    pub fn silent() -> Self {
        let spoke = Cell::new(Instant::now());
        Self {
            bar: None,
            is_silent: true,
            launches: 0,
            launches_expected: 0,
            finished: 0,
            problems: 0,
            spoke,
        }
    }

    /// Says what is being done.
    pub fn start(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None if self.spoke.get().elapsed() > SILENCE => {
                self.note(&format!(
                    "{}/{} launches: {what}",
                    self.launches, self.launches_expected
                ));
            }
            None => {}
        }
    }

    /// A launch is done.
    pub fn advance(&mut self) {
        self.launches += 1;
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// One launch more than was planned will be made.
    pub fn expect_more(&mut self) {
        self.launches_expected += 1;
        if let Some(bar) = &self.bar {
            bar.inc_length(1);
        }
    }

    /// Says what came of a problem.
    pub fn finish(&mut self, what: &str, result: &str) {
        self.finished += 1;
        if self.bar.is_none() {
            self.note(&format!("[{}/{}] {what}: {result}", self.finished, self.problems));
        }
    }

    /// Prints a line that stays.
    pub fn note(&self, line: &str) {
        self.spoke.set(Instant::now());
        match &self.bar {
            Some(bar) => bar.suspend(|| print(line)),
            None if self.is_silent => {}
            None => print(line),
        }
    }
}

/// Prints a line on stderr. Nobody may be there to read it any more, which ends no run.
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
