//! `calibrate`: the main job.

use std::io::{Write as _, stderr};
use std::path::{Path, PathBuf};

use cli_support::width::Width;
use cli_support::{input, plain, say, shell};
use fusion_cost_model::CacheState;
use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, RunEnd, Verdict};

use super::show;
use crate::cli::{ProgressChoice, RunArgs};
use crate::exit::UsageError;
use crate::machine::{KnownStates, Machine, MachineLock, preflight};
use crate::plan::{EmptyShard, Plan, Request, Wanted, controls, wanted};
use crate::record::{Files, Run, calibration, extended};
use crate::report::{Baseline, Progress, ProgressLines};
use crate::run::{Begun, Journal, Part, RunKey, Session, Target};
use crate::stop::Stop;
use crate::worker::{KERNEL_LIMIT, Processes, TASK_LIMIT};
use crate::{exit, report};

/// What came of a run.
pub struct Done {
    /// Everything that the file holds.
    pub calibration: HardwareCalibration,
    /// The file; `None` where nothing was measured.
    pub saved: Option<PathBuf>,
    /// Whether every problem was measured that could be.
    pub is_complete: bool,
    /// What to exit with.
    pub exit_code: u8,
}

/// Calibrates.
///
/// # Errors
///
/// When the command line asks for something impossible, or a file cannot be written.
pub fn run(args: &RunArgs) -> anyhow::Result<u8> {
    args.next.check()?;
    match run_asked(args) {
        // By chance; the other tasks have all.
        Err(error) if error.is::<EmptyShard>() => {
            say!("{error}");
            Ok(exit::DONE)
        }
        result => result,
    }
}

fn run_asked(args: &RunArgs) -> anyhow::Result<u8> {
    let stop = Stop::listen()?;
    if args.plan {
        return print_plan(args, &stop);
    }
    if args.shard.is_some() && args.output.is_none() {
        let message = "--shard wants a file of its own for each part; name it with --output";
        return Err(UsageError(message.to_owned()).into());
    }
    let Done { calibration, saved, exit_code, .. } = measure(args, &args.request(), None, &stop)?;
    if let Some(file) = &saved {
        show::print_if_read(&calibration, file, args.json)?;
    }
    Ok(exit_code)
}

/// Prints what would be measured.
fn print_plan(args: &RunArgs, stop: &Stop) -> anyhow::Result<u8> {
    let wanted = filtered(args, &args.request())?;
    let target = Target::find(args.device()?, stop)?;
    let (plan, needs) = target.plan(wanted, &args.ways(&target), args.cache.into(), stop)?;
    let controls = controls(&plan.subjects, target.l2_bytes())?.len();
    let procedure = args.procedure();
    let width = Width::of_stdout();
    let text = report::plan(&plan, controls, &procedure, args.spread(), &needs, width);
    exit::if_read(std::io::stdout().write_all(plain::text(&text).as_bytes()).map_err(Into::into))?;
    Ok(if plan.has_failures { exit::FAILURE } else { exit::DONE })
}

/// The problems that are requested, as far as they match the filter and are of the part.
fn filtered(args: &RunArgs, request: &Request) -> anyhow::Result<Wanted> {
    let mut wanted = wanted(request)?;
    if let Some(filter) = &args.filter {
        wanted = wanted.matching(filter)?;
    }
    if let Some(choice) = args.shard {
        wanted = wanted.of(choice.shard(|name| std::env::var(name).ok())?)?;
    }
    Ok(wanted)
}

