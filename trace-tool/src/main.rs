//! The `trace-tool` program.

#![warn(clippy::print_stderr, clippy::print_stdout)]

use std::process::ExitCode;

use clap::FromArgMatches;
use cli_support::{exit, file_limit};
use trace_tool::TraceCommand;
use trace_tool::cli::program;

fn main() -> ExitCode {
    file_limit::fail_beyond_it();
    let matches = program().get_matches();
    match TraceCommand::from_arg_matches(&matches) {
        Ok(command) => exit::report(trace_tool::run(&command, || Ok(Vec::new()))),
        Err(error) => error.exit(),
    }
}
