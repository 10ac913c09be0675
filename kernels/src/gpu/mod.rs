//! The GPU backends: one kernel source for NVIDIA and AMD, compiled and launched at run time.
//!
//! `build` turns a problem into a `plan`: kernels as source text with the arguments of their
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
mod build;
mod cache;
mod ceilings;
#[cfg(test)]
mod compile_check;
pub mod compile_worker;
pub(crate) mod compiler_log;
mod devices;
mod driver;
mod elf;
#[cfg(test)]
mod emulation;
#[cfg(test)]
mod function_tests;
mod headers;
mod identity;
pub(crate) mod library;
mod loaded;
pub(crate) mod lt;
#[cfg(test)]
mod matrix_core_tests;
mod memory;
#[cfg(test)]
mod mutations;
mod numbers;
mod plan;
mod prepared;
#[cfg(test)]
#[path = "../../tests/problems/mod.rs"]
mod problems;
mod queue;
#[cfg(test)]
mod scripted;
pub(crate) mod search;
#[cfg(test)]
pub(crate) mod stubs;
mod tensors;
mod vendor;

pub use backend::Gpu;
pub use devices::{DeviceSummary, GpuOptions, Inventory, LibrarySummary, Survey, survey};
pub use driver::DeviceError;
pub use library::Unusable;
pub use search::MissingLibrary;

pub(crate) use architecture::Architecture;
pub(crate) use devices::{Opened, no_such_device};
pub(crate) use driver::{
    Address, Compiled, Compiler, DeviceFacts, Driver, Event, Function, FunctionFacts, Graph,
    LaunchShape, MemoryFacts, Module, Source,
};
pub(crate) use plan::TensorMap;
pub(crate) use vendor::ProductLibrary;

#[cfg(test)]
pub(crate) use {
    headers::HEADERS,
    plan::{Argument, Code, KernelPlan, Plan},
    tensors::TensorId,
};
