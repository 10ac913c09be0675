//! Exit codes, and the one place where an error is printed.

use std::process::ExitCode;

use thiserror::Error;

use crate::command_line;

/// Done; each record carries its verdict.
pub const DONE: u8 = 0;
/// Something failed.
pub const FAILURE: u8 = 1;
/// The command line asks for something that does not exist or cannot be.
pub const USAGE: u8 = 2;
/// With `--strict`: some records are ambiguous or invalid, the time was up before everything was
/// measured, or the hardware is not the one named. Also a self-test that came to no answer.
pub const NOT_TRUSTED: u8 = 3;
/// A test found what it tests for: a regression, or intervals that are too narrow.
pub const FOUND: u8 = 4;
/// The backend that was asked for is not there: a library or the device is missing.
pub const NO_DEVICE: u8 = 5;
/// Interrupted, after writing what was done: 128 plus the number of Ctrl-C's signal, as shells
/// report it.
pub const INTERRUPTED: u8 = 130;

/// The user asked for something that cannot be.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The backend is not there, or not this device of it.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct NoDeviceError(pub String);

/// The user ended it before it had anything to show.
#[derive(Debug, Error)]
#[error("interrupted before anything was done")]
pub struct InterruptedError;

/// Whether the reader has closed the output (`trace-tool kernels | head`), which is not a failure.
#[must_use]
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

/// What came of printing something that decides an exit code: a reader who closes the output, such as
/// `head`, does not change what was found.
///
/// # Errors
///
/// That of printing, for any other reason.
pub fn if_read(printed: anyhow::Result<()>) -> anyhow::Result<()> {
    match printed {
        Err(error) if is_broken_pipe(&error) => Ok(()),
        printed => printed,
    }
}

/// An error with its causes, except those that its message already contains.
#[must_use]
pub fn message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = cause;
        } else if !message.contains(&cause) {
            message.push_str(": ");
            message.push_str(&cause);
        }
    }
    message
}

/// Prints an error, if there is one, and gives the exit code.
pub fn report(result: anyhow::Result<u8>) -> ExitCode {
    let error = match result {
        Ok(code) => return ExitCode::from(code),
        Err(error) => error,
    };
    if is_broken_pipe(&error) {
        return ExitCode::from(DONE);
    }
    if let Some(error) = error.downcast_ref::<clap::Error>() {
        let code = if error.use_stderr() { USAGE } else { DONE };
        return report(command_line::print(error).map(|()| code).map_err(Into::into));
    }
    if error.is::<InterruptedError>() {
        crate::say!("{error}");
        return ExitCode::from(INTERRUPTED);
    }
    crate::say!("error: {}", message(&error));
    let is_usage = error.chain().any(|cause| {
        let model = cause.downcast_ref::<fusion_cost_model::Error>();
        cause.is::<UsageError>() || model.is_some_and(fusion_cost_model::Error::is_invalid_question)
    });
    let is_missing = error.chain().any(|cause| cause.is::<NoDeviceError>());
    ExitCode::from(if is_missing {
        NO_DEVICE
    } else if is_usage {
        USAGE
    } else {
        FAILURE
    })
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::message;

    #[test]
    fn causes_are_told_once() {
        let error = Err::<(), _>(anyhow!("no such file")).context("cannot read x").unwrap_err();
        assert_eq!(message(&error), "cannot read x: no such file");
        let told = Err::<(), _>(anyhow!("no such file")).context("cannot read x: no such file");
        assert_eq!(message(&told.unwrap_err()), "cannot read x: no such file");
    }
}
