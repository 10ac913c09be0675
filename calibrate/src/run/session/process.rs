//! One process of a subject: what is asked of it, and what becomes of its answer.

use std::time::Instant;

use fusion_cost_model::calibration::{KernelFailure, RunEnd};

use super::super::entry::Entry;
use super::super::outcome::{Measured, State};
use super::Session;
use crate::plan::{Subject, stable_hash};
use crate::prove::{Proof, nothing_to_prove};
use crate::worker::{MeasureAnswer, MeasureTask, NoAnswer, ProcessReport};

/// Multiply-adds that the reference of one problem may cost in its first process: about half a
/// second on two cores.
const FIRST_REFERENCE_BUDGET: u64 = 500_000_000;

/// The same in every further process, which runs the same kernels on the same inputs.
const REFERENCE_BUDGET: u64 = 50_000_000;

/// How often a process of an A/A run is made again when most of its pairs were disturbed.
const MOST_REPEATS: u32 = 2;

/// The repeated processes of a pass have numbers of their own, this far from its own number.
const REPEAT: u32 = 1 << 16;

/// The pass of a process with this number.
pub(super) fn pass_of(number: u32) -> u32 {
    number % REPEAT
}

impl Session<'_> {
    /// Measures one subject in one process. One of an A/A run in which most pairs were disturbed
    /// counts for nothing and is made again: it would be missing in every verdict.
    pub(super) fn measure(&mut self, index: usize, pass: u32) -> anyhow::Result<Option<RunEnd>> {
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

    /// Measures one subject in one process, which has this number among all of its own; in further
    /// ones as long as its kernels fail and there is another core for them.
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
        self.observer.process_starts(&subject, pass_of(number));
        self.begin_where_others_are(index);
        while self.measured[index].state == State::Unfinished {
            let began = Instant::now();
            let answer = self.ask(&self.task(index, number));
            self.measured[index].seconds = began.elapsed().as_secs_f64();
            let (failure, reason) = match answer {
                Ok(MeasureAnswer::Measured(report)) => {
                    let wrong = report.wrong_after.as_ref().map(ToString::to_string);
                    match wrong.filter(|_| self.measured[index].ladder.has_next()) {
                        Some(wrong) => (KernelFailure::Wrong, wrong),
                        None => return self.take(index, number, report),
                    }
                }
                Ok(MeasureAnswer::Wrong(wrong)) => (KernelFailure::Wrong, wrong.to_string()),
                Ok(MeasureAnswer::NothingToProve) => {
                    let measured = &mut self.measured[index];
                    let dtype = measured.subject.problem.dtype();
                    measured.state = State::Failed(nothing_to_prove(dtype));
                    break;
                }
                Ok(MeasureAnswer::NoKernels) => {
                    self.measured[index].state = State::NoKernels;
                    break;
                }
                Ok(MeasureAnswer::SameKernels) => {
                    let measured = &mut self.measured[index];
                    if !measured.ladder.descend() {
                        measured.fail_as_before();
                    }
                    continue;
                }
                Err(NoAnswer::Unsupported(reason)) => {
                    self.measured[index].state = State::Unsupported(reason);
                    break;
                }
                Err(NoAnswer::Stopped) => return Ok(Some(RunEnd::Interrupted)),
                Err(NoAnswer::TimeUp) => return Ok(Some(RunEnd::TimeBudget)),
                Err(error @ NoAnswer::NotStarted(_)) => return Err(error.into()),
                Err(error) => match error.of_kernels() {
                    Some(failure) => (failure, error.to_string()),
                    None => {
                        self.measured[index].state = State::Failed(error.to_string());
                        break;
                    }
                },
            };
            self.fall(index, failure, &reason)?;
        }
        self.say_how_it_ended(index);
        Ok(None)
    }

    /// Asks a worker. One that crashes, or whose runtime does, is asked once more: the system ends a
    /// process for the memory that another one took, and any program can send it a signal or stop it.
    fn ask(&mut self, task: &MeasureTask) -> Result<MeasureAnswer, NoAnswer> {
        let answer = self.workers.measure(task.clone(), self.time_left());
        match answer {
            Err(
                NoAnswer::Crashed(reason)
                | NoAnswer::Hung { reason, in_kernel: false }
                | NoAnswer::Kernels { failure: KernelFailure::Crash, reason },
            ) => {
                let subject = task.subject;
                self.observer.warn(&format!("{subject}: {reason}; it is tried once more"));
                self.workers.measure(task.clone(), self.time_left())
            }
            answer => answer,
        }
    }

    /// Keeps what a process measured.
    fn take(
        &mut self,
        index: usize,
        number: u32,
        report: Box<ProcessReport>,
    ) -> anyhow::Result<Option<RunEnd>> {
        let measured = &mut self.measured[index];
        if let Some(journal) = &mut self.journal {
            let (subject, report) = (measured.subject, report.clone());
            journal.append(&Entry::Process { subject, index: number, report })?;
        }
        measured.add(*report);
        self.observer.process_ends();
        Ok(None)
    }

    /// The same kernels on another clock have failed already.
    fn begin_where_others_are(&mut self, index: usize) {
        let Measured { subject: Subject { problem, implementation, .. }, .. } =
            self.measured[index];
        if !self.measured[index].processes.is_empty() {
            return;
        }
        let has_fallen = |other: &&Measured| {
            let of = &other.subject;
            (of.problem, of.implementation) == (problem, implementation)
                && !other.ladder.failed.is_empty()
        };
        let Some(other) = self.measured.iter().find(has_fallen) else { return };
        let (ladder, state) = (other.ladder.clone(), other.state.clone());
        let measured = &mut self.measured[index];
        measured.ladder = ladder;
        if state.failure().is_some() {
            measured.state = state;
        }
    }

    /// Both variants go on with the next core, and nothing stays of what was measured on this one;
    /// or that was all.
    fn fall(&mut self, index: usize, failure: KernelFailure, reason: &str) -> anyhow::Result<()> {
        let measured = &mut self.measured[index];
        let subject = measured.subject;
        let from = measured.ladder.core;
        if measured.ladder.fail(failure, reason) {
            measured.processes.clear();
            measured.estimate = None;
            let ladder = measured.ladder.clone();
            if let (Some(from), Some(to)) = (from, ladder.core) {
                let text = format!("{subject}: {from}: {failure}: {reason}; measured on {to} next");
                self.observer.warn(&text);
            }
            if let Some(journal) = &mut self.journal {
                journal.append(&Entry::Fell { subject, ladder })?;
            }
            return Ok(());
        }
        measured.state = State::of_failure(failure, measured.ladder.in_words(reason));
        if let (State::Wrong(reason), Some(journal)) = (&measured.state, &mut self.journal) {
            journal.append(&Entry::Wrong { subject, reason: reason.clone() })?;
        }
        Ok(())
    }

    /// Says what became of a subject that needs no more processes.
    fn say_how_it_ended(&mut self, index: usize) {
        let measured = &self.measured[index];
        if index >= self.controls {
            self.observer.problem_ends(measured);
        } else if let Some((_, reason)) = measured.state.failure() {
            let text = format!("A/A run of {}: {reason}", measured.subject);
            self.observer.warn(&text);
        }
    }

    /// What the first process of a subject proved, so that the others need no reference.
    fn proved(&self, subject: &Subject) -> Option<Proof> {
        let measured = self.measured.iter().find(|one| one.subject == *subject)?;
        measured.processes.iter().find_map(ProcessReport::proof)
    }

    fn task(&self, index: usize, pass: u32) -> MeasureTask {
        let Measured { subject, ladder, .. } = &self.measured[index];
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
            ladder: ladder.clone(),
            planted: None,
        }
    }
}
