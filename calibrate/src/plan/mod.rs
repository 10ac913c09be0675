//! The first stage: from the command line to a list of subjects.

mod controls;
mod questions;
mod refusal;
mod request;
mod shard;
mod stable_hash;
mod subject;
mod sweep;
pub mod workload;

use std::collections::HashSet;

use cli_support::say;
use fused_kernels::{Backend, InputSpec, Unsupported};
use fusion_cost_model::calibration::Skipped;
use fusion_cost_model::kernel::Form;
use fusion_cost_model::{
    CacheState, Chain, Clock, DType, Implementation, Op, Pointwise, Problem, Rewrite,
};
use regex::Regex;

use crate::exit::UsageError;
use crate::profiles::{self, ShapeSet};
use crate::units::gibibytes;

pub use controls::controls;
pub use questions::{Questions, questions};
pub use refusal::Refusal;
pub use request::Request;
pub use shard::{Shard, ShardChoice};
pub use stable_hash::stable_hash;
pub use subject::{Comparison, Subject, clocks_of};
pub use sweep::Sweep;

/// What will be measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The set of sizes, or where else the sizes come from.
    pub shapes: String,
    /// The subjects in order, each once.
    pub subjects: Vec<Subject>,
    /// What was asked for and cannot be measured.
    pub skipped: Vec<Skipped>,
    /// Whether some of that cannot be because a runtime failed.
    pub has_failures: bool,
}

/// In which ways each problem is to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ways {
    /// What times begin and end with.
    pub clocks: Vec<Clock>,
    /// Whose kernels run.
    pub implementations: Vec<Implementation>,
    /// Which rewrites are measured too, of problems that they apply to.
    pub rewrites: Vec<Rewrite>,
    /// Whether to report that the vendor library lacks a problem.
    pub tells_vendor: bool,
}

impl Ways {
    /// The ways that a CPU has.
    #[must_use]
    pub fn of_cpu() -> Self {
        let implementations = vec![Implementation::Native];
        let (clocks, rewrites) = (vec![Clock::Host], Vec::new());
        Self { clocks, implementations, rewrites, tells_vendor: true }
    }

    fn of(&self, problem: Problem) -> impl Iterator<Item = Subject> {
        let subject = move |implementation: &Implementation| {
            let implementation = *implementation;
            self.clocks.iter().map(move |&clock| Subject::of(problem, clock, implementation))
        };
        let rewrites = self.rewrites.iter().filter(move |one| one.applies_to(problem.chain()));
        let rewritten = rewrites.flat_map(move |&rewrite| {
            let subject = move |clock: &Clock| {
                Subject::of(problem, *clock, Implementation::Native).rewritten(rewrite)
            };
            self.clocks.iter().map(subject)
        });
        self.implementations.iter().flat_map(subject).chain(rewritten)
    }
}

/// The memory that is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Available {
    /// Of the host's.
    pub host: u64,
    /// Of the GPU's; `None` where kernels work in the host's.
    pub device: Option<u64>,
}

impl Available {
    /// Whether that is enough.
    #[must_use]
    pub fn suffices(&self, needed: Needed) -> bool {
        needed.host <= self.host && self.device.is_none_or(|device| needed.device <= device)
    }
}

/// What a subject needs of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needed {
    /// Of the host's.
    pub host: u64,
    /// Of the GPU's.
    pub device: u64,
}

/// The set of sizes when none is named.
fn default_shapes(quick: bool, is_gpu: bool) -> &'static str {
    match (quick, is_gpu) {
        (true, _) => "quick",
        (false, false) => "standard",
        (false, true) => "gpu",
    }
}

/// The problems that are asked for, before it is known which of them can be measured.
#[derive(Debug, Clone)]
pub struct Wanted {
    shapes: String,
    /// Each once; first those that were named one by one.
    problems: Vec<Problem>,
    /// How many were.
    named: usize,
}

/// A part of a plan that has no problem. Its task has not failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nothing to measure: part {shard} has none of {problems} problems of {shapes}")]
pub struct EmptyShard {
    shard: Shard,
    problems: usize,
    shapes: String,
}

