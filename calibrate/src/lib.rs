//! The stages of a calibration: plan, prove, measure, judge, record, report.
//!
//! Facts flow one way through them, and no stage calls an earlier one. The command line in
//! `main.rs` and [`commands`] puts them together.

pub mod build_info;
pub mod cli;
pub mod commands;
pub mod digits;
pub mod judge;
pub mod machine;
pub mod measure;
pub mod plan;
pub mod profiles;
pub mod prove;
pub mod record;
pub mod report;
pub mod run;
pub mod selftest;
pub mod stop;
pub mod worker;

pub use cli_support::{exit, units};
