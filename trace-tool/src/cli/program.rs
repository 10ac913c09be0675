//! The command line of the program `trace-tool`.

use clap::{Command, Subcommand};

use super::TraceCommand;

/// The name of the program.
const NAME: &str = "trace-tool";

/// How the texts of the commands call the tool, which is also a subcommand.
const AS_SUBCOMMAND: &str = "calibrate trace";

/// The commands of `calibrate trace` as a program of their own, called by its name in every help
/// text.
#[must_use]
pub fn program() -> Command {
    let program = Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .about("Looks into GPU profiler traces (PyTorch, nsys or rocprofv3)")
        .subcommand_required(true)
        .arg_required_else_help(true);
    renamed(TraceCommand::augment_subcommands(program))
}

/// The same commands with the program's own name in their texts.
fn renamed(mut command: Command) -> Command {
    if let Some(help) = command.get_after_help() {
        let help = help.to_string().replace(AS_SUBCOMMAND, NAME);
        command = command.after_help(help);
    }
    let help = |help: &clap::builder::StyledStr| help.to_string().replace(AS_SUBCOMMAND, NAME);
    command
        .mut_args(|arg| match arg.get_help().map(help) {
            Some(help) => arg.help(help),
            None => arg,
        })
        .mut_subcommands(renamed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_calls_the_program_by_its_name() {
        let mut program = program();
        program.build();
        for command in program.get_subcommands_mut() {
            let help = command.render_long_help().to_string();
            assert!(help.contains(NAME), "{help}");
            assert!(!help.contains("calibrate trace"), "{help}");
        }
    }
}
