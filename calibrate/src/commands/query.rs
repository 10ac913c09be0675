//! `calibrate query FILE --problem P`.

use std::io::Write as _;

use cli_support::input;
use cli_support::plain;
use cli_support::width::Width;
use fusion_cost_model::calibration::{HardwareCalibration, Timing};
use fusion_cost_model::cost::Traffic;
use fusion_cost_model::{
    Backend, Decision, Estimate, Evidence, FusionCostModel, Implementation, Interval, OnTarget,
    Policy, Problem, Rewrite, Target, WhenUnknown,
};
use serde_json::json;

use super::target;
use crate::cli::QueryArgs;
use crate::report::decision_words;
use crate::{exit, units};

/// Prints what the cost model knows about a problem.
///
/// # Errors
///
/// When the file cannot be read, or the question cannot be understood.
pub fn query(args: &QueryArgs) -> anyhow::Result<u8> {
    let problem = args.problem;
    let mut model = FusionCostModel::load(input::expect(&args.file))?;
    if let Some(older) = &args.prior {
        model = model.with_prior(HardwareCalibration::load(input::expect(older))?)?;
    }
    let target = target::chosen(&args.target, &model)?;
    let policy = Policy::new(WhenUnknown::Roofline).with_threshold(args.threshold);
    let on_target = match args.rewrite {
        Some(rewrite) => model.on(target).rewritten(rewrite),
        None => model.on(target),
    };
    let decision = on_target.decide(&problem, &policy)?;
    let text = if args.json {
        let json = as_json(&problem, &decision, on_target, args.rewrite);
        let json = serde_json::to_string_pretty(&json)? + "\n";
        plain::json(&json).into_owned()
    } else {
        let answer = as_text(&problem, &decision, on_target, args.rewrite, &policy);
        plain::text(&answer).into_owned()
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(exit::DONE)
}

fn as_text(
    problem: &Problem,
    decision: &Decision<'_>,
    on_target: OnTarget<'_>,
    rewrite: Option<Rewrite>,
    policy: &Policy,
) -> String {
    let traffic = Traffic::of(problem);
    let target = on_target.target();
    let mut lines = vec![("problem", problem.to_string()), ("target", target.to_string())];
    lines.extend(rewrite.map(|rewrite| ("rewrite", rewrite.to_string())));
    lines.push(("evidence", evidence(&decision.estimate())));
    let estimate = decision.estimate();
    let time = |interval: Interval| {
        let [value, low, high] =
            [interval.value, interval.low, interval.high].map(units::milliseconds);
        format!("{value} [{low}, {high}]")
    };
    if problem.chain().is_single() {
        lines.extend(estimate.unfused_ms().map(|unfused| ("time", time(unfused))));
    } else {
        lines.extend(estimate.unfused_ms().map(|unfused| ("unfused", time(unfused))));
        lines.extend(estimate.fused_ms().map(|fused| ("fused", time(fused))));
        let speedup = estimate.speedup();
        let in_words = |Interval { value, low, high, .. }| units::ratio(value, low, high);
        lines.extend(speedup.map(|speedup| ("speedup", in_words(speedup))));
    }
    if let Some(record) = estimate.record() {
        lines.push(("verdict", record.verdict.to_string()));
        lines.extend(record.reasons.iter().map(|reason| ("", reason.to_string())));
    } else {
        let nearest = estimate.nearest().map(|record| record.problem.to_string());
        let names = ["nearest"].into_iter().chain(std::iter::repeat(""));
        lines.extend(names.zip(nearest));
    }
    if let Some(record) = on_target.left_out(problem) {
        lines.push(("left out", format!("its record, which is {}", record.verdict)));
        lines.extend(record.reasons.iter().map(|reason| ("", reason.to_string())));
    }
    if problem.chain().is_single() {
        lines.push(("bytes", traffic.unfused_bytes.to_string()));
        if estimate.evidence() != Evidence::Measured {
            lines.push(("to measure", to_measure(problem, target, rewrite)));
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
    let [decided, _] = decision_words(decision);
    lines.push(("decision", format!("{decided} at a threshold of {}", policy.threshold)));
    if estimate.evidence() != Evidence::Measured {
        lines.push(("to measure", to_measure(problem, target, rewrite)));
    }
    wrapped(&lines)
}

/// The calibration that would measure it, if one can.
fn to_measure(problem: &Problem, target: Target, rewrite: Option<Rewrite>) -> String {
    if (target.backend, target.implementation) == (Backend::Cpu, Implementation::Vendor) {
        return "not possible: calibrate runs no vendor kernels on a cpu; ask for --implementation \
                native"
            .to_owned();
    }
    if let Some(rewrite) = rewrite.filter(|one| !one.applies_to(problem.chain())) {
        return format!("not possible: {} has nothing that is {rewrite}", problem.chain());
    }
    let rewrite = rewrite.map(|rewrite| format!(" --rewrite {rewrite}")).unwrap_or_default();
    format!("calibrate --problem {problem}{}{rewrite}", target::options(target))
}

fn wrapped(lines: &[(&str, String)]) -> String {
    let width = Width::of_stdout();
    lines.iter().map(|(name, value)| width.wrap(&format!("{name:<12}"), value, 12)).collect()
}

/// Where an answer comes from, and how far from there.
fn evidence(estimate: &Estimate<'_>) -> String {
    let evidence = estimate.evidence();
    match estimate.octaves_beyond() {
        0.0 => evidence.to_string(),
        octaves => format!("{evidence}, {octaves:.1} octaves beyond the measured sizes"),
    }
}

fn as_json(
    problem: &Problem,
    decision: &Decision<'_>,
    on_target: OnTarget<'_>,
    rewrite: Option<Rewrite>,
) -> serde_json::Value {
    let traffic = Traffic::of(problem);
    let target = on_target.target();
    let estimate = decision.estimate();
    let record = estimate.record();
    let time = |interval: Option<Interval>, timing: Option<&Timing>| {
        let Interval { value, low, high, .. } = interval?;
        let mut time = json!({ "value": value, "low": low, "high": high });
        if let Some(timing) = timing {
            time["median"] = timing.median_ms.into();
            time["q1"] = timing.q1_ms.into();
            time["q3"] = timing.q3_ms.into();
        }
        Some(time)
    };
    let nearest: Vec<&Problem> = estimate.nearest().map(|record| &record.problem).collect();
    // Of a single op there is nothing to decide.
    let decided = (!problem.chain().is_single()).then(|| decision_words(decision)[1]);
    json!({
        "problem": problem,
        "backend": target.backend,
        "threads": target.threads,
        "cache_state": target.cache_state,
        "clock": target.clock,
        "implementation": target.implementation,
        "rewrite": rewrite,
        "evidence": estimate.evidence().to_string(),
        "octaves_beyond": estimate.octaves_beyond(),
        "nearest": nearest,
        "unfused_ms": time(estimate.unfused_ms(), record.map(|record| &record.unfused_timing)),
        "fused_ms": time(estimate.fused_ms(), record.map(|record| &record.fused_timing)),
        "speedup": estimate.speedup().map(|speedup| {
            json!({ "value": speedup.value, "low": speedup.low, "high": speedup.high })
        }),
        "verdict": record.map(|record| record.verdict),
        "reasons": record.map(|record| record.reasons.clone()),
        "left_out": on_target.left_out(problem).map(|record| {
            json!({ "verdict": record.verdict, "reasons": record.reasons })
        }),
        "roofline_speedup": on_target.roofline_speedup(problem),
        "unfused_memory_bytes": traffic.unfused_bytes,
        "fused_memory_bytes": traffic.fused_bytes,
        "flops": traffic.flops,
        "decision": decided,
    })
}
