//! `calibrate query FILE --problem P`.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::io::Write as _;

use fusion_cost_model::calibration::FusionRecord;
use fusion_cost_model::cost::Traffic;
use fusion_cost_model::model::{Action, Decision, FusionCostModel, Policy, Target, WhenUnknown};
use fusion_cost_model::{Backend, CacheState, Clock, Problem};
use serde_json::json;

use crate::cli::QueryArgs;
use crate::exit::{self, UsageError};
use crate::units;

/// Prints what the cost model knows about a problem.
///
/// # Errors
///
/// When the file cannot be read, or the question cannot be understood.
pub fn query(args: &QueryArgs) -> anyhow::Result<u8> {
    let problem: Problem = args.problem.parse()?;
    let backend: Backend = args.backend.parse()?;
    if !(args.threshold.is_finite() && args.threshold > 0.0) {
        return Err(UsageError("--threshold must be a positive number".to_owned()).into());
    }
    let model = FusionCostModel::load(&args.file)?;
    let threads = match args.threads {
        Some(threads) => threads,
        None => only(&model, backend, "threads", |record| record.threads)?.unwrap_or(1),
    };
    let clock = match (&args.clock, backend) {
        (Some(clock), _) => clock.parse()?,
        (None, Backend::Cpu) => Clock::Host,
        (None, Backend::Cuda | Backend::Hip) => {
            only(&model, backend, "clock", |record| record.clock)?.unwrap_or(Clock::Device)
        }
    };
    let implementation = args.implementation.parse()?;
    let cache_state = args.cache.into();
    let target = Target { backend, threads, cache_state, clock, implementation };
    let policy = Policy::new(WhenUnknown::Roofline).with_threshold(args.threshold);
    let decision = model.decide(&problem, target, &policy);
    let text = if args.json {
        serde_json::to_string_pretty(&as_json(&problem, target, &decision, &model))? + "\n"
    } else {
        as_text(&problem, target, &decision, &model, &policy)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(exit::DONE)
}

/// What all of the file's records of a backend have in common, if there are any.
fn only<T: Copy + Ord + fmt::Display>(
    model: &FusionCostModel,
    backend: Backend,
    option: &str,
    of: fn(&FusionRecord) -> T,
) -> Result<Option<T>, UsageError> {
    let records = model.calibration().records.iter();
    let found: BTreeSet<T> = records.filter(|record| record.backend == backend).map(of).collect();
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

fn action(action: Action) -> &'static str {
    match action {
        Action::Fuse => "fuse",
        Action::Keep => "keep apart",
        Action::TooClose => "too close to the threshold to matter",
        Action::Unknown => "unknown",
    }
}

fn as_text(
    problem: &Problem,
    target: Target,
    decision: &Decision<'_>,
    model: &FusionCostModel,
    policy: &Policy,
) -> String {
    let traffic = Traffic::of(problem);
    let mut lines = vec![
        ("problem", problem.to_string()),
        ("target", target_text(target)),
        ("evidence", decision.estimate.evidence.to_string()),
    ];
    if let Some(measured) = decision.estimate.measured {
        let record = measured.record;
        lines.extend([
            ("unfused", units::milliseconds(measured.unfused_ms.value)),
            ("fused", units::milliseconds(measured.fused_ms.value)),
            (
                "speedup",
                units::ratio(measured.speedup.value, measured.speedup.low, measured.speedup.high),
            ),
            ("verdict", record.verdict.to_string()),
        ]);
        lines.extend(record.reasons.iter().map(|reason| ("", reason.clone())));
    }
    if let Some(roofline) = model.roofline_speedup(problem, target) {
        lines.push(("roofline", format!("{roofline:.3}, if both ran at the machine's limits")));
    }
    lines.push((
        "bytes",
        format!(
            "{} unfused, {} fused ({} saved)",
            traffic.unfused_bytes,
            traffic.fused_bytes,
            units::percent(traffic.memory_reduction())
        ),
    ));
    lines.push((
        "decision",
        format!("{} at a threshold of {}", action(decision.action), policy.threshold),
    ));
    if decision.action == Action::Unknown {
        lines.push(("to measure", format!("calibrate --problem {problem}{}", options(target))));
    }
    let mut text = String::new();
    for (name, value) in lines {
        let _ = writeln!(text, "{name:<12}{value}");
    }
    text
}

/// The target in words.
fn target_text(target: Target) -> String {
    let Target { backend, threads, cache_state, clock, implementation } = target;
    let on = match clock {
        Clock::Host => format!("{threads} threads"),
        clock => format!("{clock} clock, {implementation} kernels"),
    };
    format!("{backend}, {on}, {cache_state} caches")
}

/// The options of a calibration that would measure on the target.
fn options(target: Target) -> String {
    let Target { backend, threads, cache_state, clock, implementation } = target;
    let on = match clock {
        Clock::Host => format!(" --threads {threads}"),
        clock => format!(" --backend {backend} --clock {clock} --implementation {implementation}"),
    };
    on + if cache_state == CacheState::Cold { " --cache cold" } else { "" }
}

fn as_json(
    problem: &Problem,
    target: Target,
    decision: &Decision<'_>,
    model: &FusionCostModel,
) -> serde_json::Value {
    let traffic = Traffic::of(problem);
    let interval = |interval: fusion_cost_model::model::Interval| json!({ "value": interval.value, "low": interval.low, "high": interval.high });
    let measured = decision.estimate.measured;
    json!({
        "problem": problem,
        "backend": target.backend,
        "threads": target.threads,
        "cache_state": target.cache_state,
        "clock": target.clock,
        "implementation": target.implementation,
        "evidence": decision.estimate.evidence.to_string(),
        "unfused_ms": measured.map(|measured| interval(measured.unfused_ms)),
        "fused_ms": measured.map(|measured| interval(measured.fused_ms)),
        "speedup": measured.map(|measured| interval(measured.speedup)),
        "verdict": measured.map(|measured| measured.record.verdict),
        "reasons": measured.map(|measured| measured.record.reasons.clone()),
        "roofline_speedup": model.roofline_speedup(problem, target),
        "unfused_memory_bytes": traffic.unfused_bytes,
        "fused_memory_bytes": traffic.fused_bytes,
        "flops": traffic.flops,
        "decision": match decision.action {
            Action::Fuse => "fuse",
            Action::Keep => "keep",
            Action::TooClose => "too_close",
            Action::Unknown => "unknown",
        },
    })
}
