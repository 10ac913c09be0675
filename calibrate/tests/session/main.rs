//! Runs on scripted workers: passes, looks, budgets, failures, and going on after an end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod failures;
mod ladder;
mod log;
mod machine;
mod passes;
mod records;
mod resumption;
mod scripted;
