//! The CPU backend: kernels on a pool of threads, which compute in f32 on tensors of f32, bf16 or f16,
//! and multiply 8-bit integers.
//!
//! `lower` turns a problem into kernels; each kernel file holds one core with the parts that may
//! follow it, so that the unfused and the fused variant run the same code. Below them are `element`
//! (how numbers are stored; `bf16` and `f16` on `halves`, `bytes`), `strip` (the micro-kernel of GEMMs),
//! `pairs` and `fours` (those for bf16 and for 8-bit integers), `amx` (that for these and f16 on a matrix
//! unit), `panels` and `transpose` (packed weights and keys), `gemm` (the `gemm` crate), `tail`
//! (pointwise ops on vector registers), `row_ops`, and the `pool`.
//!
//! `prepared` gives the kernels their `tensors` in an `arena`, and runs them; `sequences` runs the
//! layers of a model one after the other.

mod ahead;
mod amx;
mod approximation;
mod arena;
mod attention;
mod backend;
mod bf16;
mod bytes;
mod caches;
mod causal_mask;
mod ceilings;
#[cfg(test)]
mod conforms;
mod conv;
mod counters;
mod element;
mod elementwise;
mod epilogue;
mod f16;
mod factors;
mod fold;
mod folded;
mod fours;
mod gemm;
mod halves;
mod huge_pages;
mod kernel;
mod lanes;
mod layer;
mod linear;
mod lower;
mod max_pool;
mod memory;
#[cfg(all(target_arch = "aarch64", not(miri)))]
mod neon;
mod nontemporal;
mod numeric;
mod pairs;
mod panels;
mod pool;
mod prepared;
mod requantize;
mod row_ops;
mod row_piece;
mod row_stage;
mod row_sums;
mod row_target;
mod rows;
mod sequences;
mod strip;
mod sums;
mod tail;
mod tensors;
mod topology;
mod transpose;
mod vendor;
mod widened;

pub use backend::{Cpu, Vectors};
pub use caches::observed_caches;
pub(crate) use counters::processor_time_of;
pub use counters::{counters_of_this_thread, processor_time_of_this_process};
pub use sequences::{Feed, Layer, Sequences};
