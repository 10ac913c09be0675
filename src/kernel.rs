//! What kernel authors need to know about a problem, and partitioners do not.
//!
//! - [`Form`]: what a chain computes on, and with it the [`SizeKey`]s of its sizes.
//! - [`Step`]: one op of a problem, with the shape of everything that it reads and writes.
//! - [`Operand`]s: the tensors that an op reads besides its input.
//! - The formulas of pointwise ops ([`Pointwise::apply`](crate::Pointwise::apply)), which are
//!   generic over the [`Value`] that they compute with.
//!
//! What kernels cost on paper is in [`cost`](crate::cost).

pub use crate::vocabulary::{
    DROPOUT_PROBABILITY, Form, LEAKY_SLOPE, MAX_FOLDED, Matrix, NORM_EPSILON, Operand, OperandKind,
    Operands, PoolSizes, RMS_EPSILON, SizeKey, Step, Value,
};
