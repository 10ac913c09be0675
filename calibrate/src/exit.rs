//! Exit codes, and the one place where an error is printed.

use std::process::ExitCode;

use fusion_cost_model::VocabularyError;
use thiserror::Error;

/// Done; each record carries its verdict.
pub const DONE: u8 = 0;
/// Something failed.
pub const FAILURE: u8 = 1;
/// The command line, or a file that it names, asks for something that does not exist.
pub const USAGE: u8 = 2;
/// With `--strict`: some records are ambiguous or invalid, or the hardware is not the one named.
pub const NOT_TRUSTED: u8 = 3;
/// Interrupted by Ctrl-C, after writing what was done: 128 plus the number of the signal, as
/// shells report it.
pub const INTERRUPTED: u8 = 130;

/// The user asked for something that cannot be.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Prints an error, if there is one, and gives the exit code.
pub fn report(result: anyhow::Result<u8>) -> ExitCode {
    let error = match result {
        Ok(code) => return ExitCode::from(code),
        Err(error) => error,
    };
    // Whoever reads the output has closed it (`calibrate list | head`): that is no failure.
    if let Some(io) = error.downcast_ref::<std::io::Error>()
        && io.kind() == std::io::ErrorKind::BrokenPipe
    {
        return ExitCode::from(DONE);
    }
    eprintln!("error: {error:#}");
    let is_usage =
        error.chain().any(|cause| cause.is::<UsageError>() || cause.is::<VocabularyError>());
    ExitCode::from(if is_usage { USAGE } else { FAILURE })
}
