//! What kernel fusion really gains on a machine, for graph partitioners.
//!
//! A calibration file records, for one machine, how long op chains take unfused (one kernel per
//! op) and fused (one kernel), with the evidence. This crate reads such files and answers questions
//! about them. It measures nothing itself; the `calibrate` program does.
//!
//! # A partitioner
//!
//! ```
#![doc = include_str!("../examples/partitioner.rs")]
//! ```
//!
//! # How it goes
//!
//! 1. Load a file: [`FusionCostModel::load`], and [`expecting_hardware`] where it must be a certain
//!    machine's.
//! 2. Bind a [`Target`] once: [`FusionCostModel::on`]. [`FusionCostModel::targets`] lists those of
//!    the file.
//! 3. Make [`Problem`]s from numbers: a [`Chain`] of [`Op`]s, a [`DType`], and sizes. Names of
//!    frameworks parse to chains, and problems have a text form for logs.
//! 4. Ask the target: [`estimate`] says what is known, [`decide`] compares that with the threshold
//!    of a [`Policy`], and [`should_fuse`] asks about two neighbours.
//!
//! An answer is never a guess that looks like a measurement: [`Estimate::evidence`] says where it
//! comes from, and what to do when nothing is known is the caller's choice ([`WhenUnknown`]).
//! Whatever fails is an [`Error`], which says what was wrong, where, and what to do.
//!
//! # The modules
//!
//! - [`calibration`]: all that a file holds, and [`hardware`]: the data sheet in it.
//! - [`cost`]: what a problem costs on paper, in flops, bytes, and by the roofline.
//! - [`kernel`]: what authors of kernels need of a problem besides.
//!
//! [`expecting_hardware`]: FusionCostModel::expecting_hardware
//! [`estimate`]: OnTarget::estimate
//! [`decide`]: OnTarget::decide
//! [`should_fuse`]: OnTarget::should_fuse

#![forbid(unsafe_code)]

pub mod calibration;
pub mod cost;
mod error;
mod file_kind;
pub mod hardware;
pub mod kernel;
mod model;
mod vocabulary;

pub use error::Error;
pub use file_kind::FileKind;
pub use model::{
    Decision, Estimate, Evidence, FusionCostModel, Interval, OnTarget, Policy, SpeedupRange,
    Target, WhenUnknown,
};
pub use vocabulary::{
    AttentionSizes, Backend, CacheState, Chain, Clock, ConvSizes, DType, Family, ImageSizes,
    Implementation, LinearSizes, MlpSizes, Op, PATTERNS, Pattern, Pointwise, PoolWindow, Problem,
    RowsSizes, Sizes,
};
