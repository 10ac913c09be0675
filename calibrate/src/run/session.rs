//! A run: passes over everything that is to be measured, one launch of each per pass.
//!
//! The launches of a problem lie apart in time, with all other problems between them, so that what
//! changes on the machine within minutes is in its interval and not a difference between two runs.
//! It also means that a run which is ended early knows something of every problem.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use fusion_cost_model::calibration::{MeasuredCeilings, NoiseFloor, RunEnd};
use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{Clock, DType};

use crate::build_info::{FNV_1A_OF_NOTHING, fnv_1a_more};
use crate::digits::rounded;
use crate::judge::{noise_floor, of_clock, same_margin};
use crate::measure::{Estimate, draw_pass, enough, estimate};
use crate::plan::{Subject, clocks_of, controls};
use crate::stop::Stop;
use crate::worker::{LaunchReport, Launcher, MeasureTask, Report, Task};

use super::ceilings;
use super::journal::{Entry, Journal};
use super::observer::{Observer, Silent};
use super::settings::RunSettings;

/// Multiply-adds that the reference of one problem may cost in its first launch: about half a
/// second on two cores.
const FIRST_REFERENCE_BUDGET: u64 = 500_000_000;

/// The same in every further launch, whose fresh process runs the same kernels on the same inputs.
const REFERENCE_BUDGET: u64 = 50_000_000;

/// The limits are measured before so many passes; each time takes about three seconds.
const PASSES_WITH_LIMITS: u32 = 3;

/// What became of a subject.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// More launches are needed.
    Unfinished,
    /// There are enough launches.
    Finished,
    /// A variant computes something wrong.
    Wrong(String),
    /// It could not be measured.
    Failed(String),
    /// The backend has no kernels for it.
    NoKernels,
}

/// A subject with what is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What was measured.
    pub subject: Subject,
    /// In the order in which they were made.
    pub launches: Vec<LaunchReport>,
    /// What they say together.
    pub estimate: Option<Estimate>,
    /// Whether that is all.
    pub state: State,
    /// How long the last launch took, to tell what the next one will.
    seconds: f64,
}

impl Measured {
    fn new(subject: Subject) -> Self {
        let state = State::Unfinished;
        Self { subject, launches: Vec::new(), estimate: None, state, seconds: 0.0 }
    }

    fn add(&mut self, report: LaunchReport) {
        self.launches.push(report);
        let launches: Vec<_> = self.launches.iter().map(|report| report.launch.clone()).collect();
        self.estimate = estimate(&launches);
    }
}

/// What a run leaves.
#[derive(Debug)]
pub struct Outcome {
    /// Everything that was to be measured, in the order in which it was listed.
    pub measured: Vec<Measured>,
    /// The A/A runs that every run begins with.
    pub controls: Vec<Measured>,
    /// What they say of the machine: nothing of those that failed.
    pub noise: Vec<NoiseFloor>,
    /// The machine's ceilings.
    pub ceilings: Vec<MeasuredCeilings>,
    /// How it ended.
    pub end: RunEnd,
    /// Launches of an earlier part of the run that this part did not ask for.
    pub left_over: Vec<Entry>,
    /// Still to be finished when the records are safe in the calibration file.
    pub journal: Option<Journal>,
}

/// The limits as they were measured before a pass.
struct Limits {
    dtype: DType,
    clock: Clock,
    pass: u32,
    limits: Ceilings,
}

/// A run that is going on.
pub struct Session<'a> {
    launcher: &'a mut dyn Launcher,
    settings: RunSettings,
    stop: &'a Stop,
    began: Instant,
    observer: Box<dyn Observer + 'a>,
    /// Launches and ceilings of an earlier part of the run.
    recovered: HashMap<(Subject, u32), LaunchReport>,
    limits: Vec<Limits>,
    /// The controls first.
    measured: Vec<Measured>,
    controls: usize,
    journal: Option<Journal>,
}

