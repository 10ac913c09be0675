//! The CPU backend and its prepared problems.

use std::time::{Duration, Instant};

use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{
    Backend as BackendName, CacheState, Clock, DType, Implementation, Problem,
};
use pulp::Arch;

use super::ceilings::Look;
use super::kernel::Kernel;
use super::lower::{Machine, Plan};
use super::nontemporal::Thresholds;
use super::panels::InputTensor;
use super::pool::Pool;
use super::strip::Cut;
use super::tensors::{LINE, TensorId, TensorSets};
use super::{caches, ceilings, counters, gemm, numeric};
use crate::backend::{
    Backend, BackendError, FirstRuns, MachineReading, Prepared, Requirements, Setup,
    ThreadCounters, Unsupported, Variant,
};
use crate::cold;
use crate::copies::Copies;
use crate::digest::OutputDigest;
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
    pub(super) machine: Machine,
    /// Bytes that push everything else out of the caches.
    cache_bytes: u64,
    /// What a look at the machine needs, after the first one.
    look: Option<Look>,
}

impl Cpu {
    /// A backend with `threads` threads, the calling one included, which from now on flushes
    /// denormals to zero as the others do.
    ///
    /// # Errors
    ///
    /// [`BackendError::Threads`] when the system gives no more threads.
    pub fn new(threads: usize) -> Result<Self, BackendError> {
        Self::on(threads, Arch::new())
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
        Some(Self::on(threads, vectors.arch()?))
    }

