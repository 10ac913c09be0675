//! The calls of CUDA's driver interface, on one NVIDIA GPU.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUevent, CUevent_flags, CUfunction, CUfunction_attribute as Attribute,
    CUgraph, CUgraphExec, CUmodule, CUresult, CUstream, CUstream_flags, CUstreamCaptureMode,
};
use fusion_cost_model::Core;

use super::device::Runtime;
use super::functions::Cuda;
use super::nvml::{Management, Monitor};
use super::tensor_map;
use crate::backend::Sensors;
use crate::gpu::library::call;
use crate::gpu::listing;
use crate::gpu::{
    Address, Calls, Counters, DeviceError, DeviceFacts, Event, Function, FunctionAttribute, Graph,
    LaunchShape, MemoryFacts, Module, Recording, Stream, StreamDriver, TensorMap,
};

/// One NVIDIA GPU with one stream.
pub(crate) type CudaDriver = StreamDriver<CudaCalls>;

/// A device with its primary context.
#[derive(Debug)]
pub(crate) struct CudaCalls {
    cuda: Cuda,
    device: CUdevice,
    context: CUcontext,
    monitor: Option<Monitor>,
}

impl CudaDriver {
    /// Opens a device for kernels of a core; of the best one if none is named.
    pub(crate) fn open(
        runtime: &Runtime,
        index: u32,
        core: Option<Core>,
    ) -> Result<Self, DeviceError> {
        let listed = runtime.describe(index)?;
        let Some(architecture) = listed.architecture() else {
            return Err(DeviceError::Unsupported(listed.too_old()));
        };
        let architecture = listing::on_core(architecture, core)?;
        let calls = CudaCalls::open(runtime, listed.own.device, &listed.bus_id)?;
        let last_level_bytes = listed.l2_bytes;
        let version = runtime.interface_version();
        // Every one counts its cycles, and the device's time in nanoseconds.
        let counters = Counters { places: listed.processors, ticks_khz: 1_000_000 };
        let facts = listed.facts(architecture, last_level_bytes, runtime, version);
        Self::over(calls, DeviceFacts { counters: Some(counters), ..facts })
    }
}

impl CudaCalls {
    fn open(runtime: &Runtime, device: CUdevice, bus_id: &str) -> Result<Self, DeviceError> {
        let monitor =
            runtime.management.as_ref().and_then(|nvml: &Management| nvml.monitor(bus_id));
        let cuda = runtime.cuda;
        let mut context = ptr::null_mut();
        // SAFETY: the device is one that the driver listed, and the call writes one handle.
        unsafe { call!(cuda, cuDevicePrimaryCtxRetain(&raw mut context, device)) }?;
        Ok(Self { cuda, device, context, monitor })
    }
}

impl Drop for CudaCalls {
    fn drop(&mut self) {
        // SAFETY: the context was retained once, and is not used any more.
        unsafe { (self.cuda.cuDevicePrimaryCtxRelease_v2)(self.device) };
    }
}

impl Calls for CudaCalls {
    const OUT_OF_MEMORY: i64 = CUresult::CUDA_ERROR_OUT_OF_MEMORY as i64;
    const FAILED_RECORDING_ENDS_STREAM: bool = false;

    fn make_current(&self) -> Result<(), DeviceError> {
        // SAFETY: the context is retained.
        unsafe { call!(self.cuda, cuCtxSetCurrent(self.context)) }
    }

    fn create_stream(&self) -> Result<Stream, DeviceError> {
        let mut stream: CUstream = ptr::null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the call writes one handle.
        unsafe { call!(self.cuda, cuStreamCreate(&raw mut stream, flags)) }?;
        Ok(stream.cast())
    }

    unsafe fn destroy_stream(&self, stream: Stream) {
        // SAFETY: the caller's guarantee.
        unsafe { (self.cuda.cuStreamDestroy_v2)(stream.cast()) };
    }

