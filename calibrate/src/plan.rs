//! The first stage: from the command line to a list of problems.

use std::collections::HashSet;

use fused_kernels::{Backend, InputSpec, Unsupported};
use fusion_cost_model::calibration::Skipped;
use fusion_cost_model::{CacheState, Chain, DType, Problem};

use crate::cli::RunArgs;
use crate::exit::UsageError;
use crate::report::gibibytes;
use crate::shapes::{ShapeSet, select};
use crate::{fingerprint, profiles};

/// What will be measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The set of sizes, or where else the sizes come from.
    pub shapes: String,
    /// The problems in order, each once.
    pub problems: Vec<Problem>,
    /// What was asked for and cannot be measured.
    pub skipped: Vec<Skipped>,
}

/// The set of sizes when none is named.
fn default_shapes(quick: bool) -> &'static str {
    if quick { "quick" } else { "standard" }
}

/// Lists the problems that the command line asks for.
///
/// # Errors
///
/// [`UsageError`] or [`VocabularyError`](fusion_cost_model::VocabularyError) when a name is
/// unknown, a problem cannot be, or nothing is left to measure.
pub fn plan(args: &RunArgs, backend: &dyn Backend) -> anyhow::Result<Plan> {
    let dtype: DType = args.dtype.parse()?;
    let explicit = args.problem.iter().map(|text| text.parse::<Problem>());
    let explicit: Vec<Problem> = explicit.collect::<Result<_, _>>()?;
    let sets_asked_for = !args.fusion.is_empty() || args.shapes.is_some() || explicit.is_empty();

    let mut shapes = "given on the command line".to_owned();
    let mut from_set = Vec::new();
    if sets_asked_for {
        let name = args.shapes.as_deref().unwrap_or_else(|| default_shapes(args.quick));
        let set = profiles::find_shapes(name)?;
        for chain in chains(args, &set)? {
            let problems = set.problems(&chain, dtype);
            if problems.is_empty() {
                eprintln!("note: {} has no sizes for {}; left out", set.name, chain.name());
            }
            from_set.extend(problems);
        }
        shapes = set.name;
    }

    let mut plan = Plan { shapes, problems: Vec::new(), skipped: Vec::new() };
    let mut seen = HashSet::new();
    let available = fingerprint::available_memory();
    let named = explicit.len();
    for (index, problem) in explicit.into_iter().chain(from_set).enumerate() {
        if !seen.insert(problem) {
            continue;
        }
        match check(&problem, backend, args.cache.into(), available) {
            Ok(()) => plan.problems.push(problem),
            // What was named one by one is not left out silently.
            Err(reason) if index < named => return Err(UsageError(reason).into()),
            Err(reason) => plan.skipped.push(Skipped { problem, reason }),
        }
    }
    if plan.problems.is_empty() {
        let reason = plan.skipped.first().map_or_else(
            || format!("{} has no sizes for what --fusion names", plan.shapes),
            |skipped| skipped.reason.clone(),
        );
        return Err(UsageError(format!("nothing to measure: {reason}")).into());
    }
    Ok(plan)
}

/// The chains that are asked for: those of `--fusion`, else all that the set lists.
fn chains(args: &RunArgs, set: &ShapeSet) -> anyhow::Result<Vec<Chain>> {
    if args.fusion.is_empty() {
        return Ok(set.all_chains());
    }
    let mut chains = Vec::new();
    for name in &args.fusion {
        for chain in select(name)? {
            if !chains.contains(&chain) {
                chains.push(chain);
            }
        }
    }
    Ok(chains)
}

/// Says why a problem cannot be measured in the available memory, if it cannot.
fn check(
    problem: &Problem,
    backend: &dyn Backend,
    cache: CacheState,
    available: u64,
) -> Result<(), String> {
    let Some(kernels) = backend.memory_needed(problem, cache.into()) else {
        let dtype = problem.dtype();
        return Err(match backend.unsupported(problem, cache.into()) {
            None | Some(Unsupported::NoKernels) => {
                format!("{problem}: the {} backend has no {dtype} kernels for it", backend.name())
            }
            Some(reason) => format!("{problem}: {reason}"),
        });
    };
    let needed = bytes_needed(problem, kernels);
    if needed > available {
        return Err(format!(
            "{problem} needs {} ({needed} bytes), but only {} are available",
            gibibytes(needed),
            gibibytes(available)
        ));
    }
    Ok(())
}

/// All bytes that a launch of a problem needs, whose kernels need so many.
#[must_use]
pub fn bytes_needed(problem: &Problem, kernels: u64) -> u64 {
    kernels.saturating_add(harness_bytes(problem))
}

/// Bytes that the measurement keeps beside the kernels' tensors: the inputs, from which every
/// layout is filled, an output of each variant, and the reference.
fn harness_bytes(problem: &Problem) -> u64 {
    let inputs: u64 = InputSpec::of(problem).iter().map(|spec| spec.shape.elements()).sum();
    let output = problem.steps().last().map_or(0, |step| step.output.elements());
    let single = inputs.saturating_add(output.saturating_mul(2)).saturating_mul(4);
    single.saturating_add(output.saturating_mul(8))
}
