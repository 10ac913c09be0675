//! Tests of the crate from outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod agreement;
mod checks;
mod collectives;
mod compare_beside;
mod compare_operators;
mod compare_real;
mod compare_sums;
mod compare_truth;
mod damage;
mod epilogues;
mod fixtures;
mod index;
mod index_round_trip;
mod labels;
mod loaded;
mod memory;
mod names;
mod original_comparison;
mod pairs;
mod phases;
mod profilers;
mod real;
mod real_traces;
mod same_work;
mod segments;
mod segments_truth;
mod synthetic;
mod truth;
mod written;