    unsafe fn synchronize(&self, stream: Stream) -> Result<(), DeviceError> {
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.cuda, cuStreamSynchronize(stream.cast())) }
    }

    fn memory(&self) -> Result<MemoryFacts, DeviceError> {
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: the call writes two numbers.
        unsafe { call!(self.cuda, cuMemGetInfo_v2(&raw mut free, &raw mut total)) }?;
        Ok(MemoryFacts { free: free as u64, total: total as u64 })
    }

    fn allocate(&self, bytes: usize) -> Result<Address, DeviceError> {
        let mut address = 0;
        // SAFETY: the call writes one address.
        unsafe { call!(self.cuda, cuMemAlloc_v2(&raw mut address, bytes)) }?;
        Ok(Address(address))
    }

    unsafe fn free(&self, at: Address) {
        // SAFETY: the caller's guarantee.
        unsafe { (self.cuda.cuMemFree_v2)(at.0) };
    }

    unsafe fn upload(&self, to: Address, bytes: &[u8], stream: Stream) -> Result<(), DeviceError> {
        let (from, count) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.cuda, cuMemcpyHtoDAsync_v2(to.0, from, count, stream.cast())) }
    }

    unsafe fn download(
        &self,
        bytes: &mut [u8],
        from: Address,
        stream: Stream,
    ) -> Result<(), DeviceError> {
        let (to, count) = (bytes.as_mut_ptr().cast(), bytes.len());
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.cuda, cuMemcpyDtoHAsync_v2(to, from.0, count, stream.cast())) }
    }

    unsafe fn fill(
        &self,
        at: Address,
        pattern: u32,
        words: usize,
        stream: Stream,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.cuda, cuMemsetD32Async(at.0, pattern, words, stream.cast())) }
    }

    fn load(&self, image: &[u8]) -> Result<Module, DeviceError> {
        let mut module: CUmodule = ptr::null_mut();
        // SAFETY: the image is a whole one, which says itself how long it is.
        unsafe { call!(self.cuda, cuModuleLoadData(&raw mut module, image.as_ptr().cast())) }?;
        Ok(Module(module as usize))
    }

    unsafe fn unload(&self, module: Module) {
        // SAFETY: the caller's guarantee.
        unsafe { (self.cuda.cuModuleUnload)(module.0 as CUmodule) };
    }

    unsafe fn function(&self, module: Module, name: &CStr) -> Result<Function, DeviceError> {
        let mut function: CUfunction = ptr::null_mut();
        let module = module.0 as CUmodule;
        // SAFETY: the caller's guarantee; the call writes one handle.
        unsafe { call!(self.cuda, cuModuleGetFunction(&raw mut function, module, name.as_ptr())) }?;
        Ok(Function(function as usize))
    }

    unsafe fn attribute(
        &self,
        function: Function,
        attribute: FunctionAttribute,
    ) -> Result<c_int, DeviceError> {
        let attribute = match attribute {
            FunctionAttribute::Registers => Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS,
            FunctionAttribute::LocalBytes => Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
            FunctionAttribute::SharedBytes => Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
            FunctionAttribute::MostThreads => Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        } as u32;
        let mut value: c_int = 0;
        let function = function.0 as CUfunction;
        // SAFETY: the caller's guarantee; the call writes one number.
        unsafe { call!(self.cuda, cuFuncGetAttribute(&raw mut value, attribute, function)) }?;
        Ok(value)
    }

    /// Needed above 48 KiB.
    unsafe fn allow_shared(
        &self,
        function: Function,
        bytes: u32,
        _device: &DeviceFacts,
    ) -> Result<(), DeviceError> {
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as u32;
        let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.cuda, cuFuncSetAttribute(function.0 as CUfunction, attribute, bytes)) }
    }

    unsafe fn resident_blocks(
        &self,
        function: Function,
        threads: c_int,
        shared_bytes: usize,
    ) -> Result<c_int, DeviceError> {
        let mut blocks: c_int = 0;
        let function = function.0 as CUfunction;
        // SAFETY: the caller's guarantee; the call writes one number.
        unsafe {
            call!(
                self.cuda,
                cuOccupancyMaxActiveBlocksPerMultiprocessor(
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
        let function = function.0 as CUfunction;
        let ([x, y, z], stream) = (shape.grid, stream.cast());
        let (threads, shared) = (shape.threads, shape.shared_bytes);
        if shape.cooperative {
            // SAFETY: the caller's guarantee.
            return unsafe {
                call!(
                    self.cuda,
                    cuLaunchCooperativeKernel(
                        function, x, y, z, threads, 1, 1, shared, stream, parameters,
                    )
                )
            };
        }
        let extra = ptr::null_mut();
        // SAFETY: the caller's guarantee.
        unsafe {
            call!(
                self.cuda,
                cuLaunchKernel(function, x, y, z, threads, 1, 1, shared, stream, parameters, extra)
            )
        }
    }

    fn create_event(&self) -> Result<Event, DeviceError> {
        let mut event: CUevent = ptr::null_mut();
        let flags = CUevent_flags::CU_EVENT_DEFAULT as u32;
        // SAFETY: the call writes one handle.
        unsafe { call!(self.cuda, cuEventCreate(&raw mut event, flags)) }?;
        Ok(Event(event as usize))
    }

    unsafe fn destroy_event(&self, event: Event) {
        // SAFETY: the caller's guarantee.
        unsafe { (self.cuda.cuEventDestroy_v2)(event.0 as CUevent) };
    }

    unsafe fn record(&self, event: Event, stream: Stream) -> Result<(), DeviceError> {
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.cuda, cuEventRecord(event.0 as CUevent, stream.cast())) }
    }

    unsafe fn elapsed_ms(&self, start: Event, end: Event) -> Result<f32, DeviceError> {
        let mut ms = 0.0_f32;
        let (start, end) = (start.0 as CUevent, end.0 as CUevent);
        let function = self.cuda.cuEventElapsedTime_v2.unwrap_or(self.cuda.cuEventElapsedTime);
        // SAFETY: the caller's guarantee; the call writes one number.
        let code = unsafe { function(&raw mut ms, start, end) };
        self.cuda.check("cuEventElapsedTime", code)?;
        Ok(ms)
    }

    unsafe fn begin_capture(&self, stream: Stream) -> Result<(), DeviceError> {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL as u32;
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.cuda, cuStreamBeginCapture_v2(stream.cast(), mode)) }
    }

    unsafe fn end_capture(&self, stream: Stream) -> Result<Recording, DeviceError> {
        let mut graph: CUgraph = ptr::null_mut();
        // SAFETY: the caller's guarantee; the call writes one handle.
        unsafe { call!(self.cuda, cuStreamEndCapture(stream.cast(), &raw mut graph)) }?;
        Ok(Recording(graph as usize))
    }

    unsafe fn instantiate(&self, recording: Recording) -> Result<Graph, DeviceError> {
        let mut graph: CUgraphExec = ptr::null_mut();
        let recording = recording.0 as CUgraph;
        // SAFETY: the caller's guarantee; the call writes one handle.
        unsafe { call!(self.cuda, cuGraphInstantiateWithFlags(&raw mut graph, recording, 0)) }?;
        Ok(Graph(graph as usize))
    }

    unsafe fn destroy_recording(&self, recording: Recording) {
        // SAFETY: the caller's guarantee.
        unsafe { (self.cuda.cuGraphDestroy)(recording.0 as CUgraph) };
    }

    unsafe fn upload_graph(&self, graph: Graph, stream: Stream) -> Result<(), DeviceError> {
        let Some(upload) = self.cuda.cuGraphUpload else { return Ok(()) };
        // SAFETY: the caller's guarantee.
        let code = unsafe { upload(graph.0 as CUgraphExec, stream.cast()) };
        self.cuda.check("cuGraphUpload", code)
    }

    unsafe fn launch_graph(&self, graph: Graph, stream: Stream) -> Result<(), DeviceError> {
        // SAFETY: the caller's guarantee.
        unsafe { call!(self.cuda, cuGraphLaunch(graph.0 as CUgraphExec, stream.cast())) }
    }

    unsafe fn destroy_graph(&self, graph: Graph) {
        // SAFETY: the caller's guarantee.
        unsafe { (self.cuda.cuGraphExecDestroy)(graph.0 as CUgraphExec) };
    }

    fn tensor_map(&self, map: &TensorMap, at: Address) -> Result<[u8; 128], DeviceError> {
        tensor_map::encode(&self.cuda, map, at)
    }

    fn sensors(&self) -> Sensors {
        self.monitor.as_ref().map(Monitor::read).unwrap_or_default()
    }
}
