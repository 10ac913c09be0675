//! The `calibrate` program.

#![warn(clippy::print_stderr, clippy::print_stdout)]

use std::process::ExitCode;

use calibrate::cli::{self, Cli, Command, Defaults, ProgressChoice};
use calibrate::{commands, exit, profiles, worker};
use clap::ColorChoice;
use cli_support::{colour, file_limit, stderr};

fn main() -> ExitCode {
    file_limit::fail_beyond_it();
    let parsed = cli::parse(std::env::args_os().collect());
    exit::report(parsed.and_then(|(cli, defaults)| run(cli, &defaults)))
}

fn run(cli: Cli, defaults: &Defaults) -> anyhow::Result<u8> {
    colour::choose(match cli.color {
        ColorChoice::Auto => colour::When::Auto,
        ColorChoice::Always => colour::When::Always,
        ColorChoice::Never => colour::When::Never,
    });
    let progress = match &cli.command {
        None => Some(cli.run.progress),
        Some(Command::Workload(args)) => Some(args.progress),
        Some(_) => None,
    };
    if progress == Some(ProgressChoice::Json) {
        stderr::as_json();
    }
    match cli.command {
        None if cli.run.next.is_asked() => commands::next::next(&cli.run),
        None => commands::run::run(&cli.run),
        Some(Command::List(args)) => commands::list::list(&args),
        Some(Command::Show(args)) => commands::show::show(&args),
        Some(Command::Query(args)) => commands::query::query(&args),
        Some(Command::Compare(args)) => commands::compare::compare(&args),
        Some(Command::Report(args)) => commands::report::report(&args),
        Some(Command::Export(args)) => commands::export::export(&args),
        Some(Command::Merge(args)) => commands::merge::merge(&args),
        Some(Command::Import(args)) => commands::import::import(&args),
        Some(Command::Partition(args)) => commands::partition::partition(&args),
        Some(Command::Workload(args)) => commands::workload::workload(&args),
        Some(Command::Validate(args)) => commands::validate::validate(&args),
        Some(Command::Doctor(args)) => commands::doctor::doctor(&args),
        Some(Command::Selftest(args)) => commands::selftest::selftest(&args),
        Some(Command::Config) => commands::config::config(defaults),
        Some(Command::Trace(command)) => trace_tool::run(&command, profiles::hardware),
        Some(Command::Completions(args)) => commands::completions::completions(&args),
        Some(Command::Man(args)) => commands::man::man(&args),
        Some(Command::Worker) => match worker::serve()? {},
    }
}
