//! The stages of a calibration, a folder each.
//!
//! From the command line to the calibration file, each stage knows only those above it in this
//! list; the check `.ci/circles.py` keeps it so.
//!
//! | stage | what it does |
//! |---|---|
//! | [`profiles`] | the data sheets and sets of sizes that are built in |
//! | [`runtimes`] | other people's kernels that can be measured |
//! | [`plan`] | which problems to measure, and what they need |
//! | [`machine`] | which machine this is, and whether it is fit to measure on |
//! | [`prove`] | proves that both variants compute the right result |
//! | [`measure`] | measures two variants in one process, and estimates over several |
//! | [`judge`] | what a measurement says, and what it does not |
//! | [`worker`] | does one task in a process of its own |
//! | [`run`] | measures everything, pass after pass, and keeps a journal |
//! | [`record`] | the calibration file |
//! | [`export`] | records as rows for other programs |
//! | [`import`] | profiles of other calibrators |
//! | [`drift`] | how far a newer calibration is off an older one |
//! | [`doctor`] | what there is on a machine, and which kinds of kernels work |
//! | [`selftest`] | whole runs whose true result is known |
//! | [`report`] | what people read |
//!
//! [`cli`] turns options into what the stages take, and [`commands`] put the stages together:
//! `commands::run::run` is the whole flow of a calibration.

#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod build_info;
pub mod cli;
pub mod commands;
pub mod digits;
pub mod doctor;
pub mod drift;
pub mod export;
pub mod flat;
pub mod import;
pub mod judge;
pub mod machine;
pub mod measure;
pub mod plan;
pub mod profiles;
pub mod prove;
pub mod record;
pub mod report;
pub mod run;
pub mod runtimes;
pub mod selftest;
pub mod stop;
pub mod timestamp;
pub mod worker;

pub use cli_support::{exit, units};
