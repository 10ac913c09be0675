//! `calibrate trace`: GPU profiler traces.
//!
//! [`open`] finds and reads the traces for every subcommand, and [`destination`] is where their
//! results go.

mod destination;
mod info;
mod kernels;
mod open;
mod rows;

use crate::cli::TraceCommand;
use crate::exit;

/// Looks into traces.
///
/// # Errors
///
/// When a file cannot be read, or is no trace, or the result cannot be written.
pub fn trace(command: &TraceCommand) -> anyhow::Result<u8> {
    match command {
        TraceCommand::Info(args) => info::info(args)?,
        TraceCommand::Kernels(args) if args.rows => rows::rows(args)?,
        TraceCommand::Kernels(args) => kernels::kernels(args)?,
    }
    Ok(exit::DONE)
}
