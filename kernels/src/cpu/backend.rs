//! The CPU with a pool of threads.

use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{
    Backend as BackendName, CacheState, Clock, DType, Implementation, Problem,
};
use half::{bf16, f16};
use pulp::Arch;

use super::ceilings::{Arithmetic, Look};
use super::lower::{Cuts, Machine, Plan};
use super::nontemporal::Thresholds;
use super::pool::Pool;
use super::prepared::PreparedCpu;
use super::strip::Cut;
use super::{amx, caches, ceilings, f16 as f16s, fours, gemm, numeric, pairs};
use crate::backend::{
    Backend, BackendError, FirstRuns, MachineReading, Prepared, Requirements, Setup, Unsupported,
    Variant,
};
use crate::cold;
use crate::copies::Copies;
use crate::inputs::Inputs;

/// Fewer vector instructions than the processor may have. The `gemm` crate chooses for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Vectors {
    /// AVX-512 on x86-64 with its instructions for bf16, however fast they are, and without the matrix
    /// unit (AMX).
    Avx512Bf16,
    /// The same without its instructions for bf16.
    Avx512,
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
            Self::Avx512Bf16 => Self::Avx512.arch().filter(|&arch| pairs::supported(arch)),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => pulp::x86::V4::try_new().map(Arch::V4),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => pulp::x86::V3::try_new().map(Arch::V3),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512Bf16 | Self::Avx512 | Self::Avx2 => None,
            Self::Scalar => Some(Arch::Scalar),
        }
    }

    /// All that this processor has, the widest first.
    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = Arch> {
        let narrower = [Self::Avx512, Self::Avx2, Self::Scalar].into_iter().filter_map(Self::arch);
        std::iter::once(Arch::new()).chain(narrower)
    }
}

/// What multiplies numbers that are narrower than f32, where vectors of AVX-512 may be used.
#[derive(Debug, Clone, Copy)]
struct Products {
    /// bf16 by pairs.
    in_pairs: bool,
    /// bf16 and bytes by the matrix unit.
    on_amx: bool,
    /// f16 by it.
    f16_on_amx: bool,
}

/// The CPU with a pool of threads.
#[derive(Debug)]
pub struct Cpu {
    pool: Pool,
    pub(super) machine: Machine,
    /// Bytes that push everything else out of the caches.
    cache_bytes: u64,
    /// What a look at the machine needs, after the first one.
    look: Option<Look>,
}

impl Cpu {
    /// A backend with `threads` threads, that of its caller included. A thread that prepares a problem
    /// with it flushes denormals to zero from then on, as the others do.
    ///
    /// # Errors
    ///
    /// [`BackendError::Threads`] when the system gives no more threads.
    pub fn new(threads: usize) -> Result<Self, BackendError> {
        let arch = Arch::new();
        let products = Products {
            in_pairs: pairs::supported(arch) && pairs::are_fast(),
            on_amx: amx::supported::<bf16>(arch),
            f16_on_amx: amx::supported::<f16>(arch),
        };
        Self::on(threads, arch, products)
    }

    /// The same with each thread bound to a processor of its own, so that none moves during a
    /// measurement: one of each physical core first, the fastest cores first. The calling thread
    /// is bound until this is dropped, and threads that it starts meanwhile inherit that.
    ///
    /// With more threads than processors that may be used, and on systems that bind no threads,
    /// all are free as with [`Self::new`]; see [`Backend::pinned`].
    ///
    /// # Errors
    ///
    /// As for [`Self::new`].
    pub fn with_bound_threads(threads: usize) -> Result<Self, BackendError> {
        let mut cpu = Self::new(threads)?;
        cpu.pool.bind();
        Ok(cpu)
    }

    /// The same as [`Self::new`] with other vector instructions than the widest: for tests on one
    /// machine of what other machines run. `None` when the processor does not have them.
    ///
    /// # Errors
    ///
    /// As for [`Self::new`].
    pub fn with_vectors(threads: usize, vectors: Vectors) -> Option<Result<Self, BackendError>> {
        let in_pairs = vectors == Vectors::Avx512Bf16;
        let products = Products { in_pairs, on_amx: false, f16_on_amx: false };
        Some(Self::on(threads, vectors.arch()?, products))
    }

    fn on(threads: usize, arch: Arch, products: Products) -> Result<Self, BackendError> {
        numeric::keep_freed_memory();
        gemm::configure();
        let pool =
            Pool::new(threads, arch).map_err(|source| BackendError::Threads { threads, source })?;
        pool.run(&|_| numeric::touch_heap());
        let threads = pool.threads();
        let cache_bytes = caches::last_level_bytes(threads);
        let stream = Thresholds::of(threads, caches::second_level_bytes(), cache_bytes);
        let first_level_bytes = caches::first_level_bytes();
        let Products { in_pairs, on_amx, f16_on_amx } = products;
        let pairs = if in_pairs || on_amx { pairs::TOGETHER } else { 1 };
        let pairs_of_f16 = if f16_on_amx { pairs::TOGETHER } else { 1 };
        let fours = if fours::supported(arch) { fours::TOGETHER } else { 1 };
        let cuts = Cuts {
            f32: Cut::new::<f32>(arch, first_level_bytes, 1),
            bf16: Cut { on_amx, ..Cut::new::<bf16>(arch, first_level_bytes, pairs) },
            f16: Cut {
                on_amx: f16_on_amx,
                ..Cut::new::<f16>(arch, first_level_bytes, pairs_of_f16)
            },
            bytes: Cut { on_amx, ..Cut::new::<u8>(arch, first_level_bytes, fours) },
        };
        let block_bytes = caches::block_bytes();
        let first_level_bytes = caches::first_level_bytes();
        let machine = Machine { threads, first_level_bytes, block_bytes, cuts, stream };
        Ok(Self { pool, machine, cache_bytes, look: None })
    }

