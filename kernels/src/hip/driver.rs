//! The calls of HIP's runtime, on one AMD GPU.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

use fusion_cost_model::Core;

use super::clock;
use super::device::Runtime;
use super::raw::{
    HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    HIP_FUNC_ATTRIBUTE_NUM_REGS, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, Hip, hipErrorOutOfMemory,
    hipEvent_t, hipEventDefault, hipFunction_t, hipGraph_t, hipGraphExec_t, hipModule_t,
    hipStream_t, hipStreamCaptureModeThreadLocal, hipStreamNonBlocking,
};
use crate::backend::Sensors;
use crate::gpu::library::call;
use crate::gpu::listing;
use crate::gpu::{
    Address, Calls, DeviceError, DeviceFacts, Event, Function, FunctionAttribute, Graph,
    LaunchShape, MemoryFacts, Module, Recording, Stream, StreamDriver, TensorMap,
};

/// One AMD GPU with one stream.
pub(super) type HipDriver = StreamDriver<HipCalls>;

/// A device.
#[derive(Debug)]
pub(super) struct HipCalls {
    hip: Hip,
    ordinal: c_int,
    /// The machine code of each module that is loaded: HIP goes on reading it.
    images: RefCell<HashMap<usize, Vec<u8>>>,
    /// Whether what is submitted is recorded.
    recording: Cell<bool>,
    clock_file: PathBuf,
}

impl HipDriver {
    /// Opens a device for kernels of a core; of the best one if none is named.
    pub(super) fn open(
        runtime: &Runtime,
        index: u32,
        root: &Path,
        core: Option<Core>,
    ) -> Result<Self, DeviceError> {
        let listed = runtime.describe(index)?;
        let Some(architecture) = listed.architecture() else {
            return Err(DeviceError::Unsupported(listed.unknown()));
        };
        let architecture = listing::on_core(architecture, core)?;
        let calls = HipCalls {
            hip: runtime.hip,
            ordinal: listed.own.ordinal,
            images: RefCell::default(),
            recording: Cell::new(false),
            clock_file: clock::file(root, &listed.bus_id),
        };
        let last_level_bytes = listed.last_level_bytes();
        let version = format!("HIP {}", runtime.version);
        let counters = listed.counters();
        let facts = listed.facts(architecture, last_level_bytes, runtime, version);
        Self::over(calls, DeviceFacts { counters, ..facts })
    }
}

impl Calls for HipCalls {
    const OUT_OF_MEMORY: i64 = hipErrorOutOfMemory as i64;
    // Up to ROCm 6.2 at least.
    const FAILED_RECORDING_ENDS_STREAM: bool = true;

    fn make_current(&self) -> Result<(), DeviceError> {
        // SAFETY: the call takes no pointers.
        unsafe { call!(self.hip, hipSetDevice(self.ordinal)) }
    }

    fn create_stream(&self) -> Result<Stream, DeviceError> {
        let mut stream: hipStream_t = ptr::null_mut();
        let flags = hipStreamNonBlocking;
        // SAFETY: the call writes one handle.
        unsafe { call!(self.hip, hipStreamCreateWithFlags(&raw mut stream, flags)) }?;
        Ok(stream.cast())
    }

    unsafe fn destroy_stream(&self, stream: Stream) {
        // SAFETY: the caller's guarantee.
        unsafe { (self.hip.hipStreamDestroy)(stream.cast()) };
    }

