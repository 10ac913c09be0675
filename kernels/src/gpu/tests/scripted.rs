//! A driver for tests that writes down its calls, and fails where a test wants it to.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_void};

use crate::backend::Sensors;
use crate::gpu::architecture::Architecture;
use crate::gpu::driver::{
    Address, Compiled, Compiler, DeviceError, DeviceFacts, Driver, Event, Function, FunctionFacts,
    Graph, MemoryFacts, Module, Source,
};
use crate::gpu::launch::{LaunchShape, TensorMap};

/// What starting a graph takes beside its kernels, in microseconds.
pub(crate) const GRAPH_START: u64 = 3;

/// Memory is this program's own, kernels do nothing, and each takes a microsecond.
pub(crate) struct Scripted {
    facts: DeviceFacts,
    /// Every call that changes something, in order.
    pub(crate) calls: RefCell<Vec<String>>,
    /// The functions that fail.
    pub(crate) failing: RefCell<Vec<&'static str>>,
    /// What is alive: allocations, modules, events and graphs.
    pub(crate) alive: Cell<i64>,
    next: Cell<usize>,
    blocks: RefCell<Vec<Vec<u64>>>,
    capturing: Cell<bool>,
    /// Kernels in what is being recorded, and in each graph.
    recorded: Cell<u64>,
    graphs: RefCell<Vec<(usize, u64)>>,
    microseconds: Cell<u64>,
    /// The microsecond of each event.
    events: RefCell<Vec<(usize, u64)>>,
}

impl Scripted {
    pub(crate) fn new() -> Self {
        let architecture = Architecture::of_compute_capability(8, 0).unwrap();
        let facts = DeviceFacts {
            name: "scripted".to_owned(),
            architecture,
            processors: 4,
            shared_bytes_per_block: 99 << 10,
            l2_bytes: 1 << 20,
            last_level_bytes: 1 << 20,
            memory_bytes: 1 << 30,
            clock_mhz: 1000,
            counters: None,
            bus_id: "0000:00:00.0".to_owned(),
            driver_version: "1".to_owned(),
            runtime_version: "1".to_owned(),
        };
        Self {
            facts,
            calls: RefCell::default(),
            failing: RefCell::default(),
            alive: Cell::new(0),
            next: Cell::new(1),
            blocks: RefCell::default(),
            capturing: Cell::new(false),
            recorded: Cell::new(0),
            graphs: RefCell::default(),
            microseconds: Cell::new(0),
            events: RefCell::default(),
        }
    }

    fn call(&self, function: &'static str, text: String) -> Result<usize, DeviceError> {
        self.calls.borrow_mut().push(text);
        if self.failing.borrow().contains(&function) {
            let (name, meaning) = ("SCRIPTED".to_owned(), "as the test wants".to_owned());
            return Err(DeviceError::Call { function, code: 1, name, meaning });
        }
        let handle = self.next.get();
        self.next.set(handle + 1);
        Ok(handle)
    }

    fn made(&self, handle: usize) -> usize {
        self.alive.set(self.alive.get() + 1);
        handle
    }

    fn gone(&self, text: String) {
        self.calls.borrow_mut().push(text);
        self.alive.set(self.alive.get() - 1);
    }
}