/// Lists the problems that are asked for.
///
/// # Errors
///
/// [`UsageError`] or [`Error`](fusion_cost_model::Error) when a name is
/// unknown or a problem cannot be.
pub fn wanted(request: &Request) -> anyhow::Result<Wanted> {
    let Request { fusion, shapes, problems: explicit, source, dtypes, quick, is_gpu } = request;
    let sets_asked_for = !fusion.is_empty() || shapes.is_some() || explicit.is_empty();

    let is_found = source.is_some();
    let mut source = source.clone().unwrap_or_else(|| "given on the command line".to_owned());
    let mut from_set = Vec::new();
    if sets_asked_for {
        let name = shapes.as_deref().unwrap_or_else(|| default_shapes(*quick, *is_gpu));
        let set = profiles::find_shapes(name)?;
        for &dtype in dtypes {
            for chain in chains(fusion, &set, dtype)? {
                if chain.contains(&REQUANTIZE) && dtype != DType::I8 {
                    if dtypes.contains(&DType::I8) {
                        continue;
                    }
                    let message = format!("{} is of 8-bit integers: add --dtype i8", chain.name());
                    return Err(UsageError(message).into());
                }
                let problems = set.problems(&chain, dtype);
                if problems.is_empty() {
                    say!("note: {} has no {dtype} sizes for {}; left out", set.name, chain.name());
                }
                from_set.extend(problems);
            }
        }
        source = set.name;
    }

    let mut seen = HashSet::new();
    let explicit: Vec<Problem> =
        explicit.iter().copied().filter(|problem| seen.insert(*problem)).collect();
    // What was found in a model may be left out, with the reason.
    let named = if is_found { 0 } else { explicit.len() };
    let others = from_set.into_iter().filter(|problem| seen.insert(*problem));
    let problems = explicit.into_iter().chain(others).collect();
    Ok(Wanted { shapes: source, problems, named })
}

impl Wanted {
    /// Only the problems whose text form matches.
    ///
    /// # Errors
    ///
    /// [`UsageError`] when none does.
    pub fn matching(self, filter: &Regex) -> Result<Self, UsageError> {
        let Self { shapes, problems, named } = self;
        let is_match = |problem: &Problem| filter.is_match(&problem.to_string());
        let named = problems.iter().take(named).filter(|problem| is_match(problem)).count();
        let count = problems.len();
        let problems: Vec<Problem> = problems.into_iter().filter(is_match).collect();
        if problems.is_empty() {
            let message = format!("--filter {filter} leaves none of {count} problems of {shapes}");
            return Err(UsageError(message));
        }
        Ok(Self { shapes, problems, named })
    }

    /// Only the problems of a part.
    ///
    /// # Errors
    ///
    /// [`EmptyShard`] when it has none.
    pub fn of(self, shard: Shard) -> Result<Self, EmptyShard> {
        let Self { shapes, problems: all, named } = self;
        let named = all.iter().take(named).filter(|problem| shard.holds(problem)).count();
        let problems: Vec<Problem> =
            all.iter().copied().filter(|problem| shard.holds(problem)).collect();
        if problems.is_empty() {
            return Err(EmptyShard { shard, problems: all.len(), shapes });
        }
        Ok(Self { shapes, problems, named })
    }

    /// All subjects that there can be, problem by problem.
    #[must_use]
    pub fn subjects(&self, ways: &Ways) -> Vec<Subject> {
        self.problems.iter().flat_map(|problem| ways.of(*problem)).collect()
    }

