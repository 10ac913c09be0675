//! The options that only a GPU has.

use std::path::{PathBuf, absolute};
use std::time::Duration;

use clap::{Args, ValueEnum};
use fusion_cost_model::{Clock, Core, Implementation};

use super::duration::duration;
use crate::exit::UsageError;
use crate::worker::Gpu;

/// The heading of the options that only a GPU has.
const GPU_OPTIONS: &str = "GPUs";

/// Which clock measures the times of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClockChoice {
    /// The GPU's own clock, with its queue full: what a captured graph pays
    Device,
    /// The host's, from handing the work to an idle GPU to its end: what eager execution pays
    LaunchInclusive,
    /// Both, each with its own records
    Both,
}

impl ClockChoice {
    /// The clocks.
    #[must_use]
    pub fn clocks(self) -> Vec<Clock> {
        match self {
            Self::Device => vec![Clock::Device],
            Self::LaunchInclusive => vec![Clock::LaunchInclusive],
            Self::Both => vec![Clock::Device, Clock::LaunchInclusive],
        }
    }
}

/// Whose kernels to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImplementationChoice {
    /// The project's own
    Native,
    /// Those of the vendor's library, where it has a fused form
    Vendor,
    /// Both; problems that the vendor's library lacks are listed
    All,
}

impl ImplementationChoice {
    /// The implementations.
    #[must_use]
    pub fn implementations(self) -> Vec<Implementation> {
        match self {
            Self::Native => vec![Implementation::Native],
            Self::Vendor => vec![Implementation::Vendor],
            Self::All => Implementation::BUILT_IN.to_vec(),
        }
    }
}

/// What only a GPU has.
#[derive(Debug, Clone, Args)]
pub struct GpuArgs {
    /// Which GPU, by its number in `calibrate list devices` [default: 0]
    #[arg(long, value_name = "N", help_heading = GPU_OPTIONS)]
    pub device: Option<u32>,

    /// Search this folder first for the GPU vendor's libraries; can be repeated
    #[arg(long, value_name = "DIR", help_heading = GPU_OPTIONS)]
    pub gpu_lib_dir: Vec<PathBuf>,

    /// Which clock measures the times of a GPU [default: both]
    #[arg(long, value_enum, help_heading = GPU_OPTIONS)]
    pub clock: Option<ClockChoice>,

    /// Whose kernels to measure [default: native, and vendor where there is a fused form]
    #[arg(long, value_enum, help_heading = GPU_OPTIONS)]
    pub implementation: Option<ImplementationChoice>,

    /// Folder of compiled kernels [default: fusion-cost-model in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR", help_heading = GPU_OPTIONS)]
    pub code_cache: Option<PathBuf>,

    /// Use only the instructions of this core in kernels: wgmma, mma, mfma, wmma or plain [default:
    /// the best of the GPU, and where kernels fail on it, the next]
    #[arg(long, value_name = "NAME", help_heading = GPU_OPTIONS)]
    pub core: Option<Core>,

    /// Kill a process if a kernel that it runs does not end within this time; the kernel counts as
    /// hung [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = GPU_OPTIONS)]
    pub kernel_limit: Option<Duration>,
}

impl GpuArgs {
    /// Refuses what is given, since there is no GPU.
    ///
    /// # Errors
    ///
    /// [`UsageError`] that names an option.
    pub(super) fn refuse(&self) -> Result<(), UsageError> {
        let given = [
            (self.device.is_some(), "--device"),
            (!self.gpu_lib_dir.is_empty(), "--gpu-lib-dir"),
            (self.clock.is_some(), "--clock"),
            (self.implementation.is_some(), "--implementation"),
            (self.code_cache.is_some(), "--code-cache"),
            (self.core.is_some(), "--core"),
            (self.kernel_limit.is_some(), "--kernel-limit"),
        ];
        match given.into_iter().find(|(is_given, _)| *is_given) {
            None => Ok(()),
            Some((_, option)) => {
                let text = format!("{option} is for GPUs; name one with --backend cuda or hip");
                Err(UsageError(text))
            }
        }
    }

    /// Forgets what a default says of an option.
    pub(super) fn forget(&mut self, option: &str) {
        match option {
            "clock" => self.clock = None,
            "code-cache" => self.code_cache = None,
            "core" => self.core = None,
            "device" => self.device = None,
            "implementation" => self.implementation = None,
            "kernel-limit" => self.kernel_limit = None,
            _ => self.gpu_lib_dir.clear(),
        }
    }

    /// The GPU that is asked for.
    ///
    /// # Errors
    ///
    /// When there is no current folder, from which paths begin.
    pub(super) fn gpu(&self) -> std::io::Result<Gpu> {
        Ok(Gpu {
            index: self.device.unwrap_or(0),
            library_folders: self.gpu_lib_dir.iter().map(absolute).collect::<Result<_, _>>()?,
            code_cache: self.code_cache.as_ref().map(absolute).transpose()?,
            core: self.core,
        })
    }
}
