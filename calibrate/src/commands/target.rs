//! The target of a question, of those that a calibration file has records of.

use std::collections::BTreeSet;
use std::fmt;

use fusion_cost_model::{Backend, CacheState, Clock, FusionCostModel, Implementation, Target};

use crate::cli::TargetArgs;
use crate::exit::UsageError;
use crate::runtimes;

/// The target that was asked for. What was not said is what all of the file's targets have in common.
///
/// # Errors
///
/// When they have nothing in common.
pub(super) fn chosen(args: &TargetArgs, model: &FusionCostModel) -> Result<Target, UsageError> {
    let backend = args.backend;
    let threads = match args.threads {
        Some(threads) => threads,
        None => only(model, backend, "threads", |target| target.threads)?.unwrap_or(1),
    };
    let clock = match (args.clock, backend) {
        (Some(clock), _) => clock,
        (None, Backend::Cpu) => Clock::Host,
        (None, Backend::Cuda | Backend::Hip) => {
            only(model, backend, "clock", |target| target.clock)?.unwrap_or(Clock::Device)
        }
    };
    match (backend, clock.is_host()) {
        (Backend::Cpu, false) => {
            return Err(UsageError(format!(
                "--clock {clock} is for GPUs; times of a cpu are those of the host's clock"
            )));
        }
        (Backend::Cuda | Backend::Hip, true) => {
            return Err(UsageError(format!(
                "--clock host is for the cpu backend; choose device or launch-inclusive for {backend}"
            )));
        }
        _ => {}
    }
    let target = match backend {
        Backend::Cpu => Target::cpu(threads),
        Backend::Cuda | Backend::Hip => Target::gpu(backend, clock).with_threads(threads),
    };
    Ok(target
        .with_clock(clock)
        .with_cache_state(args.cache.into())
        .with_implementation(implementation(args, model)?))
}

/// Whose kernels are asked about: a runtime by its name, where the file has one version of it.
fn implementation(
    args: &TargetArgs,
    model: &FusionCostModel,
) -> Result<Implementation, UsageError> {
    let of_backend = model.targets().iter().filter(|target| target.backend == args.backend);
    let known: BTreeSet<Implementation> = of_backend.map(|target| target.implementation).collect();
    let Some(name) = &args.implementation else {
        let only = known.first().filter(|_| known.len() == 1);
        return Ok(only.copied().unwrap_or_default());
    };
    let is_called_so = |one: &&Implementation| one.runtime().is_some_and(|id| id.name() == name);
    let called_so: Vec<Implementation> = known.iter().filter(is_called_so).copied().collect();
    match called_so[..] {
        [only] => Ok(only),
        [] => name.parse().map_err(|error: fusion_cost_model::Error| {
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let what = match error.is_unknown_name() {
                true => format!("the file has no kernels of {name}"),
                false => error.to_string(),
            };
            UsageError(format!("{what}; the kernels in the file on {}: {known}", args.backend))
        }),
        _ => {
            let all: Vec<String> = called_so.iter().map(ToString::to_string).collect();
            let all = all.join(", ");
            let how = "name one of them with --implementation";
            Err(UsageError(format!("the file has several versions of {name}: {all}; {how}")))
        }
    }
}

/// The same target, if the file has records of it.
///
/// # Errors
///
/// When it has none, with what it has.
pub(super) fn with_records(
    args: &TargetArgs,
    model: &FusionCostModel,
) -> Result<Target, UsageError> {
    if model.targets().is_empty() {
        return Err(UsageError("the profile has no records; calibrate again".to_owned()));
    }
    let target = chosen(args, model)?;
    if model.targets().contains(&target) {
        return Ok(target);
    }
    let known: Vec<String> = model.targets().iter().map(ToString::to_string).collect();
    let known = known.join("; ");
    Err(UsageError(format!(
        "the file has no records of {target}, but these: {known}; choose with --backend, --threads, \
         --clock, --cache and --implementation, or measure some with calibrate{}",
        options(target)
    )))
}

/// The options of a calibration that would measure on the target.
pub(super) fn options(target: Target) -> String {
    let Target { backend, threads, cache_state, clock, implementation, .. } = target;
    let on = match clock {
        Clock::Host => format!(" --threads {threads}"),
        clock => format!(" --backend {backend} --clock {clock} --implementation {implementation}"),
    };
    let known = runtimes::names();
    let runtime = implementation.runtime().map(|id| {
        let is_built_in = known.iter().any(|name| name == id.name());
        // Where the file of another one lies is nobody's knowledge.
        format!(" --runtime {}", if is_built_in { id.name() } else { "FILE" })
    });
    on + &runtime.unwrap_or_default()
        + if cache_state == CacheState::Cold { " --cache cold" } else { "" }
}

/// What all of the file's targets with a backend have in common, if there are any.
fn only<T: Copy + Ord + fmt::Display>(
    model: &FusionCostModel,
    backend: Backend,
    option: &str,
    of: fn(&Target) -> T,
) -> Result<Option<T>, UsageError> {
    let targets = model.targets().iter();
    let found: BTreeSet<T> = targets.filter(|target| target.backend == backend).map(of).collect();
    if found.len() > 1 {
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        return Err(UsageError(format!(
            "the file has records for several {option} ({}); say which with --{}",
            found.join(", "),
            option
        )));
    }
    Ok(found.first().copied())
}
