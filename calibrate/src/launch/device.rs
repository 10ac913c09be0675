//! What runs the kernels, and how a worker gets at it.

use std::path::PathBuf;

use fused_kernels::cpu::Cpu;
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
    /// Where compiled kernels are kept; `None` to compile them each time.
    pub code_cache: Option<PathBuf>,
}

/// A GPU that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundGpu {
    /// What it is.
    pub observed: ObservedGpu,
    /// Bytes of its memory that nobody uses.
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

    /// What of it makes launches comparable: not where compiled kernels are kept.
    #[must_use]
    pub fn for_journal(&self) -> Self {
        let mut device = self.clone();
        if let Some(gpu) = &mut device.gpu {
            gpu.code_cache = None;
        }
        device
    }

    /// Takes hold of it.
    pub(super) fn open(&self) -> anyhow::Result<Opened> {
        match self.backend {
            Backend::Cpu if self.bound => Ok(Opened::Cpu(Cpu::with_bound_threads(self.threads)?)),
            Backend::Cpu => Ok(Opened::Cpu(Cpu::new(self.threads)?)),
            Backend::Cuda | Backend::Hip => Ok(Opened::Gpu(self.open_gpu()?)),
        }
    }
}

/// A device that tasks can be done on.
pub(super) enum Opened {
    Cpu(Cpu),
    Gpu(fused_kernels::gpu::Gpu),
}

impl Opened {
    /// As what runs kernels.
    pub(super) fn backend(&mut self) -> &mut dyn fused_kernels::Backend {
        match self {
            Self::Cpu(cpu) => cpu,
            Self::Gpu(gpu) => gpu,
        }
    }
}
