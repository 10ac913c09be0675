//! What runs the kernels, and how a worker gets at it.

use std::path::PathBuf;

use anyhow::Context;
use fused_kernels::cpu::Cpu;
use fused_kernels::gpu::{GpuOptions, Survey};
use fused_kernels::runtime::Runtime;
use fused_kernels::worker::WorkerError;
use fusion_cost_model::calibration::{ObservedGpu, RuntimeUsed};
use fusion_cost_model::{Backend, Clock, Core, Implementation, RuntimeId};
use serde::{Deserialize, Serialize};

use crate::exit::UsageError;
use crate::runtimes::{PrivateFolder, RuntimeChoice};

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
    /// Runtimes whose kernels run, in addition to the project's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runtimes: Vec<RuntimeChoice>,
    /// A private folder for a runtime's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
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
    /// The core that kernels are written with; `None` for the best that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<Core>,
}

/// The devices of a backend, or what is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surveyed {
    /// In words, a line or several.
    pub lines: Vec<String>,
    /// Whether the driver lists any.
    pub has_devices: bool,
}

/// A GPU that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundGpu {
    /// What it is.
    pub observed: ObservedGpu,
    /// Unused bytes of its memory.
    pub free_memory: u64,
    /// The core that kernels are written with.
    pub core: Core,
}

impl Device {
    /// A CPU.
    #[must_use]
    pub const fn cpu(threads: usize, bound: bool) -> Self {
        let backend = Backend::Cpu;
        Self { backend, threads, bound, gpu: None, runtimes: Vec::new(), folder: None }
    }

    /// A GPU.
    #[must_use]
    pub const fn gpu(backend: Backend, gpu: Gpu) -> Self {
        let gpu = Some(gpu);
        Self { backend, threads: 1, bound: false, gpu, runtimes: Vec::new(), folder: None }
    }

    /// The same with runtimes, by their names or files.
    ///
    /// # Errors
    ///
    /// Those of [`RuntimeChoice::find`], and [`UsageError`] when two have the same name.
    pub fn with_runtimes<'n>(
        self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> anyhow::Result<Self> {
        let mut runtimes: Vec<RuntimeChoice> = Vec::new();
        for choice in names.into_iter().map(RuntimeChoice::find) {
            let choice = choice?;
            if runtimes.iter().any(|known| known.name == choice.name) {
                let text = format!("--runtime names two that are called {}", choice.name);
                return Err(UsageError(text).into());
            }
            runtimes.push(choice);
        }
        Ok(Self { runtimes, ..self })
    }

    /// The same with kernels of a core, where one is named.
    #[must_use]
    pub(super) fn on_core(&self, core: Option<Core>) -> Self {
        let mut device = self.clone();
        if let Some(gpu) = &mut device.gpu {
            gpu.core = core.or(gpu.core);
        }
        device
    }

    /// What of it makes processes comparable: not where compiled kernels are kept.
    #[must_use]
    pub fn for_journal(&self) -> Self {
        let mut device = Self { folder: None, ..self.clone() };
        if let Some(gpu) = &mut device.gpu {
            gpu.code_cache = None;
        }
        device
    }

    /// What devices of its backend there are, or what is missing and what to do about that: a line
    /// or several.
    pub(super) fn survey(&self) -> Surveyed {
        let survey = fused_kernels::survey(self.backend, &self.gpu_options());
        let has_devices = matches!(survey, Survey::Found(_));
        Surveyed { lines: survey.to_string().lines().map(str::to_owned).collect(), has_devices }
    }

    fn gpu_options(&self) -> GpuOptions {
        let Gpu { library_folders, code_cache, core, .. } = self.gpu.clone().unwrap_or_default();
        GpuOptions { library_folders, cache_folder: code_cache, core, ..GpuOptions::default() }
    }

    fn open_gpu(&self) -> anyhow::Result<fused_kernels::gpu::Gpu> {
        let index = self.gpu.as_ref().map_or(0, |gpu| gpu.index);
        Ok(fused_kernels::gpu::Gpu::open(self.backend, index, &self.gpu_options())?)
    }

    /// The same with a private folder, if a runtime may need one, which is removed with the second
    /// value.
    pub(super) fn with_folder(&self) -> Result<(Self, Option<PrivateFolder>), WorkerError> {
        if self.runtimes.is_empty() {
            return Ok((self.clone(), None));
        }
        let folder = PrivateFolder::new().map_err(WorkerError::Start)?;
        let path = Some(folder.path().to_owned());
        Ok((Self { folder: path, ..self.clone() }, Some(folder)))
    }

    /// Starts a runtime in the private folder.
    fn start(&self, choice: &RuntimeChoice) -> anyhow::Result<Runtime> {
        let folder = self.folder.as_ref().context("there is no folder for a runtime")?;
        let program = choice.program(folder)?;
        Ok(Runtime::start(&program, self.threads, self.bound)?)
    }

    /// Starts a runtime to ask what it is.
    pub(super) fn introduce(&self, name: &str) -> anyhow::Result<RuntimeUsed> {
        let choice = self.runtimes.iter().find(|choice| choice.name == name);
        let runtime = self.start(choice.context("there is no such runtime")?)?;
        let said = runtime.introduction().clone();
        anyhow::ensure!(said.name == name, "{name}: it says that it is {}", said.name);
        anyhow::ensure!(
            said.clock == Clock::Host.name(),
            "{name}: its clock is {}; on a CPU it must be host",
            said.clock
        );
        anyhow::ensure!(
            said.device == Backend::Cpu.name(),
            "{name}: its device is {}; runtimes are asked for cpu only",
            said.device
        );
        let id = RuntimeId::new(&said.name, &said.version)?;
        Ok(RuntimeUsed {
            implementation: Implementation::Runtime(id),
            name: said.name,
            version: said.version,
            device: said.device,
            options: said.options,
        })
    }

    /// Takes hold of it, and of the runtime if it is that whose kernels run.
    pub(super) fn open(&self, implementation: Implementation) -> anyhow::Result<Opened> {
        if implementation.runtime().is_some() {
            let is_it = |choice: &&RuntimeChoice| choice.implementation == Some(implementation);
            let choice = self.runtimes.iter().find(is_it);
            let choice = choice.with_context(|| format!("{implementation} is not there"))?;
            let runtime = self.start(choice)?;
            let said = runtime.introduction();
            let now = Implementation::Runtime(RuntimeId::new(&said.name, &said.version)?);
            anyhow::ensure!(
                now == implementation,
                "{}: this process of it is {now}, and the run began with {implementation}",
                choice.name
            );
            return Ok(Opened::Runtime(Box::new(runtime)));
        }
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
    Runtime(Box<Runtime>),
    Gpu(fused_kernels::gpu::Gpu),
}

impl Opened {
    /// As what runs kernels.
    pub(super) fn backend(&mut self) -> &mut dyn fused_kernels::Backend {
        match self {
            Self::Cpu(cpu) => &mut **cpu,
            Self::Runtime(runtime) => &mut **runtime,
            Self::Gpu(gpu) => gpu,
        }
    }
}
