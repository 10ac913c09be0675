//! What an opened GPU is.

use fusion_cost_model::calibration::ObservedGpu;

use super::backend::Gpu;
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

    /// Unused bytes of its memory.
    ///
    /// # Errors
    ///
    /// [`BackendError::Device`] when the driver does not say.
    pub fn free_memory(&self) -> Result<u64, BackendError> {
        Ok(self.driver().memory()?.free)
    }
}
