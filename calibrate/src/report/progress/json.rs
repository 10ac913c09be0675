//! Progress for programs: an object of JSON on each line.

use std::io::{Stderr, Write};
use std::time::{Duration, Instant};

use cli_support::plain;
use cli_support::stderr::Message;
use fusion_cost_model::compare::Figure;
use fusion_cost_model::{Clock, Implementation, Problem, Rewrite};
use serde::Serialize;

use super::baseline::Baseline;
use super::pace::Pace;
use crate::measure::Estimate;
use crate::plan::Subject;
use crate::run::{Extent, Measured, Observer, State};

/// What happened: docs/options.md has every key.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Event<'r> {
    RunStart {
        problems: u64,
        controls: u64,
        processes: u32,
        spread_s: f64,
    },
    Ceilings,
    Wait {
        seconds: f64,
    },
    ProcessStart {
        subject: Name<'r>,
        pass: u32,
    },
    ProcessEnd {
        done: u64,
        expected: u64,
        left_s: Option<f64>,
    },
    ProblemProgress {
        subject: Name<'r>,
        found: Found,
    },
    ProblemEnd {
        subject: Name<'r>,
        state: &'static str,
        error: Option<&'r str>,
        found: Option<Found>,
    },
    PassEnd {
        pass: u32,
        unfinished: usize,
    },
}

/// What is measured.
#[derive(Debug, Serialize)]
struct Name<'r> {
    /// What it stands for, if that is something else than the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'r str>,
    problem: Problem,
    clock: Clock,
    implementation: Implementation,
    rewrite: Option<Rewrite>,
}

/// What is known of it.
#[derive(Debug, Serialize)]
struct Found {
    /// `None` of a single op.
    speedup: Option<Figure>,
    /// Of the unfused variant, or of a single op.
    ms: Figure,
    processes: usize,
    mostly_disturbed: bool,
    /// Over what the baseline has: the speedup, or the time of a single op.
    change: Option<Figure>,
}

/// The progress of a run, as lines of JSON.
#[derive(Debug)]
pub struct ProgressLines<W = Stderr> {
    out: W,
    pace: Pace,
    /// What subjects are called that stand for something else than their problem.
    names: Vec<(Subject, String)>,
    baseline: Option<Baseline>,
}

impl<W: Write> ProgressLines<W> {
    /// Of a run that has not started.
    pub fn new(out: W) -> Self {
        Self { out, pace: Pace::default(), names: Vec::new(), baseline: None }
    }

    /// The same, with names for some subjects.
    #[must_use]
    pub fn naming(mut self, names: Vec<(Subject, String)>) -> Self {
        self.names = names;
        self
    }

    /// The same, with what became of each problem since an older calibration.
    #[must_use]
    pub fn against(mut self, baseline: Option<Baseline>) -> Self {
        self.baseline = baseline;
        self
    }

    /// Prints a line. A closed stderr does not end the run.
    fn say(&mut self, event: &Event<'_>) {
        say(&mut self.out, event);
    }

    fn found(&self, subject: &Subject, estimate: &Estimate) -> Found {
        let is_single = subject.problem.chain().is_single();
        let time = if is_single { estimate.of_one_kernel().times[0] } else { estimate.times[0] };
        let [ms, low, high] = [time.seconds, time.low, time.high].map(|seconds| seconds * 1e3);
        let interval = Some([estimate.low, estimate.high]);
        let change = |baseline: &Baseline| baseline.change(subject, estimate);
        Found {
            speedup: (!is_single).then_some(Figure { value: estimate.ratio, interval }),
            ms: Figure { value: ms, interval: Some([low, high]) },
            processes: estimate.processes,
            mostly_disturbed: estimate.mostly_disturbed,
            change: self.baseline.as_ref().and_then(change),
        }
    }
}

fn name<'n>(subject: &Subject, names: &'n [(Subject, String)]) -> Name<'n> {
    let own = names.iter().find(|(one, _)| one == subject);
    let name = own.map(|(_, name)| name.as_str());
    let Subject { problem, clock, implementation, rewrite, .. } = *subject;
    Name { name, problem, clock, implementation, rewrite }
}

fn say(out: &mut impl Write, event: &Event<'_>) {
    // Numbers and names can always be written.
    print(out, &serde_json::to_string(event).unwrap_or_default());
}

fn print(out: &mut impl Write, line: &str) {
    let _ = out.write_all((plain::json(line).into_owned() + "\n").as_bytes());
}

impl<W: Write> Observer for ProgressLines<W> {
    fn run_starts(&mut self, extent: Extent) {
        self.pace.run_starts(extent);
        let Extent { problems, controls, processes, spread } = extent;
        let spread_s = spread.as_secs_f64();
        self.say(&Event::RunStart { problems, controls, processes, spread_s });
    }

    fn ceilings_start(&mut self) {
        self.say(&Event::Ceilings);
    }

    fn waits(&mut self, time: Duration) {
        self.say(&Event::Wait { seconds: time.as_secs_f64() });
    }

    fn process_starts(&mut self, subject: &Subject, pass: u32) {
        self.pace.process_starts(Instant::now());
        let subject = name(subject, &self.names);
        say(&mut self.out, &Event::ProcessStart { subject, pass });
    }

    fn process_ends(&mut self) {
        self.pace.process_ends();
        let left_s = self.pace.left(Instant::now()).map(|left| left.as_secs_f64());
        let (done, expected) = (self.pace.done(), self.pace.expected());
        self.say(&Event::ProcessEnd { done, expected, left_s });
    }

    fn processes_added(&mut self, count: u64) {
        self.pace.processes_added(count);
    }

    fn problem_goes_on(&mut self, measured: &Measured) {
        if let Measured { subject, estimate: Some(estimate), .. } = measured {
            let found = self.found(subject, estimate);
            let subject = name(subject, &self.names);
            say(&mut self.out, &Event::ProblemProgress { subject, found });
        }
    }

    fn problem_ends(&mut self, measured: &Measured) {
        let Measured { subject, processes, estimate, state, .. } = measured;
        self.pace.problem_ends(processes.len());
        let after = measured.wrong_after().map(|wrong| format!("after the timing: {wrong}"));
        let (state, error) = match state {
            State::Wrong(reason) => ("wrong", Some(&reason[..])),
            State::Hung(reason) => ("hung", Some(&reason[..])),
            State::Broken(_, reason) | State::Failed(reason) => ("failed", Some(&reason[..])),
            State::NoKernels => ("no-kernels", None),
            State::Unsupported(reason) => ("no-kernels", Some(&reason[..])),
            State::Finished | State::Unfinished => match &after {
                Some(wrong) => ("wrong", Some(&wrong[..])),
                None => ("finished", None),
            },
        };
        let is_measured = state == "finished";
        let estimate = estimate.as_ref().filter(|_| is_measured);
        let found = estimate.map(|estimate| self.found(subject, estimate));
        let subject = name(subject, &self.names);
        say(&mut self.out, &Event::ProblemEnd { subject, state, error, found });
    }

    fn pass_ends(&mut self, pass: u32, problems: &[Measured]) {
        let goes_on = |one: &&Measured| one.state == State::Unfinished;
        let unfinished = problems.iter().filter(goes_on).count();
        self.say(&Event::PassEnd { pass, unfinished });
    }

    fn warn(&mut self, warning: &str) {
        let line = format!("warning: {warning}");
        print(&mut self.out, &Message::of(&line).json());
    }
}
