//! The calls of a vendor's driver interface, one for each of its functions that are used.
//!
//! CUDA's and HIP's functions have the same meaning under other names. A vendor's folder implements
//! these calls, and [`StreamDriver`](super::stream_driver::StreamDriver) makes a driver of them.

use std::ffi::{CStr, c_int, c_void};

use super::driver::{
    Address, DeviceError, DeviceFacts, Event, Function, Graph, MemoryFacts, Module,
};
use super::launch::{LaunchShape, TensorMap};
use crate::backend::Sensors;

/// The vendor's handle of a stream.
pub(crate) type Stream = *mut c_void;

/// What was recorded from a stream, before it is made ready to be launched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recording(pub(crate) usize);

/// The properties of a kernel as it was compiled.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FunctionAttribute {
    /// Registers of a thread.
    Registers,
    /// Bytes of memory that a thread has for what is in no register.
    LocalBytes,
    /// Bytes of shared memory that the kernel itself declares.
    SharedBytes,
    /// The most threads of a block that its registers allow.
    MostThreads,
}

/// One device through its vendor's driver interface.
///
/// Functions that take handles or addresses are unsafe: those must be of this device, not yet given
/// back, and addresses must be of as much memory as is accessed. What does not name a stream is done
/// on the device that is current.
pub(crate) trait Calls {
    /// The code of an allocation that fails because too little memory is left.
    const OUT_OF_MEMORY: i64;

    /// Whether a stream takes nothing any more after a recording of it has failed.
    const FAILED_RECORDING_ENDS_STREAM: bool;

    /// Makes the device the current one of this thread.
    fn make_current(&self) -> Result<(), DeviceError>;

    /// A stream that waits for no other.
    fn create_stream(&self) -> Result<Stream, DeviceError>;

    unsafe fn destroy_stream(&self, stream: Stream);

    /// Waits until everything that was submitted is done.
    unsafe fn synchronize(&self, stream: Stream) -> Result<(), DeviceError>;

    fn memory(&self) -> Result<MemoryFacts, DeviceError>;

    /// Memory of this many bytes, at least 1.
    fn allocate(&self, bytes: usize) -> Result<Address, DeviceError>;

    unsafe fn free(&self, at: Address);

    /// Submits a copy to the device.
    unsafe fn upload(&self, to: Address, bytes: &[u8], stream: Stream) -> Result<(), DeviceError>;

    /// Submits a copy from the device.
    unsafe fn download(
        &self,
        bytes: &mut [u8],
        from: Address,
        stream: Stream,
    ) -> Result<(), DeviceError>;

    /// Submits writing a pattern to words of four bytes.
    unsafe fn fill(
        &self,
        at: Address,
        pattern: u32,
        words: usize,
        stream: Stream,
    ) -> Result<(), DeviceError>;

    fn load(&self, image: &[u8]) -> Result<Module, DeviceError>;

    unsafe fn unload(&self, module: Module);

    unsafe fn function(&self, module: Module, name: &CStr) -> Result<Function, DeviceError>;

    unsafe fn attribute(
        &self,
        function: Function,
        attribute: FunctionAttribute,
    ) -> Result<c_int, DeviceError>;

    /// Lets a kernel have this much shared memory at its launches.
    unsafe fn allow_shared(
        &self,
        function: Function,
        bytes: u32,
        device: &DeviceFacts,
    ) -> Result<(), DeviceError>;

    /// Blocks of a kernel that a multiprocessor holds at a time.
    unsafe fn resident_blocks(
        &self,
        function: Function,
        threads: c_int,
        shared_bytes: usize,
    ) -> Result<c_int, DeviceError>;

    /// Submits a kernel. The driver copies as many bytes as its one parameter has from the first of
    /// these pointers, and writes to none.
    unsafe fn launch(
        &self,
        function: Function,
        shape: &LaunchShape,
        parameters: *mut *mut c_void,
        stream: Stream,
    ) -> Result<(), DeviceError>;

    /// An event with its time.
    fn create_event(&self) -> Result<Event, DeviceError>;

    unsafe fn destroy_event(&self, event: Event);

    unsafe fn record(&self, event: Event, stream: Stream) -> Result<(), DeviceError>;

    /// Milliseconds between two events.
    unsafe fn elapsed_ms(&self, start: Event, end: Event) -> Result<f32, DeviceError>;

    /// Records what this thread submits from here on; nothing that other threads do ends that.
    unsafe fn begin_capture(&self, stream: Stream) -> Result<(), DeviceError>;

    unsafe fn end_capture(&self, stream: Stream) -> Result<Recording, DeviceError>;

    unsafe fn instantiate(&self, recording: Recording) -> Result<Graph, DeviceError>;

    unsafe fn destroy_recording(&self, recording: Recording);

    /// Brings a graph to the device before its first launch, where the vendor has a call for that.
    unsafe fn upload_graph(&self, graph: Graph, stream: Stream) -> Result<(), DeviceError>;

    unsafe fn launch_graph(&self, graph: Graph, stream: Stream) -> Result<(), DeviceError>;

    unsafe fn destroy_graph(&self, graph: Graph);

    /// A tensor map for TMA.
    fn tensor_map(&self, map: &TensorMap, at: Address) -> Result<[u8; 128], DeviceError>;

    fn sensors(&self) -> Sensors;
}
