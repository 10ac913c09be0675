//! `calibrate --for MODEL` and `calibrate --refresh OLD`: runs that choose what to measure.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use cli_support::input;
use cli_support::output;
use cli_support::plain;
use cli_support::shell;
use cli_support::width::Width;
use fusion_cost_model::calibration::{HardwareCalibration, RunEnd};
use fusion_cost_model::{
    Backend, FusionCostModel, Policy, Problem, Target as ModelTarget, WhenUnknown,
};

use super::rounds::Rounds;
use super::run::{Done, measure};
use super::show;
use crate::cli::{CachePolicy, RunArgs};
use crate::drift::{Drift, Finding};
use crate::exit::{self, UsageError};
use crate::machine::Machine;
use crate::plan::{Questions, Request, questions};
use crate::record::{Files, of_nothing, why_not_extended};
use crate::report;
use crate::run::Target;
use crate::stop::Stop;

/// Problems of an older calibration that are measured again, unless another number is asked for.
const POINTS_TO_REFRESH: usize = 8;

/// What decides whether a decision is safe: whatever is faster is fused.
const POLICY: Policy = Policy::new(WhenUnknown::Conservative);

/// Chooses what to measure, measures it, and says what is known then.
///
/// # Errors
///
/// When a file cannot be read, is of another machine or another build of the program, or as a
/// calibration.
pub fn next(args: &RunArgs) -> anyhow::Result<u8> {
    match (&args.next.for_model, &args.next.refresh) {
        (Some(model), _) => for_model(args, model, &Place::find(args)?),
        (None, Some(older)) => refresh(args, older, &Place::find(args)?),
        (None, None) => super::run::run(args),
    }
}

/// Where such a run measures.
struct Place {
    target: Target,
    machine: Machine,
    stop: Stop,
}

impl Place {
    fn find(args: &RunArgs) -> anyhow::Result<Self> {
        let stop = Stop::listen()?;
        let target = Target::find(args.device()?, &stop)?;
        let machine = Machine::identify(&args.hardware, target.observe())?;
        Ok(Self { target, machine, stop })
    }
}

fn for_model(args: &RunArgs, path: &Path, place: &Place) -> anyhow::Result<u8> {
    let Place { target, machine, stop } = place;
    let Questions { source, problems, opaque } = questions(path, &args.next.dim)?;
    let named = args.output.clone().or_else(|| args.next.profile.clone());
    let output = named.unwrap_or_else(|| Files::usual(&machine.id()));
    let mut base = match &args.next.profile {
        Some(profile) => {
            Some(own(HardwareCalibration::load(input::announce(profile))?, profile, machine)?)
        }
        None => existing(&output, machine)?,
    };
    let nothing = || of_nothing(machine, &args.settings(target, 0));
    let on = model_target(args, target);
    let of = match opaque {
        0 => source.clone(),
        1 => format!("{source} (and 1 node that no kernel is known for)"),
        _ => format!("{source} (and {opaque} nodes that no kernel is known for)"),
    };
    let mut rounds = Rounds::new(args.next.points, args.time_budget);
    let mut last: Option<Done> = None;
    loop {
        let model = FusionCostModel::new(base.clone().unwrap_or_else(nothing));
        let coverage = model.on(on).coverage(&problems, &POLICY);
        let missing = || coverage.to_measure.iter().map(|point| point.problem);
        let points =
            if last.as_ref().is_none_or(may_go_on) { rounds.next(missing()) } else { vec![] };
        let mut text = report::coverage(&coverage, &of, Width::of_stdout());
        match last {
            None if args.measures_nothing() || points.is_empty() => {
                return print(&text).map(|()| exit::DONE);
            }
            Some(done) if points.is_empty() => {
                let Some(file) = &done.saved else { return Ok(done.exit_code) };
                text += &format!("{:<12}{}\n", "time", seconds(rounds.elapsed()));
                let is_open = !done.is_complete || rounds.left(missing()).next().is_some();
                let then = match (is_open, coverage.to_measure.is_empty()) {
                    (true, _) => Some("run the same command again to measure what is left"),
                    (false, false) => Some(
                        "what is left was measured and does not count; `calibrate show` says why, \
                         and the same command measures it again",
                    ),
                    (false, true) => None,
                };
                if let Some(then) = then {
                    text += &Width::of_stdout().wrap(&format!("{:<12}", "next"), then, 12);
                }
                return finish(args, &done, file, &text);
            }
            _ => text.lines().for_each(|line| cli_support::say!("{line}")),
        }
        let round = RunArgs {
            output: Some(output.clone()),
            time_budget: rounds.time_left(),
            ..args.clone()
        };
        let request = request(args, points, format!("for {source}"));
        let done = measure(&round, &request, base.take(), stop)?;
        if done.saved.is_none() {
            return Ok(done.exit_code);
        }
        base = Some(done.calibration.clone());
        last = Some(done);
    }
}