    fn on(threads: usize, arch: Arch) -> Result<Self, BackendError> {
        numeric::flush_denormals();
        numeric::keep_freed_memory();
        gemm::configure();
        let pool =
            Pool::new(threads, arch).map_err(|source| BackendError::Threads { threads, source })?;
        pool.run(&|_| numeric::touch_heap());
        let threads = pool.threads();
        let cache_bytes = caches::last_level_bytes(threads);
        let stream = Thresholds::of(threads, caches::second_level_bytes(), cache_bytes);
        let cut = Cut::new(arch, caches::first_level_bytes());
        let block_bytes = caches::block_bytes();
        let machine = Machine { threads, block_bytes, cut, stream };
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
        if problem.dtype() != DType::F32 {
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
        let sets = match setup.cache {
            CacheState::Warm => 1,
            CacheState::Cold => cold::sets(problem, self.cache_bytes)?,
        };
        let no_plan = setup.rewrite.map_or(Unsupported::NoKernels, Unsupported::NoRewrite);
        Ok((Plan::new(problem, setup.rewrite, self.machine).ok_or(no_plan)?, sets))
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
        let bytes = plan.table.bytes(sets);
        let tensors = plan.table.allocate(sets, &self.pool).map_err(|source| {
            BackendError::Memory { problem: Box::new(*problem), bytes, source }
        })?;
        let mut prepared = PreparedCpu {
            pool: &self.pool,
            inputs,
            input_tensors: plan.inputs,
            ahead: plan.folded.map(|folded| folded.numbers(inputs)).into_iter().flatten().collect(),
            output: plan.output,
            // The first run takes the first set.
            current: tensors.len() - 1,
            tensors,
            unfused: plan.unfused,
            fused: plan.fused,
            scratch_bytes: plan.scratch_bytes,
        };
        prepared.place(0);
        Ok(Some(prepared))
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
        if dtype != DType::F32 || clock != Clock::Host {
            return Ok(None);
        }
        Ok(Some(ceilings::measure(&self.pool, rounds)))
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

/// A problem with its kernels, which work on one set of tensors at a time.
pub(crate) struct PreparedCpu<'b> {
    pool: &'b Pool,
    inputs: &'b Inputs,
    input_tensors: Vec<InputTensor>,
    /// Tensors that a rewrite computes ahead of time, with their numbers.
    ahead: Vec<(InputTensor, Vec<f32>)>,
    output: TensorId,
    pub(crate) tensors: TensorSets,
    /// The set that the last run used.
    pub(crate) current: usize,
    unfused: Vec<Box<dyn Kernel>>,
    fused: Box<dyn Kernel>,
    scratch_bytes: [u64; 2],
}

impl PreparedCpu<'_> {
    /// What [`Prepared::new_layout`] does.
    fn place(&mut self, seed: u64) {
        self.tensors.shuffle(seed);
        for variant in Variant::ALL {
            self.locate(variant);
        }
        if self.tensors.len() > 1 {
            self.write_cold();
        } else {
            self.write_inputs();
        }
    }

    fn write_inputs(&mut self) {
        (0..self.tensors.len()).for_each(|set| self.write_inputs_of(set));
    }

    fn write_inputs_of(&mut self, set: usize) {
        let given = self.input_tensors.iter().copied().zip(&self.inputs.tensors);
        let ahead = self.ahead.iter().map(|(tensor, numbers)| (*tensor, numbers));
        for (InputTensor { id, panels }, numbers) in given.chain(ahead) {
            self.pool.share(self.tensors.get(set, id), LINE, &|first, part| match panels {
                None => part.copy_from_slice(&numbers[first..][..part.len()]),
                Some(panels) => panels.pack(numbers, first, part),
            });
        }
    }

    /// Writes the inputs of all sets and, in the same order, their outputs: together at least as
    /// many bytes as runs on all of them touch. The first set is then the one that was touched
    /// longest ago, and the next run uses it; inputs alone would leave those of the last sets in
    /// the caches, where the first runs would find them.
    fn write_cold(&mut self) {
        let sets = self.tensors.len();
        for set in 0..sets {
            self.write_inputs_of(set);
            let output = self.tensors.get(set, self.output);
            self.pool.share(output, LINE, &|_, part| part.fill(0.0));
        }
        self.current = sets - 1;
    }

    /// Whether a run has written the output of a set since [`Prepared::poison`].
    #[cfg(test)]
    pub(crate) fn is_written(&mut self, set: usize) -> bool {
        let output = self.tensors.get(set, self.output);
        let written = output.iter().filter(|number| !number.is_nan()).count();
        assert!(written == 0 || written == output.len(), "set {set} is half written");
        let inputs = self.input_tensors.iter().zip(&self.inputs.tensors);
        for (&InputTensor { id, .. }, tensor) in inputs.filter(|(one, _)| one.panels.is_none()) {
            assert_eq!(self.tensors.get(set, id), tensor, "set {set} has other inputs");
        }
        written > 0
    }

    /// Where each tensor that crosses the boundary of the chain lies now.
    #[cfg(test)]
    pub(crate) fn addresses(&self) -> Vec<usize> {
        let set = self.tensors.set(self.current);
        let ids = self.input_tensors.iter().map(|one| one.id).chain([self.output]);
        ids.map(|id| set.pointer(id) as usize).collect()
    }

    /// Points the kernels of a variant to the current set.
    fn locate(&mut self, variant: Variant) {
        self.locate_with(variant, &[]);
    }

    fn locate_with(&mut self, variant: Variant, elsewhere: &[(TensorId, *mut f32)]) {
        let tensors = self.tensors.set(self.current).with(elsewhere);
        match variant {
            Variant::Unfused => self.unfused.iter_mut().for_each(|kernel| kernel.locate(&tensors)),
            Variant::Fused => self.fused.locate(&tensors),
        }
    }

    /// The address of the output, until the next layout.
    pub(super) fn output_address(&self) -> *mut f32 {
        self.tensors.set(self.current).pointer(self.output)
    }

    /// How many numbers the output has.
    pub(super) fn output_len(&mut self) -> usize {
        self.tensors.get(self.current, self.output).len()
    }

    /// How many numbers an input has, in the order of [`InputSpec::of`](crate::InputSpec::of);
    /// `None` where there is no such input, or it is packed.
    pub(super) fn input_len(&mut self, input: usize) -> Option<usize> {
        let InputTensor { id, panels } = *self.input_tensors.get(input)?;
        let len = self.tensors.get(self.current, id).len();
        panels.is_none().then_some(len)
    }

    /// Points the kernels of a variant to the current set, but for some inputs, which are read at
    /// other addresses until the next layout.
    ///
    /// # Safety
    ///
    /// Until then as many numbers as the input has must lie there, and nothing may write to them
    /// while a kernel runs.
    pub(super) unsafe fn read_elsewhere(&mut self, variant: Variant, inputs: &[(usize, *mut f32)]) {
        let id = |input: usize| self.input_tensors.get(input).map(|one| one.id);
        let elsewhere: Vec<(TensorId, *mut f32)> =
            inputs.iter().filter_map(|&(input, address)| Some((id(input)?, address))).collect();
        self.locate_with(variant, &elsewhere);
    }

    pub(super) fn run_once(&mut self, variant: Variant) {
        // SAFETY: the kernels were located in the current set and layout by `new_layout`, perhaps
        // with inputs elsewhere by `read_elsewhere`, and where there are several sets by
        // `run_cold`; `&mut self` makes this the only one that runs.
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

    /// Goes on to the next set, if there are several.
    fn advance(&mut self, variant: Variant) {
        if self.tensors.len() > 1 {
            self.current = (self.current + 1) % self.tensors.len();
            self.locate(variant);
        }
    }

    /// Runs a variant on the next sets, each run timed by itself.
    ///
    /// The kernels are the same ones for every set, and are pointed to the next one while the clock
    /// stands. Kernels of their own for each set would be as cold as its tensors: that made runs of
    /// 4 us half a microsecond longer, for memory that is none of the problem's.
    fn run_cold(&mut self, variant: Variant, iterations: u32) -> Duration {
        let mut total = Duration::ZERO;
        for _ in 0..iterations {
            self.advance(variant);
            let start = Instant::now();
            self.run_once(variant);
            total += start.elapsed();
        }
        total
    }
}

impl Prepared for PreparedCpu<'_> {
    fn kernels(&self, variant: Variant) -> Vec<String> {
        match variant {
            Variant::Unfused => self.unfused.iter().map(|kernel| kernel.name()).collect(),
            Variant::Fused => vec![self.fused.name()],
        }
    }

    fn new_layout(&mut self, seed: u64) -> Result<(), BackendError> {
        self.place(seed);
        Ok(())
    }

    fn poison(&mut self) -> Result<(), BackendError> {
        self.tensors.fill(f32::NAN, self.pool);
        self.write_inputs();
        Ok(())
    }

    fn run(&mut self, variant: Variant, iterations: u32) -> Result<Duration, BackendError> {
        if self.tensors.len() > 1 {
            return Ok(self.run_cold(variant, iterations));
        }
        let start = Instant::now();
        for _ in 0..iterations {
            self.run_once(variant);
        }
        Ok(start.elapsed())
    }

    fn run_steps(&mut self, iterations: u32) -> Result<Option<Vec<f64>>, BackendError> {
        let iterations = iterations.max(1);
        let mut totals = vec![Duration::ZERO; self.unfused.len()];
        for _ in 0..iterations {
            self.advance(Variant::Unfused);
            let mut before = Instant::now();
            for (kernel, total) in self.unfused.iter().zip(&mut totals) {
                // SAFETY: as in `run_once`.
                unsafe { kernel.run(self.pool) };
                let after = Instant::now();
                *total += after - before;
                before = after;
            }
        }
        let mean = |total: Duration| total.as_secs_f64() / f64::from(iterations);
        Ok(Some(totals.into_iter().map(mean).collect()))
    }

    fn output(&mut self) -> Result<Vec<f32>, BackendError> {
        Ok(self.tensors.get(self.current, self.output).to_vec())
    }

    fn output_digest(&mut self) -> Result<OutputDigest, BackendError> {
        Ok(OutputDigest::of(self.tensors.get(self.current, self.output)))
    }

    fn scratch_bytes(&self, variant: Variant) -> u64 {
        let [unfused, fused] = self.scratch_bytes;
        if variant == Variant::Unfused { unfused } else { fused }
    }

    fn huge_page_share(&self) -> Option<f64> {
        self.tensors.huge_page_share()
    }

    fn counters(&mut self) -> Vec<ThreadCounters> {
        self.pool.collect(&|_| counters::counters_of_this_thread())
    }
}
