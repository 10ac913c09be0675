//! The trace tool as a user meets it.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(feature = "parquet")]
#[path = "../duckdb/mod.rs"]
mod duckdb;
mod idle;
mod index;
#[cfg(feature = "parquet")]
mod many_ranks;
mod outputs;
mod phases;
mod program;
mod ranks;
mod rates;
mod reports;
#[cfg(target_os = "linux")]
mod shrinking;
mod sources;
