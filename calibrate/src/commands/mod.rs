//! The commands: each puts the stages together.

pub mod compare;
pub mod completions;
pub mod config;
pub mod doctor;
pub mod export;
pub mod import;
mod index;
pub mod list;
pub mod man;
pub mod merge;
pub mod next;
pub mod partition;
pub mod query;
pub mod report;
mod rounds;
pub mod run;
pub mod selftest;
pub mod show;
mod target;
pub mod validate;
pub mod workload;
mod written;

use crate::judge::Reason;
use crate::measure::Estimate;

/// Why a run ended after its first pass, from what that found.
fn only_disturbed<'e>(estimates: impl IntoIterator<Item = &'e Estimate>) -> String {
    let why = Reason::mostly_disturbed(estimates);
    format!("the run ended after its first pass: {why}; --force goes on all the same")
}
