//! `calibrate workload NAME --profile FILE`: a model in several ways, predicted and really run.

use std::io::{Write as _, stderr};

use cli_support::input;
use cli_support::output::{Destination, Target as Place, write_json};
use cli_support::plain;
use cli_support::say;
use cli_support::shell;
use cli_support::width::Width;
use fused_kernels::InputSpec;
use fused_kernels::cpu::Cpu;
use fusion_cost_model::calibration::{HardwareCalibration, RunEnd};
use fusion_cost_model::{
    Backend, CacheState, FusionCostModel, GraphNode, Policy, Problem, Target, WhenUnknown,
};
use model_graphs::Segments;

use super::target;
use crate::cli::{ProgressChoice, WorkloadArgs, WorkloadFormat};
use crate::exit::{self, UsageError};
use crate::machine::preflight::{self, Needs};
use crate::machine::{Machine, MachineLock, fingerprint};
use crate::plan::workload::{Again, Layer, Way, Ways};
use crate::plan::{Comparison, Subject, device_bytes};
use crate::profiles::{Model, find_model};
use crate::report::partition::{Question as SplitQuestion, SplitModel};
use crate::report::workload::{MeasuredOn, Question, WorkloadReport};
use crate::report::{Progress, ProgressLines};
use crate::run::workload::{MeasuredWorkload, Sequences, measure_workload, stand_ins};
use crate::run::{Observer, Seed};
use crate::stop::Stop;
use crate::worker::{Device, Processes, TASK_LIMIT};

/// Predicts a model in three ways, and runs it in them.
///
/// # Errors
///
/// When a file cannot be read, the command line asks for something impossible, or a layer computes
/// something wrong.
pub fn workload(args: &WorkloadArgs) -> anyhow::Result<u8> {
    let place = args.place()?;
    let calibration = HardwareCalibration::load(input::expect(&args.profile))?;
    let (profile_of, profiled) =
        (calibration.hardware.name.clone(), calibration.fingerprint.clone());
    let cost_model = FusionCostModel::new(calibration);
    let target = target::with_records(&args.target, &cost_model)?;
    let model = find_model(&args.model, &args.dims())?;
    let found = model.segments()?;
    let nodes = model.graph_nodes(&found)?;
    if nodes.is_empty() {
        let text = format!("{}: it has no op that a kernel is known for", args.model);
        return Err(UsageError(text).into());
    }
    let policy = Policy::new(WhenUnknown::Roofline).with_threshold(args.threshold);
    let on = cost_model.on(target);
    let partition = on.partition_graph(&nodes, &policy)?;
    let Some(ways) = Ways::of(&nodes, &partition) else {
        anyhow::bail!("a kernel of the partition is not a problem; please report this model");
    };
    let split =
        SplitModel::of(asked(args, &model, &found, &nodes, target), &found, &nodes, on, &policy)?;
    let report = |measured: Option<(&MeasuredWorkload, MeasuredOn)>| {
        let question = question(args, &model, &nodes, target);
        let cold = cost_model.on(target.with_cache_state(CacheState::Cold));
        WorkloadReport::of(question, &ways, &split, [on, cold], measured)
    };
    if args.missing {
        return print_missing(args, &report(None).known.missing, target);
    }
    if args.predict_only {
        write(&report(None), args, place)?;
        return Ok(exit::DONE);
    }
    check_target(target)?;
    let machine = Machine::identify("auto", fingerprint::observe())?;
    let is_of_profile = profiled.is_same_machine(&machine.fingerprint);
    if !is_of_profile {
        say!(
            "warning: other-machine: the profile is of {profile_of}, and this is {} with another \
             processor, memory or number of cores; times differ by more than what the model is off by",
            machine.name()
        );
    }
    // Of this machine, the profile's problems tell how fast it is now.
    let warm = cost_model.on(target.with_cache_state(CacheState::Warm));
    let best = ways.of_way(Way::BestPartition);
    let again = if is_of_profile { Again::of(best, warm) } else { Vec::new() };
    let (measured, seed) = measure(args, &model.name, &ways, &again, target)?;
    let is_interrupted = measured.end == RunEnd::Interrupted;
    match measured.end {
        RunEnd::Interrupted if measured.pairs.len() < ways.pairs().len() => {
            say!("interrupted before every way was measured; nothing is written");
            return Ok(exit::INTERRUPTED);
        }
        RunEnd::Disturbed => {
            let estimates = measured.pairs.iter().map(|pair| &pair.estimate);
            say!("error: {}", super::only_disturbed(estimates));
            return Ok(exit::FAILURE);
        }
        RunEnd::Interrupted => say!(
            "interrupted: what is written is from fewer processes than planned, with wider intervals"
        ),
        RunEnd::Complete | RunEnd::TimeBudget => {}
    }
    let machine = machine.name().to_owned();
    let run = MeasuredOn { machine, is_of_profile, seed };
    write(&report(Some((&measured, run))), args, place)?;
    Ok(if is_interrupted { exit::INTERRUPTED } else { exit::DONE })
}

