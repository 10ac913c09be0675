//! `calibrate`: the main job.

use std::path::Path;
use std::time::SystemTime;

use anyhow::Context;
use fused_kernels::Backend;
use fused_kernels::cpu::Cpu;
use fusion_cost_model::calibration::{
    FusionRecord, HardwareCalibration, SCHEMA_VERSION, Settings, Tool, Verdict,
};

use super::show;
use crate::cli::RunArgs;
use crate::exit::{self, UsageError};
use crate::journal::{Journal, RunKey};
use crate::machine::Machine;
use crate::measure::Procedure;
use crate::plan::plan;
use crate::session::Session;
use crate::stop::Stop;
use crate::{fingerprint, output};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Calibrates.
///
/// # Errors
///
/// When the command line asks for what cannot be, or a file cannot be written.
pub fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let machine = Machine::identify(&args.hardware, fingerprint::observe())?;
    if let Some(mismatch) = machine.mismatch() {
        if args.require_hardware {
            return Err(UsageError(format!("{mismatch}; --require-hardware refuses that")).into());
        }
        eprintln!("warning: {mismatch}");
    }
    let mut cpu = Cpu::new(threads(args)?)?;
    let plan = plan(args, &cpu)?;
    let path = output::path(args.output.as_deref(), &machine.id());
    output::check_writable(&path)?;
    let stop = Stop::listen()?;

    let key = RunKey {
        tool_version: VERSION.to_owned(),
        fingerprint: machine.fingerprint.clone(),
        threads: cpu.threads(),
        quick: args.quick,
        seed: args.seed,
    };
    let (journal, recovered) = Journal::open(&Journal::path_for(&path), &key)?;
    recovered.notes.iter().for_each(|note| eprintln!("note: {note}"));

    let started_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let replaces_whole =
        HardwareCalibration::load(&path).is_ok_and(|calibration| !calibration.settings.interrupted);
    let procedure = if args.quick { Procedure::QUICK } else { Procedure::STANDARD };
    let mut session = Session::new(&mut cpu, procedure, args.seed, &stop, journal);
    session.resume(recovered.records);
    let outcome = session.run(&plan)?;

    let calibration = HardwareCalibration {
        schema_version: SCHEMA_VERSION,
        num_records: outcome.records.len() as u64,
        tool: Tool {
            name: "calibrate".to_owned(),
            version: VERSION.to_owned(),
            build: build(),
            started_at,
        },
        settings: Settings {
            requested_hardware: machine.requested.clone(),
            hardware_matches: machine.matches,
            shapes: plan.shapes,
            quick: args.quick,
            seed: args.seed,
            rounds: u32::try_from(procedure.rounds).unwrap_or(u32::MAX),
            launches: 1,
            interrupted: outcome.interrupted,
        },
        hardware: machine.spec(&outcome.ceilings),
        fingerprint: machine.fingerprint.clone(),
        ceilings: outcome.ceilings,
        noise: outcome.noise,
        skipped: outcome.skipped,
        records: outcome.records,
    };
    save(&calibration, &path, replaces_whole, outcome.journal, outcome.left_over)?;
    match show::print(&calibration, args.json) {
        Err(error) if !exit::is_broken_pipe(&error) => return Err(error),
        _ => {}
    }
    if let Some(mismatch) = machine.mismatch() {
        eprintln!("warning: {mismatch}");
    }
    Ok(exit_code(args, &calibration, outcome.wrong))
}

fn threads(args: &RunArgs) -> anyhow::Result<usize> {
    /// More would only be a typing error.
    const MOST: usize = 4096;
    match args.threads {
        None => Ok(fingerprint::default_threads()),
        Some(0) => Err(UsageError("--threads must be at least 1".to_owned()).into()),
        Some(threads) if threads > MOST => {
            Err(UsageError(format!("--threads must be at most {MOST}")).into())
        }
        Some(threads) => {
            let available = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            if threads > available {
                eprintln!(
                    "warning: {threads} threads on {available} processors take turns; the times \
                     say little"
                );
            }
            Ok(threads)
        }
    }
}

/// How the program was built.
fn build() -> String {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!("{profile}, {}-{}", std::env::consts::ARCH, std::env::consts::OS)
}

/// Writes the file, and removes the journal once everything is in the file.
fn save(
    calibration: &HardwareCalibration,
    path: &Path,
    replaces_whole: bool,
    journal: Journal,
    left_over: usize,
) -> anyhow::Result<()> {
    let interrupted = calibration.settings.interrupted;
    if calibration.records.is_empty() && interrupted {
        eprintln!("nothing was finished; no file was written");
        return Ok(());
    }
    // A part must not take the place of a whole calibration.
    let partial = output::partial(path);
    let target = if interrupted && replaces_whole { &partial } else { path };
    calibration.save(target)?;
    eprintln!("wrote {}", target.display());
    if interrupted {
        return Ok(());
    }
    if partial.exists() {
        std::fs::remove_file(&partial)
            .with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    if left_over > 0 {
        eprintln!(
            "note: {} keeps {left_over} records of problems that this run did not ask for",
            Journal::path_for(path).display()
        );
        return Ok(());
    }
    journal.finish()
}

fn exit_code(args: &RunArgs, calibration: &HardwareCalibration, wrong: bool) -> u8 {
    let untrusted =
        |record: &FusionRecord| matches!(record.verdict, Verdict::Ambiguous | Verdict::Invalid);
    if calibration.settings.interrupted {
        exit::INTERRUPTED
    } else if wrong {
        exit::FAILURE
    } else if args.strict
        && (!calibration.settings.hardware_matches || calibration.records.iter().any(untrusted))
    {
        exit::NOT_TRUSTED
    } else {
        exit::DONE
    }
}
