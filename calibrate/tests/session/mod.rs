//! Runs on scripted workers: passes, looks, budgets, failures, and going on after an end.

mod failures;
mod ladder;
mod log;
mod machine;
mod passes;
mod records;
mod resumption;
mod scripted;
