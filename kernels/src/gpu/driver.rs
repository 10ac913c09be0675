//! What a vendor's runtime and compiler must be able to do.
//!
//! CUDA's driver interface and HIP's have the same shape, so that everything above this trait is
//! written once. A driver has one device and one queue (a stream) on it, to which everything below
//! is submitted in order. Handles are plain numbers that mean something to the driver that gave
//! them; whoever holds one gives it back.

use std::ffi::{CStr, c_void};

use fusion_cost_model::calibration::KernelFailure;
use thiserror::Error;

use super::architecture::Architecture;
use super::launch::{LaunchShape, TensorMap};
use super::search::MissingLibrary;
use crate::backend::Sensors;

/// A device, or its driver or compiler, that does not do what it should.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A function of the driver's reports an error.
    #[error("{function} failed with {name} ({code}): {meaning}")]
    Call {
        /// The function.
        function: &'static str,
        /// The error's number.
        code: i64,
        /// Its name in the vendor's headers.
        name: String,
        /// What the driver says it means.
        meaning: String,
    },
    /// The driver refuses a kernel, or reports an error while it alone runs.
    #[error("{kernel}: {error}")]
    Kernel {
        /// The kernel, and how it is launched.
        kernel: String,
        /// What the driver reports.
        error: Box<Self>,
    },
    /// There is not enough memory on the device.
    #[error("the device has no {bytes} bytes left ({function} failed with {name})")]
    OutOfMemory {
        /// The function.
        function: &'static str,
        /// The error's name in the vendor's headers.
        name: String,
        /// How much was asked for.
        bytes: u64,
    },
    /// The runtime compiler refuses a kernel.
    #[error("{compiler} does not compile {kernel} for {architecture}: {log}")]
    Compile {
        /// The compiler and its version.
        compiler: String,
        /// The kernel.
        kernel: String,
        /// For what it was to be compiled.
        architecture: String,
        /// What the compiler says, shortened to its first errors.
        log: String,
    },
    /// The compiler ended without an answer.
    #[error("{compiler} ended while it compiled {kernel} for {architecture}: {how}")]
    CompilerEnded {
        /// The compiler and its version.
        compiler: String,
        /// The kernel.
        kernel: String,
        /// For what it was to be compiled.
        architecture: String,
        /// How it ended.
        how: String,
    },
    /// A library is not there, or cannot be used.
    #[error(transparent)]
    Library(Box<MissingLibrary>),
    /// The runtime cannot do something at all.
    #[error("{0}")]
    Unsupported(String),
}

impl DeviceError {
    /// How it shows that kernels failed; `None` where memory or a library is what is missing. A
    /// kernel that breaks the device's state shows in any call after it.
    pub(crate) const fn of_kernels(&self) -> Option<KernelFailure> {
        match self {
            Self::Compile { .. } | Self::CompilerEnded { .. } => Some(KernelFailure::Compile),
            Self::Call { .. } | Self::Unsupported(_) => Some(KernelFailure::Launch),
            Self::Kernel { error, .. } => error.of_kernels(),
            Self::OutOfMemory { .. } | Self::Library(_) => None,
        }
    }

    /// Whether it is about one kernel, without which the device goes on.
    pub(crate) const fn is_of_one_kernel(&self) -> bool {
        matches!(self, Self::Compile { .. } | Self::CompilerEnded { .. } | Self::Kernel { .. })
    }
}

/// An address in a device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address(pub(crate) u64);

/// Machine code that a device holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Module(pub(crate) usize);

/// A kernel of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Function(pub(crate) usize);

/// A moment in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Event(pub(crate) usize);

/// Work that was recorded once and can be submitted as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Graph(pub(crate) usize);

/// The properties of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceFacts {
    /// The name that it reports.
    pub(crate) name: String,
    /// Its instruction set.
    pub(crate) architecture: Architecture,
    /// Multiprocessors or compute units.
    pub(crate) processors: u32,
    /// The most shared memory that a block may ask for.
    pub(crate) shared_bytes_per_block: u32,
    /// The second-level cache.
    pub(crate) l2_bytes: u64,
    /// Bytes that push everything else out of all its caches: the L2, or what lies behind it and
    /// is not reported, such as the Infinity Cache of MI300X.
    pub(crate) last_level_bytes: u64,
    /// All of its memory.
    pub(crate) memory_bytes: u64,
    /// The highest clock of its processors.
    pub(crate) clock_mhz: u32,
    /// What kernels can read of the clock of the processor that they run on.
    pub(crate) counters: Option<Counters>,
    /// Where it is on the bus, as `0000:3b:00.0`.
    pub(crate) bus_id: String,
    /// The version of the driver.
    pub(crate) driver_version: String,
    /// The version of the runtime library, where that is another one.
    pub(crate) runtime_version: String,
}

/// Counters of a processor's cycles and of the device's own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counters {
    /// The numbers of processors are below this; not every one need be a processor's.
    pub(crate) places: u32,
    /// How fast the device's time goes.
    pub(crate) ticks_khz: u32,
}

/// A device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryFacts {
    /// Unused bytes.
    pub(crate) free: u64,
    /// All of them.
    pub(crate) total: u64,
}

