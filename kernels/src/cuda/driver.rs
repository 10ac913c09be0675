//! One NVIDIA GPU with one stream.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUevent, CUevent_flags, CUfunction, CUfunction_attribute as Attribute,
    CUgraph, CUgraphExec, CUmodule, CUresult, CUstream, CUstream_flags, CUstreamCaptureMode,
};

use super::device::Runtime;
use super::functions::Cuda;
use super::nvml::{Management, Monitor};
use super::tensor_map;
use crate::backend::Sensors;
use crate::gpu::library::call;
use crate::gpu::{
    Address, DeviceError, DeviceFacts, Driver, Event, Function, FunctionFacts, Graph, LaunchShape,
    MemoryFacts, Module, TensorMap,
};

/// A device with its primary context and a stream that waits for no other.
#[derive(Debug)]
pub(crate) struct CudaDriver {
    cuda: Cuda,
    device: CUdevice,
    context: CUcontext,
    stream: CUstream,
    monitor: Option<Monitor>,
    facts: DeviceFacts,
}

impl CudaDriver {
    /// Opens a device.
    pub(crate) fn open(runtime: &Runtime, index: u32) -> Result<Self, DeviceError> {
        let listed = runtime.describe(index)?;
        let Some(architecture) = listed.architecture() else {
            return Err(DeviceError::Unsupported(listed.too_old()));
        };
        let monitor =
            runtime.management.as_ref().and_then(|nvml: &Management| nvml.monitor(&listed.bus_id));
        let cuda = runtime.cuda;
        let mut context = ptr::null_mut();
        // SAFETY: the device is one that the driver listed, and the call writes one handle.
        unsafe { call!(cuda, cuDevicePrimaryCtxRetain(&raw mut context, listed.device)) }?;
        // From here on, dropping it gives back what there is.
        let mut driver = Self {
            cuda,
            device: listed.device,
            context,
            stream: ptr::null_mut(),
            monitor,
            facts: DeviceFacts {
                name: listed.name,
                architecture,
                processors: listed.processors,
                shared_bytes_per_block: listed.shared_bytes_per_block,
                l2_bytes: listed.l2_bytes,
                last_level_bytes: listed.l2_bytes,
                memory_bytes: listed.memory_bytes,
                clock_mhz: listed.clock_mhz,
                bus_id: listed.bus_id,
                driver_version: runtime.driver_version(),
                runtime_version: runtime.interface_version(),
            },
        };
        driver.make_current()?;
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the context is current, and the call writes one handle.
        unsafe { call!(cuda, cuStreamCreate(&raw mut driver.stream, flags)) }?;
        Ok(driver)
    }

    /// What does not name a stream is done in the context that is current, which another device
    /// on this thread may have changed.
    fn make_current(&self) -> Result<(), DeviceError> {
        // SAFETY: the context is retained.
        unsafe { call!(self.cuda, cuCtxSetCurrent(self.context)) }
    }

    fn function_attribute(
        &self,
        function: Function,
        attribute: Attribute,
    ) -> Result<u32, DeviceError> {
        let mut value: c_int = 0;
        // SAFETY: callers pass a function of this driver, and the call writes one number.
        unsafe {
            call!(
                self.cuda,
                cuFuncGetAttribute(&raw mut value, attribute as u32, function.0 as CUfunction)
            )
        }?;
        Ok(u32::try_from(value).unwrap_or_default())
    }
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        if self.make_current().is_ok() && !self.stream.is_null() {
            // SAFETY: the stream is not used any more.
            unsafe { (self.cuda.cuStreamDestroy_v2)(self.stream) };
        }
        // SAFETY: the context was retained once, and is not used any more.
        unsafe { (self.cuda.cuDevicePrimaryCtxRelease_v2)(self.device) };
    }
}

impl Driver for CudaDriver {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn memory(&self) -> Result<MemoryFacts, DeviceError> {
        self.make_current()?;
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: the call writes two numbers.
        unsafe { call!(self.cuda, cuMemGetInfo_v2(&raw mut free, &raw mut total)) }?;
        Ok(MemoryFacts { free: free as u64, total: total as u64 })
    }

