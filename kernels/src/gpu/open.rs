//! Opening a GPU, and saying what it is.

use std::ffi::OsString;
use std::path::PathBuf;

use fusion_cost_model::Backend as BackendName;
use fusion_cost_model::calibration::ObservedGpu;

use super::backend::Gpu;
use super::cache::CodeCache;
use super::devices::{self, GpuOptions};
use crate::backend::BackendError;

/// The folder of this project in the user's folder of things that can be made again.
const CACHE_FOLDER: &str = "fusion-cost-model";

impl Gpu {
    /// A GPU by its number among those of a backend, from 0.
    ///
    /// # Errors
    ///
    /// [`BackendError::Device`] when there is no such device, or a library that it needs is
    /// missing; it says where that was looked for and what to install.
    pub fn open(
        backend: BackendName,
        index: u32,
        options: &GpuOptions,
    ) -> Result<Self, BackendError> {
        let (driver, compiler) = devices::open(backend, index, options)?;
        let given = options.cache_folder.clone();
        let folder = given.or_else(|| user_cache_folder(&|name| std::env::var_os(name)));
        Ok(Self::new(backend, driver, compiler, CodeCache::new(folder), None))
    }
}

/// The folder for compiled kernels by the XDG rules; `None` for a user without a home.
fn user_cache_folder(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(caches.join(CACHE_FOLDER))
}

impl Gpu {
    /// What it is, by its driver.
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
            compiler: self.compiler().version().to_owned(),
            libraries: Vec::new(),
        }
    }

    /// Bytes of its memory that nobody uses.
    ///
    /// # Errors
    ///
    /// [`BackendError::Device`] when the driver does not tell.
    pub fn free_memory(&self) -> Result<u64, BackendError> {
        Ok(self.driver().memory()?.free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_cache_folder() {
        let folder = |variables: &[(&str, &str)]| {
            user_cache_folder(&|wanted| {
                let found = variables.iter().find(|(name, _)| *name == wanted);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(folder(&[("HOME", "/home/a")]), path("/home/a/.cache/fusion-cost-model"));
        let both = [("HOME", "/home/a"), ("XDG_CACHE_HOME", "/x")];
        assert_eq!(folder(&both), path("/x/fusion-cost-model"));
        // A relative one is to be ignored, as the rules say.
        let relative = [("HOME", "/home/a"), ("XDG_CACHE_HOME", "x")];
        assert_eq!(folder(&relative), path("/home/a/.cache/fusion-cost-model"));
        assert_eq!(folder(&[]), None);
    }
}
