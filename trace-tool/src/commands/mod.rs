//! The commands of the trace tool. `open` finds and reads the traces for each of them.

mod compare;
mod copies;
mod idle;
mod index;
mod info;
mod kernels;
mod layers;
mod open;
mod phase;
mod problems;
mod rates;
mod rows;
mod survey;
mod validate;

use cli_support::exit;
use cli_support::output::write_json;
use fusion_cost_model::hardware::HardwareSpec;

use crate::cli::TraceCommand;

/// The data sheets that a program has built in.
pub type Machines = fn() -> anyhow::Result<Vec<HardwareSpec>>;

/// Looks into traces. Programs that have data sheets of machines give them.
///
/// # Errors
///
/// When a file cannot be read, or is not a trace, or the result cannot be written.
pub fn run(command: &TraceCommand, machines: Machines) -> anyhow::Result<u8> {
    kernel_traces::end_with_message_when_files_shrink();
    match command {
        TraceCommand::Info(args) => info::info(args)?,
        TraceCommand::Kernels(args) if args.rows => rows::rows(args)?,
        TraceCommand::Kernels(args) => kernels::kernels(args)?,
        TraceCommand::Layers(args) => layers::layers(args)?,
        TraceCommand::Idle(args) => idle::idle(args)?,
        TraceCommand::Rates(args) => rates::rates(args, machines)?,
        TraceCommand::Problems(args) => problems::problems(args)?,
        TraceCommand::Compare(args) => compare::compare(args, machines)?,
        TraceCommand::Index(args) => return index::index(args),
        TraceCommand::Validate(args) => return validate::validate(args),
    }
    Ok(exit::DONE)
}
