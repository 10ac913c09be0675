//! On what a question is about.

use clap::Args;
use fusion_cost_model::{Backend, Clock};

use super::CachePolicy;

/// The target of a question.
#[derive(Debug, Clone, Args)]
pub struct TargetArgs {
    /// The backend that would run it
    #[arg(long, default_value_t = Backend::Cpu)]
    pub backend: Backend,
    /// What the caches would hold
    #[arg(long, value_enum, default_value_t = CachePolicy::Warm)]
    pub cache: CachePolicy,
    /// The threads that would run it [default: those of the file's records]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: Option<u32>,
    /// The clock of its times: host, device or launch-inclusive [default: that of the file's
    /// records]
    #[arg(long, value_name = "CLOCK")]
    pub clock: Option<Clock>,
    /// Whose kernels would run: native, vendor, or a runtime such as pytorch, with its version where
    /// the file has several of it: pytorch@2.9.1 [default: native, or the only one of the file]
    #[arg(long, value_name = "NAME")]
    pub implementation: Option<String>,
}
