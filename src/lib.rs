//! What kernel fusion really gains on a machine, for graph partitioners.
//!
//! A calibration file records, for one machine, how long op chains take unfused (one kernel per
//! op) and fused (one kernel), with the evidence. This crate is what a partitioner links: it reads
//! such files and answers questions about them. It measures nothing itself; the `calibrate` program
//! does.

#![forbid(unsafe_code)]

pub mod calibration;
pub mod cost;
mod error;
pub mod hardware;
pub mod kernel;
mod model;
mod vocabulary;

pub use error::Error;
pub use model::{
    Decision, Estimate, Evidence, FusionCostModel, Interval, OnTarget, Policy, SpeedupRange,
    Target, WhenUnknown,
};
pub use vocabulary::{
    AttentionSizes, Backend, CacheState, Chain, Clock, ConvSizes, DType, Family, Implementation,
    LinearSizes, MlpSizes, Op, PATTERNS, Pattern, Pointwise, PoolWindow, Problem, RowsSizes, Sizes,
};
