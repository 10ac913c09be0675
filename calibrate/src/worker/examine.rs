//! Proving kernels and launching them often, for an examination of a device.

use fused_kernels::{Backend, BackendError, Inputs, Prepared, Variant};
use fusion_cost_model::{CacheState, Clock, Core, Problem};
use serde::{Deserialize, Serialize};

use super::progress::Progress;
use super::task::Task;
use super::watched::Watched;
use crate::plan::Subject;
use crate::prove::{Prover, WrongResult};

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

/// Examines problems on a backend, in this process.
pub(super) fn examine_on(
    backend: &mut dyn Backend,
    task: &ExamineTask,
    progress: &Progress,
) -> Result<Examined, BackendError> {
    let mut kernels = Vec::new();
    for problem in &task.problems {
        let subject = Subject::of(*problem, task.clock, Default::default());
        let inputs = Inputs::random(problem, 1);
        let prover = Prover::new(&subject, &inputs, u64::MAX);
        let ready = format!("made the kernels of {problem} ready");
        progress.doing(ready.as_str());
        let setup = subject.setup(CacheState::Warm);
        let Some(mut prepared) = backend.prepare(problem, &inputs, setup)? else {
            return Ok(Examined::NoKernels(*problem));
        };
        prepared.run_each(&mut progress.first_runs(&ready))?;
        // On a CPU, whose threads belong to this process, the limit of the whole check suffices.
        let mut watched;
        let prepared: &mut dyn Prepared = if task.clock.is_host() {
            &mut *prepared
        } else {
            watched = Watched::proved(&mut *prepared, progress, &format!("examined {problem}"));
            &mut watched
        };
        progress.doing(format!("proved the result of {problem}"));
        let proof = match prover.prove(prepared, None, [1; 2])? {
            Ok(proof) => proof,
            Err(wrong) => return Ok(Examined::Wrong(*problem, wrong)),
        };
        for variant in Variant::ALL {
            run_often(prepared, variant, task.launches, progress)?;
        }
        progress.doing(format!("proved the result of {problem} again"));
        if let Err(wrong) = prover.prove(prepared, Some(proof), [1; 2])? {
            return Ok(Examined::Wrong(*problem, wrong));
        }
        kernels.extend(prepared.kernels(Variant::Fused));
    }
    kernels.dedup();
    Ok(Examined::Right(kernels))
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
