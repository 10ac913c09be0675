//! One AMD GPU with one stream.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

use super::clock;
use super::device::Runtime;
use super::raw::{
    HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    HIP_FUNC_ATTRIBUTE_NUM_REGS, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, Hip, hipErrorOutOfMemory,
    hipEvent_t, hipEventDefault, hipFunction_attribute, hipFunction_t, hipGraph_t, hipGraphExec_t,
    hipModule_t, hipStream_t, hipStreamCaptureModeThreadLocal, hipStreamNonBlocking,
};
use crate::backend::Sensors;
use crate::gpu::library::call;
use crate::gpu::{
    Address, DeviceError, DeviceFacts, Driver, Event, Function, FunctionFacts, Graph, LaunchShape,
    MemoryFacts, Module, TensorMap,
};

/// A device with a stream that waits for no other.
#[derive(Debug)]
pub(super) struct HipDriver {
    hip: Hip,
    ordinal: c_int,
    stream: Cell<hipStream_t>,
    /// The machine code of each module that is loaded: HIP goes on reading it.
    images: RefCell<HashMap<usize, Vec<u8>>>,
    /// Whether what is submitted is recorded.
    recording: Cell<bool>,
    clock_file: PathBuf,
    facts: DeviceFacts,
}

impl HipDriver {
    /// Opens a device.
    pub(super) fn open(runtime: &Runtime, index: u32, root: &Path) -> Result<Self, DeviceError> {
        let listed = runtime.describe(index)?;
        let Some(architecture) = listed.architecture() else {
            return Err(DeviceError::Unsupported(listed.unknown()));
        };
        // From here on, dropping it gives back what there is.
        let driver = Self {
            hip: runtime.hip,
            ordinal: listed.ordinal,
            stream: Cell::new(ptr::null_mut()),
            images: RefCell::default(),
            recording: Cell::new(false),
            clock_file: clock::file(root, &listed.bus_id),
            facts: DeviceFacts {
                architecture,
                processors: listed.processors,
                shared_bytes_per_block: listed.shared_bytes_per_block,
                l2_bytes: listed.l2_bytes,
                last_level_bytes: listed.last_level_bytes(),
                memory_bytes: listed.memory_bytes,
                clock_mhz: listed.clock_mhz,
                driver_version: runtime.driver_version(),
                runtime_version: format!("HIP {}", runtime.version),
                name: listed.name,
                bus_id: listed.bus_id,
            },
        };
        driver.create_stream()?;
        Ok(driver)
    }

    fn create_stream(&self) -> Result<(), DeviceError> {
        self.make_current()?;
        let mut stream: hipStream_t = ptr::null_mut();
        let flags = hipStreamNonBlocking;
        // SAFETY: the device is current, and the call writes one handle.
        unsafe { call!(self.hip, hipStreamCreateWithFlags(&raw mut stream, flags)) }?;
        self.stream.set(stream);
        Ok(())
    }

    fn destroy_stream(&self) {
        let stream = self.stream.replace(ptr::null_mut());
        if self.make_current().is_ok() && !stream.is_null() {
            // SAFETY: the stream is not used any more.
            unsafe { (self.hip.hipStreamDestroy)(stream) };
        }
    }

    /// What does not name a stream is done on the device that is current, which another driver on
    /// this thread may have changed.
    fn make_current(&self) -> Result<(), DeviceError> {
        // SAFETY: the call takes no pointers.
        unsafe { call!(self.hip, hipSetDevice(self.ordinal)) }
    }

    fn function_attribute(
        &self,
        function: Function,
        attribute: hipFunction_attribute,
    ) -> Result<u32, DeviceError> {
        let mut value: c_int = 0;
        let function = function.0 as hipFunction_t;
        // SAFETY: callers pass a function of this driver, and the call writes one number.
        unsafe { call!(self.hip, hipFuncGetAttribute(&raw mut value, attribute, function)) }?;
        Ok(u32::try_from(value).unwrap_or_default())
    }
}

impl Drop for HipDriver {
    fn drop(&mut self) {
        self.destroy_stream();
    }
}

impl Driver for HipDriver {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn memory(&self) -> Result<MemoryFacts, DeviceError> {
        self.make_current()?;
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: the call writes two numbers.
        unsafe { call!(self.hip, hipMemGetInfo(&raw mut free, &raw mut total)) }?;
        Ok(MemoryFacts { free: free as u64, total: total as u64 })
    }

