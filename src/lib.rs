//! What kernel fusion really gains on a machine, for graph partitioners.
//!
//! A calibration file records, for one machine, how long op chains take unfused (one kernel per
//! op) and fused (one kernel), with the evidence. This crate reads such files and answers questions
//! about them, also about sizes and chains that were not measured. It measures nothing itself; the
//! `calibrate` program does.
//!
//! # A partitioner
//!
//! ```
#![doc = include_str!("../examples/partitioner.rs")]
//! ```
//!
//! # Usage
//!
//! 1. Load a file: [`FusionCostModel::load`], and [`expecting_hardware`] where it must be a certain
//!    machine's.
//! 2. Bind a [`Target`] once: [`FusionCostModel::on`]. [`FusionCostModel::targets`] lists those of
//!    the file.
//! 3. Make [`Problem`]s from numbers: a [`Chain`] of [`Op`]s, a [`DType`], and sizes. Names of
//!    frameworks parse to chains, and problems have a text form for logs.
//! 4. Ask the target: [`estimate`] says what is known, [`decide`] compares that with the threshold
//!    of a [`Policy`], [`should_fuse`] asks about two neighbours, and [`partition`] or
//!    [`partition_graph`] find the best split of a chain or a graph.
//! 5. See how well a file knows itself: [`validate`] asks about each of its records without it.
//! 6. Ask what to measure next: [`coverage`] of a list of problems.
//!
//! # What an answer rests on
//!
//! [`Estimate::evidence`] says it. The first of these that is available answers; with an older
//! calibration, that comes before what is interpolated:
//!
//! | evidence | the answer comes from |
//! |---|---|
//! | [`Measured`] | a record of this very problem, as it is in the file |
//! | [`ComposedAtSize`] | a chain that differs in some ops, measured at this size, plus the new ops and minus the old ones, each as measured by themselves; or a longer one, without ops that are free in it |
//! | [`Interpolated`] | records of the same chain at sizes around this one, or of a longer one that only has free ops more |
//! | [`ComposedBetween`] | as composed at size, from a chain that was measured at sizes around this one |
//! | [`Prior`] | an older calibration of the machine, corrected by newer records: [`FusionCostModel::with_prior`] |
//! | [`Extrapolated`] | the nearest records, at smaller or larger sizes: [`Estimate::octaves_beyond`] says how far away |
//! | [`Roofline`] | the machine's measured ceilings, and what fusion gained of them elsewhere |
//! | [`Unknown`] | nothing |
//!
//! Both times and the speedup have 95 % intervals, whose widths come from how far estimates of the
//! file's own records are off when each is left out. A policy decides by a roofline only if it says
//! so ([`WhenUnknown::Roofline`]), and what to do when nothing is known is the caller's choice too.
//! Whatever fails is an [`Error`], which says what was wrong, where, and what to do.
//!
//! [`Measured`]: Evidence::Measured
//! [`ComposedAtSize`]: Evidence::ComposedAtSize
//! [`Interpolated`]: Evidence::Interpolated
//! [`ComposedBetween`]: Evidence::ComposedBetween
//! [`Prior`]: Evidence::Prior
//! [`Extrapolated`]: Evidence::Extrapolated
//! [`Roofline`]: Evidence::Roofline
//! [`Unknown`]: Evidence::Unknown
//!
//! # The modules
//!
//! - [`calibration`]: all that a file holds, and [`hardware`]: the data sheet in it.
//! - [`compare`]: calibrations against each other; [`imported`]: profiles of other calibrators.
//! - [`cost`]: what a problem costs on paper, in flops, bytes, and by the roofline.
//! - [`kernel`]: what authors of kernels need of a problem besides.
//!
//! [`expecting_hardware`]: FusionCostModel::expecting_hardware
//! [`estimate`]: OnTarget::estimate
//! [`decide`]: OnTarget::decide
//! [`should_fuse`]: OnTarget::should_fuse
//! [`coverage`]: OnTarget::coverage
//! [`partition`]: OnTarget::partition
//! [`partition_graph`]: OnTarget::partition_graph
//! [`validate`]: OnTarget::validate

#![warn(clippy::print_stderr, clippy::print_stdout)]
#![forbid(unsafe_code)]

pub mod calibration;
pub mod compare;
pub mod cost;
mod error;
mod file_kind;
pub mod hardware;
pub mod imported;
pub mod kernel;
mod measured_file;
mod model;
mod place;
mod range;
mod text_file;
mod vocabulary;

pub use error::Error;
pub use file_kind::FileKind;
pub use measured_file::MeasuredFile;
pub use model::{
    Accuracy, Alternative, Coverage, Covered, Decision, Errors, Estimate, Evidence,
    FusionCostModel, GraphNode, Interval, LeaveOut, NextPoint, NodeOps, OnTarget, Partition,
    Policy, PossibleKernel, Regret, Segment, SpeedupRange, Target, Trial, WhenUnknown,
    possible_kernels,
};
pub use vocabulary::{
    AttentionSizes, Backend, CacheState, Chain, Clock, ConvSizes, Core, DType, Family, ImageSizes,
    Implementation, LinearSizes, MlpSizes, Op, PATTERNS, Pattern, Pointwise, PoolWindow, Problem,
    Rewrite, RowsSizes, RuntimeId, Sizes,
};
