//! The backend of a GPU: problems to kernels, kernels to the device.

use std::io;
use std::rc::Rc;

use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{
    Backend as BackendName, CacheState, Clock, DType, Implementation, Problem,
};

use super::build::build;
use super::cache::CodeCache;
use super::driver::{Compiler, DeviceError, Driver};
use super::loaded::LoadedKernel;
use super::memory::DeviceTensors;
use super::plan::{KernelPlan, Plan};
use super::prepared::PreparedGpu;
use super::queue::{Queue, Work};
use crate::backend::{Backend, BackendError, Prepared, Setup, Unsupported};
use crate::cold;
use crate::inputs::Inputs;

/// One GPU.
pub struct Gpu {
    name: BackendName,
    driver: Rc<dyn Driver>,
    compiler: Rc<dyn Compiler>,
    cache: CodeCache,
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu").field("name", &self.name).field("facts", self.driver.facts()).finish()
    }
}

impl Gpu {
    /// A backend on a device that was opened.
    pub(crate) fn new(
        name: BackendName,
        driver: Rc<dyn Driver>,
        compiler: Rc<dyn Compiler>,
        cache: CodeCache,
    ) -> Self {
        Self { name, driver, compiler, cache }
    }

    /// The kernels of a problem, and how many sets of tensors they go through.
    fn plan(&self, problem: &Problem, setup: Setup) -> Result<(Plan, usize), Unsupported> {
        if setup.clock == Clock::Host {
            return Err(Unsupported::NoClock(setup.clock));
        }
        if setup.implementation == Implementation::Vendor {
            return Err(Unsupported::NoVendor);
        }
        let sets = match setup.cache {
            CacheState::Warm => 1,
            CacheState::Cold => cold::sets(problem, self.driver.facts().last_level_bytes)?,
        };
        Ok((build(problem, self.driver.facts()).ok_or(Unsupported::NoKernels)?, sets))
    }

    fn load(&self, plans: Vec<KernelPlan>) -> Result<Vec<LoadedKernel>, DeviceError> {
        let load = |plan| LoadedKernel::new(&self.driver, &*self.compiler, &self.cache, plan);
        plans.into_iter().map(load).collect()
    }
}

impl Backend for Gpu {
    fn name(&self) -> BackendName {
        self.name
    }

    fn threads(&self) -> u32 {
        1
    }

    fn memory_needed(&self, problem: &Problem, setup: Setup) -> Option<u64> {
        let (plan, sets) = self.plan(problem, setup).ok()?;
        Some(DeviceTensors::bytes_for(&plan.table, sets))
    }

    fn unsupported(&self, problem: &Problem, setup: Setup) -> Option<Unsupported> {
        self.plan(problem, setup).err()
    }

    fn prepare<'b>(
        &'b mut self,
        problem: &Problem,
        inputs: &'b Inputs,
        setup: Setup,
    ) -> Result<Option<Box<dyn Prepared + 'b>>, BackendError> {
        let Ok((plan, sets)) = self.plan(problem, setup) else {
            return Ok(None);
        };
        let Plan { table, inputs: ids, output, unfused, fused } = plan;
        let work = Work { unfused: self.load(unfused)?, fused: self.load(vec![fused])? };
        let bytes = DeviceTensors::bytes_for(&table, sets);
        let tensors = match DeviceTensors::allocate(&self.driver, table, sets) {
            Err(error @ DeviceError::OutOfMemory { .. }) => {
                return Err(BackendError::Memory {
                    problem: Box::new(*problem),
                    bytes,
                    source: io::Error::new(io::ErrorKind::OutOfMemory, error),
                });
            }
            tensors => tensors?,
        };
        let mut prepared = PreparedGpu {
            queue: Queue::new(&self.driver)?,
            work,
            // The first run takes the first set.
            current: tensors.sets() - 1,
            tensors,
            driver: Rc::clone(&self.driver),
            clock: setup.clock,
            dtype: problem.dtype(),
            inputs: PreparedGpu::encode(problem.dtype(), &ids, &inputs.tensors),
            output,
            poisoned: false,
        };
        prepared.new_layout(0)?;
        Ok(Some(Box::new(prepared)))
    }

    fn ceilings(&mut self, _dtype: DType, _clock: Clock) -> Result<Option<Ceilings>, BackendError> {
        Ok(None)
    }

    fn pinned(&self) -> Option<&[u32]> {
        None
    }
}
