//! Tests of the program and of the crate from outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod command_line;
mod compare;
mod decisions;
mod defaults;
mod export;
mod files;
mod fleet;
#[path = "../../trace-tool/tests/compare/headless.rs"]
mod headless;
mod index;
mod next;
mod pages;
mod partition;
mod report;
mod session;
mod trace_problems;
mod workload;
