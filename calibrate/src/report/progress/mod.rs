//! Progress on stderr: on a terminal a bar, and above it the first interval of each problem;
//! elsewhere a line per pass and per finished problem, and one now and then between them. `json` says
//! the same to programs, and a `baseline` is what problems are held against as they finish.

mod baseline;
mod json;
mod pace;

use std::collections::HashSet;
use std::io::{IsTerminal, Stderr, Write};
use std::time::{Duration, Instant};

use cli_support::plain;
use indicatif::{ProgressBar, ProgressStyle};

pub use self::baseline::Baseline;
pub use self::json::ProgressLines;
use self::pace::{Pace, left_in_words};
use crate::measure::{Estimate, LEAST_PROCESSES, Unit};
use crate::plan::Subject;
use crate::run::{Extent, Measured, Observer, State};
use crate::units::{milliseconds, ratio};

/// How long a log stays silent at most while processes are measured.
const SILENCE: Duration = Duration::from_secs(10);

/// A speedup counts as known in the lines about passes from this half-width on.
const KNOWN_TO_WITHIN: f64 = 0.05;

/// The progress of a run.
#[derive(Debug)]
pub struct Progress<W = Stderr> {
    out: W,
    /// On a terminal, once the run has started.
    bar: Option<ProgressBar>,
    is_terminal: bool,
    extent: Extent,
    pace: Pace,
    /// Processes measured in this part of the run when the last pass ended.
    timed_before: u32,
    finished: u64,
    /// Problems whose first interval is on the terminal.
    shown: HashSet<Subject>,
    /// What subjects are called that stand for something else than their problem.
    names: Vec<(Subject, String)>,
    spoke: Instant,
    baseline: Option<Baseline>,
}

impl Progress {
    /// Of a run that has not started, on stderr.
    #[must_use]
    pub fn new() -> Self {
        let mut progress = Self::log(std::io::stderr());
        progress.is_terminal = std::io::stderr().is_terminal();
        progress
    }
}

impl<W: Write> Progress<W> {
    /// Of a run that has not started, as lines.
    pub fn log(out: W) -> Self {
        Self {
            out,
            bar: None,
            is_terminal: false,
            extent: Extent::default(),
            pace: Pace::default(),
            timed_before: 0,
            finished: 0,
            shown: HashSet::new(),
            names: Vec::new(),
            spoke: Instant::now(),
            baseline: None,
        }
    }

    /// The same, with other names for some subjects than those of their problems.
    #[must_use]
    pub fn naming(mut self, names: Vec<(Subject, String)>) -> Self {
        self.names = names;
        self
    }

    fn name(&self, subject: &Subject) -> String {
        let own = self.names.iter().find(|(one, _)| one == subject);
        own.map_or_else(|| subject.to_string(), |(_, name)| name.clone())
    }

    /// The same as lines also where there is a terminal.
    #[must_use]
    pub fn as_log(mut self) -> Self {
        self.is_terminal = false;
        self
    }

    /// The same, with what became of each problem since an older calibration.
    #[must_use]
    pub fn against(mut self, baseline: Option<Baseline>) -> Self {
        self.baseline = baseline;
        self
    }

    /// Says what is being done.
    fn start(&mut self, what: &str) {
        let left = self.time_left().map_or_else(String::new, |left| format!(", {left}"));
        match &self.bar {
            Some(bar) => {
                bar.set_prefix(left);
                bar.set_message(plain::text(what).into_owned());
            }
            None if self.spoke.elapsed() > SILENCE => {
                let (done, expected) = (self.pace.done(), self.pace.expected());
                self.note(&format!("{done}/{expected} processes{left}: {what}"));
            }
            None => {}
        }
    }

    fn time_left(&self) -> Option<String> {
        self.pace.left(Instant::now()).map(left_in_words)
    }