impl Driver for Scripted {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn memory(&self) -> Result<MemoryFacts, DeviceError> {
        Ok(MemoryFacts { free: 1 << 30, total: 1 << 30 })
    }
    fn allocate(&self, bytes: u64) -> Result<Address, DeviceError> {
        self.call("allocate", format!("allocate {bytes}"))?;
        self.made(0);
        let block = vec![0_u64; usize::try_from(bytes.div_ceil(8)).unwrap()];
        let address = Address(block.as_ptr() as u64);
        self.blocks.borrow_mut().push(block);
        Ok(address)
    }
    unsafe fn free(&self, address: Address) {
        self.gone("free".to_owned());
        self.blocks.borrow_mut().retain(|block| block.as_ptr() as u64 != address.0);
    }
    unsafe fn upload(&self, to: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.call("upload", format!("upload {}", bytes.len()))?;
        // SAFETY: the caller's guarantee, on memory of this program.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.0 as *mut u8, bytes.len()) };
        Ok(())
    }
    unsafe fn download(&self, bytes: &mut [u8], from: Address) -> Result<(), DeviceError> {
        self.call("download", format!("download {}", bytes.len()))?;
        // SAFETY: as above.
        unsafe {
            std::ptr::copy_nonoverlapping(from.0 as *const u8, bytes.as_mut_ptr(), bytes.len());
        }
        Ok(())
    }
    unsafe fn fill(&self, at: Address, pattern: u32, words: u64) -> Result<(), DeviceError> {
        self.call("fill", format!("fill {words} {pattern:x}"))?;
        for word in 0..usize::try_from(words).unwrap() {
            // SAFETY: as above.
            unsafe { (at.0 as *mut u32).add(word).write(pattern) };
        }
        Ok(())
    }
    fn load(&self, _: &[u8]) -> Result<Module, DeviceError> {
        self.call("load", "load".to_owned()).map(|handle| Module(self.made(handle)))
    }
    unsafe fn unload(&self, _: Module) {
        self.gone("unload".to_owned());
    }
    unsafe fn function(&self, _: Module, name: &CStr) -> Result<Function, DeviceError> {
        let text = format!("function {}", name.to_string_lossy());
        self.call("function", text).map(Function)
    }
    unsafe fn function_facts(&self, _: Function) -> Result<FunctionFacts, DeviceError> {
        Ok(FunctionFacts {
            registers: 32,
            local_bytes: 0,
            static_shared_bytes: 0,
            most_threads: 1024,
        })
    }
    unsafe fn allow_shared(&self, _: Function, _: u32) -> Result<(), DeviceError> {
        self.call("allow_shared", "allow shared".to_owned()).map(drop)
    }
    unsafe fn resident_blocks(&self, _: Function, _: u32, _: u32) -> Result<u32, DeviceError> {
        Ok(if self.failing.borrow().contains(&"resident_blocks") { 0 } else { 2 })
    }
    unsafe fn launch(
        &self,
        _: Function,
        shape: &LaunchShape,
        arguments: &[u8],
    ) -> Result<(), DeviceError> {
        assert_eq!(arguments.len() % 64, 0);
        self.call("launch", format!("launch {}", shape.grid[0]))?;
        let counted = if self.capturing.get() { &self.recorded } else { &self.microseconds };
        counted.set(counted.get() + 1);
        Ok(())
    }
    fn synchronize(&self) -> Result<(), DeviceError> {
        self.call("synchronize", "synchronize".to_owned()).map(drop)
    }
    fn create_event(&self) -> Result<Event, DeviceError> {
        self.call("create_event", "event".to_owned()).map(|handle| Event(self.made(handle)))
    }
    unsafe fn destroy_event(&self, _: Event) {
        self.gone("destroy event".to_owned());
    }
    unsafe fn record(&self, event: Event) -> Result<(), DeviceError> {
        self.call("record", "record".to_owned())?;
        self.events.borrow_mut().push((event.0, self.microseconds.get()));
        Ok(())
    }
    unsafe fn elapsed_ms(&self, start: Event, end: Event) -> Result<f64, DeviceError> {
        self.call("elapsed", "elapsed".to_owned())?;
        let events = self.events.borrow();
        let at = |event: Event| events.iter().rev().find(|(id, _)| *id == event.0).unwrap().1;
        Ok((at(end) - at(start)) as f64 / 1e3)
    }
    fn begin_capture(&self) -> Result<(), DeviceError> {
        self.call("begin_capture", "begin".to_owned())?;
        self.capturing.set(true);
        self.recorded.set(0);
        Ok(())
    }
    fn end_capture(&self) -> Result<Graph, DeviceError> {
        self.capturing.set(false);
        let graph = self.made(self.call("end_capture", "end".to_owned())?);
        self.graphs.borrow_mut().push((graph, self.recorded.get()));
        Ok(Graph(graph))
    }
    unsafe fn launch_graph(&self, graph: Graph) -> Result<(), DeviceError> {
        let graphs = self.graphs.borrow();
        let kernels = graphs.iter().find(|(handle, _)| *handle == graph.0).unwrap().1;
        self.microseconds.set(self.microseconds.get() + GRAPH_START + kernels);
        self.call("launch_graph", "graph".to_owned()).map(drop)
    }
    unsafe fn destroy_graph(&self, _: Graph) {
        self.gone("destroy graph".to_owned());
    }
    unsafe fn tensor_map(&self, _: &TensorMap, _: Address) -> Result<[u8; 128], DeviceError> {
        Ok([0; 128])
    }
    fn queue(&self) -> *mut c_void {
        std::ptr::null_mut()
    }
    fn sensors(&self) -> Sensors {
        Sensors { clock_mhz: Some(1000), throttle_reasons: Some(0), device_clock_mhz: None }
    }
}

/// Compiles everything to nothing.
pub(crate) struct NoCompiler;

impl Compiler for NoCompiler {
    fn version(&self) -> &'static str {
        "none"
    }
    fn options(&self, _: &Architecture) -> Vec<String> {
        Vec::new()
    }
    fn compile(&self, source: &Source<'_>, _: &Architecture) -> Result<Compiled, DeviceError> {
        Ok(Compiled { image: source.text.as_bytes().to_vec(), log: String::new() })
    }
}