/// Refuses what sequences of layers are not run on.
fn check_target(target: Target) -> Result<(), UsageError> {
    let Target { backend, implementation, .. } = target;
    if backend != Backend::Cpu {
        return Err(UsageError(format!(
            "whole models are run on the cpu backend only; --predict-only predicts one on \
             {backend}"
        )));
    }
    if !implementation.is_native() {
        return Err(UsageError(format!(
            "whole models are run with the project's own kernels only; --predict-only predicts one \
             with those of {implementation}"
        )));
    }
    Ok(())
}

/// Runs the ways against each other; and the seed.
fn measure(
    args: &WorkloadArgs,
    name: &str,
    ways: &Ways,
    again: &[Again],
    target: Target,
) -> anyhow::Result<(MeasuredWorkload, u64)> {
    let pairs = ways.pairs();
    let threads = usize::try_from(target.threads)?;
    let needs = Needs { threads, memory_bytes: memory_bytes(ways, &pairs, threads)?, gpu: None };
    let checks = preflight::check(&needs);
    preflight::go_on_with(&checks, args.force)?;
    let _lock = MachineLock::take(args.force)?;
    let stop = Stop::listen()?;
    let seed = args.seed.map_or_else(Seed::draw, |seed| Ok(Seed::Given(seed)))?.number();
    let settings = args.settings(target, seed);
    let problem = typical(ways)?;
    let named = |[first, second]: &[Way; 2]| match first == second {
        true => format!("{name}, {} against a copy of itself", first.words()),
        false => format!("{name}, {} against {}", first.words(), second.words()),
    };
    let names = stand_ins(problem, &pairs).into_iter().zip(pairs.iter().map(named)).collect();
    let device = Device::cpu(threads, !args.unbound);
    let limit = args.process_limit.unwrap_or(TASK_LIMIT);
    let mut processes = Processes::new(device, &stop)?.with_limit(limit);
    let progress: Box<dyn Observer> = match args.progress {
        ProgressChoice::Auto => Box::new(Progress::new().naming(names)),
        ProgressChoice::Log => Box::new(Progress::new().as_log().naming(names)),
        ProgressChoice::Json => Box::new(ProgressLines::new(stderr()).naming(names)),
    };
    let sequences = Sequences { problem, ways: &ways.layers, pairs: &pairs, again };
    let measured = measure_workload(&mut processes, settings, sequences, &stop, progress)?;
    Ok((measured, seed))
}

/// The problem of most ops: of its kind are the A/A runs beside that of the whole model.
fn typical(ways: &Ways) -> anyhow::Result<Problem> {
    let layers = ways.of_way(Way::AlwaysFused).iter();
    let longest = layers.max_by_key(|layer| layer.problem.chain().len());
    longest.map(|layer| layer.problem).ok_or_else(|| anyhow::anyhow!("the model has no layers"))
}

