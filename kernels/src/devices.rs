//! Which code a backend's name stands for: the one place that knows all GPU backends.

#![cfg_attr(
    not(any(feature = "cuda", feature = "hip")),
    allow(unused_variables, reason = "without a backend there is nothing to open")
)]

use std::rc::Rc;

use fusion_cost_model::Backend;

use crate::backend::BackendError;
#[cfg(feature = "cuda")]
use crate::cuda;
#[cfg(any(feature = "cuda", feature = "hip"))]
use crate::gpu::surroundings;
use crate::gpu::{CodeCache, DeviceError, Driver, GemmLibrary, Gpu, GpuOptions, Opened, Survey};
#[cfg(feature = "hip")]
use crate::hip;

/// Lists the devices of a backend and the libraries that they need. Opens none of them.
#[must_use]
pub fn survey(backend: Backend, options: &GpuOptions) -> Survey {
    match backend {
        #[cfg(feature = "cuda")]
        Backend::Cuda => cuda::survey(options, &surroundings()),
        #[cfg(feature = "hip")]
        Backend::Hip => hip::survey(options, &surroundings()),
        _ => Survey::NotBuilt(backend),
    }
}

/// Opens a device by its number.
fn open(backend: Backend, index: u32, options: &GpuOptions) -> Result<Opened, DeviceError> {
    match backend {
        #[cfg(feature = "cuda")]
        Backend::Cuda => cuda::open(index, options, &surroundings()),
        #[cfg(feature = "hip")]
        Backend::Hip => hip::open(index, options, &surroundings()),
        _ => Err(DeviceError::Unsupported(Survey::NotBuilt(backend).to_string())),
    }
}

/// The vendor's GEMM library for an open device, where there is one.
fn gemm_library(
    backend: Backend,
    driver: &Rc<dyn Driver>,
    options: &GpuOptions,
) -> Option<Rc<dyn GemmLibrary>> {
    match backend {
        #[cfg(feature = "cuda")]
        Backend::Cuda => cuda::gemm_library(options, &surroundings(), driver),
        #[cfg(feature = "hip")]
        Backend::Hip => hip::gemm_library(options, &surroundings(), driver),
        _ => None,
    }
}

impl Gpu {
    /// Opens a device by its number, with a compiler for it, and the vendor's GEMM library where
    /// there is one.
    ///
    /// # Errors
    ///
    /// [`BackendError::Device`] when a library or the device is missing or does not work: which
    /// one, and what to do.
    pub fn open(backend: Backend, index: u32, options: &GpuOptions) -> Result<Self, BackendError> {
        let (driver, compiler) = open(backend, index, options)?;
        let gemm_library = gemm_library(backend, &driver, options);
        let cache = match &options.cache_folder {
            Some(folder) => CodeCache::new(Some(folder.clone())),
            None => CodeCache::of_user(),
        };
        Ok(Self::new(backend, driver, compiler, cache, gemm_library))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_gpu_cannot_be_opened() {
        let options = GpuOptions::default();
        assert_eq!(survey(Backend::Cpu, &options), Survey::NotBuilt(Backend::Cpu));
        let error = open(Backend::Cpu, 0, &options).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "a CPU is not a GPU");
    }
}
