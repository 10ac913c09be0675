//! A driver with one stream over a vendor's calls: what is the same for all vendors.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use super::calls::{Calls, FunctionAttribute, Stream};
use super::driver::{
    Address, DeviceError, DeviceFacts, Driver, Event, Function, FunctionFacts, Graph, MemoryFacts,
    Module,
};
use super::launch::{LaunchShape, TensorMap};
use crate::backend::Sensors;

/// A device with a stream that waits for no other.
#[derive(Debug)]
pub(crate) struct StreamDriver<C: Calls> {
    calls: C,
    stream: Cell<Stream>,
    facts: DeviceFacts,
}

impl<C: Calls> StreamDriver<C> {
    /// Makes a stream on a device.
    pub(crate) fn over(calls: C, facts: DeviceFacts) -> Result<Self, DeviceError> {
        // From here on, dropping it gives back what there is.
        let driver = Self { calls, stream: Cell::new(ptr::null_mut()), facts };
        driver.create_stream()?;
        Ok(driver)
    }

    fn create_stream(&self) -> Result<(), DeviceError> {
        self.make_current()?;
        self.stream.set(self.calls.create_stream()?);
        Ok(())
    }

    fn destroy_stream(&self) {
        let stream = self.stream.replace(ptr::null_mut());
        if self.make_current().is_ok() && !stream.is_null() {
            // SAFETY: the stream is not used any more.
            unsafe { self.calls.destroy_stream(stream) };
        }
    }

    /// Another driver on this thread may have made its own device the current one.
    fn make_current(&self) -> Result<(), DeviceError> {
        self.calls.make_current()
    }
}

impl<C: Calls> Drop for StreamDriver<C> {
    fn drop(&mut self) {
        self.destroy_stream();
    }
}

impl<C: Calls> Driver for StreamDriver<C> {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn memory(&self) -> Result<MemoryFacts, DeviceError> {
        self.make_current()?;
        self.calls.memory()
    }

    fn allocate(&self, bytes: u64) -> Result<Address, DeviceError> {
        self.make_current()?;
        // For none at all, CUDA reports an error and HIP gives no address.
        let wanted = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
        match self.calls.allocate(wanted) {
            Err(DeviceError::Call { function, code, name, .. }) if code == C::OUT_OF_MEMORY => {
                Err(DeviceError::OutOfMemory { function, name, bytes })
            }
            done => done,
        }
    }

    unsafe fn free(&self, address: Address) {
        if self.make_current().is_ok() {
            // SAFETY: the caller's address is one of this driver's.
            unsafe { self.calls.free(address) };
        }
    }

    unsafe fn upload(&self, to: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the caller has that much memory there, and the bytes stay until it is done.
        unsafe { self.calls.upload(to, bytes, self.stream.get()) }?;
        self.synchronize()
    }

    unsafe fn download(&self, bytes: &mut [u8], from: Address) -> Result<(), DeviceError> {
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the caller has that much memory there, and the bytes stay until it is done.
        unsafe { self.calls.download(bytes, from, self.stream.get()) }?;
        self.synchronize()
    }

    unsafe fn fill(&self, at: Address, pattern: u32, words: u64) -> Result<(), DeviceError> {
        if words == 0 {
            return Ok(());
        }
        let words = usize::try_from(words).unwrap_or(usize::MAX);
        // SAFETY: the caller has that much memory there.
        unsafe { self.calls.fill(at, pattern, words, self.stream.get()) }
    }

    fn load(&self, image: &[u8]) -> Result<Module, DeviceError> {
        self.make_current()?;
        self.calls.load(image)
    }

    unsafe fn unload(&self, module: Module) {
        if self.make_current().is_ok() {
            // SAFETY: the caller's module is one of this driver's.
            unsafe { self.calls.unload(module) };
        }
    }

    unsafe fn function(&self, module: Module, name: &CStr) -> Result<Function, DeviceError> {
        // SAFETY: the caller's module is one of this driver's.
        unsafe { self.calls.function(module, name) }
    }

