//! `calibrate query FILE --problem P`.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Write as _;

use cli_support::width::Width;
use fusion_cost_model::calibration::{FusionRecord, Timing};
use fusion_cost_model::cost::Traffic;
use fusion_cost_model::{
    Backend, CacheState, Clock, Decision, FusionCostModel, OnTarget, Policy, Problem, Target,
    WhenUnknown,
};
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
    let (problem, backend) = (args.problem, args.backend);
    let model = FusionCostModel::load(&args.file)?;
    let threads = match args.threads {
        Some(threads) => threads,
        None => only(&model, backend, "threads", |target| target.threads)?.unwrap_or(1),
    };
    let clock = match (args.clock, backend) {
        (Some(clock), _) => clock,
        (None, Backend::Cpu) => Clock::Host,
        (None, Backend::Cuda | Backend::Hip) => {
            only(&model, backend, "clock", |target| target.clock)?.unwrap_or(Clock::Device)
        }
    };
    let target = match backend {
        Backend::Cpu => Target::cpu(threads),
        Backend::Cuda | Backend::Hip => Target::gpu(backend, clock).with_threads(threads),
    }
    .with_clock(clock)
    .with_cache_state(args.cache.into())
    .with_implementation(args.implementation);
    let policy = Policy::new(WhenUnknown::Roofline).with_threshold(args.threshold);
    let on_target = model.on(target);
    let decision = on_target.decide(&problem, &policy)?;
    let text = if args.json {
        serde_json::to_string_pretty(&as_json(&problem, &decision, on_target))? + "\n"
    } else {
        as_text(&problem, &decision, on_target, &policy)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(exit::DONE)
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

/// A decision in words, and as programs read it.
fn words(decision: &Decision<'_>) -> [&'static str; 2] {
    match decision {
        Decision::Fuse(_) => ["fuse", "fuse"],
        Decision::Keep(_) => ["keep apart", "keep"],
        Decision::TooClose { .. } => ["too close to the threshold to matter", "too_close"],
        _ => ["unknown", "unknown"],
    }
}

fn as_text(
    problem: &Problem,
    decision: &Decision<'_>,
    on_target: OnTarget<'_>,
    policy: &Policy,
) -> String {
    let traffic = Traffic::of(problem);
    let target = on_target.target();
    let mut lines = vec![
        ("problem", problem.to_string()),
        ("target", target.to_string()),
        ("evidence", decision.estimate().evidence().to_string()),
    ];
    if let Some(record) = decision.estimate().record() {
        let FusionRecord { speedup_factor, speedup_low, speedup_high, .. } = *record;
        if problem.chain().is_single() {
            lines.push(("time", units::milliseconds(record.unfused_latency_ms)));
        } else {
            lines.extend([
                ("unfused", units::milliseconds(record.unfused_latency_ms)),
                ("fused", units::milliseconds(record.fused_latency_ms)),
                ("speedup", units::ratio(speedup_factor, speedup_low, speedup_high)),
            ]);
        }
        lines.push(("verdict", record.verdict.to_string()));
        lines.extend(record.reasons.iter().map(|reason| ("", reason.to_string())));
    }
    if problem.chain().is_single() {
        lines.push(("bytes", traffic.unfused_bytes.to_string()));
        if decision.estimate().record().is_none() {
            lines.push(("to measure", to_measure(problem, target)));
        }
        return wrapped(&lines);
    }
    if let Some(roofline) = on_target.roofline_speedup(problem) {
        lines.push(("roofline", format!("{roofline:.3}, if both ran at the machine's ceilings")));
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
    let [decided, _] = words(decision);
    lines.push(("decision", format!("{decided} at a threshold of {}", policy.threshold)));
    if matches!(decision, Decision::Unknown { .. }) {
        lines.push(("to measure", to_measure(problem, target)));
    }
    wrapped(&lines)
}

fn to_measure(problem: &Problem, target: Target) -> String {
    format!("calibrate --problem {problem}{}", options(target))
}

fn wrapped(lines: &[(&str, String)]) -> String {
    let width = Width::of_stdout();
    lines.iter().map(|(name, value)| width.wrap(&format!("{name:<12}"), value, 12)).collect()
}

/// The options of a calibration that would measure on the target.
fn options(target: Target) -> String {
    let Target { backend, threads, cache_state, clock, implementation, .. } = target;
    let on = match clock {
        Clock::Host => format!(" --threads {threads}"),
        clock => format!(" --backend {backend} --clock {clock} --implementation {implementation}"),
    };
    on + if cache_state == CacheState::Cold { " --cache cold" } else { "" }
}

fn as_json(
    problem: &Problem,
    decision: &Decision<'_>,
    on_target: OnTarget<'_>,
) -> serde_json::Value {
    let traffic = Traffic::of(problem);
    let target = on_target.target();
    let estimate = decision.estimate();
    let record = estimate.record();
    let quartiles = |timing: &Timing| json!({ "median": timing.median_ms, "q1": timing.q1_ms, "q3": timing.q3_ms, "low": timing.low_ms, "high": timing.high_ms });
    // Of a single op there is nothing to decide.
    let decided = (!problem.chain().is_single()).then(|| words(decision)[1]);
    json!({
        "problem": problem,
        "backend": target.backend,
        "threads": target.threads,
        "cache_state": target.cache_state,
        "clock": target.clock,
        "implementation": target.implementation,
        "evidence": estimate.evidence().to_string(),
        "unfused_ms": record.map(|record| quartiles(&record.unfused_timing)),
        "fused_ms": record.map(|record| quartiles(&record.fused_timing)),
        "speedup": estimate.speedup().map(|speedup| {
            json!({ "value": speedup.value, "low": speedup.low, "high": speedup.high })
        }),
        "verdict": record.map(|record| record.verdict),
        "reasons": record.map(|record| record.reasons.clone()),
        "roofline_speedup": on_target.roofline_speedup(problem),
        "unfused_memory_bytes": traffic.unfused_bytes,
        "fused_memory_bytes": traffic.fused_bytes,
        "flops": traffic.flops,
        "decision": decided,
    })
}
