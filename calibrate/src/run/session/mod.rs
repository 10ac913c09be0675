//! A run: passes over everything that is to be measured, one process for each per pass.
//!
//! The processes of a problem lie apart in time, with all other problems between them, so that what
//! changes on the machine within minutes is in its interval and not a difference between two runs.
//! It also means that a run which is ended early knows something of every problem.

mod ceilings;
mod process;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use fusion_cost_model::Implementation;
use fusion_cost_model::calibration::{NoiseFloor, RunEnd};

use crate::judge::{controls_for, noise_floor, same_margin};
use crate::measure::{States, draw_beginning, draw_pass, enough};
use crate::plan::{Subject, controls};
use crate::stop::Stop;
use crate::worker::{Ladder, ProcessReport, Workers};

use super::entry::Entry;
use super::findings::{self, PassCeilings};
use super::journal::Journal;
use super::observer::{Extent, Observer, Silent};
use super::outcome::{Measured, Outcome, State};
use super::settings::RunSettings;

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
    /// On which core of a GPU the ceilings are measured.
    ladder_of_ceilings: Ladder,
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
        let measured = all.copied().map(|subject| Measured::new(subject, settings.cores)).collect();
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
            ladder_of_ceilings: Ladder::of(settings.cores),
        })
    }

    /// The same run with an observer of its progress.
    #[must_use]
    pub fn observed_by(mut self, observer: Box<dyn Observer + 'a>) -> Self {
        self.observer = observer;
        self
    }

    /// The same run with more subjects, which need no A/A runs of their own: no ratio of theirs counts.
    #[must_use]
    pub fn beside(mut self, subjects: &[Subject]) -> Self {
        let measured = subjects.iter().map(|&subject| Measured::new(subject, self.settings.cores));
        self.measured.extend(measured);
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
                    if !report.ladder.failed.is_empty() {
                        self.ladder_of_ceilings = report.ladder.clone();
                    }
                    // Whoever joins two journals may have a line twice, and a pass may have been
                    // made anew: the later one counts, as of processes.
                    self.seen_ceilings.retain(|known| {
                        (known.dtype, known.clock, known.pass) != (dtype, clock, pass)
                    });
                    self.seen_ceilings.push(PassCeilings { dtype, clock, pass, report });
                }
                Entry::Wrong { subject, reason } => {
                    if let Some(measured) =
                        self.measured.iter_mut().find(|it| it.subject == subject)
                    {
                        measured.state = State::Wrong(reason);
                        self.recovered.retain(|(of, _), _| *of != subject);
                    }
                }
                Entry::Fell { subject, ladder } => {
                    if let Some(measured) =
                        self.measured.iter_mut().find(|it| it.subject == subject)
                    {
                        measured.ladder = ladder;
                        // They ran on the core that failed.
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
        self.forget_a_disturbed_beginning();
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
            if let Some(end) = self.measure_ceilings_again(pass + 1, &todo)? {
                return Ok(end);
            }
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

    /// Waits until a pass may begin, since the processes of a problem are to be spread over some time. A
    /// run of many problems takes longer anyway.
    fn wait_for(&mut self, pass: u32, todo: &[usize]) -> Option<RunEnd> {
        let RunSettings { procedure, spread, .. } = self.settings;
        let is_known =
            |index: &usize| self.recovered.contains_key(&(self.measured[*index].subject, pass));
        if todo.iter().all(is_known) {
            return None;
        }
        let begins = draw_beginning(pass, procedure.processes, spread, self.settings.seed);
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

    /// Whether problems were measured in the first pass and none of them is usable. A usable A/A
    /// run, which may have been repeated, is of no use without them.
    fn is_hopeless(&self) -> bool {
        let made = || self.measured[self.controls..].iter().filter(|one| !one.processes.is_empty());
        !self.settings.forced && made().count() > 0 && made().all(Measured::ended_disturbed)
    }

    /// Makes the first pass anew if it is all that there is of the run, and was of no use: whoever goes
    /// on does so since the machine is quiet now.
    fn forget_a_disturbed_beginning(&mut self) {
        let ours: HashSet<Subject> =
            self.measured.iter().map(|measured| measured.subject).collect();
        let goes_further = |(subject, number): &(Subject, u32)| {
            ours.contains(subject) && process::pass_of(*number) > 0
        };
        let is_lost = |index: usize| {
            let first = self.recovered.get(&(self.measured[index].subject, 0));
            first.is_some_and(|report| report.samples.is_mostly_disturbed())
        };
        let todo = self.unfinished(self.controls..self.measured.len());
        if self.settings.forced
            || todo.is_empty()
            || self.recovered.keys().any(goes_further)
            || !todo.into_iter().all(is_lost)
        {
            return;
        }
        self.recovered.retain(|(subject, _), _| !ours.contains(subject));
        self.seen_ceilings.clear();
        self.observer.warn("what there is of the first pass was disturbed; it is made anew");
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

    fn noise(&self) -> Vec<NoiseFloor> {
        let (controls, problems) = self.measured.split_at(self.controls);
        let singles = problems.iter().filter(|one| one.subject.problem.chain().is_single());
        // What a vendor's kernel says of itself is nothing about the machine's own.
        let singles = singles.filter(|one| one.subject.implementation != Implementation::Vendor);
        findings::noise(controls.iter().chain(singles), &self.settings)
    }
}