impl<'a> Session<'a> {
    /// A run of some subjects, which has not started.
    ///
    /// # Errors
    ///
    /// Never; see [`controls`].
    pub fn new(
        launcher: &'a mut dyn Launcher,
        settings: RunSettings,
        subjects: &[Subject],
        stop: &'a Stop,
    ) -> anyhow::Result<Self> {
        let controls = controls(&clocks_of(subjects), settings.l2_bytes)?;
        let all = controls.iter().chain(subjects);
        let measured: Vec<Measured> = all.copied().map(Measured::new).collect();
        Ok(Self {
            launcher,
            settings,
            stop,
            began: Instant::now(),
            observer: Box::new(Silent),
            recovered: HashMap::new(),
            limits: Vec::new(),
            measured,
            controls: controls.len(),
            journal: None,
        })
    }

    /// The same run with somebody who hears what it is doing.
    #[must_use]
    pub fn observed_by(mut self, observer: impl Observer + 'a) -> Self {
        self.observer = Box::new(observer);
        self
    }

    /// Writes everything into a journal, and takes over what an earlier part of the run left
    /// there.
    #[must_use]
    pub fn with_journal(mut self, journal: Journal, entries: Vec<Entry>) -> Self {
        for entry in entries {
            match entry {
                Entry::Launch { subject, index, report } => {
                    self.recovered.insert((subject, index), *report);
                }
                Entry::Ceilings { dtype, clock, pass, limits } => {
                    self.limits.push(Limits { dtype, clock, pass, limits });
                }
                Entry::Wrong { subject, reason } => {
                    let same = |measured: &&mut Measured| measured.subject == subject;
                    if let Some(measured) = self.measured.iter_mut().find(same) {
                        measured.state = State::Wrong(reason);
                        self.recovered.retain(|(of, _), _| *of != subject);
                    }
                }
                Entry::Part(_) => {}
            }
        }
        self.journal = Some(journal);
        self
    }

    /// Measures until everything has enough launches, the user stops it, or the time is up.
    ///
    /// # Errors
    ///
    /// When the journal cannot be written, or no worker can be started.
    pub fn run(mut self) -> anyhow::Result<Outcome> {
        let problems = self.measured.len() - self.controls;
        let processes = self.measured.len() as u64 * u64::from(self.settings.procedure.launches);
        self.observer.run_starts(processes, problems as u64);
        let end = self.passes()?;
        let (noise, ceilings) = (self.noise(), self.ceilings());
        let mut left_over: Vec<_> = self.recovered.into_iter().collect();
        left_over.sort_by_key(|((subject, index), _)| (subject.to_string(), *index));
        let entry =
            |((subject, index), report)| Entry::Launch { subject, index, report: Box::new(report) };
        let measured = self.measured.split_off(self.controls);
        Ok(Outcome {
            measured,
            controls: self.measured,
            noise,
            ceilings,
            end,
            left_over: left_over.into_iter().map(entry).collect(),
            journal: self.journal,
        })
    }

    fn passes(&mut self) -> anyhow::Result<RunEnd> {
        for pass in 0..self.settings.procedure.most_launches {
            let todo = self.unfinished(self.controls..self.measured.len());
            if todo.is_empty() {
                break;
            }
            if let Some(end) = self.measure_limits(pass)? {
                return Ok(end);
            }
            // The controls first: they are the yardstick for all that is looked at in this pass.
            let controls = self.unfinished(0..self.controls);
            let order = draw_pass(todo.len(), pass, self.settings.seed);
            let problems = order.into_iter().map(|index| todo[index]);
            for index in controls.into_iter().chain(problems) {
                if let Some(end) = self.launch(index, pass)? {
                    return Ok(end);
                }
                self.look(index);
            }
        }
        // As many launches as there may be, though a disturbed one counts for nothing.
        let measured = self.measured[self.controls..].iter_mut();
        for measured in measured.filter(|one| one.state == State::Unfinished) {
            measured.state = State::Finished;
        }
        Ok(RunEnd::Complete)
    }