    /// What of it can be measured, by what each subject needs of the device or why it cannot run
    /// there, in the order of [`Self::subjects`].
    ///
    /// # Errors
    ///
    /// When a problem that was named cannot be measured at all, or nothing is left to measure:
    /// [`UsageError`], unless that is because something failed.
    pub fn plan(
        self,
        ways: &Ways,
        device_bytes: &[Result<u64, Refusal>],
        available: Available,
    ) -> anyhow::Result<Plan> {
        let Self { shapes, problems, named } = self;
        let mut plan =
            Plan { shapes, subjects: Vec::new(), skipped: Vec::new(), has_failures: false };
        let mut first = None;
        let mut answers = device_bytes.iter();
        for (index, problem) in problems.into_iter().enumerate() {
            let (mut refusals, before) = (Vec::new(), plan.subjects.len());
            for (subject, answer) in ways.of(problem).zip(&mut answers) {
                let answer = answer.clone();
                let fits = |bytes| fits(&problem, bytes, available).map_err(Refusal::from);
                match answer.and_then(fits) {
                    Ok(()) => plan.subjects.push(subject),
                    Err(_) if is_vendor(&subject) && !ways.tells_vendor => {}
                    // The same one for every clock.
                    Err(refusal) if refusals.contains(&refusal) => {}
                    Err(refusal) => refusals.push(refusal),
                }
            }
            // What was named one by one is not left out silently.
            if plan.subjects.len() == before && index < named {
                let refusal = refusals.into_iter().next();
                let nothing = || format!("{problem} cannot be measured").into();
                let refusal: Refusal = refusal.unwrap_or_else(nothing);
                return Err(refusal.error(refusal.reason.clone()));
            }
            first = first.or_else(|| refusals.first().cloned());
            for Refusal { reason, is_failure } in refusals {
                plan.skipped.push(Skipped { problem, reason, failure: None });
                plan.has_failures |= is_failure;
            }
        }
        if plan.subjects.is_empty() {
            let nothing = || format!("{} has no sizes for what --fusion names", plan.shapes).into();
            let first: Refusal = first.unwrap_or_else(nothing);
            return Err(first.error(format!("nothing to measure: {}", first.reason)));
        }
        Ok(plan)
    }
}

/// What makes 8-bit integers of sums.
const REQUANTIZE: Op = Op::Pointwise(Pointwise::Requantize);

/// The chains that are asked for: those of `--fusion`, else all that the set lists. Of 8-bit integers
/// each product is also asked for with its sums requantised at the end, as a quantised model has it.
fn chains(fusion: &[String], set: &ShapeSet, dtype: DType) -> anyhow::Result<Vec<Chain>> {
    let mut chains = Vec::new();
    let mut add = |chain: Chain| {
        if !chains.contains(&chain) {
            chains.push(chain);
        }
    };
    let named = if fusion.is_empty() {
        set.all_chains()
    } else {
        let selected: Vec<Vec<Chain>> =
            fusion.iter().map(|name| set.select(name)).collect::<Result<_, _>>()?;
        selected.concat()
    };
    for chain in named {
        add(chain);
        if dtype == DType::I8
            && let Some(requantized) = requantized(&chain)
        {
            add(requantized);
        }
    }
    Ok(chains)
}

/// A product and pointwise ops with the op behind them that makes 8-bit integers of their results.
fn requantized(chain: &Chain) -> Option<Chain> {
    let is_product = matches!(chain.form(), Form::Linear | Form::Conv);
    let all_pointwise = chain.iter().skip(1).all(|op| op.is_pointwise());
    if !is_product || !all_pointwise || chain.contains(&REQUANTIZE) {
        return None;
    }
    format!("{}+{REQUANTIZE}", chain.name()).parse().ok()
}

fn is_vendor(subject: &Subject) -> bool {
    subject.implementation == Implementation::Vendor
}

/// The bytes that a subject needs where its kernels work.
///
/// # Errors
///
/// Why the backend does not run it.
pub fn device_bytes(
    backend: &dyn Backend,
    subject: &Subject,
    cache: CacheState,
) -> Result<u64, Refusal> {
    let (problem, setup) = (&subject.problem, subject.setup(cache));
    match backend.requirements(problem, setup) {
        Ok(requirements) if subject.comparison.has_copy() => {
            Ok(requirements.memory_bytes.saturating_mul(2))
        }
        Ok(requirements) => Ok(requirements.memory_bytes),
        Err(Unsupported::NoKernels) => {
            let dtype = problem.dtype();
            let reason =
                format!("{problem}: the {} backend has no {dtype} kernels for it", backend.name());
            Err(reason.into())
        }
        Err(reason) => {
            let is_failure = matches!(reason, Unsupported::NoAnswer { .. });
            Err(Refusal { reason: format!("{problem}: {reason}"), is_failure })
        }
    }
}