    fn allocate(&self, bytes: u64) -> Result<Address, DeviceError> {
        self.make_current()?;
        let mut address = 0;
        // None at all is an error for the driver.
        let wanted = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
        // SAFETY: the call writes one address.
        let done = unsafe { call!(self.cuda, cuMemAlloc_v2(&raw mut address, wanted)) };
        match done {
            Ok(()) => Ok(Address(address)),
            Err(DeviceError::Call { function, code, name, .. })
                if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY as i64 =>
            {
                Err(DeviceError::OutOfMemory { function, name, bytes })
            }
            Err(error) => Err(error),
        }
    }

    unsafe fn free(&self, address: Address) {
        if self.make_current().is_ok() {
            // SAFETY: the caller's address is one of this driver's.
            unsafe { (self.cuda.cuMemFree_v2)(address.0) };
        }
    }

    unsafe fn upload(&self, to: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let from = bytes.as_ptr().cast::<c_void>();
        // SAFETY: the caller has so much memory there, and the bytes stay until it is done.
        unsafe { call!(self.cuda, cuMemcpyHtoDAsync_v2(to.0, from, bytes.len(), self.stream)) }?;
        self.synchronize()
    }

    unsafe fn download(&self, bytes: &mut [u8], from: Address) -> Result<(), DeviceError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let to = bytes.as_mut_ptr().cast::<c_void>();
        // SAFETY: the caller has so much memory there, and the bytes stay until it is done.
        unsafe { call!(self.cuda, cuMemcpyDtoHAsync_v2(to, from.0, bytes.len(), self.stream)) }?;
        self.synchronize()
    }

    unsafe fn fill(&self, at: Address, pattern: u32, words: u64) -> Result<(), DeviceError> {
        if words == 0 {
            return Ok(());
        }
        let words = usize::try_from(words).unwrap_or(usize::MAX);
        // SAFETY: the caller has so much memory there.
        unsafe { call!(self.cuda, cuMemsetD32Async(at.0, pattern, words, self.stream)) }
    }

    fn load(&self, image: &[u8]) -> Result<Module, DeviceError> {
        self.make_current()?;
        let mut module = ptr::null_mut();
        // SAFETY: the image is a whole one, which says itself how long it is.
        unsafe { call!(self.cuda, cuModuleLoadData(&raw mut module, image.as_ptr().cast())) }?;
        Ok(Module(module as usize))
    }

    unsafe fn unload(&self, module: Module) {
        if self.make_current().is_ok() {
            // SAFETY: the caller's module is one of this driver's.
            unsafe { (self.cuda.cuModuleUnload)(module.0 as CUmodule) };
        }
    }

    unsafe fn function(&self, module: Module, name: &CStr) -> Result<Function, DeviceError> {
        let mut function = ptr::null_mut();
        let module = module.0 as CUmodule;
        // SAFETY: the caller's module is one of this driver's.
        unsafe { call!(self.cuda, cuModuleGetFunction(&raw mut function, module, name.as_ptr())) }?;
        Ok(Function(function as usize))
    }

    unsafe fn function_facts(&self, function: Function) -> Result<FunctionFacts, DeviceError> {
        let ask = |attribute| self.function_attribute(function, attribute);
        Ok(FunctionFacts {
            registers: ask(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: ask(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            static_shared_bytes: ask(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            most_threads: ask(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        })
    }

    unsafe fn allow_shared(&self, function: Function, bytes: u32) -> Result<(), DeviceError> {
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as u32;
        let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        // SAFETY: the caller's function is one of this driver's.
        unsafe { call!(self.cuda, cuFuncSetAttribute(function.0 as CUfunction, attribute, bytes)) }
    }

    unsafe fn resident_blocks(
        &self,
        function: Function,
        threads: u32,
        shared_bytes: u32,
    ) -> Result<u32, DeviceError> {
        let mut blocks: c_int = 0;
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        // SAFETY: the caller's function is one of this driver's.
        unsafe {
            call!(
                self.cuda,
                cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    &raw mut blocks,
                    function.0 as CUfunction,
                    threads,
                    shared_bytes as usize,
                )
            )
        }?;
        Ok(u32::try_from(blocks).unwrap_or_default())
    }

    unsafe fn launch(
        &self,
        function: Function,
        shape: &LaunchShape,
        arguments: &[u8],
    ) -> Result<(), DeviceError> {
        let function = function.0 as CUfunction;
        let [x, y, z] = shape.grid;
        let (threads, shared) = (shape.threads, shape.shared_bytes);
        // The driver copies as many bytes as the kernel's parameter has, and does not write.
        let mut parameters = [arguments.as_ptr().cast_mut().cast::<c_void>()];
        let parameters = parameters.as_mut_ptr();
        let stream = self.stream;
        if shape.cooperative {
            // SAFETY: the caller's function is one of this driver's and takes these bytes.
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
        // SAFETY: as above.
        unsafe {
            call!(
                self.cuda,
                cuLaunchKernel(function, x, y, z, threads, 1, 1, shared, stream, parameters, extra)
            )
        }
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream is this driver's.
        unsafe { call!(self.cuda, cuStreamSynchronize(self.stream)) }
    }

    fn create_event(&self) -> Result<Event, DeviceError> {
        self.make_current()?;
        let mut event = ptr::null_mut();
        let flags = CUevent_flags::CU_EVENT_DEFAULT as u32;
        // SAFETY: the call writes one handle.
        unsafe { call!(self.cuda, cuEventCreate(&raw mut event, flags)) }?;
        Ok(Event(event as usize))
    }

    unsafe fn destroy_event(&self, event: Event) {
        // SAFETY: the caller's event is one of this driver's.
        unsafe { (self.cuda.cuEventDestroy_v2)(event.0 as CUevent) };
    }

    unsafe fn record(&self, event: Event) -> Result<(), DeviceError> {
        // SAFETY: the caller's event is one of this driver's.
        unsafe { call!(self.cuda, cuEventRecord(event.0 as CUevent, self.stream)) }
    }

    unsafe fn elapsed_ms(&self, start: Event, end: Event) -> Result<f64, DeviceError> {
        let mut ms = 0.0_f32;
        let (start, end) = (start.0 as CUevent, end.0 as CUevent);
        let function = self.cuda.cuEventElapsedTime_v2.unwrap_or(self.cuda.cuEventElapsedTime);
        // SAFETY: the caller's events are this driver's, and the call writes one number.
        let code = unsafe { function(&raw mut ms, start, end) };
        self.cuda.check("cuEventElapsedTime", code)?;
        Ok(f64::from(ms))
    }

    fn begin_capture(&self) -> Result<(), DeviceError> {
        // Nothing that other threads do ends the recording.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL as u32;
        // SAFETY: the stream is this driver's.
        unsafe { call!(self.cuda, cuStreamBeginCapture_v2(self.stream, mode)) }
    }

    fn end_capture(&self) -> Result<Graph, DeviceError> {
        let mut graph: CUgraph = ptr::null_mut();
        // SAFETY: the stream is this driver's, and the call writes one handle.
        unsafe { call!(self.cuda, cuStreamEndCapture(self.stream, &raw mut graph)) }?;
        let mut executable: CUgraphExec = ptr::null_mut();
        // SAFETY: the graph is the one that was just recorded, and the call writes one handle.
        let ready =
            unsafe { call!(self.cuda, cuGraphInstantiateWithFlags(&raw mut executable, graph, 0)) };
        // SAFETY: what was instantiated does not need it any more.
        unsafe { (self.cuda.cuGraphDestroy)(graph) };
        ready?;
        if let Some(upload) = self.cuda.cuGraphUpload {
            // SAFETY: both handles are this driver's.
            let code = unsafe { upload(executable, self.stream) };
            if let Err(error) = self.cuda.check("cuGraphUpload", code) {
                // SAFETY: nobody else has the handle.
                unsafe { (self.cuda.cuGraphExecDestroy)(executable) };
                return Err(error);
            }
        }
        Ok(Graph(executable as usize))
    }

    unsafe fn launch_graph(&self, graph: Graph) -> Result<(), DeviceError> {
        // SAFETY: the caller's graph is one of this driver's.
        unsafe { call!(self.cuda, cuGraphLaunch(graph.0 as CUgraphExec, self.stream)) }
    }

    unsafe fn destroy_graph(&self, graph: Graph) {
        // SAFETY: the caller's graph is one of this driver's.
        unsafe { (self.cuda.cuGraphExecDestroy)(graph.0 as CUgraphExec) };
    }

    unsafe fn tensor_map(&self, map: &TensorMap, at: Address) -> Result<[u8; 128], DeviceError> {
        tensor_map::encode(&self.cuda, map, at)
    }

    fn queue(&self) -> *mut c_void {
        self.stream.cast()
    }

    fn sensors(&self) -> Sensors {
        self.monitor.as_ref().map(Monitor::read).unwrap_or_default()
    }
}
