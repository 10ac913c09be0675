//! The GPU backends: one kernel source for NVIDIA and AMD, compiled and launched at run time.
//!
//! `lower` turns a problem into a `plan`: kernels as source text with the arguments of their
//! launches. `compile` makes machine code of them, or finds it in the `cache`. `prepared` gives
//! them their `tensors` and runs them. What a vendor's runtime must be able to do is the trait
//! `Driver` of `driver`; the `cuda` and `hip` folders of this crate implement it, and everything
//! here is the same for both.

#![cfg_attr(
    not(all(feature = "cuda", feature = "hip")),
    allow(unused, reason = "each vendor uses its own part")
)]

mod architecture;
mod backend;
mod cache;
mod calls;
mod ceilings;
pub(crate) mod compile_worker;
pub(crate) mod compiler_log;
mod devices;
mod driver;
mod elf;
mod headers;
mod identity;
mod launch;
pub(crate) mod library;
pub(crate) mod listing;
mod loaded;
mod lower;
pub(crate) mod lt;
mod memory;
mod plan;
mod prepared;
mod queue;
pub(crate) mod search;
mod stream_driver;
mod tensors;
#[cfg(test)]
pub(crate) mod tests;
mod vendor;

pub use backend::Gpu;
pub use devices::{DeviceSummary, GpuOptions, Inventory, LibrarySummary, Survey};
pub use driver::DeviceError;
pub use elf::is_cut as is_cut_library;
pub use library::Unusable;
pub use search::MissingLibrary;

pub(crate) use architecture::Architecture;
pub(crate) use cache::CodeCache;
pub use cache::{make_own_folder, read_compiled, user_cache_folder};
pub(crate) use calls::{Calls, FunctionAttribute, Recording, Stream};
pub(crate) use devices::{Opened, surroundings};
pub(crate) use driver::{
    Address, Compiled, Compiler, Counters, DeviceFacts, Driver, Event, Function, Graph,
    MemoryFacts, Module, Source,
};
pub(crate) use launch::{LaunchShape, TensorMap};
pub(crate) use stream_driver::StreamDriver;
pub(crate) use vendor::GemmLibrary;

#[cfg(test)]
pub(crate) use {
    headers::HEADERS,
    plan::{Argument, Code, KernelPlan, Plan},
    tensors::TensorId,
};