/// Says why a problem whose kernels need `device_bytes` cannot be measured in the available
/// memory, if it cannot.
fn fits(problem: &Problem, device_bytes: u64, available: Available) -> Result<(), String> {
    let is_gpu = available.device.is_some();
    let needed = bytes_needed(problem, device_bytes, is_gpu);
    let check = |needed: u64, available: u64, of: &str| {
        if needed <= available {
            return Ok(());
        }
        Err(format!(
            "{problem} needs {} ({needed} bytes){of}, but only {} are available",
            gibibytes(needed),
            gibibytes(available)
        ))
    };
    check(needed.host, available.host, if is_gpu { " of the host's memory" } else { "" })?;
    available.device.map_or(Ok(()), |device| check(needed.device, device, " of the GPU's memory"))
}

/// All bytes that a process needs to measure a problem whose kernels need `device_bytes`.
#[must_use]
pub fn bytes_needed(problem: &Problem, device_bytes: u64, is_gpu: bool) -> Needed {
    let harness = harness_bytes(problem);
    if is_gpu {
        // The inputs once more, as numbers of the device.
        Needed { host: harness.saturating_mul(2), device: device_bytes }
    } else {
        Needed { host: device_bytes.saturating_add(harness), device: 0 }
    }
}

/// Bytes that the measurement keeps in addition to the kernels' tensors: the inputs that fill every
/// layout, the proved outputs of both variants and those after the timing, and the reference.
fn harness_bytes(problem: &Problem) -> u64 {
    let inputs: u64 = InputSpec::of(problem).iter().map(|spec| spec.shape.elements()).sum();
    let output = problem.steps().last().map_or(0, |step| step.output.elements());
    let single = inputs.saturating_add(output.saturating_mul(4)).saturating_mul(4);
    single.saturating_add(output.saturating_mul(8))
}

#[cfg(test)]
mod tests {
    use fused_kernels::cpu::Cpu;

    use super::*;

    #[test]
    fn products_of_integers_are_asked_for_with_their_sums_requantized_too() {
        let asked = |fusion: &[&str], dtype| {
            let set = profiles::find_shapes("standard").unwrap();
            let fusion: Vec<String> = fusion.iter().map(|name| (*name).to_owned()).collect();
            let chains = chains(&fusion, &set, dtype).unwrap();
            chains.iter().map(Chain::name).collect::<Vec<_>>()
        };
        let chains = ["linear+bias+relu", "conv_bn_relu", "linear+softmax", "add_relu"];
        let of_floats = ["linear_bias_relu", "conv_bn_relu", "linear+softmax", "add_relu"];
        assert_eq!(asked(&chains, DType::F32), of_floats);
        let of_integers = [
            "linear_bias_relu",
            "linear+bias+relu+requantize",
            "conv_bn_relu",
            "conv2d+batch_norm+relu+requantize",
            "linear+softmax",
            "add_relu",
        ];
        assert_eq!(asked(&chains, DType::I8), of_integers);
        assert_eq!(asked(&["linear+requantize"], DType::I8), ["linear+requantize"]);
    }

    #[test]
    fn an_own_copy_needs_twice_the_memory_and_may_not_fit() {
        let problem: Problem = "add_relu/f32/m512.n1024".parse().unwrap();
        let cpu = Cpu::new(1).unwrap();
        let bytes = |comparison| {
            let subject = Subject { comparison, ..Subject::fusion(problem) };
            device_bytes(&cpu, &subject, CacheState::Warm).unwrap()
        };
        let once = bytes(Comparison::UnfusedFused);
        assert_eq!(bytes(Comparison::UnfusedUnfused), once);
        assert_eq!(bytes(Comparison::UnfusedCopy), 2 * once);
        assert_eq!(bytes(Comparison::FusedCopy), 2 * once);

        let enough_for_one = bytes_needed(&problem, once, false).host;
        let available = Available { host: enough_for_one, device: None };
        assert_eq!(fits(&problem, once, available), Ok(()));
        let why = fits(&problem, 2 * once, available).unwrap_err();
        assert!(why.starts_with("add_relu/f32/m512.n1024 needs"), "{why}");
    }
}