    fn allocate(&self, bytes: u64) -> Result<Address, DeviceError> {
        self.make_current()?;
        let mut address = ptr::null_mut();
        // For none at all, HIP gives no address.
        let wanted = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
        // SAFETY: the call writes one address.
        match unsafe { call!(self.hip, hipMalloc(&raw mut address, wanted)) } {
            Ok(()) => Ok(Address(address as u64)),
            Err(DeviceError::Call { function, code, name, .. })
                if code == i64::from(hipErrorOutOfMemory) =>
            {
                Err(DeviceError::OutOfMemory { function, name, bytes })
            }
            Err(error) => Err(error),
        }
    }

    unsafe fn free(&self, address: Address) {
        if self.make_current().is_ok() {
            // SAFETY: the caller's address is one of this driver's.
            unsafe { (self.hip.hipFree)(address.0 as *mut c_void) };
        }
    }

    unsafe fn upload(&self, to: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let to = to.0 as *mut c_void;
        // The parameter is only mutable in older headers.
        let from = bytes.as_ptr().cast_mut().cast::<c_void>();
        // SAFETY: the caller has so much memory there, and the bytes stay until it is done.
        unsafe { call!(self.hip, hipMemcpyHtoDAsync(to, from, bytes.len(), self.stream.get())) }?;
        self.synchronize()
    }