    unsafe fn function_facts(&self, function: Function) -> Result<FunctionFacts, DeviceError> {
        let ask = |attribute| {
            // SAFETY: the caller's function is one of this driver's.
            let value = unsafe { self.calls.attribute(function, attribute) }?;
            Ok::<u32, DeviceError>(u32::try_from(value).unwrap_or_default())
        };
        Ok(FunctionFacts {
            registers: ask(FunctionAttribute::Registers)?,
            local_bytes: ask(FunctionAttribute::LocalBytes)?,
            static_shared_bytes: ask(FunctionAttribute::SharedBytes)?,
            most_threads: ask(FunctionAttribute::MostThreads)?,
        })
    }

    unsafe fn allow_shared(&self, function: Function, bytes: u32) -> Result<(), DeviceError> {
        // SAFETY: the caller's function is one of this driver's.
        unsafe { self.calls.allow_shared(function, bytes, &self.facts) }
    }

    unsafe fn resident_blocks(
        &self,
        function: Function,
        threads: u32,
        shared_bytes: u32,
    ) -> Result<u32, DeviceError> {
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        // SAFETY: the caller's function is one of this driver's.
        let blocks =
            unsafe { self.calls.resident_blocks(function, threads, shared_bytes as usize) };
        Ok(u32::try_from(blocks?).unwrap_or_default())
    }

    unsafe fn launch(
        &self,
        function: Function,
        shape: &LaunchShape,
        arguments: &[u8],
    ) -> Result<(), DeviceError> {
        let mut parameters = [arguments.as_ptr().cast_mut().cast::<c_void>()];
        let parameters = parameters.as_mut_ptr();
        // SAFETY: the caller's function is one of this driver's and takes these bytes.
        unsafe { self.calls.launch(function, shape, parameters, self.stream.get()) }
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream is this driver's.
        unsafe { self.calls.synchronize(self.stream.get()) }
    }

    fn create_event(&self) -> Result<Event, DeviceError> {
        self.make_current()?;
        self.calls.create_event()
    }

    unsafe fn destroy_event(&self, event: Event) {
        // SAFETY: the caller's event is one of this driver's.
        unsafe { self.calls.destroy_event(event) };
    }

    unsafe fn record(&self, event: Event) -> Result<(), DeviceError> {
        // SAFETY: the caller's event is one of this driver's.
        unsafe { self.calls.record(event, self.stream.get()) }
    }

    unsafe fn elapsed_ms(&self, start: Event, end: Event) -> Result<f64, DeviceError> {
        // SAFETY: the caller's events are this driver's.
        unsafe { self.calls.elapsed_ms(start, end) }.map(f64::from)
    }

    fn begin_capture(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream is this driver's.
        unsafe { self.calls.begin_capture(self.stream.get()) }
    }

    fn end_capture(&self) -> Result<Graph, DeviceError> {
        // SAFETY: the stream is this driver's.
        let recording = match unsafe { self.calls.end_capture(self.stream.get()) } {
            Ok(recording) => recording,
            Err(error) => {
                if C::FAILED_RECORDING_ENDS_STREAM {
                    self.destroy_stream();
                    self.create_stream()?;
                }
                return Err(error);
            }
        };
        // SAFETY: the recording is the one that was just made, and nothing else owns it; what was
        // instantiated does not need it any more.
        let ready = unsafe {
            let ready = self.calls.instantiate(recording);
            self.calls.destroy_recording(recording);
            ready
        };
        let graph = ready?;
        // SAFETY: both handles are this driver's, and nothing else owns that of the graph.
        unsafe {
            if let Err(error) = self.calls.upload_graph(graph, self.stream.get()) {
                self.calls.destroy_graph(graph);
                return Err(error);
            }
        }
        Ok(graph)
    }

    unsafe fn launch_graph(&self, graph: Graph) -> Result<(), DeviceError> {
        // SAFETY: the caller's graph is one of this driver's.
        unsafe { self.calls.launch_graph(graph, self.stream.get()) }
    }

    unsafe fn destroy_graph(&self, graph: Graph) {
        // SAFETY: the caller's graph is one of this driver's.
        unsafe { self.calls.destroy_graph(graph) };
    }

    unsafe fn tensor_map(&self, map: &TensorMap, at: Address) -> Result<[u8; 128], DeviceError> {
        self.calls.tensor_map(map, at)
    }

    fn queue(&self) -> *mut c_void {
        self.stream.get()
    }

    fn sensors(&self) -> Sensors {
        self.calls.sensors()
    }
}
