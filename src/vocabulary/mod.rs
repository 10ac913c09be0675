//! The words that every part of the project shares: ops, chains, patterns, problems.

mod aliases;
mod backend;
mod chain;
mod dtype;
mod form;
mod gpu_core;
mod implementation;
mod op;
mod pattern;
mod pointwise;
mod problem;
mod rewrite;
mod segments;
mod size_keys;
mod sizes;
mod steps;
mod typed_sizes;
mod value;

pub use backend::{Backend, CacheState, Clock};
pub use chain::Chain;
pub use dtype::DType;
pub use form::Form;
pub use gpu_core::Core;
pub use implementation::{Implementation, RuntimeId};
pub use op::Op;
pub use pattern::{Family, PATTERNS, Pattern};
pub use pointwise::{
    DROPOUT_PROBABILITY, LEAKY_SLOPE, MAX_FOLDED, NORM_EPSILON, Operand, OperandKind, Operands,
    Pointwise, RMS_EPSILON,
};
pub use problem::Problem;
pub use rewrite::Rewrite;
pub use size_keys::SizeKey;
pub use sizes::Sizes;
pub use steps::{Matrix, Step};
pub use typed_sizes::{
    AttentionSizes, ConvSizes, ImageSizes, LinearSizes, MlpSizes, PoolSizes, PoolWindow, RowsSizes,
};
pub use value::Value;
