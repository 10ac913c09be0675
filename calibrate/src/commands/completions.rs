//! `calibrate completions SHELL`.

use std::io::Write;

use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArgs};
use crate::exit;

/// Prints the completion script.
///
/// # Errors
///
/// When stdout cannot be written.
pub fn completions(args: &CompletionsArgs) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "calibrate", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(exit::DONE)
}
