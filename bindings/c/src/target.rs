//! Where a problem would run.

use fusion_cost_model as fcm;

use crate::constants::{
    BACKENDS, Backend, CACHE_STATES, CLOCKS, CacheState, Clock, FCM_BACKEND_CPU, FCM_CACHES_WARM,
    FCM_CLOCK_HOST, FCM_IMPLEMENTATION_NATIVE, IMPLEMENTATIONS, Implementation, meaning, number,
};
use crate::error::Error;

/// Where a problem would run, and what its time would be. All of it must match: a question about one
/// target is never answered from the measurements of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Target {
    /// What runs it.
    pub backend: Backend,
    /// The number of threads; 1 on a GPU.
    pub threads: u32,
    /// What the caches hold when it begins.
    pub cache_state: CacheState,
    /// The clock of its time.
    pub clock: Clock,
    /// Whose kernels run.
    pub implementation: Implementation,
}

impl Target {
    pub(crate) fn of(target: &fcm::Target) -> Result<Self, Error> {
        Ok(Self {
            backend: number(BACKENDS, target.backend)?,
            threads: target.threads,
            cache_state: number(CACHE_STATES, target.cache_state)?,
            clock: number(CLOCKS, target.clock)?,
            implementation: number(IMPLEMENTATIONS, target.implementation)?,
        })
    }

    pub(crate) fn meaning(&self) -> Result<fcm::Target, Error> {
        let backend = meaning(BACKENDS, self.backend, "target.backend", "FCM_BACKEND")?;
        let clock = meaning(CLOCKS, self.clock, "target.clock", "FCM_CLOCK")?;
        let caches = meaning(CACHE_STATES, self.cache_state, "target.cache_state", "FCM_CACHES")?;
        let implementation = meaning(
            IMPLEMENTATIONS,
            self.implementation,
            "target.implementation",
            "FCM_IMPLEMENTATION",
        )?;
        Ok(fcm::Target::gpu(backend, clock)
            .with_threads(self.threads)
            .with_cache_state(caches)
            .with_implementation(implementation))
    }
}

/// The CPU with `threads` threads, warm caches and the project's own kernels.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_target_cpu(threads: u32) -> Target {
    Target {
        backend: FCM_BACKEND_CPU,
        threads,
        cache_state: FCM_CACHES_WARM,
        clock: FCM_CLOCK_HOST,
        implementation: FCM_IMPLEMENTATION_NATIVE,
    }
}

/// A GPU with warm caches and the project's own kernels, by one of its clocks.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_target_gpu(backend: Backend, clock: Clock) -> Target {
    Target { backend, clock, ..fcm_target_cpu(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::{FCM_BACKEND_CUDA, FCM_CLOCK_DEVICE};

    #[test]
    fn targets_are_those_of_the_crate() {
        let gpu = fcm::Target::gpu(fcm::Backend::Cuda, fcm::Clock::Device);
        for (ours, theirs) in [
            (fcm_target_cpu(8), fcm::Target::cpu(8)),
            (fcm_target_gpu(FCM_BACKEND_CUDA, FCM_CLOCK_DEVICE), gpu),
        ] {
            assert_eq!(ours.meaning().unwrap(), theirs);
            assert_eq!(Target::of(&theirs).unwrap(), ours);
        }
        let nowhere = Target { backend: 0, ..fcm_target_cpu(1) };
        assert!(nowhere.meaning().is_err());
    }
}
