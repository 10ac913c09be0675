//! The stages of a calibration: plan, prove, measure, judge, record, report.
//!
//! Facts flow one way through them, and no stage calls an earlier one. The command line in
//! `main.rs` and [`commands`] puts them together.

pub mod build_info;
pub mod cli;
pub mod commands;
pub mod fingerprint;
pub mod journal;
pub mod judge;
pub mod launch;
mod limits;
pub mod machine;
pub mod machine_lock;
pub mod measure;
pub mod output;
pub mod plan;
pub mod preflight;
pub mod profiles;
pub mod prove;
pub mod reason;
pub mod record;
pub mod report;
pub mod selftest;
pub mod session;
pub mod shapes;
pub mod stop;
pub mod subject;
mod system_files;
pub mod throttle;

pub use cli_support::exit;