/// A kernel as it was compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FunctionFacts {
    /// Registers of a thread.
    pub(crate) registers: u32,
    /// Bytes of memory that a thread has for what is in no register.
    pub(crate) local_bytes: u32,
    /// Bytes of shared memory that the kernel itself declares.
    pub(crate) static_shared_bytes: u32,
    /// The most threads of a block that its registers allow.
    pub(crate) most_threads: u32,
}

/// One device of a vendor's runtime.
///
/// Functions that take handles or addresses are unsafe: those must be of this driver, not yet
/// given back, and addresses must be of as much memory as is accessed.
pub(crate) trait Driver {
    /// The device.
    fn facts(&self) -> &DeviceFacts;

    /// How much memory is left.
    fn memory(&self) -> Result<MemoryFacts, DeviceError>;

    /// Memory of `bytes` bytes, aligned to 256, with anything in it.
    fn allocate(&self, bytes: u64) -> Result<Address, DeviceError>;

    /// Gives memory back. Errors are of no interest any more.
    unsafe fn free(&self, address: Address);

    /// Copies to the device, and waits until that is done.
    unsafe fn upload(&self, to: Address, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies from the device when all work before is done, and waits for it.
    unsafe fn download(&self, bytes: &mut [u8], from: Address) -> Result<(), DeviceError>;

    /// Writes a pattern to `words` words of four bytes.
    unsafe fn fill(&self, at: Address, pattern: u32, words: u64) -> Result<(), DeviceError>;

    /// Puts machine code on the device.
    fn load(&self, image: &[u8]) -> Result<Module, DeviceError>;

    /// Takes it away.
    unsafe fn unload(&self, module: Module);

    /// A kernel by its name.
    unsafe fn function(&self, module: Module, name: &CStr) -> Result<Function, DeviceError>;

    /// How it was compiled.
    unsafe fn function_facts(&self, function: Function) -> Result<FunctionFacts, DeviceError>;

    /// Lets a kernel have `bytes` bytes of shared memory at its launches. Needed above 48 KiB on
    /// NVIDIA.
    unsafe fn allow_shared(&self, function: Function, bytes: u32) -> Result<(), DeviceError>;

    /// Blocks of a kernel that a multiprocessor holds at a time.
    unsafe fn resident_blocks(
        &self,
        function: Function,
        threads: u32,
        shared_bytes: u32,
    ) -> Result<u32, DeviceError>;

    /// Submits a kernel. Its one parameter is a struct with these bytes.
    unsafe fn launch(
        &self,
        function: Function,
        shape: &LaunchShape,
        arguments: &[u8],
    ) -> Result<(), DeviceError>;

    /// Waits until everything that was submitted is done; also where errors of kernels show.
    fn synchronize(&self) -> Result<(), DeviceError>;

    /// A moment to be recorded, with its time.
    fn create_event(&self) -> Result<Event, DeviceError>;

    /// Gives it back.
    unsafe fn destroy_event(&self, event: Event);

    /// The moment when everything that was submitted before is done.
    unsafe fn record(&self, event: Event) -> Result<(), DeviceError>;

    /// Milliseconds between two recorded moments that have come.
    unsafe fn elapsed_ms(&self, start: Event, end: Event) -> Result<f64, DeviceError>;

    /// From now on, record what is submitted instead of doing it.
    fn begin_capture(&self) -> Result<(), DeviceError>;

    /// Ends that, also after an error in between. The graph is ready to be launched.
    fn end_capture(&self) -> Result<Graph, DeviceError>;

    /// Submits all of it.
    unsafe fn launch_graph(&self, graph: Graph) -> Result<(), DeviceError>;

    /// Gives it back.
    unsafe fn destroy_graph(&self, graph: Graph);

    /// What the TMA must know of a matrix: the 128 bytes of a `CUtensorMap`.
    /// [`DeviceError::Unsupported`] where a device has no TMA.
    unsafe fn tensor_map(&self, map: &TensorMap, at: Address) -> Result<[u8; 128], DeviceError>;

    /// The vendor's own handle of the queue, for its other libraries.
    fn queue(&self) -> *mut c_void;

    /// Clock and throttling, as far as a management library reports them.
    fn sensors(&self) -> Sensors;
}

/// A program for a runtime compiler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    /// The kernel's name, for messages.
    pub(crate) name: &'a str,
    /// The text.
    pub(crate) text: &'a str,
    /// What it includes: name and text.
    pub(crate) headers: &'a [(&'a str, &'a str)],
}

/// What a compiler made of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compiled {
    /// Machine code for one architecture, to be loaded as it is.
    pub(crate) image: Vec<u8>,
    /// What the compiler said.
    pub(crate) log: String,
}

/// A vendor's runtime compiler.
pub(crate) trait Compiler {
    /// Its name and version, such as `NVRTC 12.4`: part of the key of compiled code.
    fn version(&self) -> &str;

    /// The options that it is given for an architecture, likewise.
    fn options(&self, architecture: &Architecture) -> Vec<String>;

    /// Compiles a program.
    fn compile(
        &self,
        source: &Source<'_>,
        architecture: &Architecture,
    ) -> Result<Compiled, DeviceError>;
}
