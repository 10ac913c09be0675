//! What runs the kernels, and how a worker gets at it.

use std::path::PathBuf;

use fused_kernels::cpu::Cpu;
use fused_kernels::gpu::GpuOptions;
use fusion_cost_model::Backend;
use fusion_cost_model::calibration::ObservedGpu;
use serde::{Deserialize, Serialize};

/// What runs the kernels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The backend.
    pub backend: Backend,
    /// Threads of the kernels; 1 on a GPU.
    pub threads: usize,
    /// Whether each thread is bound to a processor.
    pub bound: bool,
    /// Which GPU; `None` for a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
}

/// Which GPU, and what is needed to use it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its number among those of the backend, from 0.
    pub index: u32,
    /// Folders in which the vendor's libraries are looked for first.
    pub library_folders: Vec<PathBuf>,
    /// Where compiled kernels are kept; `None` for the user's cache folder.
    pub code_cache: Option<PathBuf>,
}

/// A GPU that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundGpu {
    /// What it is.
    pub observed: ObservedGpu,
    /// Unused bytes of its memory.
    pub free_memory: u64,
}

impl Device {
    /// A CPU.
    #[must_use]
    pub const fn cpu(threads: usize, bound: bool) -> Self {
        Self { backend: Backend::Cpu, threads, bound, gpu: None }
    }

    /// A GPU.
    #[must_use]
    pub const fn gpu(backend: Backend, gpu: Gpu) -> Self {
        Self { backend, threads: 1, bound: false, gpu: Some(gpu) }
    }

    /// What of it makes processes comparable: not where compiled kernels are kept.
    #[must_use]
    pub fn for_journal(&self) -> Self {
        let mut device = self.clone();
        if let Some(gpu) = &mut device.gpu {
            gpu.code_cache = None;
        }
        device
    }

    /// What devices of its backend there are, or what is missing and what to do about that: a line
    /// or several.
    pub(super) fn survey(&self) -> Vec<String> {
        let survey = fused_kernels::survey(self.backend, &self.gpu_options());
        survey.to_string().lines().map(str::to_owned).collect()
    }

    fn gpu_options(&self) -> GpuOptions {
        let Gpu { library_folders, code_cache, .. } = self.gpu.clone().unwrap_or_default();
        GpuOptions { library_folders, cache_folder: code_cache, ..GpuOptions::default() }
    }

    fn open_gpu(&self) -> anyhow::Result<fused_kernels::gpu::Gpu> {
        let index = self.gpu.as_ref().map_or(0, |gpu| gpu.index);
        Ok(fused_kernels::gpu::Gpu::open(self.backend, index, &self.gpu_options())?)
    }

    /// Takes hold of it.
    pub(super) fn open(&self) -> anyhow::Result<Opened> {
        match self.backend {
            Backend::Cpu if self.bound => {
                Ok(Opened::Cpu(Box::new(Cpu::with_bound_threads(self.threads)?)))
            }
            Backend::Cpu => Ok(Opened::Cpu(Box::new(Cpu::new(self.threads)?))),
            Backend::Cuda | Backend::Hip => Ok(Opened::Gpu(self.open_gpu()?)),
        }
    }
}

/// A device that tasks can be done on.
pub(super) enum Opened {
    Cpu(Box<Cpu>),
    Gpu(fused_kernels::gpu::Gpu),
}

impl Opened {
    /// As what runs kernels.
    pub(super) fn backend(&mut self) -> &mut dyn fused_kernels::Backend {
        match self {
            Self::Cpu(cpu) => &mut **cpu,
            Self::Gpu(gpu) => gpu,
        }
    }
}