    /// Prints a line that stays. A closed stderr does not end the run.
    fn note(&mut self, line: &str) {
        self.spoke = Instant::now();
        let mut print = || drop(writeln!(self.out, "{}", plain::text(line)));
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Brings the bar up to date.
    fn count(&self) {
        if let Some(bar) = &self.bar {
            bar.set_length(self.pace.expected());
            bar.set_position(self.pace.done());
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Write> Observer for Progress<W> {
    fn run_starts(&mut self, extent: Extent) {
        self.extent = extent;
        self.pace.run_starts(extent);
        self.bar = self.is_terminal.then(|| {
            let bar = ProgressBar::new(self.pace.expected());
            let style = "{bar:12} {pos}/{len} processes{prefix}: {wide_msg}";
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
        let name = self.name(subject);
        self.start(&format!("process {}{compiles}, {name}", pass + 1));
        self.pace.process_starts(Instant::now());
    }

    fn process_ends(&mut self) {
        self.pace.process_ends();
        self.count();
    }

    fn processes_added(&mut self, count: u64) {
        self.pace.processes_added(count);
        self.count();
    }

    fn problem_goes_on(&mut self, measured: &Measured) {
        let Measured { subject, estimate: Some(estimate), .. } = measured else { return };
        let is_first = estimate.unit == Unit::Processes && !self.shown.contains(subject);
        if self.bar.is_some() && is_first {
            self.shown.insert(*subject);
            let name = self.name(subject);
            self.note(&format!("so far {name}: {}", in_words(subject, estimate)));
        }
    }

    fn problem_ends(&mut self, measured: &Measured) {
        let Measured { subject, processes, estimate, state, .. } = measured;
        self.finished += 1;
        self.pace.problem_ends(processes.len());
        self.count();
        let name = self.name(subject);
        let after = measured.wrong_after().map(|wrong| format!("after the timing: {wrong}"));
        let (result, error) = match (state, estimate) {
            (State::Wrong(wrong), _) => ("WRONG".to_owned(), Some(wrong)),
            (State::Finished | State::Unfinished, _) if after.is_some() => {
                ("WRONG".to_owned(), after.as_ref())
            }
            (State::Hung(reason), _) => ("hung".to_owned(), Some(reason)),
            (State::Broken(_, reason) | State::Failed(reason), _) => {
                ("failed".to_owned(), Some(reason))
            }
            (State::Finished | State::Unfinished, Some(estimate)) => {
                let change = self.baseline.as_ref().map(|one| one.in_words(subject, estimate));
                (in_words(subject, estimate) + &change.unwrap_or_default(), None)
            }
            (State::Unsupported(reason), _) => (format!("skipped, since {reason}"), None),
            _ => ("no kernels".to_owned(), None),
        };
        if self.bar.is_none() {
            let Extent { problems, .. } = self.extent;
            self.note(&format!("[{}/{problems}] {name}: {result}", self.finished));
        } else if self.shown.insert(*subject) || self.baseline.is_some() {
            self.note(&format!("{name}: {result}"));
        }
        if let Some(error) = error {
            self.note(&format!("error: {name}: {error}"));
        }
    }

    fn pass_ends(&mut self, pass: u32, problems: &[Measured]) {
        let is_new = self.pace.timed() > self.timed_before;
        self.timed_before = self.pace.timed();
        let goes_on = problems.iter().any(|problem| problem.state == State::Unfinished);
        if self.bar.is_none() && is_new && goes_on {
            let left = self.time_left().map_or_else(String::new, |left| format!("; {left}"));
            self.note(&format!("{}{left}", after_pass(pass, self.extent.processes, problems)));
        }
    }

    fn waits(&mut self, time: Duration) {
        let what = format!(
            "waiting {} s, to spread the processes over what the machine does in minutes",
            time.as_secs_f64().ceil()
        );
        match &self.bar {
            Some(bar) => bar.set_message(what),
            None => self.note(&what),
        }
    }

    fn warn(&mut self, warning: &str) {
        self.note(&format!("warning: {warning}"));
    }
}

/// A speedup, and what it rests on.
fn in_words(subject: &Subject, estimate: &Estimate) -> String {
    let processes = match estimate.processes {
        1 => "1 process".to_owned(),
        several => format!("{several} processes"),
    };
    let disturbed = if estimate.mostly_disturbed { ", mostly disturbed" } else { "" };
    let found = if subject.problem.chain().is_single() {
        let [time, _] = estimate.of_one_kernel().times;
        milliseconds(time.seconds * 1e3)
    } else {
        ratio(estimate.ratio, estimate.low, estimate.high)
    };
    format!("{found}, {processes}{disturbed}")
}

/// How far a run is after a pass.
fn after_pass(pass: u32, planned: u32, problems: &[Measured]) -> String {
    let made = u64::from(pass) + 1;
    let of = if made <= planned.into() { format!(" of {planned}") } else { String::new() };
    let all = problems.len();
    let estimates = || problems.iter().filter_map(|problem| problem.estimate.as_ref());
    if made < LEAST_PROCESSES as u64 {
        let measured = estimates().count();
        return format!(
            "after {made}{of} processes: {measured} of {all} problems are measured; intervals need \
             {LEAST_PROCESSES} processes"
        );
    }
    let is_known = |estimate: &&Estimate| {
        estimate.unit == Unit::Processes
            && !estimate.mostly_disturbed
            && estimate.half_width() <= KNOWN_TO_WITHIN.ln_1p()
    };
    let known = estimates().filter(is_known).count();
    let within = 100.0 * KNOWN_TO_WITHIN;
    format!("after {made}{of} processes: {known} of {all} speedups are known to within {within} %")
}

impl<W> Drop for Progress<W> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
