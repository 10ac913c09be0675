//! `calibrate`: the main job.

use std::path::{Path, PathBuf, absolute};
use std::time::SystemTime;

use fusion_cost_model::calibration::{
    Check, FusionRecord, HardwareCalibration, RunEnd, SCHEMA_VERSION, Settings, Skipped, Verdict,
};

use fusion_cost_model::FileKind;

use super::{device, show};
use crate::cli::RunArgs;
use crate::exit::{self, UsageError};
use crate::machine::preflight::{self, GpuNeeds, Needs};
use crate::machine::{Machine, MachineLock, fingerprint};
use crate::measure::Procedure;
use crate::plan::{Needed, Plan, Subject, bytes_needed, controls, wanted};
use crate::record::{Context, record};
use crate::report::Progress;
use crate::run::{Entry, Journal, Measured, Outcome, Part, RunKey, RunSettings, Session, State};
use crate::stop::Stop;
use crate::worker::{Device, FoundGpu, Processes};
use crate::{build_info, output};

/// Calibrates.
///
/// # Errors
///
/// When the command line asks for what cannot be, or a file cannot be written.
pub fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let device = device::device(args)?;
    let ways = device::ways(args, device.backend);
    let wanted = wanted(args, device.gpu.is_some())?;
    let found = device::find(&device)?;
    let mut fingerprint = fingerprint::observe();
    fingerprint.gpu = found.as_ref().map(|found| found.observed.clone());
    let machine = Machine::identify(&args.hardware, fingerprint)?;
    if let Some(mismatch) = machine.mismatch() {
        if args.require_hardware {
            return Err(UsageError(format!("{mismatch}; --require-hardware refuses that")).into());
        }
        eprintln!("warning: {mismatch}");
    }
    let l2_bytes = found.as_ref().map(|found| found.observed.l2_bytes);
    let mut subjects = wanted.subjects(&ways);
    let asked_for = subjects.len();
    subjects.extend(controls(&ways.clocks, l2_bytes)?);
    let bytes = device::ask(&device, subjects.clone(), args.cache.into())?;
    let needs = needs(&device, found.as_ref(), &subjects, &bytes);
    let plan = wanted.plan(
        &ways,
        bytes.get(..asked_for).unwrap_or_default(),
        device::available(found.as_ref()),
    )?;
    let path = output::path(args.output.as_deref(), &machine.id());
    output::check_writable(&path)?;
    if let Some(samples) = &args.samples {
        output::check_writable(samples)?;
        let own = [path.clone(), output::partial(&path), Journal::path_for(&path)];
        let same = |own: &PathBuf| absolute(own).ok() == absolute(samples).ok();
        if own.iter().any(same) {
            let text = format!("--samples {} is the calibration's own file", samples.display());
            return Err(UsageError(text).into());
        }
    }
    let checks = preflight::check(&needs);
    let forced = go_on_with(&checks, args.force)?;
    let _lock = MachineLock::take();
    let stop = Stop::listen()?;

    let procedure = if args.quick { Procedure::QUICK } else { Procedure::STANDARD };
    let procedure = procedure.with(args.launches, args.rounds);
    let settings = RunSettings {
        procedure,
        backend: device.backend,
        threads: u32::try_from(device.threads).unwrap_or(u32::MAX),
        cache: args.cache.into(),
        l2_bytes,
        seed: args.seed,
        time_budget: args.time_budget,
    };
    let started_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let mut tool = build_info::tool(started_at.clone());
    let key = RunKey {
        tool_version: tool.version.clone(),
        program: build_info::binary_digest(),
        fingerprint: machine.fingerprint.clone(),
        device: device.for_journal(),
        cache: settings.cache,
        procedure,
        seed: args.seed,
    };
    let (mut journal, recovered) = Journal::open(&Journal::path_for(&path), &key)?;
    recovered.notes.iter().for_each(|note| eprintln!("note: {note}"));
    let this_part = Part { started_at, forced, checks };
    journal.append(&Entry::Part(this_part.clone()))?;
    let whole_run = whole_run(&recovered.entries, this_part);
    let Part { started_at, forced, checks } = whole_run.clone();
    tool.started_at = started_at;

    // What cannot be read is not for a part to replace either.
    let replaces_whole = path.exists()
        && !HardwareCalibration::load(&path)
            .is_ok_and(|calibration| calibration.settings.end != RunEnd::Complete);
    let mut launcher = Processes::new(device, &stop)?;
    let session = Session::new(&mut launcher, settings, &plan.subjects, &stop)?;
    let outcome =
        session.observed_by(Progress::new()).with_journal(journal, recovered.entries).run()?;

    let Outcome { measured, controls, noise, ceilings, end, left_over, journal } = outcome;
    let context = Context { settings: &settings, noise: &noise, ceilings: &ceilings };
    let records = records(&measured, &context);
    let calibration = HardwareCalibration {
        kind: FileKind::Calibration,
        schema_version: SCHEMA_VERSION,
        num_records: records.len() as u64,
        tool,
        settings: Settings {
            requested_hardware: machine.requested.clone(),
            hardware_matches: machine.matches,
            shapes: plan.shapes.clone(),
            quick: args.quick,
            seed: args.seed,
            processes: procedure.launches,
            most_processes: procedure.most_launches,
            rounds: procedure.rounds,
            time_budget_s: args.time_budget.map(|budget| budget.as_secs_f64()),
            forced,
            end,
        },
        hardware: machine.spec(&ceilings),
        fingerprint: machine.fingerprint.clone(),
        checks,
        skipped: skipped(&plan, &measured, end),
        ceilings,
        noise,
        records,
    };
    let saved = save(&calibration, &path, replaces_whole)?;
    if let Some(mut journal) = journal {
        if let Some(samples) = &args.samples {
            journal.copy_to(samples)?;
            eprintln!("wrote {}", samples.display());
        }
        let all = || measured.iter().chain(&controls);
        let failed = all().any(|one| matches!(one.state, State::Failed(_)));
        if end == RunEnd::Complete && failed {
            let path = Journal::path_for(&path);
            eprintln!("note: {} stays; the same command tries again what failed", path.display());
        } else if end == RunEnd::Complete && left_over.is_empty() {
            journal.finish()?;
        } else if end == RunEnd::Complete {
            eprintln!(
                "note: {} keeps {} launches of problems that this run did not ask for",
                Journal::path_for(&path).display(),
                left_over.len()
            );
            journal.keep_only(whole_run, &left_over)?;
        }
    }
    if !saved {
        eprintln!("nothing was measured; no file was written");
        return Ok(if end == RunEnd::Interrupted { exit::INTERRUPTED } else { exit::FAILURE });
    }
    match show::print(&calibration, args.json) {
        Err(error) if !exit::is_broken_pipe(&error) => return Err(error),
        _ => {}
    }
    if let Some(mismatch) = machine.mismatch() {
        eprintln!("warning: {mismatch}");
    }
    Ok(exit_code(args, &calibration, measured.iter().chain(&controls)))
}

