//! The `trace-tool` program.

#![warn(clippy::print_stderr, clippy::print_stdout)]

use std::process::ExitCode;

use clap::FromArgMatches;
use cli_support::{exit, file_limit};
use trace_tool::TraceCommand;
use trace_tool::cli::program;

fn main() -> ExitCode {
    file_limit::fail_beyond_it();
    let matches = program().try_get_matches();
    let command = matches.and_then(|matches| TraceCommand::from_arg_matches(&matches));
    let run = |command| trace_tool::run(&command, || Ok(Vec::new()));
    exit::report(command.map_err(Into::into).and_then(run))
}
