//! The backend of a GPU: problems to kernels, kernels to the device.

use std::io;
use std::rc::Rc;

use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{
    Backend as BackendName, CacheState, Clock, DType, Implementation, Problem,
};

use super::cache::CodeCache;
use super::ceilings;
use super::driver::{Compiler, DeviceError, Driver};
use super::loaded::Loader;
use super::lower::lower;
use super::memory::DeviceTensors;
use super::plan::Plan;
use super::prepared::PreparedGpu;
use super::queue::{Launch, Queue, Stamps, Work};
use super::tensors::{Role, TensorId};
use super::vendor::{Epilogue, Gemm, GemmLibrary, GemmTensors, LocatedGemm, WORKSPACE_BYTES};
use crate::backend::{
    Backend, BackendError, FirstRuns, Prepared, Requirements, Setup, Unsupported, Variant,
};
use crate::cold;
use crate::copies::Copies;
use crate::inputs::Inputs;

/// One GPU.
pub struct Gpu {
    name: BackendName,
    loader: Loader,
    gemm_library: Option<Rc<dyn GemmLibrary>>,
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu")
            .field("name", &self.name)
            .field("facts", self.driver().facts())
            .finish()
    }
}

impl Gpu {
    /// A backend on a device that was opened.
    pub(crate) fn new(
        name: BackendName,
        driver: Rc<dyn Driver>,
        compiler: Rc<dyn Compiler>,
        cache: CodeCache,
        gemm_library: Option<Rc<dyn GemmLibrary>>,
    ) -> Self {
        Self { name, loader: Loader::new(driver, compiler, cache), gemm_library }
    }

    /// The compiler of its kernels and its version.
    pub(super) fn compiler_version(&self) -> &str {
        self.loader.compiler_version()
    }

    /// The vendor's libraries that it can use, with their versions.
    pub(super) fn library_versions(&self) -> Vec<String> {
        self.gemm_library.iter().map(|library| library.version().to_owned()).collect()
    }

    /// The kernels of a problem, and how many sets of tensors they go through.
    fn plan(&self, problem: &Problem, setup: Setup) -> Result<(Plan, usize), Unsupported> {
        if setup.clock == Clock::Host {
            return Err(Unsupported::NoClock(setup.clock));
        }
        if let Some(rewrite) = setup.rewrite {
            return Err(Unsupported::NoRewrite(rewrite));
        }
        if setup.implementation.runtime().is_some() {
            return Err(Unsupported::NoKernels);
        }
        let is_vendors = setup.implementation == Implementation::Vendor;
        if is_vendors && (self.gemm_library.is_none() || Epilogue::of(problem).is_none()) {
            return Err(Unsupported::NoVendor);
        }
        let sets = match setup.cache {
            CacheState::Warm => 1,
            CacheState::Cold => cold::sets(problem, self.driver().facts().last_level_bytes)?,
        };
        let mut plan = lower(problem, self.driver().facts()).ok_or(Unsupported::NoKernels)?;
        if is_vendors {
            // All sets share it, as the launches of a program do; so do both variants.
            plan.table.add(WORKSPACE_BYTES, Role::Scratch);
            plan.scratch_bytes = plan.scratch_bytes.map(|bytes| bytes + WORKSPACE_BYTES);
        }
        Ok((plan, sets))
    }

    /// Puts a library's GEMMs in the place of the project's: the plain one as the first kernel
    /// of the unfused variant, the one with everything else in it as the fused variant. `None`
    /// where the library has no kernel for one of them.
    fn vendor_work(&self, problem: &Problem, plan: Plan) -> Result<Option<Work>, DeviceError> {
        let Plan { table, inputs, output, mut unfused, .. } = plan;
        let (Some(library), Some(epilogue), Some(sizes)) =
            (&self.gemm_library, Epilogue::of(problem), problem.sizes().linear())
        else {
            return Ok(None);
        };
        let (m, k, n) = (sizes.m, sizes.k, sizes.n);
        let plain = Gemm { dtype: problem.dtype(), m, k, n, epilogue: Epilogue::None };
        let tensors = GemmTensors {
            x: inputs[0],
            w: inputs[1],
            bias: None,
            y: output,
            workspace: TensorId(table.specs.len() - 1),
        };
        let bias = epilogue.has_bias().then(|| inputs[2]);
        let first = LocatedGemm::new(library, plain, tensors)?;
        let gemm = Gemm { epilogue, ..plain };
        let fused = LocatedGemm::new(library, gemm, GemmTensors { bias, ..tensors })?;
        let (Some(first), Some(fused)) = (first, fused) else { return Ok(None) };
        let mut kernels: Vec<Box<dyn Launch>> = vec![Box::new(first)];
        for plan in unfused.drain(1..) {
            kernels.push(Box::new(self.loader.load(plan)?));
        }
        Ok(Some(Work { unfused: kernels, fused: vec![Box::new(fused)] }))
    }

