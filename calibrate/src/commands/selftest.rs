//! `calibrate selftest`.

use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use cli_support::width::Width;
use cli_support::{plain, say};
use fusion_cost_model::CacheState;

use crate::cli::SelftestArgs;
use crate::machine::preflight::{self, Needs};
use crate::machine::{MachineLock, fingerprint};
use crate::measure::Procedure;
use crate::run::{RunSettings, Target};
use crate::selftest::against_itself::{self, AgainstItself, measure_planted};
use crate::selftest::simulation::{Disturbance, PROBLEMS, Simulated, Simulation};
use crate::selftest::{Answer, SelfTest};
use crate::stop::Stop;
use crate::worker::{CoreChoice, Device, Processes};
use crate::{build_info, exit, report};

/// What the largest problem of the test needs: some tensors of 16 MiB, twice where it is measured
/// against a copy.
const MEMORY_BYTES: u64 = 512 << 20;

/// Tests the procedure.
///
/// # Errors
///
/// When the command line asks for what cannot be, or no kernel can be run.
pub fn selftest(args: &SelftestArgs) -> anyhow::Result<u8> {
    let threads = args.threads();
    let procedure = Procedure::STANDARD.with(args.processes, None);
    let device = Device::cpu(threads, !args.unbound).with_runtimes(args.runtime.as_deref())?;
    let stop = Stop::listen()?;
    let device = Target::find(device, &stop)?.device;
    let runtime = device.runtimes.first().and_then(|runtime| runtime.implementation);
    let implementation = runtime.unwrap_or_default();
    let checks = preflight::check(&Needs { threads, memory_bytes: MEMORY_BYTES, gpu: None });
    // How the procedure does on a machine in a bad state is worth knowing too.
    preflight::go_on_with(&checks, true)?;
    let _lock = MachineLock::take(true)?;

    let mut simulation = Vec::new();
    let kinds = Disturbance::ALL.into_iter().flat_map(|kind| PROBLEMS.map(|count| (kind, count)));
    for (disturbance, problems) in kinds {
        if args.simulations == 0 || stop.requested() {
            break;
        }
        say!("simulating {}, {problems} problems a run", disturbance.name());
        let machines = Simulation { disturbance, problems, procedure, seed: args.seed };
        simulation.push(machines.run(args.simulations, &stop)?);
    }
    let settings = RunSettings {
        procedure,
        backend: device.backend,
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        cache: CacheState::Warm,
        l2_bytes: None,
        seed: args.seed,
        spread: Duration::ZERO,
        forced: true,
        time_budget: None,
        cores: CoreChoice::None,
    };
    let mut against_itself = Vec::new();
    if args.runs > 0 && !stop.requested() {
        let mut workers = Processes::new(device, &stop)?;
        let (runs, progress) = (args.runs, || Box::new(report::Progress::new()));
        against_itself = match args.planted {
            None => {
                let whose = implementation;
                against_itself::measure(&mut workers, settings, whose, runs, &stop, progress())?
            }
            Some(planted) => {
                vec![measure_planted(&mut workers, settings, planted, runs, &stop, progress())?]
            }
        };
    }
    let answers = simulation.iter().map(Simulated::answer);
    let mut answer =
        Answer::of_all(answers.chain(against_itself.iter().map(AgainstItself::answer)));
    if stop.requested() {
        answer = answer.max(Answer::Undecided);
    }
    let result = SelfTest {
        tool_version: build_info::VERSION.to_owned(),
        fingerprint: fingerprint::observe(),
        checks,
        threads: settings.threads,
        implementation,
        seed: args.seed,
        against_itself,
        simulation,
        result: answer,
    };
    let mut text = if args.json {
        plain::json(&serde_json::to_string_pretty(&result)?).into_owned()
    } else {
        plain::text(&report::selftest(&result, Width::of_stdout())).into_owned()
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let written = std::io::stdout().write_all(text.as_bytes());
    exit::if_read(written.context("cannot write the result"))?;
    Ok(if stop.requested() {
        exit::INTERRUPTED
    } else {
        match answer {
            Answer::Passed => exit::DONE,
            Answer::Undecided => exit::NOT_TRUSTED,
            Answer::Failed => exit::FOUND,
        }
    })
}