/// This part of a run together with what the journal tells of earlier ones.
fn whole_run(entries: &[Entry], this_part: Part) -> Part {
    let part = |entry: &Entry| match entry {
        Entry::Part(part) => Some(part.clone()),
        _ => None,
    };
    let mut parts: Vec<Part> = entries.iter().filter_map(part).collect();
    parts.push(this_part.clone());
    Part::all(&parts).unwrap_or(this_part)
}

/// The threads of the kernels: those asked for, else one per physical core.
pub(super) fn threads(asked: Option<usize>) -> Result<usize, UsageError> {
    /// More would only be a typing error.
    const MOST: usize = 4096;
    match asked {
        None => Ok(fingerprint::default_threads()),
        Some(0) => Err(UsageError("--threads must be at least 1".to_owned())),
        Some(threads) if threads > MOST => {
            Err(UsageError(format!("--threads must be at most {MOST}")))
        }
        Some(threads) => Ok(threads),
    }
}

/// What the machine must have for the largest of some subjects that fit into it.
fn needs(
    device: &Device,
    found: Option<&FoundGpu>,
    subjects: &[Subject],
    bytes: &[Result<u64, String>],
) -> Needs {
    let available = device::available(found);
    let needed = |(subject, bytes): (&Subject, &Result<u64, String>)| {
        let needed = bytes_needed(&subject.problem, *bytes.as_ref().ok()?, found.is_some());
        available.suffices(needed).then_some(needed)
    };
    let needed = subjects.iter().zip(bytes).filter_map(needed);
    let most =
        needed.reduce(|a, b| Needed { host: a.host.max(b.host), device: a.device.max(b.device) });
    let Needed { host, device: needed } = most.unwrap_or_default();
    let gpu = found.map(|found| GpuNeeds {
        needed,
        free: found.free_memory,
        total: found.observed.memory_bytes,
    });
    Needs { threads: device.threads, memory_bytes: host, gpu }
}