/// Whether another round may follow this one: it was measured to its end, and nothing failed.
const fn may_go_on(done: &Done) -> bool {
    done.is_complete && done.exit_code != exit::FAILURE
}

fn refresh(args: &RunArgs, path: &Path, place: &Place) -> anyhow::Result<u8> {
    let Place { target, machine, stop } = place;
    let older = HardwareCalibration::load(input::expect(path))?;
    let name = path.display();
    let is_same = older.fingerprint.is_same_machine(&machine.fingerprint);
    if older.hardware.id != machine.id() || !is_same {
        let of = older.machine();
        return Err(UsageError(format!("{name} is of another machine, {of}")).into());
    }
    let output = args.output.clone().unwrap_or_else(|| path.with_extension("refreshed.toml"));
    if output::Target::place_of(&output) == output::Target::place_of(path) {
        let text = format!("--output {name} would replace the calibration that is to be refreshed");
        return Err(UsageError(text).into());
    }
    let on = model_target(args, target);
    let model = FusionCostModel::new(older.clone());
    let problems = model.on(on).points_to_refresh(usize::MAX, &[]);
    if problems.is_empty() {
        let others = model.targets().iter().filter(|other| **other != on);
        let others: Vec<String> = others.map(ToString::to_string).collect();
        let but = match &others[..] {
            [] => String::new(),
            others => format!("; it has records on {}", others.join("; ")),
        };
        return Err(UsageError(format!("{name} has no valid records on {on}{but}")).into());
    }
    let base = existing(&output, machine)?;
    let measured: Vec<Problem> =
        base.iter().flat_map(|base| &base.records).map(|one| one.problem).collect();
    let count = args.next.points.unwrap_or(POINTS_TO_REFRESH);
    let points = model.on(on).points_to_refresh(count, &measured);
    if args.measures_nothing() {
        let lines: String = points.iter().map(|point| format!("{point}\n")).collect();
        return print(&lines).map(|()| exit::DONE);
    }
    // A request without a problem would be one for all sizes.
    if let (true, Some(base)) = (points.is_empty(), &base) {
        let (output, count) = (output.display(), problems.len());
        cli_support::say!("{output} has all {count} problems of {name}; nothing was measured");
        let drift = Drift::between(&older, base, on);
        let text = drift.map(|drift| report::drift(&drift, Width::of_stdout()));
        return print(&text.unwrap_or_default()).map(|()| exit::DONE);
    }
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let request = request(args, points, format!("a refresh of {file_name}"));
    let done = measure(&with_output(args, output), &request, base, stop)?;
    let Some(file) = &done.saved else { return Ok(done.exit_code) };
    let Some(drift) = Drift::between(&older, &done.calibration, on) else {
        cli_support::say!("nothing valid was measured that could be compared with {name}");
        return Ok(done.exit_code.max(exit::FAILURE));
    };
    let refreshed = FusionCostModel::new(done.calibration.clone()).with_prior(older)?;
    let left = refreshed.on(on).coverage(&problems, &POLICY).to_measure.len();
    let mut text = report::drift(&drift, Width::of_stdout());
    text.push('\n');
    for line in what_next(args, path, file, &drift, left) {
        text += &Width::of_stdout().wrap("", &line, 2);
    }
    finish(args, &done, file, &text)
}

