//! Proving kernels and launching them often, for an examination of a device.

use fused_kernels::{Backend, BackendError, Inputs, Prepared, Variant};
use fusion_cost_model::{CacheState, Clock, Core, Problem};
use serde::{Deserialize, Serialize};

use super::progress::{Progress, of_problem};
use super::task::Task;
use super::watched::Watched;
use crate::plan::Subject;
use crate::prove::{Prover, WrongResult};

/// What is done before kernels run for the first time.
const READY: &str = "made its kernels ready";

/// Runs of a variant that are handed over together.
const RUNS_TOGETHER: u32 = 500;

/// Prove both variants of some problems, run them often, and prove them again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExamineTask {
    /// The problems, one after the other.
    pub problems: Vec<Problem>,
    /// By which clock they are run.
    pub clock: Clock,
    /// The core of a GPU.
    pub core: Option<Core>,
    /// How often each variant runs between the two proofs.
    pub launches: u32,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Examined {
    /// All of them compute the right result. The kernels of the fused variants.
    Right(Vec<String>),
    /// One does not, and what is wrong.
    Wrong(Problem, WrongResult),
    /// The kernels of one do not compile or cannot be launched, and why.
    Failed(Problem, String),
    /// The backend has no kernels for one.
    NoKernels(Problem),
}

impl Task for ExamineTask {
    const NAME: &'static str = "examine";
    type Answer = Examined;

    fn core(&self) -> Option<Core> {
        self.core
    }
}

impl ExamineTask {
    /// The problem that a process of this task was at, as the reason why it gave no answer says.
    #[must_use]
    pub fn problem_of(&self, reason: &str) -> Option<Problem> {
        self.problems.iter().copied().find(|problem| reason.contains(&of_problem(*problem)))
    }
}

/// Examines problems on a backend, in this process.
pub(super) fn examine_on(
    backend: &mut dyn Backend,
    task: &ExamineTask,
    progress: &Progress,
) -> Result<Examined, BackendError> {
    let mut kernels = Vec::new();
    for problem in &task.problems {
        match examine_one(backend, task, problem, &progress.of(*problem)) {
            Ok(Examined::Right(more)) => kernels.extend(more),
            Err(error) if error.of_kernels().is_some() => {
                return Ok(Examined::Failed(*problem, error.to_string()));
            }
            ended => return ended,
        }
    }
    kernels.dedup();
    Ok(Examined::Right(kernels))
}

fn examine_one(
    backend: &mut dyn Backend,
    task: &ExamineTask,
    problem: &Problem,
    progress: &Progress,
) -> Result<Examined, BackendError> {
    let subject = Subject::of(*problem, task.clock, Default::default());
    let inputs = Inputs::random(problem, 1);
    let prover = Prover::new(&subject, &inputs, u64::MAX);
    progress.doing(READY);
    let setup = subject.setup(CacheState::Warm);
    let Some(mut prepared) = backend.prepare(problem, &inputs, setup)? else {
        return Ok(Examined::NoKernels(*problem));
    };
    prepared.run_each(&mut progress.first_runs(READY))?;
    // On a CPU, whose threads belong to this process, the limit of the whole check suffices.
    let mut watched;
    let prepared: &mut dyn Prepared = if task.clock.is_host() {
        &mut *prepared
    } else {
        watched = Watched::proved(&mut *prepared, progress, "examined it");
        &mut watched
    };
    progress.doing("proved the result");
    let proof = match prover.prove(prepared, None, [1; 2])? {
        Ok(proof) => proof,
        Err(wrong) => return Ok(Examined::Wrong(*problem, wrong)),
    };
    for variant in Variant::ALL {
        run_often(prepared, variant, task.launches, progress)?;
    }
    progress.doing("proved the result again");
    if let Err(wrong) = prover.prove(prepared, Some(proof), [1; 2])? {
        return Ok(Examined::Wrong(*problem, wrong));
    }
    Ok(Examined::Right(prepared.kernels(Variant::Fused)))
}

fn run_often(
    prepared: &mut dyn Prepared,
    variant: Variant,
    runs: u32,
    progress: &Progress,
) -> Result<(), BackendError> {
    let kernels = prepared.kernels(variant).join(", ");
    progress.doing(format!("ran {kernels} {runs} times"));
    let mut left = runs;
    while left > 0 {
        let now = left.min(RUNS_TOGETHER);
        prepared.run(variant, now)?;
        left -= now;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_says_at_which_problem_a_process_was() {
        let problems = ["relu/f32/m1.n8", "relu/f32/m1.n80"].map(|text| text.parse().unwrap());
        let task = ExamineTask {
            problems: problems.to_vec(),
            clock: Clock::Device,
            core: None,
            launches: 1,
        };
        for problem in problems {
            let reason =
                format!("no answer while it {READY}{}, and was killed", of_problem(problem));
            assert_eq!(task.problem_of(&reason), Some(problem));
        }
        assert_eq!(task.problem_of("it was killed before"), None);
    }
}