/// Says what the checks found; whether the run goes on in spite of a failed one.
pub(super) fn go_on_with(checks: &[Check], force: bool) -> anyhow::Result<bool> {
    eprint!("{}", preflight::report(checks));
    let failed = preflight::has_failed(checks);
    if failed && !force {
        anyhow::bail!("the machine is in no state to be measured (see above); --force goes on");
    }
    Ok(failed)
}

/// The records of everything that has at least one launch and is not wrong.
fn records(measured: &[Measured], context: &Context<'_>) -> Vec<FusionRecord> {
    let usable = measured
        .iter()
        .filter(|measured| matches!(measured.state, State::Finished | State::Unfinished));
    let made = usable.filter_map(|Measured { subject, launches, estimate, .. }| {
        Some(record(subject, launches, estimate.as_ref()?, context))
    });
    made.collect()
}

/// Everything that has no record, with the reason.
fn skipped(plan: &Plan, measured: &[Measured], end: RunEnd) -> Vec<Skipped> {
    let mut skipped = plan.skipped.clone();
    for Measured { subject, launches, state, .. } in measured {
        let problem = subject.problem;
        let reason = match state {
            State::Wrong(wrong) => format!("{subject}: {wrong}"),
            State::Failed(reason) => format!("{subject}: {reason}"),
            State::NoKernels => format!("{subject}: the backend has no kernels for it"),
            State::Unfinished if launches.is_empty() => match end {
                RunEnd::TimeBudget => {
                    format!("{subject}: the time was up; the same command goes on with it")
                }
                _ => format!("{subject}: interrupted before; the same command goes on with it"),
            },
            State::Finished | State::Unfinished => continue,
        };
        skipped.push(Skipped { problem, reason });
    }
    skipped
}

/// Writes the file, if there is anything to write.
fn save(
    calibration: &HardwareCalibration,
    path: &Path,
    replaces_whole: bool,
) -> anyhow::Result<bool> {
    let is_part = calibration.settings.end != RunEnd::Complete;
    if calibration.records.is_empty() && is_part {
        return Ok(false);
    }
    // A part must not take the place of a whole calibration.
    let partial = output::partial(path);
    let target = if is_part && replaces_whole { &partial } else { path };
    calibration.save(target)?;
    eprintln!("wrote {}", target.display());
    if !is_part {
        output::remove_if_there(&partial)?;
    }
    Ok(true)
}

fn exit_code<'a>(
    args: &RunArgs,
    calibration: &HardwareCalibration,
    mut measured: impl Iterator<Item = &'a Measured>,
) -> u8 {
    let failed = |measured: &Measured| matches!(measured.state, State::Wrong(_) | State::Failed(_));
    let wrong = measured.any(|measured| {
        failed(measured) || measured.launches.iter().any(|report| report.wrong_after.is_some())
    });
    let untrusted =
        |record: &FusionRecord| matches!(record.verdict, Verdict::Ambiguous | Verdict::Invalid);
    if calibration.settings.end == RunEnd::Interrupted {
        exit::INTERRUPTED
    } else if wrong {
        exit::FAILURE
    } else if args.strict
        && (!calibration.settings.hardware_matches
            || calibration.settings.end != RunEnd::Complete
            || calibration.records.iter().any(untrusted))
    {
        exit::NOT_TRUSTED
    } else {
        exit::DONE
    }
}
