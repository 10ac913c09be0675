//! Kernels on a device, ready to be launched.

use std::ffi::CString;
use std::rc::Rc;

use super::architecture::Architecture;
use super::cache::CodeCache;
use super::driver::{Compiler, DeviceError, Driver, Function, FunctionFacts, Module, Source};
use super::headers::HEADERS;
use super::launch::LaunchShape;
use super::memory::DeviceTensors;
use super::plan::{Argument, KernelPlan};
use super::queue::Launch;
use crate::backend::KernelFacts;

/// Compiles kernels for a device and loads them there.
pub(crate) struct Loader {
    driver: Rc<dyn Driver>,
    compiler: Rc<dyn Compiler>,
    cache: CodeCache,
}

impl Loader {
    pub(crate) fn new(
        driver: Rc<dyn Driver>,
        compiler: Rc<dyn Compiler>,
        cache: CodeCache,
    ) -> Self {
        Self { driver, compiler, cache }
    }

    /// The device.
    pub(crate) fn driver(&self) -> &Rc<dyn Driver> {
        &self.driver
    }

    /// The compiler and its version.
    pub(crate) fn compiler_version(&self) -> &str {
        self.compiler.version()
    }

    /// Compiles a kernel, unless it is in the cache, and loads it.
    pub(crate) fn load(&self, plan: KernelPlan) -> Result<LoadedKernel, DeviceError> {
        LoadedKernel::new(&self.driver, &*self.compiler, &self.cache, plan)
    }
}

/// A kernel that is loaded, with the parameters of its launches.
pub(crate) struct LoadedKernel {
    driver: Rc<dyn Driver>,
    module: Module,
    function: Function,
    facts: FunctionFacts,
    resident_blocks: u32,
    shape: LaunchShape,
    entry: String,
    arguments: Vec<Argument>,
    /// Its parameter struct for each set of tensors where they lie now.
    parameters: Vec<Vec<u8>>,
}

/// A loaded module that is unloaded unless it is kept.
struct Guard<'d> {
    driver: &'d dyn Driver,
    module: Option<Module>,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: it was loaded by this driver, and none of its kernels was launched.
            unsafe { self.driver.unload(module) };
        }
    }
}

impl LoadedKernel {
    fn new(
        driver: &Rc<dyn Driver>,
        compiler: &dyn Compiler,
        cache: &CodeCache,
        plan: KernelPlan,
    ) -> Result<Self, DeviceError> {
        let KernelPlan { code, mut shape, arguments } = plan;
        let source = Source { name: &code.entry, text: &code.text, headers: HEADERS };
        let architecture: &Architecture = &driver.facts().architecture;
        let image = cache.compile(compiler, &source, architecture)?;
        let refused = |error| {
            let kernel = format!("{} ({shape})", code.entry);
            DeviceError::Kernel { kernel, error: Box::new(error) }
        };
        let module = driver.load(&image).map_err(refused)?;
        let mut guard = Guard { driver: &**driver, module: Some(module) };
        let name = CString::new(code.entry.as_str())
            .map_err(|_| DeviceError::Unsupported(format!("{} is not a name", code.entry)))?;
        // SAFETY: the module was just loaded, the function belongs to it, and both stay as long as
        // this kernel.
        let asked = unsafe {
            driver.function(module, &name).and_then(|function| {
                driver.allow_shared(function, shape.shared_bytes)?;
                let facts = driver.function_facts(function)?;
                let resident =
                    driver.resident_blocks(function, shape.threads, shape.shared_bytes)?;
                Ok((function, facts, resident))
            })
        };
        let (function, facts, resident_blocks) = asked.map_err(refused)?;
        if resident_blocks == 0 {
            return Err(DeviceError::Unsupported(format!(
                "{} does not fit on a processor of {}: {} threads with {} registers each and {} \
                 bytes of shared memory",
                code.entry,
                driver.facts().name,
                shape.threads,
                facts.registers,
                shape.shared_bytes + facts.static_shared_bytes
            )));
        }
        if shape.cooperative {
            // All blocks must be resident at once, and tiles beyond their number are done in turns.
            let most = resident_blocks.saturating_mul(driver.facts().processors).max(1);
            shape.grid = [shape.grid[0].min(most), 1, 1];
        }
        guard.module = None;
        drop(guard);
        Ok(Self {
            driver: Rc::clone(driver),
            module,
            function,
            facts,
            resident_blocks,
            shape,
            entry: code.entry,
            arguments,
            parameters: Vec::new(),
        })
    }
}

impl Launch for LoadedKernel {
    fn name(&self) -> String {
        self.entry.clone()
    }

    fn described(&self) -> String {
        format!("{} ({})", self.entry, self.shape)
    }

    fn facts(&self) -> Option<KernelFacts> {
        Some(KernelFacts {
            name: self.entry.clone(),
            blocks: self.shape.grid.iter().map(|&extent| u64::from(extent)).product(),
            threads: self.shape.threads,
            registers: self.facts.registers,
            spilled_bytes: self.facts.local_bytes,
            shared_bytes: self.shape.shared_bytes + self.facts.static_shared_bytes,
            resident_blocks: self.resident_blocks,
        })
    }

    fn locate(&mut self, tensors: &DeviceTensors) -> Result<(), DeviceError> {
        let mut parameters = Vec::with_capacity(tensors.sets());
        for set in 0..tensors.sets() {
            let mut bytes = Vec::with_capacity(8 * self.arguments.len());
            for argument in &self.arguments {
                match argument {
                    Argument::Tensor(id) => {
                        bytes.extend_from_slice(&tensors.address(set, *id).0.to_ne_bytes());
                    }
                    Argument::Size(size) => bytes.extend_from_slice(&size.to_ne_bytes()),
                    Argument::Map(map) => {
                        let at = tensors.address(set, map.tensor);
                        // SAFETY: the tensor is as large as the map says; the plan made both.
                        let map = unsafe { self.driver.tensor_map(map, at)? };
                        bytes.extend_from_slice(&map);
                    }
                }
            }
            // As long as the struct is with its padding: tensor maps align it to 64 bytes.
            bytes.resize(bytes.len().next_multiple_of(64), 0);
            parameters.push(bytes);
        }
        self.parameters = parameters;
        Ok(())
    }

    unsafe fn launch(&self, set: usize) -> Result<(), DeviceError> {
        // SAFETY: the function is loaded; its parameters were made for it and for tensors that are
        // there, by the caller's guarantee.
        unsafe { self.driver.launch(self.function, &self.shape, &self.parameters[set]) }
            .map_err(|error| self.failed(error))
    }
}

impl Drop for LoadedKernel {
    fn drop(&mut self) {
        // A kernel that still runs must end before its code goes.
        let _ = self.driver.synchronize();
        // SAFETY: it was loaded by this driver, and nothing else owns it.
        unsafe { self.driver.unload(self.module) };
    }
}