    fn unfinished(&self, indices: Range<usize>) -> Vec<usize> {
        indices.filter(|&index| self.measured[index].state == State::Unfinished).collect()
    }

    /// What is left of the time for the whole run.
    fn time_left(&self) -> Option<Duration> {
        self.settings.time_budget.map(|budget| budget.saturating_sub(self.began.elapsed()))
    }

    /// Why the run has to end before something that takes so many seconds, if it has to.
    fn end_before(&self, seconds: f64) -> Option<RunEnd> {
        let elapsed = self.began.elapsed().as_secs_f64();
        let is_over = |budget: Duration| elapsed + seconds > budget.as_secs_f64();
        if self.stop.requested() {
            Some(RunEnd::Interrupted)
        } else {
            self.settings.time_budget.is_some_and(is_over).then_some(RunEnd::TimeBudget)
        }
    }

    /// One launch of one subject.
    fn launch(&mut self, index: usize, pass: u32) -> anyhow::Result<Option<RunEnd>> {
        let Measured { subject, seconds, .. } = self.measured[index];
        if let Some(report) = self.recovered.remove(&(subject, pass)) {
            self.measured[index].add(report);
            self.observer.process_ends();
            return Ok(None);
        }
        if let Some(end) = self.end_before(seconds) {
            return Ok(Some(end));
        }
        self.observer.process_starts(&subject, pass);
        let began = Instant::now();
        let (task, time_left) =
            (Task::Measure(Box::new(self.task(&subject, pass))), self.time_left());
        let report = self.launcher.launch(&task, time_left)?;
        let measured = &mut self.measured[index];
        measured.seconds = began.elapsed().as_secs_f64();
        match report {
            Report::Measured(report) => {
                if let Some(journal) = &mut self.journal {
                    journal.append(&Entry::Launch {
                        subject,
                        index: pass,
                        report: report.clone(),
                    })?;
                }
                measured.add(*report);
                self.observer.process_ends();
                return Ok(None);
            }
            Report::Stopped => return Ok(Some(RunEnd::Interrupted)),
            Report::TimeUp => return Ok(Some(RunEnd::TimeBudget)),
            Report::Wrong(wrong) => {
                let reason = wrong.to_string();
                if let Some(journal) = &mut self.journal {
                    journal.append(&Entry::Wrong { subject, reason: reason.clone() })?;
                }
                measured.state = State::Wrong(reason);
            }
            Report::Failed(reason) => measured.state = State::Failed(reason),
            Report::NoDevice(reason) => measured.state = State::Failed(reason),
            Report::NoKernels
            | Report::Ceilings(_)
            | Report::Identified(_)
            | Report::Plan(_)
            | Report::Survey(_) => measured.state = State::NoKernels,
        }
        self.observer.problem_ends(measured);
        Ok(None)
    }

    fn task(&self, subject: &Subject, pass: u32) -> MeasureTask {
        let Subject { problem, comparison, repetition, .. } = *subject;
        let seed = self.settings.seed;
        let name = problem.to_string();
        MeasureTask {
            subject: *subject,
            cache: self.settings.cache,
            procedure: self.settings.procedure,
            input_seed: seed ^ hash(&name),
            launch_seed: hash(&format!("{seed} {subject} {comparison:?} {repetition} {pass}")),
            reference_budget: if pass == 0 { FIRST_REFERENCE_BUDGET } else { REFERENCE_BUDGET },
        }
    }

    /// Looks at a problem between two launches, and finishes it if it needs no more.
    fn look(&mut self, index: usize) {
        let clock = self.measured[index].subject.clock;
        let floor = noise_floor(&of_clock(&self.noise(), clock));
        let measured = &mut self.measured[index];
        let Measured { estimate: Some(estimate), state: State::Unfinished, .. } = measured else {
            return;
        };
        if index < self.controls {
            return;
        }
        let procedure = &self.settings.procedure;
        if enough(estimate, procedure, floor, same_margin(floor)) {
            measured.state = State::Finished;
            self.observer.problem_ends(measured);
        } else if estimate.launches >= procedure.launches as usize {
            self.observer.process_added();
        }
    }