/// The bytes that the pair with the largest sequences needs.
///
/// # Errors
///
/// [`UsageError`] when the backend has no kernels for a problem.
fn memory_bytes(ways: &Ways, pairs: &[[Way; 2]], threads: usize) -> anyhow::Result<u64> {
    let planner = Cpu::new(threads.min(fingerprint::available_threads()))?;
    let of_layer = |layer: &Layer| {
        let comparison = Comparison::UnfusedFused;
        let subject = Subject { comparison, ..Subject::fusion(layer.problem) };
        device_bytes(&planner, &subject, CacheState::Warm)
            .map_err(|why| UsageError(format!("{}; --predict-only predicts the model", why.reason)))
    };
    let of_way = |way: Way| ways.of_way(way).iter().map(of_layer).sum::<Result<u64, UsageError>>();
    // The numbers that fill every layout are there once for each problem.
    let of_inputs = |problem: &Problem| {
        let elements = InputSpec::of(problem).iter().map(|spec| spec.shape.elements()).sum::<u64>();
        elements.saturating_mul(problem.dtype().bytes())
    };
    let inputs: u64 = ways.problems().iter().map(of_inputs).sum();
    let mut most = 0;
    for [first, second] in pairs {
        most = most.max(of_way(*first)?.saturating_add(of_way(*second)?));
    }
    Ok(most.saturating_add(inputs))
}

fn question(args: &WorkloadArgs, model: &Model, nodes: &[GraphNode], target: Target) -> Question {
    Question {
        workload: model.name.clone(),
        description: model.description.clone(),
        dims: model.dims.numbers().map(|(name, size)| (name.to_owned(), size)).collect(),
        profile: args.profile.display().to_string(),
        target,
        threshold: args.threshold,
        ops: nodes.iter().map(|node| node.problem.chain().len()).sum(),
    }
}

/// The same as `calibrate partition` has it.
fn asked(
    args: &WorkloadArgs,
    model: &Model,
    found: &Segments,
    nodes: &[GraphNode],
    target: Target,
) -> SplitQuestion {
    let Question { workload, dims, profile, threshold, ops, .. } =
        question(args, model, nodes, target);
    SplitQuestion {
        model: workload,
        dims,
        profile,
        target,
        threshold,
        ops,
        segments: found.segments().len(),
        views: found.views(),
        computed_ahead: found.computed_ahead(),
        unused: found.unused(),
    }
}

/// The commands that measure what is missing: what decisions need, into the same file, or all of it,
/// into a file of its own.
fn print_missing(args: &WorkloadArgs, missing: &[Problem], target: Target) -> anyhow::Result<u8> {
    let mut text = String::new();
    if missing.is_empty() {
        let profile = args.profile.display();
        text += &format!("# {profile} has a record of every problem of {}\n", args.model);
    } else {
        let options = target::options(target);
        let dims = args.dims();
        let dims: String = dims.iter().map(|dim| format!(" --dim {}", shell::word(dim))).collect();
        let (model, profile) = (shell::word(&args.model), shell::file(&args.profile));
        text += "# what the decisions about it need, into the same file\n";
        text += &format!("calibrate --for {model}{dims} --profile {profile}{options}\n");
        text += &format!("# each of {} problems, into a file of its own\n", missing.len());
        text += &format!("calibrate{options} --output missing.toml");
        for problem in missing {
            text += &format!(" \\\n  --problem {problem}");
        }
        text.push('\n');
    }
    let mut out = Destination::new(args.place()?)?;
    out.write_text(&text)?;
    out.finish()?;
    Ok(exit::DONE)
}

fn write(report: &WorkloadReport, args: &WorkloadArgs, place: Option<Place>) -> anyhow::Result<()> {
    let top = usize::try_from(args.top)?;
    let mut out = Destination::new(place)?;
    match args.format() {
        WorkloadFormat::Text => {
            let width = match args.output {
                Some(_) => Width::Unlimited,
                None => Width::of_stdout(),
            };
            out.write_text(&report.text(top, width))?;
        }
        WorkloadFormat::Markdown => {
            out.write_all(plain::text(&report.markdown(top)).as_bytes())?;
        }
        WorkloadFormat::Csv => out.write_all(&report.sheet().csv()?)?,
        WorkloadFormat::Json => write_json(&mut out, report)?,
    }
    out.finish()
}
