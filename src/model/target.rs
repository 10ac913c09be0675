//! Where a problem would run.

use std::fmt;

use crate::calibration::FusionRecord;
use crate::vocabulary::{Backend, CacheState, Clock, Implementation, Rewrite};

/// Where a problem would run, and what its time would be. All of it must match: a question about a
/// GPU is never answered from a CPU's measurements, nor one about 16 threads from those of one, nor
/// one about a captured graph ([`Clock::Device`]) from what eager execution pays for its launches
/// ([`Clock::LaunchInclusive`]).
///
/// [`FusionCostModel::targets`](super::FusionCostModel::targets) lists those of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Target {
    /// What runs it.
    pub backend: Backend,
    /// On how many threads; 1 on a GPU.
    pub threads: u32,
    /// What the caches hold when it begins.
    pub cache_state: CacheState,
    /// What its time begins and ends with.
    pub clock: Clock,
    /// Whose kernels run.
    pub implementation: Implementation,
}

impl Target {
    /// The CPU with `threads` threads and warm caches.
    #[must_use]
    pub const fn cpu(threads: u32) -> Self {
        Self {
            backend: Backend::Cpu,
            threads,
            cache_state: CacheState::Warm,
            clock: Clock::Host,
            implementation: Implementation::Native,
        }
    }

    /// A GPU with warm caches and the project's own kernels, by one of its clocks.
    #[must_use]
    pub const fn gpu(backend: Backend, clock: Clock) -> Self {
        Self { backend, clock, ..Self::cpu(1) }
    }

    /// The same target with another number of threads.
    #[must_use]
    pub const fn with_threads(self, threads: u32) -> Self {
        Self { threads, ..self }
    }

    /// The same target by another clock.
    #[must_use]
    pub const fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The same target with caches in another state.
    #[must_use]
    pub const fn with_cache_state(self, cache_state: CacheState) -> Self {
        Self { cache_state, ..self }
    }

    /// The same target with someone else's kernels.
    #[must_use]
    pub const fn with_implementation(self, implementation: Implementation) -> Self {
        Self { implementation, ..self }
    }

    pub(super) fn of(record: &FusionRecord) -> Self {
        let FusionRecord { backend, threads, cache_state, clock, implementation, .. } = *record;
        Self { backend, threads, cache_state, clock, implementation }
    }
}

/// A target, and what the ops are rewritten to before they are fused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct View {
    pub(super) target: Target,
    pub(super) rewrite: Option<Rewrite>,
}

impl View {
    pub(super) fn of(record: &FusionRecord) -> Self {
        Self { target: Target::of(record), rewrite: record.rewrite }
    }
}

/// The target in words: `cpu, 8 threads, warm caches`. Kernels of a CPU are named unless they are the
/// project's own.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { backend, threads, cache_state, clock, implementation } = self;
        let threads = format!("{threads} thread{}", if *threads == 1 { "" } else { "s" });
        let on = match clock {
            Clock::Host if implementation.is_native() => threads,
            Clock::Host => format!("{threads}, {implementation} kernels"),
            clock => format!("{clock} clock, {implementation} kernels"),
        };
        f.pad(&format!("{backend}, {on}, {cache_state} caches"))
    }
}
