//! Tests of the crate from outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod allocations;
mod between_parts;
mod beyond;
mod calibration_file;
mod changed;
mod chosen;
mod compare;
mod composition;
mod consistent;
mod contradictions;
mod cost_model;
mod coverage;
mod edges;
mod edits;
mod estimates;
mod examples;
mod exchanges;
mod first_steps;
mod gpu;
mod hostile_steps;
mod latency_tables;
mod made;
mod on_a_gpu;
mod order;
mod other_machines;
mod partition;
mod prior;
mod problems;
mod reasons;
mod recorded;
mod rewrites;
mod rooflines;
mod shorter_chains;
mod steps;
mod validate;