    /// Measures the limits for every dtype and clock that occur, before the first few passes: each
    /// is the best that was seen, and the machine need not be quiet before the first one.
    fn measure_limits(&mut self, pass: u32) -> anyhow::Result<Option<RunEnd>> {
        if pass >= self.settings.procedure.launches.min(PASSES_WITH_LIMITS) {
            return Ok(None);
        }
        for (dtype, clock) in self.kinds_of_limits() {
            let is_it =
                |known: &Limits| (known.dtype, known.clock, known.pass) == (dtype, clock, pass);
            if self.limits.iter().any(is_it) {
                continue;
            }
            if let Some(end) = self.end_before(0.0) {
                return Ok(Some(end));
            }
            self.observer.ceilings_start();
            match self.launcher.launch(&Task::Ceilings(dtype, clock), self.time_left())? {
                Report::Ceilings(Some(limits)) => {
                    if let Some(journal) = &mut self.journal {
                        let limits = limits.clone();
                        journal.append(&Entry::Ceilings { dtype, clock, pass, limits })?;
                    }
                    self.limits.push(Limits { dtype, clock, pass, limits });
                }
                Report::Stopped => return Ok(Some(RunEnd::Interrupted)),
                Report::TimeUp => return Ok(Some(RunEnd::TimeBudget)),
                // Another pass may have them, and speedups are worth something without.
                Report::Failed(reason) => {
                    self.observer.warn(&format!("cannot measure the ceilings: {reason}"));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// The number formats of the problems, each with the clocks by which they are measured.
    fn kinds_of_limits(&self) -> Vec<(DType, Clock)> {
        let all = DType::ALL.into_iter().flat_map(|dtype| Clock::ALL.map(|clock| (dtype, clock)));
        let occurs = |kind: &(DType, Clock)| {
            let kind_of = |subject: &Subject| (subject.problem.dtype(), subject.clock);
            self.measured[self.controls..].iter().any(|one| kind_of(&one.subject) == *kind)
        };
        all.filter(occurs).collect()
    }

    /// The best of all passes.
    fn ceilings(&self) -> Vec<MeasuredCeilings> {
        let RunSettings { backend, threads, .. } = self.settings;
        let of = |dtype, clock| {
            let is_it = |known: &&Limits| (known.dtype, known.clock) == (dtype, clock);
            let passes = self.limits.iter().filter(is_it);
            passes.map(|known| known.limits.clone()).reduce(ceilings::best)
        };
        let measured = self.kinds_of_limits().into_iter().filter_map(|(dtype, clock)| {
            let limits = ceilings::rounded(of(dtype, clock)?);
            Some(MeasuredCeilings { backend, dtype, threads, clock, limits })
        });
        measured.collect()
    }

    fn noise(&self) -> Vec<NoiseFloor> {
        let RunSettings { backend, threads, .. } = self.settings;
        let usable = |control: &Measured| {
            let wrong = |report: &LaunchReport| report.wrong_after.is_some();
            matches!(control.state, State::Unfinished) && !control.launches.iter().any(wrong)
        };
        let of = |control: &Measured| {
            let estimate = control.estimate.as_ref().filter(|_| usable(control))?;
            Some(NoiseFloor {
                problem: control.subject.problem,
                backend,
                threads,
                clock: control.subject.clock,
                ratio: rounded(estimate.ratio),
                ratio_low: rounded(estimate.low),
                ratio_high: rounded(estimate.high),
                processes: u32::try_from(estimate.launches).unwrap_or(u32::MAX),
                disturbed: estimate.mostly_disturbed,
            })
        };
        self.measured[..self.controls].iter().filter_map(of).collect()
    }
}

/// A number for a text, so that each problem has a seed of its own whatever else is measured, and
/// can be reproduced by itself.
fn hash(text: &str) -> u64 {
    fnv_1a_more(FNV_1A_OF_NOTHING, text.as_bytes())
}