    unsafe fn download(&self, bytes: &mut [u8], from: Address) -> Result<(), DeviceError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let from = from.0 as *mut c_void;
        let to = bytes.as_mut_ptr().cast::<c_void>();
        // SAFETY: the caller has so much memory there, and the bytes stay until it is done.
        unsafe { call!(self.hip, hipMemcpyDtoHAsync(to, from, bytes.len(), self.stream.get())) }?;
        self.synchronize()
    }

    unsafe fn fill(&self, at: Address, pattern: u32, words: u64) -> Result<(), DeviceError> {
        if words == 0 {
            return Ok(());
        }
        let at = at.0 as *mut c_void;
        let words = usize::try_from(words).unwrap_or(usize::MAX);
        let pattern = pattern.cast_signed();
        // SAFETY: the caller has so much memory there.
        unsafe { call!(self.hip, hipMemsetD32Async(at, pattern, words, self.stream.get())) }
    }

    fn load(&self, image: &[u8]) -> Result<Module, DeviceError> {
        self.make_current()?;
        let image = image.to_vec();
        let mut module: hipModule_t = ptr::null_mut();
        // SAFETY: the image is a whole one, which says itself how long it is, and is kept.
        unsafe { call!(self.hip, hipModuleLoadData(&raw mut module, image.as_ptr().cast())) }?;
        self.images.borrow_mut().insert(module as usize, image);
        Ok(Module(module as usize))
    }

    unsafe fn unload(&self, module: Module) {
        if self.make_current().is_ok() {
            // SAFETY: the caller's module is one of this driver's.
            unsafe { (self.hip.hipModuleUnload)(module.0 as hipModule_t) };
            self.images.borrow_mut().remove(&module.0);
        }
    }

    unsafe fn function(&self, module: Module, name: &CStr) -> Result<Function, DeviceError> {
        let mut function: hipFunction_t = ptr::null_mut();
        let module = module.0 as hipModule_t;
        // SAFETY: the caller's module is one of this driver's.
        unsafe { call!(self.hip, hipModuleGetFunction(&raw mut function, module, name.as_ptr())) }?;
        Ok(Function(function as usize))
    }

    unsafe fn function_facts(&self, function: Function) -> Result<FunctionFacts, DeviceError> {
        let ask = |attribute| self.function_attribute(function, attribute);
        Ok(FunctionFacts {
            registers: ask(HIP_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: ask(HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            static_shared_bytes: ask(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            most_threads: ask(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        })
    }

    /// All of it may be asked for at a launch; there is nothing to allow.
    unsafe fn allow_shared(&self, _function: Function, bytes: u32) -> Result<(), DeviceError> {
        let most = self.facts.shared_bytes_per_block;
        if bytes <= most {
            return Ok(());
        }
        Err(DeviceError::Unsupported(format!(
            "a block may have {most} bytes of shared memory on {}, and {bytes} are wanted",
            self.facts.name
        )))
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
                self.hip,
                hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
                    &raw mut blocks,
                    function.0 as hipFunction_t,
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
        let function = function.0 as hipFunction_t;
        let [x, y, z] = shape.grid;
        let (threads, shared) = (shape.threads, shape.shared_bytes);
        // The runtime copies as many bytes as the kernel's parameter has, and does not write.
        let mut parameters = [arguments.as_ptr().cast_mut().cast::<c_void>()];
        let parameters = parameters.as_mut_ptr();
        let stream = self.stream.get();
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
            // SAFETY: the caller's function is one of this driver's and takes these bytes.
            let code =
                unsafe { launch(function, x, y, z, threads, 1, 1, shared, stream, parameters) };
            return self.hip.check("hipModuleLaunchCooperativeKernel", code);
        }
        let extra = ptr::null_mut();
        // SAFETY: as above.
        unsafe {
            call!(
                self.hip,
                hipModuleLaunchKernel(
                    function, x, y, z, threads, 1, 1, shared, stream, parameters, extra,
                )
            )
        }
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream is this driver's.
        unsafe { call!(self.hip, hipStreamSynchronize(self.stream.get())) }
    }

    fn create_event(&self) -> Result<Event, DeviceError> {
        self.make_current()?;
        let mut event: hipEvent_t = ptr::null_mut();
        // SAFETY: the call writes one handle.
        unsafe { call!(self.hip, hipEventCreateWithFlags(&raw mut event, hipEventDefault)) }?;
        Ok(Event(event as usize))
    }

    unsafe fn destroy_event(&self, event: Event) {
        // SAFETY: the caller's event is one of this driver's.
        unsafe { (self.hip.hipEventDestroy)(event.0 as hipEvent_t) };
    }

    unsafe fn record(&self, event: Event) -> Result<(), DeviceError> {
        // SAFETY: the caller's event is one of this driver's.
        unsafe { call!(self.hip, hipEventRecord(event.0 as hipEvent_t, self.stream.get())) }
    }

    unsafe fn elapsed_ms(&self, start: Event, end: Event) -> Result<f64, DeviceError> {
        let mut ms = 0.0_f32;
        let (start, end) = (start.0 as hipEvent_t, end.0 as hipEvent_t);
        // SAFETY: the caller's events are this driver's, and the call writes one number.
        unsafe { call!(self.hip, hipEventElapsedTime(&raw mut ms, start, end)) }?;
        Ok(f64::from(ms))
    }

    fn begin_capture(&self) -> Result<(), DeviceError> {
        // Nothing that other threads do ends the recording.
        let mode = hipStreamCaptureModeThreadLocal;
        // SAFETY: the stream is this driver's.
        unsafe { call!(self.hip, hipStreamBeginCapture(self.stream.get(), mode)) }?;
        self.recording.set(true);
        Ok(())
    }

    fn end_capture(&self) -> Result<Graph, DeviceError> {
        self.recording.set(false);
        let mut graph: hipGraph_t = ptr::null_mut();
        // SAFETY: the stream is this driver's, and the call writes one handle.
        let ended =
            unsafe { call!(self.hip, hipStreamEndCapture(self.stream.get(), &raw mut graph)) };
        if let Err(error) = ended {
            // Up to ROCm 6.2 at least, a stream whose recording failed takes nothing any more.
            self.destroy_stream();
            self.create_stream()?;
            return Err(error);
        }
        let mut executable: hipGraphExec_t = ptr::null_mut();
        // SAFETY: the graph is the one that was just recorded, and the call writes one handle.
        let ready =
            unsafe { call!(self.hip, hipGraphInstantiateWithFlags(&raw mut executable, graph, 0)) };
        // SAFETY: what was instantiated does not need it any more.
        unsafe { (self.hip.hipGraphDestroy)(graph) };
        ready?;
        if let Some(upload) = self.hip.hipGraphUpload {
            // SAFETY: both handles are this driver's.
            let code = unsafe { upload(executable, self.stream.get()) };
            if let Err(error) = self.hip.check("hipGraphUpload", code) {
                // SAFETY: nobody else has the handle.
                unsafe { (self.hip.hipGraphExecDestroy)(executable) };
                return Err(error);
            }
        }
        Ok(Graph(executable as usize))
    }

    unsafe fn launch_graph(&self, graph: Graph) -> Result<(), DeviceError> {
        // SAFETY: the caller's graph is one of this driver's.
        unsafe { call!(self.hip, hipGraphLaunch(graph.0 as hipGraphExec_t, self.stream.get())) }
    }

    unsafe fn destroy_graph(&self, graph: Graph) {
        // SAFETY: the caller's graph is one of this driver's.
        unsafe { (self.hip.hipGraphExecDestroy)(graph.0 as hipGraphExec_t) };
    }

    unsafe fn tensor_map(&self, _map: &TensorMap, _at: Address) -> Result<[u8; 128], DeviceError> {
        Err(DeviceError::Unsupported("AMD's GPUs have no TMA".to_owned()))
    }

    fn queue(&self) -> *mut c_void {
        self.stream.get().cast()
    }

    fn sensors(&self) -> Sensors {
        Sensors { clock_mhz: clock::read(&self.clock_file), throttle_reasons: None }
    }
}