/// Measures what is requested, and writes it to the output, together with what another file of this
/// machine holds already.
///
/// # Errors
///
/// Those of [`run`].
pub fn measure(
    args: &RunArgs,
    request: &Request,
    base: Option<HardwareCalibration>,
    stop: &Stop,
) -> anyhow::Result<Done> {
    let device = args.device()?;
    let wanted = filtered(args, request)?;
    let target = Target::find(device, stop)?;
    let machine = Machine::identify(&args.hardware, target.observe())?;
    machine.warn_of_mismatch(args.require_hardware)?;
    let (plan, needs) = target.plan(wanted, &args.ways(&target), args.cache.into(), stop)?;
    let files = Files::choose(
        &machine.id(),
        args.output.as_deref(),
        args.samples.as_deref(),
        args.overwrite,
    )?;
    if let Some(baseline) = &args.baseline {
        files.keep("--baseline", baseline)?;
    }
    let checks = preflight::check(&needs);
    let forced = preflight::go_on_with(&checks, args.force)?;
    let cache: CacheState = args.cache.into();
    let baseline = match &args.baseline {
        Some(file) => Some(baseline(file, &machine, &target, cache, &plan)?),
        None => None,
    };
    let _lock = MachineLock::take(args.force)?;

    let key = RunKey::of(&machine, &target.device, args.cache.into(), args.procedure());
    let part = Part::now(forced, checks);
    let Begun { journal, entries, parts, seed } =
        Journal::begin(&files.journal(), &key, args.seed()?, part)?;
    let settings = args.settings(&target, seed);
    let limit = args.process_limit.unwrap_or(TASK_LIMIT);
    let kernel_limit = args.gpu.kernel_limit.unwrap_or(KERNEL_LIMIT);
    let workers = Processes::new(target.device.clone(), stop)?.with_limit(limit);
    let mut workers = workers.with_kernel_limit(kernel_limit);
    let session = Session::new(&mut workers, settings, &plan.subjects, stop)?;
    let session = session.observed_by(match args.progress {
        ProgressChoice::Auto => Box::new(Progress::new().against(baseline)),
        ProgressChoice::Log => Box::new(Progress::new().as_log().against(baseline)),
        ProgressChoice::Json => Box::new(ProgressLines::new(stderr()).against(baseline)),
    });
    let mut outcome = session.with_journal(journal, entries).run()?;

    let (settings, quick) = (&settings, args.quick);
    let known = KnownStates::of_user(&machine.fingerprint, settings.threads);
    let earlier_states = &known.other_than(outcome.machine.describe())[..];
    let run = Run {
        machine: &machine,
        runtimes: target.runtimes(),
        plan: &plan,
        settings,
        parts: &parts,
        quick,
        earlier_states,
    };
    let measured = calibration(&run, &outcome);
    // A debug build or a busy machine, which only --force measures, shows states that nobody returns to.
    if !settings.forced {
        known.remember(outcome.undisturbed_states().describe());
    }
    let nothing = measured.records.is_empty();
    let calibration = match base {
        Some(base) if !nothing => extended(base, measured),
        _ => measured,
    };
    let saved = files.save(&calibration)?;
    outcome.close_journal(files.samples(), parts)?;
    if outcome.end == RunEnd::Disturbed {
        let estimates = outcome.all().filter_map(|one| one.estimate.as_ref());
        say!("error: {}", super::only_disturbed(estimates));
    }
    if let Some(saved) = &saved {
        machine.warn_of_mismatch(false)?;
        if let Some(baseline) = &args.baseline {
            let [old, new] = [baseline, saved].map(|path| shell::file(path));
            say!("what changed, all problems together: calibrate compare {old} {new}");
        }
    } else {
        say!("nothing was measured; no file was written: {}", why_nothing(outcome.end));
        let journal = files.journal();
        if outcome.end != RunEnd::Complete && journal.exists() {
            let path = journal.display();
            say!(
                "{path} keeps what its processes have measured; the same command goes on from there"
            );
        }
    }
    let has_failures = plan.has_failures || outcome.has_failures();
    let ends = (outcome.end, has_failures);
    let exit_code = exit_code(ends, &calibration, saved.is_some(), args.strict);
    let is_complete = outcome.end == RunEnd::Complete;
    Ok(Done { calibration, saved, is_complete, exit_code })
}

/// Reads the calibration that a run is held against, and says what of it is comparable.
fn baseline(
    file: &Path,
    machine: &Machine,
    target: &Target,
    cache: CacheState,
    plan: &Plan,
) -> anyhow::Result<Baseline> {
    let calibration = HardwareCalibration::load(input::expect(file))?;
    let file = file.display();
    if !calibration.fingerprint.is_same_machine(&machine.fingerprint) {
        say!(
            "warning: {file} is of another machine, {}; changes are between machines",
            calibration.machine()
        );
    }
    let threads = u32::try_from(target.device.threads).unwrap_or(u32::MAX);
    let baseline = Baseline::of(&calibration, target.device.backend, threads, cache);
    let all = plan.subjects.len();
    let held = plan.subjects.iter().filter(|subject| baseline.holds(subject)).count();
    say!("{file} has {held} of {all} problems");
    Ok(baseline)
}

fn why_nothing(end: RunEnd) -> &'static str {
    match end {
        RunEnd::Interrupted => "the run was interrupted before any of its problems had a process",
        RunEnd::TimeBudget => "the time was over before any of its problems had a process",
        RunEnd::Complete | RunEnd::Disturbed => "no problem could be measured (see above)",
    }
}

fn exit_code(
    (end, has_failures): (RunEnd, bool),
    calibration: &HardwareCalibration,
    is_saved: bool,
    strict: bool,
) -> u8 {
    let untrusted =
        |record: &FusionRecord| matches!(record.verdict, Verdict::Ambiguous | Verdict::Invalid);
    let is_trusted = calibration.settings.hardware_matches
        && end == RunEnd::Complete
        && !calibration.records.iter().any(untrusted);
    if end == RunEnd::Interrupted {
        exit::INTERRUPTED
    } else if !is_saved || has_failures || end == RunEnd::Disturbed {
        exit::FAILURE
    } else if strict && !is_trusted {
        exit::NOT_TRUSTED
    } else {
        exit::DONE
    }
}
