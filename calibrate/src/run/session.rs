//! A run: passes over everything that is to be measured, one process for each per pass.
//!
//! The processes of a problem lie apart in time, with all other problems between them, so that what
//! changes on the machine within minutes is in its interval and not a difference between two runs.
//! It also means that a run which is ended early knows something of every problem.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use fusion_cost_model::calibration::{MeasuredCeilings, NoiseFloor, RunEnd};
use fusion_cost_model::{Clock, DType, Implementation};

use crate::judge::{controls_for, noise_floor, same_margin};
use crate::measure::{States, draw_pass, enough};
use crate::plan::{Subject, controls, stable_hash};
use crate::prove::Proof;
use crate::stop::Stop;
use crate::worker::{CeilingsTask, MeasureAnswer, MeasureTask, NoAnswer, ProcessReport, Workers};

use super::entry::Entry;
use super::findings::{self, PassCeilings};
use super::journal::Journal;
use super::observer::{Extent, Observer, Silent};
use super::outcome::{Measured, Outcome, State};
use super::settings::RunSettings;

/// Multiply-adds that the reference of one problem may cost in its first process: about half a
/// second on two cores.
const FIRST_REFERENCE_BUDGET: u64 = 500_000_000;

/// The same in every further process, which runs the same kernels on the same inputs.
const REFERENCE_BUDGET: u64 = 50_000_000;

/// The ceilings are measured before the first pass and again whenever this many passes are made, so
/// that every state that the machine stays in has its own.
const PASSES_BETWEEN_CEILINGS: u32 = 4;

/// How often a process of an A/A run is made again when most of its pairs were disturbed.
const MOST_REPEATS: u32 = 2;

/// The repeated processes of a pass have numbers of their own, this far from its own number.
const REPEAT: u32 = 1 << 16;

/// A run that is going on.
pub struct Session<'a> {
    workers: &'a mut dyn Workers,
    settings: RunSettings,
    stop: &'a Stop,
    began: Instant,
    observer: Box<dyn Observer + 'a>,
    /// Processes and ceilings of an earlier part of the run.
    recovered: HashMap<(Subject, u32), ProcessReport>,
    seen_ceilings: Vec<PassCeilings>,
    /// The controls first.
    measured: Vec<Measured>,
    controls: usize,
    journal: Option<Journal>,
    /// The states of the machine so far.
    machine: States,
    /// The correlation of successive processes so far.
    correlation: f64,
}

impl<'a> Session<'a> {
    /// A run of some subjects, which has not started.
    ///
    /// # Errors
    ///
    /// Never; see [`controls`].
    pub fn new(
        workers: &'a mut dyn Workers,
        settings: RunSettings,
        subjects: &[Subject],
        stop: &'a Stop,
    ) -> anyhow::Result<Self> {
        let controls = controls(subjects, settings.l2_bytes)?;
        let all = controls.iter().chain(subjects);
        let measured: Vec<Measured> = all.copied().map(Measured::new).collect();
        Ok(Self {
            workers,
            settings,
            stop,
            began: Instant::now(),
            observer: Box::new(Silent),
            recovered: HashMap::new(),
            seen_ceilings: Vec::new(),
            measured,
            controls: controls.len(),
            journal: None,
            machine: States::default(),
            correlation: findings::correlation(&[]),
        })
    }

    /// The same run with an observer of its progress.
    #[must_use]
    pub fn observed_by(mut self, observer: Box<dyn Observer + 'a>) -> Self {
        self.observer = observer;
        self
    }

