//! A problem whose variants can be run on the CPU.

use std::time::{Duration, Instant};

use fusion_cost_model::Problem;
use half::{bf16, f16};

use super::counters;
use super::element::{Element, LINE_BYTES, Stored};
use super::kernel::Kernel;
use super::lower::Plan;
use super::panels::InputTensor;
use super::pool::Pool;
use super::tensors::{TensorId, TensorSets};
use crate::backend::{BackendError, Prepared, ThreadCounters, Variant};
use crate::digest::OutputDigest;
use crate::inputs::Inputs;

/// A problem with its kernels, which work on one set of tensors at a time.
pub(crate) struct PreparedCpu<'b> {
    pool: &'b Pool,
    inputs: &'b Inputs,
    input_tensors: Vec<InputTensor>,
    /// Tensors that a rewrite computes ahead of time, with their numbers.
    ahead: Vec<(InputTensor, Vec<f32>)>,
    output: TensorId,
    /// How the output is stored.
    stored: Stored,
    pub(crate) tensors: TensorSets,
    /// The set that the last run used.
    pub(crate) current: usize,
    unfused: Vec<Box<dyn Kernel>>,
    fused: Box<dyn Kernel>,
    scratch_bytes: [u64; 2],
}

impl<'b> PreparedCpu<'b> {
    /// Allocates `sets` sets of the tensors of a plan and writes the inputs there.
    ///
    /// # Errors
    ///
    /// [`BackendError::Memory`] when there is not enough.
    pub(super) fn new(
        pool: &'b Pool,
        problem: &Problem,
        inputs: &'b Inputs,
        plan: Plan,
        sets: usize,
    ) -> Result<Self, BackendError> {
        let bytes = plan.table.bytes(sets);
        let tensors = plan.table.allocate(sets, pool).map_err(|source| BackendError::Memory {
            problem: Box::new(*problem),
            bytes,
            source,
        })?;
        let mut prepared = Self {
            pool,
            inputs,
            input_tensors: plan.inputs,
            ahead: plan.folded.map(|folded| folded.numbers(inputs)).into_iter().flatten().collect(),
            output: plan.output,
            stored: plan.stored,
            // The first run takes the first set.
            current: tensors.len() - 1,
            tensors,
            unfused: plan.unfused,
            fused: plan.fused,
            scratch_bytes: plan.scratch_bytes,
        };
        prepared.place(0);
        Ok(prepared)
    }

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
        let Self { pool, tensors, .. } = self;
        let given = self.input_tensors.iter().zip(&self.inputs.tensors);
        let ahead = self.ahead.iter().map(|(tensor, numbers)| (tensor, numbers));
        for (input, numbers) in given.chain(ahead) {
            match input.stored {
                Stored::F32 => write::<f32>(pool, tensors, set, input, numbers),
                Stored::Bf16 => write::<bf16>(pool, tensors, set, input, numbers),
                Stored::F16 => write::<f16>(pool, tensors, set, input, numbers),
                Stored::U8 => write::<u8>(pool, tensors, set, input, numbers),
                Stored::I8 => write::<i8>(pool, tensors, set, input, numbers),
            }
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
            // Zero in every format.
            let output = self.tensors.bytes_of(set, self.output);
            self.pool.share(output, LINE_BYTES, &|_, part| part.fill(0));
        }
        self.current = sets - 1;
    }

    /// Whether a run has written the output of a set since [`Prepared::poison`].
    #[cfg(test)]
    pub(crate) fn is_written(&mut self, set: usize) -> bool {
        let output = self.tensors.get::<f32>(set, self.output);
        let written = output.iter().filter(|number| !number.is_nan()).count();
        assert!(written == 0 || written == output.len(), "set {set} is half written");
        let inputs = self.input_tensors.iter().zip(&self.inputs.tensors);
        for (&InputTensor { id, .. }, tensor) in inputs.filter(|(one, _)| one.panels.is_none()) {
            assert_eq!(self.tensors.get::<f32>(set, id), tensor, "set {set} has other inputs");
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

    fn locate_with(&mut self, variant: Variant, elsewhere: &[(TensorId, *mut u8)]) {
        let tensors = self.tensors.set(self.current).with(elsewhere);
        match variant {
            Variant::Unfused => self.unfused.iter_mut().for_each(|kernel| kernel.locate(&tensors)),
            Variant::Fused => self.fused.locate(&tensors),
        }
    }

    /// The address of the output, until the next layout.
    pub(super) fn output_address(&self) -> *mut u8 {
        self.tensors.set(self.current).pointer(self.output)
    }

    /// What the output consists of: how it is stored, and its bytes.
    pub(super) fn output_extent(&self) -> (Stored, usize) {
        (self.stored, self.tensors.length(self.output))
    }

    /// The same of an input, in the order of [`InputSpec::of`](crate::InputSpec::of); `None` where there
    /// is no such input, or it is packed.
    pub(super) fn input_extent(&self, input: usize) -> Option<(Stored, usize)> {
        let InputTensor { id, stored, panels } = *self.input_tensors.get(input)?;
        panels.is_none().then(|| (stored, self.tensors.length(id)))
    }

    /// Points the kernels of a variant to the current set, but for some inputs, which are read at
    /// other addresses until the next layout.
    ///
    /// # Safety
    ///
    /// Until then as many numbers as the input has must lie there, and nothing may write to them
    /// while a kernel runs.
    pub(super) unsafe fn read_elsewhere(&mut self, variant: Variant, inputs: &[(usize, *mut u8)]) {
        let id = |input: usize| self.input_tensors.get(input).map(|one| one.id);
        let elsewhere: Vec<(TensorId, *mut u8)> =
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

/// Writes an input into a set.
fn write<E: Element>(
    pool: &Pool,
    tensors: &mut TensorSets,
    set: usize,
    input: &InputTensor,
    numbers: &[f32],
) {
    let tensor: &mut [E] = tensors.get(set, input.id);
    pool.share(tensor, E::LINE, &|first, part| match input.panels {
        None => {
            let given = part.iter_mut().zip(&numbers[first..]);
            given.for_each(|(place, &number)| *place = E::narrow(number));
        }
        Some(panels) => panels.pack(numbers, first, part),
    });
}

/// The numbers of a tensor.
fn read<E: Element>(tensor: &[E]) -> Vec<f32> {
    tensor.iter().map(|number| number.widen()).collect()
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
        self.tensors.poison(self.pool);
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
        let Self { tensors, current, output, .. } = self;
        Ok(match self.stored {
            Stored::F32 => tensors.get::<f32>(*current, *output).to_vec(),
            Stored::Bf16 => read::<bf16>(tensors.get(*current, *output)),
            Stored::F16 => read::<f16>(tensors.get(*current, *output)),
            Stored::U8 => read::<u8>(tensors.get(*current, *output)),
            Stored::I8 => read::<i8>(tensors.get(*current, *output)),
        })
    }

    fn output_digest(&mut self) -> Result<OutputDigest, BackendError> {
        Ok(match self.stored {
            Stored::F32 => OutputDigest::of(self.tensors.get(self.current, self.output)),
            _ => OutputDigest::of(&self.output()?),
        })
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