    unsafe fn synchronize(&self, stream: Stream) -> Result<(), DeviceError> {
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.hip, hipStreamSynchronize(stream.cast())) }
    }

    fn memory(&self) -> Result<MemoryFacts, DeviceError> {
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: the call writes two numbers.
        unsafe { call!(self.hip, hipMemGetInfo(&raw mut free, &raw mut total)) }?;
        Ok(MemoryFacts { free: free as u64, total: total as u64 })
    }

    fn allocate(&self, bytes: usize) -> Result<Address, DeviceError> {
        let mut address = ptr::null_mut();
        // SAFETY: the call writes one address.
        unsafe { call!(self.hip, hipMalloc(&raw mut address, bytes)) }?;
        Ok(Address(address as u64))
    }

    unsafe fn free(&self, at: Address) {
        // SAFETY: the caller's guarantee.
        unsafe { (self.hip.hipFree)(at.0 as *mut c_void) };
    }

    unsafe fn upload(&self, to: Address, bytes: &[u8], stream: Stream) -> Result<(), DeviceError> {
        let to = to.0 as *mut c_void;
        // The parameter is only mutable in older headers.
        let (from, count) = (bytes.as_ptr().cast_mut().cast(), bytes.len());
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.hip, hipMemcpyHtoDAsync(to, from, count, stream.cast())) }
    }

    unsafe fn download(
        &self,
        bytes: &mut [u8],
        from: Address,
        stream: Stream,
    ) -> Result<(), DeviceError> {
        let from = from.0 as *mut c_void;
        let (to, count) = (bytes.as_mut_ptr().cast(), bytes.len());
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.hip, hipMemcpyDtoHAsync(to, from, count, stream.cast())) }
    }

    unsafe fn fill(
        &self,
        at: Address,
        pattern: u32,
        words: usize,
        stream: Stream,
    ) -> Result<(), DeviceError> {
        let (at, pattern) = (at.0 as *mut c_void, pattern.cast_signed());
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.hip, hipMemsetD32Async(at, pattern, words, stream.cast())) }
    }

    fn load(&self, image: &[u8]) -> Result<Module, DeviceError> {
        let image = image.to_vec();
        let mut module: hipModule_t = ptr::null_mut();
        // SAFETY: the image is a whole one, which says itself how long it is, and is kept.
        unsafe { call!(self.hip, hipModuleLoadData(&raw mut module, image.as_ptr().cast())) }?;
        self.images.borrow_mut().insert(module as usize, image);
        Ok(Module(module as usize))
    }

    unsafe fn unload(&self, module: Module) {
        // SAFETY: the caller's guarantee.
        unsafe { (self.hip.hipModuleUnload)(module.0 as hipModule_t) };
        self.images.borrow_mut().remove(&module.0);
    }

    unsafe fn function(&self, module: Module, name: &CStr) -> Result<Function, DeviceError> {
        let mut function: hipFunction_t = ptr::null_mut();
        let module = module.0 as hipModule_t;
        // SAFETY: the caller's guarantee; the call writes one handle.
        unsafe { call!(self.hip, hipModuleGetFunction(&raw mut function, module, name.as_ptr())) }?;
        Ok(Function(function as usize))
    }

    unsafe fn attribute(
        &self,
        function: Function,
        attribute: FunctionAttribute,
    ) -> Result<c_int, DeviceError> {
        let attribute = match attribute {
            FunctionAttribute::Registers => HIP_FUNC_ATTRIBUTE_NUM_REGS,
            FunctionAttribute::LocalBytes => HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
            FunctionAttribute::SharedBytes => HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
            FunctionAttribute::MostThreads => HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        };
        let mut value: c_int = 0;
        let function = function.0 as hipFunction_t;
        // SAFETY: the caller's guarantee; the call writes one number.
        unsafe { call!(self.hip, hipFuncGetAttribute(&raw mut value, attribute, function)) }?;
        Ok(value)
    }

    /// All of it may be asked for at a launch; there is nothing to allow.
    unsafe fn allow_shared(
        &self,
        _function: Function,
        bytes: u32,
        device: &DeviceFacts,
    ) -> Result<(), DeviceError> {
        let most = device.shared_bytes_per_block;
        if bytes <= most {
            return Ok(());
        }
        Err(DeviceError::Unsupported(format!(
            "a block may have {most} bytes of shared memory on {}, and {bytes} are wanted",
            device.name
        )))
    }

    unsafe fn resident_blocks(
        &self,
        function: Function,
        threads: c_int,
        shared_bytes: usize,
    ) -> Result<c_int, DeviceError> {
        let mut blocks: c_int = 0;
        let function = function.0 as hipFunction_t;
        // SAFETY: the caller's guarantee; the call writes one number.
        unsafe {
            call!(
                self.hip,
                hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
                    &raw mut blocks,
                    function,
                    threads,
                    shared_bytes,
                )
            )
        }?;
        Ok(blocks)
    }

    unsafe fn launch(
        &self,
        function: Function,
        shape: &LaunchShape,
        parameters: *mut *mut c_void,
        stream: Stream,
    ) -> Result<(), DeviceError> {
        let function = function.0 as hipFunction_t;
        let ([x, y, z], stream) = (shape.grid, stream.cast());
        let (threads, shared) = (shape.threads, shape.shared_bytes);
        if shape.cooperative {
            if self.recording.get() {
                // Up to ROCm 6.2 at least, it would run at once instead of being recorded.
                return Err(DeviceError::Unsupported(
                    "HIP records no kernels whose blocks wait for each other".to_owned(),
                ));
            }
            let Some(launch) = self.hip.hipModuleLaunchCooperativeKernel else {
                return Err(DeviceError::Unsupported(
                    "kernels whose blocks wait for each other need ROCm 5.5 or later".to_owned(),
                ));
            };
            // SAFETY: the caller's guarantee.
            let code =
                unsafe { launch(function, x, y, z, threads, 1, 1, shared, stream, parameters) };
            return self.hip.check("hipModuleLaunchCooperativeKernel", code);
        }
        let extra = ptr::null_mut();
        // SAFETY: the caller's guarantee.
        unsafe {
            call!(
                self.hip,
                hipModuleLaunchKernel(
                    function, x, y, z, threads, 1, 1, shared, stream, parameters, extra,
                )
            )
        }
    }

    fn create_event(&self) -> Result<Event, DeviceError> {
        let mut event: hipEvent_t = ptr::null_mut();
        // SAFETY: the call writes one handle.
        unsafe { call!(self.hip, hipEventCreateWithFlags(&raw mut event, hipEventDefault)) }?;
        Ok(Event(event as usize))
    }

    unsafe fn destroy_event(&self, event: Event) {
        // SAFETY: the caller's guarantee.
        unsafe { (self.hip.hipEventDestroy)(event.0 as hipEvent_t) };
    }

    unsafe fn record(&self, event: Event, stream: Stream) -> Result<(), DeviceError> {
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.hip, hipEventRecord(event.0 as hipEvent_t, stream.cast())) }
    }

    unsafe fn elapsed_ms(&self, start: Event, end: Event) -> Result<f32, DeviceError> {
        let mut ms = 0.0_f32;
        let (start, end) = (start.0 as hipEvent_t, end.0 as hipEvent_t);
        // SAFETY: the caller's guarantee; the call writes one number.
        unsafe { call!(self.hip, hipEventElapsedTime(&raw mut ms, start, end)) }?;
        Ok(ms)
    }

    unsafe fn begin_capture(&self, stream: Stream) -> Result<(), DeviceError> {
        let mode = hipStreamCaptureModeThreadLocal;
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.hip, hipStreamBeginCapture(stream.cast(), mode)) }?;
        self.recording.set(true);
        Ok(())
    }

    unsafe fn end_capture(&self, stream: Stream) -> Result<Recording, DeviceError> {
        self.recording.set(false);
        let mut graph: hipGraph_t = ptr::null_mut();
        // SAFETY: the caller's guarantee; the call writes one handle.
        unsafe { call!(self.hip, hipStreamEndCapture(stream.cast(), &raw mut graph)) }?;
        Ok(Recording(graph as usize))
    }

    unsafe fn instantiate(&self, recording: Recording) -> Result<Graph, DeviceError> {
        let mut graph: hipGraphExec_t = ptr::null_mut();
        let recording = recording.0 as hipGraph_t;
        // SAFETY: the caller's guarantee; the call writes one handle.
        unsafe { call!(self.hip, hipGraphInstantiateWithFlags(&raw mut graph, recording, 0)) }?;
        Ok(Graph(graph as usize))
    }

    unsafe fn destroy_recording(&self, recording: Recording) {
        // SAFETY: the caller's guarantee.
        unsafe { (self.hip.hipGraphDestroy)(recording.0 as hipGraph_t) };
    }

    unsafe fn upload_graph(&self, graph: Graph, stream: Stream) -> Result<(), DeviceError> {
        let Some(upload) = self.hip.hipGraphUpload else { return Ok(()) };
        // SAFETY: the caller's guarantee.
        let code = unsafe { upload(graph.0 as hipGraphExec_t, stream.cast()) };
        self.hip.check("hipGraphUpload", code)
    }

    unsafe fn launch_graph(&self, graph: Graph, stream: Stream) -> Result<(), DeviceError> {
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.hip, hipGraphLaunch(graph.0 as hipGraphExec_t, stream.cast())) }
    }

    unsafe fn destroy_graph(&self, graph: Graph) {
        // SAFETY: the caller's guarantee.
        unsafe { (self.hip.hipGraphExecDestroy)(graph.0 as hipGraphExec_t) };
    }

    fn tensor_map(&self, _map: &TensorMap, _at: Address) -> Result<[u8; 128], DeviceError> {
        Err(DeviceError::Unsupported("AMD's GPUs have no TMA".to_owned()))
    }

    fn sensors(&self) -> Sensors {
        Sensors { clock_mhz: clock::read(&self.clock_file), ..Sensors::default() }
    }
}