    /// Writes everything into a journal, and takes over what an earlier part of the run left
    /// there.
    #[must_use]
    pub fn with_journal(mut self, journal: Journal, entries: Vec<Entry>) -> Self {
        for entry in entries {
            match entry {
                Entry::Process { subject, index, report } => {
                    self.recovered.insert((subject, index), *report);
                }
                Entry::Ceilings { dtype, clock, pass, report } => {
                    self.seen_ceilings.push(PassCeilings { dtype, clock, pass, report });
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

    /// Measures until everything has enough processes, the user stops it, or the time is up.
    ///
    /// # Errors
    ///
    /// When the journal cannot be written, or no worker can be started.
    pub fn run(mut self) -> anyhow::Result<Outcome> {
        self.observer.run_starts(Extent {
            problems: (self.measured.len() - self.controls) as u64,
            controls: self.controls as u64,
            processes: self.settings.procedure.processes,
            spread: self.settings.spread,
        });
        let end = self.passes()?;
        // What ended early did so before all was known of the machine.
        self.estimate_those(|_| true);
        let (noise, ceilings) = (self.noise(), self.ceilings());
        let mut left_over: Vec<_> = self.recovered.into_iter().collect();
        left_over.sort_by_key(|((subject, index), _)| (subject.to_string(), *index));
        let entry = |((subject, index), report)| Entry::Process {
            subject,
            index,
            report: Box::new(report),
        };
        let measured = self.measured.split_off(self.controls);
        Ok(Outcome {
            measured,
            controls: self.measured,
            noise,
            ceilings,
            machine: self.machine,
            end,
            left_over: left_over.into_iter().map(entry).collect(),
            journal: self.journal,
        })
    }

    fn passes(&mut self) -> anyhow::Result<RunEnd> {
        for pass in 0..self.settings.procedure.most_processes {
            let todo = self.unfinished(self.controls..self.measured.len());
            if todo.is_empty() {
                break;
            }
            if let Some(end) = self.wait_for(pass, &todo) {
                return Ok(end);
            }
            if let Some(end) = self.measure_ceilings(pass)? {
                return Ok(end);
            }
            // The controls first: they are the yardstick for all that is looked at in this pass.
            let controls = self.controls_of(pass);
            let order = draw_pass(todo.len(), pass, self.settings.seed);
            let problems = order.into_iter().map(|index| todo[index]);
            for index in controls.into_iter().chain(problems) {
                if let Some(end) = self.measure(index, pass)? {
                    return Ok(end);
                }
            }
            self.estimate_anew();
            todo.into_iter().for_each(|index| self.look(index));
            self.expect_more(pass);
            if pass == 0 && self.is_hopeless() {
                return Ok(RunEnd::Disturbed);
            }
            self.observer.pass_ends(pass, &self.measured[self.controls..]);
        }
        // There are as many processes as allowed, though a disturbed one counts for nothing.
        let measured = self.measured[self.controls..].iter_mut();
        for measured in measured.filter(|one| one.state == State::Unfinished) {
            measured.state = State::Finished;
            self.observer.problem_ends(measured);
        }
        Ok(RunEnd::Complete)
    }

    /// The A/A runs of a pass. Those few problems that need still more processes have enough of them.
    fn controls_of(&self, pass: u32) -> Vec<usize> {
        let all = self.unfinished(0..self.controls);
        if pass < self.settings.procedure.more_processes { all } else { Vec::new() }
    }

    /// Waits until a pass may begin: the planned passes begin at equal distances over the time that
    /// the processes of a problem are to be spread over. A run of many problems takes longer anyway.
    fn wait_for(&mut self, pass: u32, todo: &[usize]) -> Option<RunEnd> {
        let RunSettings { procedure, spread, .. } = self.settings;
        let is_known =
            |index: &usize| self.recovered.contains_key(&(self.measured[*index].subject, pass));
        if pass == 0 || pass >= procedure.processes || todo.iter().all(is_known) {
            return None;
        }
        let begins = spread.mul_f64(f64::from(pass) / f64::from(procedure.processes - 1));
        let time = begins.saturating_sub(self.elapsed());
        if time.is_zero() {
            return None;
        }
        if let Some(end) = self.end_before(time.as_secs_f64()) {
            return Some(end);
        }
        self.observer.waits(time);
        self.workers.wait(time, self.stop);
        self.end_before(0.0)
    }

    /// Whether problems were measured in the first pass and none of them is usable. An A/A run that
    /// had better luck, and was repeated for it, is no use without them.
    fn is_hopeless(&self) -> bool {
        let made = || self.measured[self.controls..].iter().filter(|one| !one.processes.is_empty());
        !self.settings.forced && made().count() > 0 && made().all(Measured::ended_disturbed)
    }

    /// Estimates what goes on, by what is known of the machine now.
    fn estimate_anew(&mut self) {
        self.estimate_those(|measured| measured.state == State::Unfinished);
    }

    fn estimate_those(&mut self, is_meant: fn(&Measured) -> bool) {
        self.machine = findings::states(&self.measured, &self.seen_ceilings);
        self.correlation = findings::correlation(&self.measured[self.controls..]);
        for measured in self.measured.iter_mut().filter(|one| is_meant(one)) {
            measured.estimate_by(&self.settings.procedure, self.correlation, &self.machine);
        }
    }

    fn elapsed(&self) -> Duration {
        self.workers.elapsed(self.began)
    }

    fn unfinished(&self, indices: Range<usize>) -> Vec<usize> {
        indices.filter(|&index| self.measured[index].state == State::Unfinished).collect()
    }

    /// What is left of the time for the whole run.
    fn time_left(&self) -> Option<Duration> {
        self.settings.time_budget.map(|budget| budget.saturating_sub(self.elapsed()))
    }

    /// Why the run must end before something that takes `seconds`, if it must.
    fn end_before(&self, seconds: f64) -> Option<RunEnd> {
        let elapsed = self.elapsed().as_secs_f64();
        let is_over = |budget: Duration| elapsed + seconds > budget.as_secs_f64();
        if self.stop.requested() {
            Some(RunEnd::Interrupted)
        } else {
            self.settings.time_budget.is_some_and(is_over).then_some(RunEnd::TimeBudget)
        }
    }

    /// Measures one subject in one process. One of an A/A run in which most pairs were disturbed
    /// counts for nothing and is made again: it would be missing in every verdict.
    fn measure(&mut self, index: usize, pass: u32) -> anyhow::Result<Option<RunEnd>> {
        for repeat in 0..=MOST_REPEATS {
            let before = self.measured[index].processes.len();
            let end = self.measure_once(index, pass + repeat * REPEAT)?;
            let measured = &self.measured[index];
            let is_made = measured.processes.len() > before;
            let is_lost = is_made && index < self.controls && measured.ended_disturbed();
            if end.is_some() || !is_lost || repeat == MOST_REPEATS {
                return Ok(end);
            }
            self.measured[index].processes.pop();
            self.observer.processes_added(1);
        }
        Ok(None)
    }

    /// Measures one subject in one process, which has this number among all of its own.
    fn measure_once(&mut self, index: usize, number: u32) -> anyhow::Result<Option<RunEnd>> {
        let Measured { subject, seconds, .. } = self.measured[index];
        if let Some(report) = self.recovered.remove(&(subject, number)) {
            self.measured[index].add(report);
            self.observer.process_ends();
            return Ok(None);
        }
        if let Some(end) = self.end_before(seconds) {
            return Ok(Some(end));
        }
        self.observer.process_starts(&subject, number % REPEAT);
        let began = Instant::now();
        let (task, time_left) = (self.task(&subject, number), self.time_left());
        let mut answer = self.workers.measure(task.clone(), time_left);
        // The system ends a process for the memory that another one took, and any program can send
        // it a signal.
        if let Err(NoAnswer::Crashed(reason)) = &answer {
            self.observer.warn(&format!("{subject}: {reason}; it is tried once more"));
            answer = self.workers.measure(task, self.time_left());
        }
        let measured = &mut self.measured[index];
        measured.seconds = began.elapsed().as_secs_f64();
        match answer {
            Ok(MeasureAnswer::Measured(report)) => {
                if let Some(journal) = &mut self.journal {
                    let report = report.clone();
                    journal.append(&Entry::Process { subject, index: number, report })?;
                }
                measured.add(*report);
                self.observer.process_ends();
                return Ok(None);
            }
            Ok(MeasureAnswer::Wrong(wrong)) => {
                let reason = wrong.to_string();
                if let Some(journal) = &mut self.journal {
                    journal.append(&Entry::Wrong { subject, reason: reason.clone() })?;
                }
                measured.state = State::Wrong(reason);
            }
            Ok(MeasureAnswer::NoKernels) => measured.state = State::NoKernels,
            Err(
                NoAnswer::Failed(reason) | NoAnswer::Crashed(reason) | NoAnswer::NoDevice(reason),
            ) => {
                measured.state = State::Failed(reason);
            }
            Err(NoAnswer::Stopped) => return Ok(Some(RunEnd::Interrupted)),
            Err(NoAnswer::TimeUp) => return Ok(Some(RunEnd::TimeBudget)),
            Err(error @ NoAnswer::NotStarted(_)) => return Err(error.into()),
        }
        if index >= self.controls {
            self.observer.problem_ends(measured);
        } else if let State::Wrong(reason) | State::Failed(reason) = &measured.state {
            self.observer.warn(&format!("A/A run of {subject}: {reason}"));
        }
        Ok(None)
    }

    /// What the first process of a subject proved, so that the others need no reference.
    fn proved(&self, subject: &Subject) -> Option<Proof> {
        let measured = self.measured.iter().find(|one| one.subject == *subject)?;
        measured.processes.iter().find_map(ProcessReport::proof)
    }

    fn task(&self, subject: &Subject, pass: u32) -> MeasureTask {
        let Subject { problem, comparison, repetition, .. } = *subject;
        let seed = self.settings.seed;
        let name = problem.to_string();
        MeasureTask {
            subject: *subject,
            cache: self.settings.cache,
            procedure: self.settings.procedure,
            // Each problem has a seed of its own whatever else is measured, so that it can be reproduced
            // by itself.
            input_seed: seed ^ stable_hash(&name),
            process_seed: stable_hash(&format!(
                "{seed} {subject} {comparison:?} {repetition} {pass}"
            )),
            reference_budget: if pass == 0 { FIRST_REFERENCE_BUDGET } else { REFERENCE_BUDGET },
            proved: self.proved(subject),
            planted: None,
        }
    }

    /// Looks at a problem between two passes, and finishes it if it needs no more processes.
    fn look(&mut self, index: usize) {
        let floor = noise_floor(&controls_for(&self.noise(), &self.measured[index].subject));
        let measured = &mut self.measured[index];
        let looks = self.settings.procedure.looks(measured.is_short());
        let Measured { estimate: Some(estimate), processes, state: State::Unfinished, .. } =
            measured
        else {
            return;
        };
        // Of a single op, the time is what counts, and its ratio to itself is known.
        let is_time_enough = measured.subject.problem.chain().is_single()
            && estimate.processes >= self.settings.procedure.processes as usize;
        // A process without an undisturbed pair counts for nothing, but took its time.
        let is_over = looks.last().is_some_and(|last| processes.len() >= *last as usize);
        if is_time_enough || is_over || enough(estimate, &looks, floor, same_margin(floor)) {
            measured.state = State::Finished;
            self.observer.problem_ends(measured);
            return;
        }
        self.observer.problem_goes_on(measured);
    }

    /// What is undecided at a look gets all the processes up to the next one, since nothing is looked
    /// at in between; and so do the A/A runs then.
    fn expect_more(&mut self, pass: u32) {
        let procedure = &self.settings.procedure;
        let looks = procedure.looks(true);
        let next = looks.windows(2).find(|pair| pair[0] == pass + 1).map(|pair| pair[1]);
        let undecided = self.unfinished(self.controls..self.measured.len()).len();
        if let Some(next) = next.filter(|_| undecided > 0) {
            let all = undecided + self.controls_of(pass + 1).len();
            self.observer.processes_added(all as u64 * u64::from(next - pass - 1));
        }
    }

    /// Measures the ceilings for every dtype and clock that occur, before some of the planned passes.
    fn measure_ceilings(&mut self, pass: u32) -> anyhow::Result<Option<RunEnd>> {
        if pass >= self.settings.procedure.processes
            || !pass.is_multiple_of(PASSES_BETWEEN_CEILINGS)
        {
            return Ok(None);
        }
        for (dtype, clock) in self.kinds_of_ceilings() {
            let is_it = |known: &PassCeilings| {
                (known.dtype, known.clock, known.pass) == (dtype, clock, pass)
            };
            if self.seen_ceilings.iter().any(is_it) {
                continue;
            }
            if let Some(end) = self.end_before(0.0) {
                return Ok(Some(end));
            }
            self.observer.ceilings_start();
            let task =
                CeilingsTask { dtype, clock, rounds: self.settings.procedure.ceiling_rounds };
            match self.workers.ceilings(task, self.time_left()) {
                Ok(Some(report)) => {
                    if let Some(journal) = &mut self.journal {
                        let report = report.clone();
                        journal.append(&Entry::Ceilings { dtype, clock, pass, report })?;
                    }
                    self.seen_ceilings.push(PassCeilings { dtype, clock, pass, report });
                }
                Ok(None) => {}
                Err(NoAnswer::Stopped) => return Ok(Some(RunEnd::Interrupted)),
                Err(NoAnswer::TimeUp) => return Ok(Some(RunEnd::TimeBudget)),
                // Another pass may have them, and speedups are worth something without.
                Err(
                    NoAnswer::Failed(reason)
                    | NoAnswer::Crashed(reason)
                    | NoAnswer::NoDevice(reason),
                ) => {
                    self.observer.warn(&format!("cannot measure the ceilings: {reason}"));
                }
                Err(error @ NoAnswer::NotStarted(_)) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// The dtypes of the problems, each with the clocks by which they are measured.
    fn kinds_of_ceilings(&self) -> Vec<(DType, Clock)> {
        let all = DType::ALL.into_iter().flat_map(|dtype| Clock::ALL.map(|clock| (dtype, clock)));
        let occurs = |kind: &(DType, Clock)| {
            let kind_of = |subject: &Subject| (subject.problem.dtype(), subject.clock);
            self.measured[self.controls..].iter().any(|one| kind_of(&one.subject) == *kind)
        };
        all.filter(occurs).collect()
    }

    fn ceilings(&self) -> Vec<MeasuredCeilings> {
        let kinds = self.kinds_of_ceilings();
        findings::ceilings_by_state(&self.seen_ceilings, &kinds, &self.machine, &self.settings)
    }

    fn noise(&self) -> Vec<NoiseFloor> {
        let (controls, problems) = self.measured.split_at(self.controls);
        let singles = problems.iter().filter(|one| one.subject.problem.chain().is_single());
        // What a vendor's kernel says of itself is nothing about the machine's own.
        let singles = singles.filter(|one| one.subject.implementation != Implementation::Vendor);
        findings::noise(controls.iter().chain(singles), &self.settings)
    }
}
