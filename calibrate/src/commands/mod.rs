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
pub mod run;
pub mod selftest;
pub mod show;
mod target;
pub mod validate;
pub mod workload;
mod written;
