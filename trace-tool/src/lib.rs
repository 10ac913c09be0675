//! The trace tool: what `trace-tool` and `calibrate trace` do.
//!
//! [`cli`] says what can be asked, `commands` answers with the library `kernel-traces`, and
//! [`report`] writes the answers as text, tables and pages. [`scenario_list`] is the one format of
//! files that is the tool's own. Nothing here runs a kernel.

#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod cli;
mod commands;
pub mod report;
pub mod scenario_list;

pub use cli::TraceCommand;
pub use commands::{Machines, run};
