//! The CPU backend and its prepared problems.

use std::time::{Duration, Instant};

use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{Backend as BackendName, DType, Problem};
use pulp::Arch;

use super::build::{Machine, Plan};
use super::kernel::Kernel;
use super::pool::Pool;
use super::tensors::{TensorId, Tensors};
use super::{caches, ceilings, numeric, product};
use crate::backend::{Backend, BackendError, Prepared, Variant};
use crate::inputs::Inputs;

/// Narrower vector instructions than the processor may have. The `gemm` crate chooses for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Vectors {
    /// AVX2 and FMA on x86-64.
    Avx2,
    /// None.
    Scalar,
}

impl Vectors {
    /// The instructions, if the processor has them.
    fn arch(self) -> Option<Arch> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => pulp::x86::V3::try_new().map(Arch::V3),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 => None,
            Self::Scalar => Some(Arch::Scalar),
        }
    }
}

/// The CPU with a pool of threads.
#[derive(Debug)]
pub struct Cpu {
    pool: Pool,
    machine: Machine,
}

impl Cpu {
    /// A backend with so many threads, the calling one included, which from now on flushes
    /// denormals to zero as the others do.
    ///
    /// # Errors
    ///
    /// [`BackendError::Threads`] when the system gives no more threads.
    pub fn new(threads: usize) -> Result<Self, BackendError> {
        Self::on(threads, Arch::new())
    }

    /// The same with other vector instructions than the widest: for tests on one machine of what
    /// other machines run. `None` when the processor does not have them.
    ///
    /// # Errors
    ///
    /// As for [`Self::new`].
    pub fn with_vectors(threads: usize, vectors: Vectors) -> Option<Result<Self, BackendError>> {
        Some(Self::on(threads, vectors.arch()?))
    }

    fn on(threads: usize, arch: Arch) -> Result<Self, BackendError> {
        numeric::flush_denormals();
        numeric::keep_freed_memory();
        product::configure();
        let pool =
            Pool::new(threads, arch).map_err(|source| BackendError::Threads { threads, source })?;
        let machine = Machine { threads: pool.threads(), block_bytes: caches::block_bytes() };
        Ok(Self { pool, machine })
    }
}

impl Backend for Cpu {
    fn name(&self) -> BackendName {
        BackendName::Cpu
    }

    fn threads(&self) -> u32 {
        u32::try_from(self.machine.threads).unwrap_or(u32::MAX)
    }

    fn memory_needed(&self, problem: &Problem) -> Option<u64> {
        (problem.dtype() == DType::F32)
            .then(|| Plan::new(problem, self.machine))
            .flatten()
            .map(|plan| plan.table.bytes())
    }

    fn prepare<'b>(
        &'b mut self,
        problem: &Problem,
        inputs: &'b Inputs,
    ) -> Result<Option<Box<dyn Prepared + 'b>>, BackendError> {
        if problem.dtype() != DType::F32 {
            return Ok(None);
        }
        let Some(plan) = Plan::new(problem, self.machine) else {
            return Ok(None);
        };
        let bytes = plan.table.bytes();
        let tensors = plan.table.allocate().map_err(|source| BackendError::Memory {
            problem: Box::new(*problem),
            bytes,
            source,
        })?;
        let mut prepared = PreparedCpu {
            pool: &mut self.pool,
            inputs,
            input_ids: plan.inputs,
            output: plan.output,
            tensors,
            unfused: plan.unfused,
            fused: plan.fused,
        };
        prepared.new_layout(0);
        Ok(Some(Box::new(prepared)))
    }

    fn ceilings(&mut self, dtype: DType) -> Result<Option<Ceilings>, BackendError> {
        if dtype != DType::F32 {
            return Ok(None);
        }
        Ok(Some(ceilings::measure(&mut self.pool)))
    }
}

struct PreparedCpu<'b> {
    pool: &'b mut Pool,
    inputs: &'b Inputs,
    input_ids: Vec<TensorId>,
    output: TensorId,
    tensors: Tensors,
    unfused: Vec<Box<dyn Kernel>>,
    fused: Box<dyn Kernel>,
}

impl PreparedCpu<'_> {
    fn write_inputs(&mut self) {
        for (&id, tensor) in self.input_ids.iter().zip(&self.inputs.tensors) {
            self.tensors.get(id).copy_from_slice(tensor);
        }
    }

    fn run_once(&mut self, variant: Variant) {
        // SAFETY: the kernels were located in the current layout by `new_layout`, and `&mut self`
        // makes this the only one that runs.
        unsafe {
            match variant {
                Variant::Unfused => {
                    for kernel in &self.unfused {
                        kernel.run(self.pool);
                    }
                }
                Variant::Fused => self.fused.run(self.pool),
            }
        }
    }
}

impl Prepared for PreparedCpu<'_> {
    fn kernels(&self, variant: Variant) -> Vec<String> {
        match variant {
            Variant::Unfused => self.unfused.iter().map(|kernel| kernel.name()).collect(),
            Variant::Fused => vec![self.fused.name()],
        }
    }

    fn new_layout(&mut self, seed: u64) {
        self.tensors.shuffle(seed);
        for kernel in self.unfused.iter_mut().chain(std::iter::once(&mut self.fused)) {
            kernel.locate(&self.tensors);
        }
        self.write_inputs();
    }

    fn poison(&mut self) {
        self.tensors.fill(f32::NAN);
        self.write_inputs();
    }

    fn run(&mut self, variant: Variant, iterations: u32) -> Duration {
        let start = Instant::now();
        for _ in 0..iterations {
            self.run_once(variant);
        }
        start.elapsed()
    }

    fn output(&mut self) -> Vec<f32> {
        self.tensors.get(self.output).to_vec()
    }
}
