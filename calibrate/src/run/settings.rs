//! How a run is made.

use std::time::Duration;

use fusion_cost_model::{Backend, CacheState};

use crate::measure::Procedure;
use crate::worker::CoreChoice;

/// How a run is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunSettings {
    /// How much is measured.
    pub procedure: Procedure,
    /// What runs it.
    pub backend: Backend,
    /// On how many threads.
    pub threads: u32,
    /// What the caches hold.
    pub cache: CacheState,
    /// The second-level cache of a GPU; `None` for a CPU.
    pub l2_bytes: Option<u64>,
    /// Where all random numbers come from.
    pub seed: u64,
    /// Over what time the planned processes of a problem are spread at least.
    pub spread: Duration,
    /// Whether to go on where nothing is left undisturbed.
    pub forced: bool,
    /// When the run has to be over.
    pub time_budget: Option<Duration>,
    /// Which cores of a GPU the kernels may be written with.
    pub cores: CoreChoice,
}
