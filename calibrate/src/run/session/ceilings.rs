//! The ceilings of the machine, measured between passes.

use fusion_cost_model::calibration::{MeasuredCeilings, RunEnd};
use fusion_cost_model::{Clock, DType};

use super::super::entry::Entry;
use super::super::findings::{self, PassCeilings};
use super::super::outcome::Measured;
use super::Session;
use crate::judge;
use crate::plan::Subject;
use crate::worker::{CeilingsReport, CeilingsTask, NoAnswer};

/// The ceilings are measured before the first pass and again whenever this many passes are made, so
/// that every state that the machine stays in has its own.
const PASSES_BETWEEN_CEILINGS: u32 = 4;

impl Session<'_> {
    /// Measures the ceilings for every dtype and clock that occur, before some of the planned passes.
    pub(super) fn measure_ceilings(&mut self, pass: u32) -> anyhow::Result<Option<RunEnd>> {
        if pass >= self.settings.procedure.processes
            || !pass.is_multiple_of(PASSES_BETWEEN_CEILINGS)
        {
            return Ok(None);
        }
        let kinds = self.kinds_of_ceilings();
        self.measure_ceilings_before(pass, kinds)
    }

    /// Measures the ceilings once more, before the pass `next`, where some of the subjects `measured`
    /// in the last one took less time than they allow: if something held up the machine while the
    /// ceilings were measured, which can last for all of that, it is over now. A kernel that does
    /// not do its work stays faster than they are.
    pub(super) fn measure_ceilings_again(
        &mut self,
        next: u32,
        measured: &[usize],
    ) -> anyhow::Result<Option<RunEnd>> {
        let ceilings = self.ceilings();
        let beats = |one: &&Measured| {
            let estimate = one.estimate.as_ref();
            estimate.is_some_and(|known| judge::beats_ceilings(&one.subject, known, &ceilings))
        };
        let faster: Vec<Subject> = measured
            .iter()
            .map(|&index| &self.measured[index])
            .filter(beats)
            .map(|one| one.subject)
            .collect();
        let Some(first) = faster.first() else { return Ok(None) };
        let of_dtype =
            |kind: &(DType, Clock)| faster.iter().any(|one| one.problem.dtype() == kind.0);
        let kinds: Vec<_> = self.kinds_of_ceilings().into_iter().filter(of_dtype).collect();
        self.observer.warn(&format!(
            "{first} took less time than the ceilings of the machine allow; they are measured again"
        ));
        self.measure_ceilings_before(next, kinds)
    }

    /// Measures some kinds before a pass, unless that was done in an earlier part of the run.
    fn measure_ceilings_before(
        &mut self,
        pass: u32,
        kinds: Vec<(DType, Clock)>,
    ) -> anyhow::Result<Option<RunEnd>> {
        for (dtype, clock) in kinds {
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
            if let Some(end) = self.measure_ceilings_of(dtype, clock, pass)? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// Measures one kind, on the next core where the kernels of one fail.
    fn measure_ceilings_of(
        &mut self,
        dtype: DType,
        clock: Clock,
        pass: u32,
    ) -> anyhow::Result<Option<RunEnd>> {
        loop {
            let (rounds, core) =
                (self.settings.procedure.ceiling_rounds, self.ladder_of_ceilings.core);
            let task = CeilingsTask { dtype, clock, rounds, core };
            let error = match self.ask_for_ceilings(task) {
                Ok(Some(report)) => {
                    let ladder = self.ladder_of_ceilings.clone();
                    let report = CeilingsReport { ladder, ..report };
                    if let Some(journal) = &mut self.journal {
                        let report = report.clone();
                        journal.append(&Entry::Ceilings { dtype, clock, pass, report })?;
                    }
                    self.seen_ceilings.push(PassCeilings { dtype, clock, pass, report });
                    return Ok(None);
                }
                Ok(None) => return Ok(None),
                Err(NoAnswer::Stopped) => return Ok(Some(RunEnd::Interrupted)),
                Err(NoAnswer::TimeUp) => return Ok(Some(RunEnd::TimeBudget)),
                Err(error @ NoAnswer::NotStarted(_)) => return Err(error.into()),
                Err(error) => error,
            };
            self.observer.warn(&format!("cannot measure the ceilings: {error}"));
            let reason = error.to_string();
            let failure = error.of_kernels();
            let falls = failure.is_some_and(|how| self.ladder_of_ceilings.fail(how, &reason));
            // Another pass may have them, and speedups are worth something without.
            if !falls {
                return Ok(None);
            }
        }
    }

    /// Asks a worker. One that crashes is asked once more, as for a problem.
    fn ask_for_ceilings(&mut self, task: CeilingsTask) -> Result<Option<CeilingsReport>, NoAnswer> {
        match self.workers.ceilings(task, self.time_left()) {
            Err(NoAnswer::Crashed(reason)) => {
                self.observer.warn(&format!("the ceilings: {reason}; they are tried once more"));
                self.workers.ceilings(task, self.time_left())
            }
            answer => answer,
        }
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

    pub(super) fn ceilings(&self) -> Vec<MeasuredCeilings> {
        let kinds = self.kinds_of_ceilings();
        findings::ceilings_by_state(&self.seen_ceilings, &kinds, &self.machine, &self.settings)
    }
}