    /// The same as if the last-level cache had `bytes` bytes, and no cache more: for tests of the
    /// cold state, and of stores around the caches, in little memory.
    #[must_use]
    pub fn with_last_level_cache(self, bytes: u64) -> Self {
        let stream = self.machine.stream.at_most(bytes);
        Self { cache_bytes: bytes, machine: Machine { stream, ..self.machine }, ..self }
    }

    /// The kernels of a problem, and how many sets of tensors they go through.
    fn plan(&self, problem: &Problem, setup: Setup) -> Result<(Plan, usize), Unsupported> {
        let has_kernels = match problem.dtype() {
            DType::F32 | DType::Bf16 | DType::I8 => true,
            DType::F16 => f16s::supported(self.pool.arch()),
            _ => false,
        };
        if !has_kernels {
            return Err(Unsupported::NoKernels);
        }
        if setup.clock != Clock::Host {
            return Err(Unsupported::NoClock(setup.clock));
        }
        match setup.implementation {
            Implementation::Native => {}
            Implementation::Vendor => return Err(Unsupported::NoVendor),
            Implementation::Runtime(_) => return Err(Unsupported::NoKernels),
        }
        let no_plan = setup.rewrite.map_or(Unsupported::NoKernels, Unsupported::NoRewrite);
        let plan = Plan::new(problem, setup.rewrite, self.machine).ok_or(no_plan)?;
        let sets = match setup.cache {
            CacheState::Warm => 1,
            CacheState::Cold => cold::sets(problem, self.cache_bytes)?,
        };
        Ok((plan, sets))
    }

    /// Whether kernels multiply numbers of this kind on the matrix unit of this processor (AMX), which the
    /// system must grant to the process.
    ///
    /// The first call in a process asks for that, as [`Self::new`] does. Linux refuses it where a
    /// thread has a small stack for signals (`sigaltstack`), and refuses such stacks (8 KiB) afterwards.
    #[must_use]
    pub fn has_matrix_unit_for(dtype: DType) -> bool {
        match dtype {
            DType::Bf16 => amx::supported::<bf16>(Arch::new()),
            DType::F16 => amx::supported::<f16>(Arch::new()),
            DType::I8 => amx::supported::<u8>(Arch::new()),
            _ => false,
        }
    }

    /// The threads that kernels run on.
    pub(super) const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// What [`Backend::prepare`] makes.
    pub(crate) fn prepare_sets<'b>(
        &'b self,
        problem: &Problem,
        inputs: &'b Inputs,
        setup: Setup,
    ) -> Result<Option<PreparedCpu<'b>>, BackendError> {
        let Ok((plan, sets)) = self.plan(problem, setup) else {
            return Ok(None);
        };
        BackendError::check(problem, inputs)?;
        // The thread may be another one than at the last time.
        numeric::flush_denormals();
        PreparedCpu::new(&self.pool, problem, inputs, plan, sets).map(Some)
    }
}

impl Backend for Cpu {
    fn name(&self) -> BackendName {
        BackendName::Cpu
    }

    fn threads(&self) -> u32 {
        u32::try_from(self.machine.threads).unwrap_or(u32::MAX)
    }

    fn requirements(&self, problem: &Problem, setup: Setup) -> Result<Requirements, Unsupported> {
        let (plan, sets) = self.plan(problem, setup)?;
        Ok(Requirements::new(plan.table.bytes(sets)))
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

    fn ceilings(
        &mut self,
        dtype: DType,
        clock: Clock,
        rounds: u32,
        _: &mut FirstRuns<'_>,
    ) -> Result<Option<Ceilings>, BackendError> {
        let arithmetic = match dtype {
            DType::F32 => Arithmetic::MultiplyAdds,
            DType::Bf16 if self.machine.cuts.bf16.on_amx => Arithmetic::Bf16OnAmx,
            DType::F16 if self.machine.cuts.f16.on_amx => Arithmetic::F16OnAmx,
            DType::I8 if self.machine.cuts.bytes.on_amx => Arithmetic::BytesOnAmx,
            DType::Bf16 if self.machine.cuts.bf16.together > 1 => Arithmetic::Pairs,
            DType::I8 if self.machine.cuts.bytes.together > 1 => Arithmetic::Fours,
            // Numbers are widened and multiplied as f32.
            DType::Bf16 | DType::F16 | DType::I8 => Arithmetic::MultiplyAdds,
            _ => return Ok(None),
        };
        numeric::flush_denormals();
        Ok((clock == Clock::Host).then(|| ceilings::measure(&self.pool, arithmetic, rounds)))
    }

    fn look_at_machine(&mut self) -> Result<Option<MachineReading>, BackendError> {
        if self.look.is_none() {
            self.look = Look::new(&self.pool);
        }
        Ok(self.look.as_mut().map(|look| look.read(&self.pool)))
    }

    fn pinned(&self) -> Option<&[u32]> {
        self.pool.processors()
    }
}