    /// The project's own kernels.
    fn native_work(&self, plan: Plan) -> Result<Work, DeviceError> {
        let load = |plan| -> Result<Box<dyn Launch>, DeviceError> {
            Ok(Box::new(self.loader.load(plan)?))
        };
        let unfused = plan.unfused.into_iter().map(load).collect::<Result<_, _>>()?;
        Ok(Work { unfused, fused: vec![load(plan.fused)?] })
    }

    /// What [`Backend::prepare`] makes.
    fn prepare_sets(
        &self,
        problem: &Problem,
        inputs: &Inputs,
        setup: Setup,
    ) -> Result<Option<PreparedGpu>, BackendError> {
        let Ok((plan, sets)) = self.plan(problem, setup) else {
            return Ok(None);
        };
        BackendError::check(problem, inputs)?;
        let Plan { table, inputs: ids, output, scratch_bytes, .. } = plan.clone();
        let work = match setup.implementation {
            Implementation::Native => self.native_work(plan)?,
            Implementation::Vendor => match self.vendor_work(problem, plan)? {
                Some(work) => work,
                None => return Ok(None),
            },
            Implementation::Runtime(_) => return Ok(None),
        };
        let bytes = DeviceTensors::bytes_for(&table, sets);
        let tensors = match DeviceTensors::allocate(self.driver(), table, sets) {
            Err(error @ DeviceError::OutOfMemory { .. }) => {
                return Err(BackendError::Memory {
                    problem: Box::new(*problem),
                    bytes,
                    source: io::Error::new(io::ErrorKind::OutOfMemory, error),
                });
            }
            tensors => tensors?,
        };
        let counters = self.driver().facts().counters.filter(|_| setup.clock == Clock::Device);
        let stamps = match counters.map(|counters| Stamps::new(&self.loader, counters)).transpose()
        {
            // Kernels can be timed by a clock that nobody looks at.
            Err(error) if error.is_of_one_kernel() => None,
            stamps => stamps?,
        };
        let mut prepared = PreparedGpu {
            queue: Queue::new(self.driver())?.with_stamps(stamps),
            work,
            // The first run takes the first set.
            current: tensors.sets() - 1,
            tensors,
            driver: Rc::clone(self.driver()),
            clock: setup.clock,
            dtype: problem.dtype(),
            inputs: PreparedGpu::encode(problem.dtype(), &ids, &inputs.tensors),
            output,
            scratch_bytes,
            poisoned: false,
        };
        prepared.new_layout(0)?;
        Ok(Some(prepared))
    }

    /// The device.
    pub(super) fn driver(&self) -> &Rc<dyn Driver> {
        self.loader.driver()
    }
}

impl Backend for Gpu {
    fn name(&self) -> BackendName {
        self.name
    }

    fn threads(&self) -> u32 {
        1
    }

    fn requirements(&self, problem: &Problem, setup: Setup) -> Result<Requirements, Unsupported> {
        let (plan, sets) = self.plan(problem, setup)?;
        Ok(Requirements::new(DeviceTensors::bytes_for(&plan.table, sets)))
    }

    fn prepare<'b>(
        &'b mut self,
        problem: &Problem,
        inputs: &'b Inputs,
        setup: Setup,
    ) -> Result<Option<Box<dyn Prepared + 'b>>, BackendError> {
        let prepared = self.prepare_sets(problem, inputs, setup)?;
        Ok(prepared.map(|prepared| -> Box<dyn Prepared + 'b> { Box::new(prepared) }))
    }

    fn prepare_copies<'b>(
        &'b mut self,
        problem: &Problem,
        inputs: &'b Inputs,
        setup: Setup,
        variant: Variant,
    ) -> Result<Option<Box<dyn Prepared + 'b>>, BackendError> {
        let prepare = || self.prepare_sets(problem, inputs, setup);
        let (Some(first), Some(second)) = (prepare()?, prepare()?) else { return Ok(None) };
        Ok(Some(Box::new(Copies::new([first, second], variant))))
    }

    // A device of its own meets no bursts: each sample is taken often enough.
    fn ceilings(
        &mut self,
        dtype: DType,
        clock: Clock,
        _: u32,
        hears: &mut FirstRuns<'_>,
    ) -> Result<Option<Ceilings>, BackendError> {
        let has_kernels = matches!(dtype, DType::F32 | DType::F16 | DType::Bf16);
        if !has_kernels || clock == Clock::Host {
            return Ok(None);
        }
        Ok(Some(ceilings::measure(&self.loader, dtype, clock, hears)?))
    }

    fn pinned(&self) -> Option<&[u32]> {
        None
    }
}
