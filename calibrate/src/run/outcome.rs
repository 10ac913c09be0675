//! What a run leaves.

use anyhow::Context;
use cli_support::output::Target;
use cli_support::say;
use fusion_cost_model::calibration::{
    FailedCore, KernelFailure, MeasuredCeilings, NoiseFloor, RunEnd,
};

use super::entry::{Entry, Part};
use super::journal::Journal;
use crate::measure::{Estimate, Method, Procedure, Samples, States, Surroundings, estimate};
use crate::plan::Subject;
use crate::prove::WrongResult;
use crate::worker::{CoreChoice, Ladder, ProcessReport};

/// What became of a subject.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// More processes are needed.
    Unfinished,
    /// There are enough processes.
    Finished,
    /// A variant computes something wrong.
    Wrong(String),
    /// A kernel, or the process that ran it, did not end in time.
    Hung(String),
    /// Its kernels could not be compiled or launched, or their process crashed.
    Broken(KernelFailure, String),
    /// It could not be measured for another reason.
    Failed(String),
    /// The backend has no kernels for it.
    NoKernels,
    /// A runtime does not run it, as it says when it is to prepare it.
    Unsupported(String),
}

impl State {
    /// That of kernels which failed and for which there is no other core.
    pub(super) fn of_failure(failure: KernelFailure, reason: String) -> Self {
        match failure {
            KernelFailure::Wrong => Self::Wrong(reason),
            KernelFailure::Hung => Self::Hung(reason),
            failure => Self::Broken(failure, reason),
        }
    }

    /// How and why it has no record; `None` where it has one, or may have one.
    #[must_use]
    pub fn failure(&self) -> Option<(Option<KernelFailure>, &str)> {
        match self {
            Self::Wrong(reason) => Some((Some(KernelFailure::Wrong), reason)),
            Self::Hung(reason) => Some((Some(KernelFailure::Hung), reason)),
            Self::Broken(failure, reason) => Some((Some(*failure), reason)),
            Self::Failed(reason) => Some((None, reason)),
            Self::Unfinished | Self::Finished | Self::NoKernels | Self::Unsupported(_) => None,
        }
    }
}

/// A subject with what is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What was measured.
    pub subject: Subject,
    /// In the order in which they were made.
    pub processes: Vec<ProcessReport>,
    /// What they say together.
    pub estimate: Option<Estimate>,
    /// Whether that is all.
    pub state: State,
    /// On which core of a GPU its processes ran, and on which its kernels failed.
    pub ladder: Ladder,
    /// How long the last process took, an estimate for the next one.
    pub(super) seconds: f64,
}

impl Measured {
    pub(super) fn new(subject: Subject, cores: CoreChoice) -> Self {
        // Others' kernels are written with what their vendor chose.
        let cores = if subject.implementation.is_native() { cores } else { CoreChoice::None };
        let (state, ladder) = (State::Unfinished, Ladder::of(cores));
        Self { subject, processes: Vec::new(), estimate: None, state, ladder, seconds: 0.0 }
    }

    /// Ends it with the failure of the core before, whose kernels are those of this one.
    pub(super) fn fail_as_before(&mut self) {
        if let Some(FailedCore { failure, reason, .. }) = self.ladder.failed.last() {
            self.state = State::of_failure(*failure, self.ladder.in_words(reason));
        }
    }

    pub(super) fn add(&mut self, report: ProcessReport) {
        self.processes.push(report);
    }

    /// Estimates anew.
    pub(super) fn estimate_by(
        &mut self,
        procedure: &Procedure,
        correlation: f64,
        machine: &States,
    ) {
        let states: Vec<u32> = self
            .processes
            .iter()
            .map(|report| machine.of(&report.surroundings).unwrap_or_default())
            .collect();
        let samples: Vec<&Samples> = self.processes.iter().map(|report| &report.samples).collect();
        let level = procedure.level(self.is_short());
        self.estimate =
            estimate(&samples, &Method { level, correlation: Some(correlation), states: &states });
    }

    /// Whether its processes cost little: a sample of either variant was several runs in the first of
    /// them.
    pub(super) fn is_short(&self) -> bool {
        let first = self.processes.first();
        first.is_some_and(|report| report.samples.iterations.iter().all(|runs| *runs > 1))
    }

    /// What the machine was like around its processes.
    #[must_use]
    pub fn surroundings(&self) -> Vec<Surroundings> {
        self.processes.iter().map(|report| report.surroundings).collect()
    }

    /// What was wrong with a result after the timing.
    #[must_use]
    pub fn wrong_after(&self) -> Option<&WrongResult> {
        self.processes.iter().find_map(|report| report.wrong_after.as_ref())
    }

    /// Whether most pairs of its last process were disturbed.
    pub(super) fn ended_disturbed(&self) -> bool {
        self.processes.last().is_some_and(|report| report.samples.is_mostly_disturbed())
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
    /// The states that the machine was in.
    pub machine: States,
    /// How it ended.
    pub end: RunEnd,
    /// Processes of an earlier part of the run that this part did not ask for.
    pub left_over: Vec<Entry>,
    /// Still to be finished when the records are safe in the calibration file.
    pub journal: Option<Journal>,
}

impl Outcome {
    /// All that was measured, with the A/A runs.
    pub fn all(&self) -> impl Iterator<Item = &Measured> {
        self.measured.iter().chain(&self.controls)
    }

    /// The states that the machine was in while nothing disturbed it: those that it returns to.
    #[must_use]
    pub fn undisturbed_states(&self) -> States {
        let mut surroundings: Vec<_> = self.all().flat_map(Measured::surroundings).collect();
        surroundings.retain(Surroundings::is_undisturbed);
        States::find(&surroundings)
    }

    /// Whether a kernel computed something wrong, or could not be measured.
    #[must_use]
    pub fn has_failures(&self) -> bool {
        self.all().any(|one| one.state.failure().is_some() || one.wrong_after().is_some())
    }

    /// Copies every sample from the journal, if that was asked for, and closes the journal: a
    /// whole run needs it no longer, but for what failed or belongs to other problems.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn close_journal(&mut self, samples: Option<Target>, parts: Part) -> anyhow::Result<()> {
        let Some(mut journal) = self.journal.take() else { return Ok(()) };
        if let Some(samples) = samples {
            let mut copy = samples.create()?;
            journal.copy_to(&mut copy).context("cannot copy the journal to --samples")?;
            copy.finish()?;
        }
        if self.end != RunEnd::Complete {
            return Ok(());
        }
        let path = journal.path().display();
        let is_retried = |one: &Measured| {
            one.state.failure().is_some_and(|(how, _)| how != Some(KernelFailure::Wrong))
        };
        if self.all().any(is_retried) {
            say!("note: {path} stays; run the same command again to retry what failed");
            return Ok(());
        }
        if self.left_over.is_empty() {
            return journal.finish();
        }
        let processes = self.left_over.len();
        say!("note: {path} keeps {processes} processes of problems outside this run");
        journal.keep_only(parts, &self.left_over)
    }
}
