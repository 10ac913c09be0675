//! What an opened GPU is.

use fusion_cost_model::calibration::ObservedGpu;
use fusion_cost_model::{Core, Problem};

use super::backend::Gpu;
use super::driver::DeviceFacts;
use super::lower::lower;
use super::plan::Code;
use crate::backend::BackendError;

impl Gpu {
    /// What it is, by its driver, and with which compiler and libraries it is used.
    #[must_use]
    pub fn observed(&self) -> ObservedGpu {
        let facts = self.driver().facts();
        ObservedGpu {
            name: facts.name.trim().to_owned(),
            architecture: facts.architecture.name.clone(),
            processors: facts.processors,
            memory_bytes: facts.memory_bytes,
            l2_bytes: facts.l2_bytes,
            clock_mhz: facts.clock_mhz,
            bus_id: facts.bus_id.clone(),
            driver: facts.driver_version.clone(),
            runtime: facts.runtime_version.clone(),
            compiler: self.compiler_version().to_owned(),
            libraries: self.library_versions(),
        }
    }

    /// The matrix instructions that its kernels are written with.
    #[must_use]
    pub fn core(&self) -> Core {
        self.driver().facts().architecture.matrix_core.core()
    }

    /// Whether it would run the very same kernels for a problem if they were written with the
    /// instructions of another core.
    #[must_use]
    pub fn has_kernels_of(&self, core: Core, problem: &Problem) -> bool {
        let facts = self.driver().facts();
        let Some(architecture) = facts.architecture.with_core(core) else { return false };
        let others = DeviceFacts { architecture, ..facts.clone() };
        let sources = |facts| -> Option<Vec<Code>> {
            let plan = lower(problem, facts)?;
            Some(plan.unfused.into_iter().chain([plan.fused]).map(|kernel| kernel.code).collect())
        };
        sources(facts) == sources(&others)
    }

    /// Unused bytes of its memory.
    ///
    /// # Errors
    ///
    /// [`BackendError::Device`] when the driver does not say.
    pub fn free_memory(&self) -> Result<u64, BackendError> {
        Ok(self.driver().memory()?.free)
    }
}
