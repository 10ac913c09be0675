//! The words that every part of the project shares: ops, chains, patterns, problems.

mod aliases;
mod backend;
mod chain;
mod dtype;
mod error;
mod form;
mod op;
mod pattern;
mod pointwise;
mod problem;
mod size_keys;
mod sizes;
mod typed_sizes;
mod value;

pub use aliases::foreign_names;
pub use backend::{Backend, CacheState, Clock, Implementation};
pub use chain::{Chain, MAX_OPS};
pub use dtype::DType;
pub use error::{NameKind, VocabularyError};
pub use form::Form;
pub use op::Op;
pub use pattern::{Family, PATTERNS, Pattern};
pub use pointwise::{
    DROPOUT_PROBABILITY, LEAKY_SLOPE, MAX_FOLDED, NORM_EPSILON, Operand, OperandKind, Operands,
    Pointwise,
};
pub use problem::Problem;
pub use size_keys::SizeKey;
pub use sizes::Sizes;
pub use typed_sizes::{AttentionSizes, ConvSizes, LinearSizes, PoolSizes};
pub use value::Value;
