//! What a backend does: prepare problems, run their variants, measure its limits.

use std::time::Duration;

use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{Backend as BackendName, DType, Problem};
use thiserror::Error;

use crate::inputs::Inputs;

/// One of the two ways to run a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// One kernel per op; every intermediate result goes through memory.
    Unfused,
    /// One kernel for the whole chain.
    Fused,
}

impl Variant {
    /// Both, in the order in which they are reported.
    pub const ALL: [Self; 2] = [Self::Unfused, Self::Fused];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unfused => "unfused",
            Self::Fused => "fused",
        }
    }
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What a backend cannot do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The tensors of a problem do not fit.
    #[error("cannot allocate {bytes} bytes for {problem}: {source}")]
    Memory {
        /// The problem.
        problem: Box<Problem>,
        /// How much it needs.
        bytes: u64,
        /// Why there is not so much.
        source: std::io::Error,
    },
    /// The system gives no threads.
    #[error("cannot start {threads} threads: {source}")]
    Threads {
        /// How many were wanted.
        threads: usize,
        /// Why there are not so many.
        source: std::io::Error,
    },
}

/// Runs problems on one device.
pub trait Backend {
    /// Which backend this is.
    fn name(&self) -> BackendName;

    /// On how many threads kernels run; 1 on a GPU.
    fn threads(&self) -> u32;

    /// Bytes that preparing a problem would allocate on the device; `None` when the backend has
    /// no kernels for it.
    fn memory_needed(&self, problem: &Problem) -> Option<u64>;

    /// Makes both variants of a problem ready to run on its inputs; `None` when the backend has
    /// no kernels for it, which is not an error.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when the device has not enough memory.
    fn prepare<'b>(
        &'b mut self,
        problem: &Problem,
        inputs: &'b Inputs,
    ) -> Result<Option<Box<dyn Prepared + 'b>>, BackendError>;

    /// Measures the limits of the device for a number format; `None` when it does not compute in
    /// it. Takes a few seconds.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when the device has not enough memory.
    fn ceilings(&mut self, dtype: DType) -> Result<Option<Ceilings>, BackendError>;
}

/// A problem whose variants can be run.
pub trait Prepared {
    /// The kernels that a variant runs, in order, each with how it works.
    fn kernels(&self, variant: Variant) -> Vec<String>;

    /// Draws a new placement of all tensors in memory and writes the inputs there. Both variants
    /// use the same placement.
    fn new_layout(&mut self, seed: u64);

    /// Fills everything but the inputs with NaN: the output, intermediate results and scratch, so
    /// that an element that is read or left without having been written is seen.
    fn poison(&mut self);

    /// Runs a variant `iterations` times and returns how long that took.
    fn run(&mut self, variant: Variant, iterations: u32) -> Duration;

    /// The output that the last run left.
    fn output(&mut self) -> Vec<f32>;
}
