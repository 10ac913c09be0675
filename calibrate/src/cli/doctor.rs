//! The command line of an examination.

use std::path::{PathBuf, absolute};
use std::time::Duration;

use clap::Args;
use cli_support::output::{Replace, Target, begins_with_line};
use fusion_cost_model::Backend;

use super::duration::duration;
use crate::doctor::{FIRST_WORDS, Request};
use crate::exit::UsageError;
use crate::worker::{Gpu, KERNEL_LIMIT};

/// The file that is written unless the user names another one.
const FILE: &str = "calibrate-doctor.txt";

/// What to examine.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate doctor                        this processor and whatever GPUs there are
  calibrate doctor --backend cuda         an NVIDIA GPU: a few minutes
  calibrate doctor --backend hip --device 1 --launches 100
  calibrate doctor --backend cuda --check attention    only the checks of this name

Each check runs in a process of its own, which is killed when it takes too long. The page is printed \
and written to a file, which is all that a report of a problem needs.

Exit codes: 0 everything works, 1 something failed, 5 a library or the device is missing, 130 \
interrupted.")]
pub struct DoctorArgs {
    /// What to examine: cpu, cuda (NVIDIA GPUs) or hip (AMD GPUs) [default: all of them]
    #[arg(long, value_name = "NAME")]
    pub backend: Option<Backend>,

    /// Which GPU, by its number in `calibrate list devices`
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: u32,

    /// Search this folder first for the GPU vendor's libraries; can be repeated
    #[arg(long, value_name = "DIR")]
    pub gpu_lib_dir: Vec<PathBuf>,

    /// Folder of compiled kernels [default: fusion-cost-model in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    pub code_cache: Option<PathBuf>,

    /// Run only the checks whose names contain this, as the page has them
    #[arg(long, value_name = "NAME")]
    pub check: Option<String>,

    /// How often each kernel is launched; where all blocks of a kernel wait for each other, they do
    /// so ten times as often
    #[arg(long, value_name = "N", default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub launches: u32,

    /// Kill a process if a kernel that it runs does not end within this time; the kernel counts as
    /// hung [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub kernel_limit: Option<Duration>,

    /// Kill a process that takes longer than this for one check
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    pub check_limit: Duration,

    /// The file to write
    #[arg(long, short, value_name = "FILE", default_value = FILE)]
    pub output: PathBuf,

    /// Replace the file of --output even if it is not that of an earlier examination
    #[arg(long)]
    pub overwrite: bool,
}

impl DoctorArgs {
    /// What is asked for.
    ///
    /// # Errors
    ///
    /// When there is no current folder, from which paths begin.
    pub fn request(&self) -> std::io::Result<Request> {
        Ok(Request {
            backends: self.backend.map_or_else(|| Backend::ALL.to_vec(), |backend| vec![backend]),
            gpu: Gpu {
                index: self.device,
                library_folders: self.gpu_lib_dir.iter().map(absolute).collect::<Result<_, _>>()?,
                code_cache: self.code_cache.as_ref().map(absolute).transpose()?,
                core: None,
            },
            check: self.check.clone(),
            launches: self.launches,
            kernel_limit: self.kernel_limit.unwrap_or(KERNEL_LIMIT),
            check_limit: self.check_limit,
        })
    }

    /// Where the page goes.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, or is another one.
    pub fn target(&self) -> Result<Target, UsageError> {
        let is_known =
            |path: &std::path::Path| begins_with_line(path, |line| line.starts_with(FIRST_WORDS));
        Target::new(&self.output, Replace::known(self.overwrite, is_known))
    }
}