/// What the drift means, and the command that comes next.
fn what_next(
    args: &RunArgs,
    older: &Path,
    newer: &Path,
    drift: &Drift,
    left: usize,
) -> Vec<String> {
    let name = older.display();
    let count: usize = drift.families.iter().map(|one| one.records).max().unwrap_or(0);
    let mut lines = vec![match (drift.finding(), drift.of_speedups()) {
        (Finding::Same, _) => format!("{name} has not drifted: keep using it."),
        (Finding::Drifted, Finding::Drifted) => format!("{name} has drifted."),
        (Finding::Drifted, Finding::Same) => format!(
            "The times of {name} have drifted, by another program or another state of the machine. \
             Its speedups hold, and with them what is worth fusing."
        ),
        (Finding::Drifted, Finding::Undecided) => format!(
            "The times of {name} have drifted, by another program or another state of the machine. \
             Whether its speedups have is not decided by {count} problems."
        ),
        (Finding::Undecided, _) => {
            format!("Whether {name} has drifted is not decided by {count} problems.")
        }
    }];
    if drift.finding() == Finding::Same {
        return lines;
    }
    lines.push(format!(
        "With {} as the file and {name} as its prior, the model answers all of its problems:",
        newer.display()
    ));
    let [older, newer] = [older, newer].map(shell::file);
    lines.push(format!("  calibrate query {newer} --prior {older} --problem PROBLEM"));
    if left > 0 {
        let noun = if left == 1 { "problem makes" } else { "problems make" };
        lines.push(format!("{left} more {noun} every decision about them safe that can be:"));
        let options = same_options(args);
        lines.push(format!(
            "  calibrate --refresh {older} --points {left} --output {newer}{options}"
        ));
    }
    lines
}

/// The options that make another run measure on the same target.
fn same_options(args: &RunArgs) -> String {
    let mut options = String::new();
    if args.backend != Backend::Cpu {
        options += &format!(" --backend {}", args.backend);
    }
    if let Some(threads) = args.threads {
        options += &format!(" --threads {threads}");
    }
    if args.cache == CachePolicy::Cold {
        options += " --cache cold";
    }
    if !args.runtime.is_empty() {
        options += &format!(" --runtime {}", shell::word(&args.runtime.join(",")));
    }
    options
}

/// A calibration that records of this run can be added to.
fn own(
    base: HardwareCalibration,
    path: &Path,
    machine: &Machine,
) -> Result<HardwareCalibration, UsageError> {
    match why_not_extended(&base, machine) {
        None => Ok(base),
        Some(why) => Err(UsageError(format!(
            "records of this run do not belong into {}: {why}; name another --output, or use it \
             with --refresh",
            path.display()
        ))),
    }
}

/// The calibration that is at the place of the output; `None` where there is none, or only a part of
/// one, which its journal continues.
fn existing(output: &Path, machine: &Machine) -> anyhow::Result<Option<HardwareCalibration>> {
    if !output.exists() {
        return Ok(None);
    }
    let found = HardwareCalibration::load(input::announce(output))?;
    if found.settings.end != RunEnd::Complete {
        return Ok(None);
    }
    Ok(Some(own(found, output, machine)?))
}

/// Where a partitioner would ask.
fn model_target(args: &RunArgs, target: &Target) -> ModelTarget {
    let cache = args.cache.into();
    let ways = args.ways(target);
    let implementation = ways.implementations.first().copied().unwrap_or_default();
    match target.device.backend {
        Backend::Cpu => ModelTarget::cpu(u32::try_from(target.device.threads).unwrap_or(u32::MAX)),
        backend => {
            let clock = ways.clocks.first().copied().unwrap_or_default();
            ModelTarget::gpu(backend, clock)
        }
    }
    .with_implementation(implementation)
    .with_cache_state(cache)
}

fn request(args: &RunArgs, problems: Vec<Problem>, source: String) -> Request {
    Request { problems, source: Some(source), ..args.request() }
}

fn with_output(args: &RunArgs, output: PathBuf) -> RunArgs {
    RunArgs { output: Some(output), ..args.clone() }
}

/// Prints the result; with --json the calibration, and the result beside it.
fn finish(args: &RunArgs, done: &Done, file: &Path, text: &str) -> anyhow::Result<u8> {
    if args.json {
        text.lines().for_each(|line| cli_support::say!("{line}"));
        show::print_if_read(&done.calibration, file, true)?;
    } else {
        print(text)?;
    }
    Ok(done.exit_code)
}

fn print(text: &str) -> anyhow::Result<()> {
    let written = std::io::stdout().write_all(plain::text(text).as_bytes());
    exit::if_read(written.context("cannot write the result"))
}

fn seconds(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs())).to_string()
}
