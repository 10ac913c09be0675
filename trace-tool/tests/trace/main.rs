//! The trace tool as a user meets it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod idle;
mod index;
mod outputs;
mod phases;
mod program;
mod ranks;
mod rates;
mod reports;
mod sources;
