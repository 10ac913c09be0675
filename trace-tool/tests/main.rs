//! Tests of the program and of the crate from outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod compare;
#[cfg(feature = "parquet")]
mod duckdb;
mod trace;
mod validate;
