//! Unfused and fused kernels for every op chain, and an f64 reference to prove them by.
//!
//! A [`Backend`] prepares a [`Problem`](fusion_cost_model::Problem) and runs its two
//! [`Variant`]s. All of them follow from the op table of `fusion-cost-model`: there is no kernel
//! that was written for one pattern.

#![warn(clippy::print_stderr, clippy::print_stdout)]
// Sizes are u64 in problems and usize in memory; a problem is only prepared when its tensors
// fit into memory, which is what these casts rely on.
#![allow(clippy::cast_possible_truncation)]

mod affinity;
mod backend;
mod clock;
mod cold;
mod compile_service;
mod copies;
pub mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod devices;
mod digest;
pub mod gpu;
#[cfg(feature = "hip")]
mod hip;
mod inputs;
mod numbers;
mod parallel;
mod placement;
mod proof;
mod random;
mod reference;
pub mod runtime;
pub mod worker;

pub use backend::{
    Backend, BackendError, FirstRuns, KernelFacts, MachineReading, Prepared, Requirements, Sensors,
    Setup, ThreadCounters, Unsupported, Variant,
};
pub use clock::clock_tick;
pub use compile_service::CompileService;
pub use devices::survey;
pub use digest::OutputDigest;
pub use gpu::{GpuOptions, Survey};
pub use inputs::{InputSpec, Inputs, WrongInputs};
pub use proof::{Expected, OutputErrors};
pub use reference::Reference;
