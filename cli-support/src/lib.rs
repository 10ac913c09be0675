//! What the command lines of `calibrate` and `trace-tool` share, so that both end with the same
//! exit codes, print errors and numbers alike, and write a file whole or not at all.

#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod colour;
mod command_line;
pub mod exit;
pub mod file_limit;
pub mod input;
pub mod markdown;
pub mod memory;
pub mod output;
pub mod page;
pub mod plain;
pub mod ranked;
pub mod sheet;
pub mod shell;
pub mod stderr;
pub mod tables;
pub mod units;
pub mod width;
