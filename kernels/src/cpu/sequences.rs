//! Layers of a model that run one after the other, each in memory of its own.

use std::time::{Duration, Instant};

use fusion_cost_model::{CacheState, Problem};

use super::backend::Cpu;
use super::counters;
use super::pool::Pool;
use super::prepared::PreparedCpu;
use crate::backend::{BackendError, Prepared, ThreadCounters, Variant};
use crate::inputs::Inputs;

/// A layer of a sequence.
#[derive(Debug, Clone)]
pub struct Layer<'b> {
    /// What it computes.
    pub problem: Problem,
    /// In one kernel, or in one for each op.
    pub variant: Variant,
    /// Its inputs, where no other layer feeds them.
    pub inputs: &'b Inputs,
    /// Which inputs are what other layers write.
    pub feeds: Vec<Feed>,
}

/// An input that another layer writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feed {
    /// Which input, in the order of [`InputSpec::of`](crate::InputSpec::of).
    pub input: usize,
    /// The layer whose output it is: one that runs before. Both have as many numbers.
    pub from: usize,
}

/// Two sequences of layers: the sides of a pair. A variant here is a side, [`Variant::Unfused`] the
/// first one.
///
/// Each layer has memory of its own for its weights and its output, as those of a model have, and
/// reads what other layers feed it where they wrote it.
pub struct Sequences<'b> {
    pool: &'b Pool,
    sides: [Vec<Part<'b>>; 2],
    /// The side that ran last.
    last: usize,
}

struct Part<'b> {
    prepared: PreparedCpu<'b>,
    variant: Variant,
    feeds: Vec<Feed>,
}

impl Cpu {
    /// Makes two sequences of layers ready to run. `Err` of the inner result is the problem of a
    /// layer that this backend has no kernels for.
    ///
    /// A feed from a layer that does not run before, or whose output has another number of elements
    /// or another dtype than the input, feeds nothing: the input then is that of [`Layer::inputs`].
    ///
    /// # Errors
    ///
    /// [`BackendError`] when inputs are not those of their layer, or there is not enough memory.
    pub fn prepare_sequences<'b>(
        &'b self,
        sides: [&[Layer<'b>]; 2],
    ) -> Result<Result<Sequences<'b>, Problem>, BackendError> {
        let mut prepared: [Vec<Part<'b>>; 2] = [Vec::new(), Vec::new()];
        for (parts, layers) in prepared.iter_mut().zip(sides) {
            for Layer { problem, variant, inputs, feeds } in layers {
                let setup = CacheState::Warm.into();
                let Some(reader) = self.prepare_sets(problem, inputs, setup)? else {
                    return Ok(Err(*problem));
                };
                let is_fed = |feed: &Feed| {
                    let written = parts.get(feed.from).map(|from| from.prepared.output_extent());
                    written.is_some() && written == reader.input_extent(feed.input)
                };
                let feeds: Vec<Feed> = feeds.iter().copied().filter(is_fed).collect();
                parts.push(Part { prepared: reader, variant: *variant, feeds });
            }
        }
        let mut sequences = Sequences { pool: self.pool(), sides: prepared, last: 0 };
        sequences.connect();
        Ok(Ok(sequences))
    }
}

impl Sequences<'_> {
    fn index(side: Variant) -> usize {
        match side {
            Variant::Unfused => 0,
            Variant::Fused => 1,
        }
    }

    /// Lets every layer read its inputs where they are written now.
    fn connect(&mut self) {
        for parts in &mut self.sides {
            for at in 0..parts.len() {
                let Part { feeds, variant, .. } = &parts[at];
                let address = |feed: &Feed| parts[feed.from].prepared.output_address();
                let inputs: Vec<(usize, *mut u8)> =
                    feeds.iter().map(|feed| (feed.input, address(feed))).collect();
                let variant = *variant;
                // SAFETY: the layer that writes there is one of this sequence, has as many numbers
                // there, and lives as long as this one; only `new_layout` moves its output, and then
                // comes here again. No two layers run at a time.
                unsafe { parts[at].prepared.read_elsewhere(variant, &inputs) };
            }
        }
    }

    /// Seconds of each layer of a side where it stands in the sequence, the mean of some runs of the
    /// whole sequence.
    pub fn layer_seconds(&mut self, side: Variant, runs: u32) -> Vec<f64> {
        let runs = runs.max(1);
        self.last = Self::index(side);
        let parts = &mut self.sides[self.last];
        let mut totals = vec![Duration::ZERO; parts.len()];
        for _ in 0..runs {
            let mut before = Instant::now();
            for (part, total) in parts.iter_mut().zip(&mut totals) {
                part.prepared.run_once(part.variant);
                let after = Instant::now();
                *total += after - before;
                before = after;
            }
        }
        totals.into_iter().map(|total| total.as_secs_f64() / f64::from(runs)).collect()
    }

    /// The first layer of a side that left a number in its output which is infinite or none, after a
    /// run on poisoned memory.
    ///
    /// # Errors
    ///
    /// Never on this backend; see [`Prepared::poison`].
    pub fn first_unwritten(&mut self, side: Variant) -> Result<Option<usize>, BackendError> {
        self.poison()?;
        self.run(side, 1)?;
        for (at, part) in self.sides[self.last].iter_mut().enumerate() {
            if !part.prepared.output()?.iter().all(|number| number.is_finite()) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

impl Prepared for Sequences<'_> {
    fn kernels(&self, side: Variant) -> Vec<String> {
        let parts = self.sides[Self::index(side)].iter();
        parts.flat_map(|part| part.prepared.kernels(part.variant)).collect()
    }

    fn new_layout(&mut self, seed: u64) -> Result<(), BackendError> {
        /// Odd, so that no two layers get the same seed (the fraction of the golden ratio).
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut seed = seed;
        for part in self.sides.iter_mut().flatten() {
            part.prepared.new_layout(seed)?;
            seed = seed.wrapping_add(STEP);
        }
        self.connect();
        Ok(())
    }

    fn poison(&mut self) -> Result<(), BackendError> {
        self.sides.iter_mut().flatten().try_for_each(|part| part.prepared.poison())
    }

    fn run(&mut self, side: Variant, iterations: u32) -> Result<Duration, BackendError> {
        self.last = Self::index(side);
        let parts = &mut self.sides[self.last];
        let start = Instant::now();
        for _ in 0..iterations {
            for part in &mut *parts {
                part.prepared.run_once(part.variant);
            }
        }
        Ok(start.elapsed())
    }

    /// That of the last layer.
    fn output(&mut self) -> Result<Vec<f32>, BackendError> {
        match self.sides[self.last].last_mut() {
            Some(part) => part.prepared.output(),
            None => Ok(Vec::new()),
        }
    }

    fn scratch_bytes(&self, side: Variant) -> u64 {
        let parts = self.sides[Self::index(side)].iter();
        parts.map(|part| part.prepared.scratch_bytes(part.variant)).sum()
    }

    fn huge_page_share(&self) -> Option<f64> {
        let shares = self.sides.iter().flatten().map(|part| part.prepared.huge_page_share());
        shares.reduce(|least, share| Some(least?.min(share?))).flatten()
    }

    fn counters(&mut self) -> Vec<ThreadCounters> {
        self.pool.collect(&|_| counters::counters_of_this_thread())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same numbers for the same op, whatever kernel it is in.
    fn inputs(text: &str) -> (Problem, Inputs) {
        let problem: Problem = text.parse().unwrap();
        let ops: Vec<String> = (0..problem.chain().len())
            .map(|at| problem.slice(at..at + 1).unwrap().to_string())
            .collect();
        let seed = |step: usize| ops[step].bytes().map(u64::from).sum();
        (problem, Inputs::of_layer(&problem, seed))
    }

    fn layer<'b>(
        (problem, inputs): &'b (Problem, Inputs),
        variant: Variant,
        feeds: &[(usize, usize)],
    ) -> Layer<'b> {
        let feeds = feeds.iter().map(|&(input, from)| Feed { input, from }).collect();
        Layer { problem: *problem, variant, inputs, feeds }
    }

    /// The output of a side after another layout.
    fn output(sequences: &mut Sequences<'_>, side: Variant, seed: u64) -> Vec<f32> {
        sequences.new_layout(seed).unwrap();
        assert_eq!(sequences.first_unwritten(side).unwrap(), None);
        sequences.output().unwrap()
    }

    fn assert_close(first: &[f32], second: &[f32]) {
        assert_eq!(first.len(), second.len());
        for (a, b) in first.iter().zip(second) {
            assert!((a - b).abs() < 1e-5 * (1.0 + a.abs()), "{a} {b}");
        }
    }

    #[test]
    fn layers_that_feed_each_other_compute_what_one_kernel_of_all_does() {
        let whole = inputs("mlp/f32/m9.k33.n47.o21");
        let first = inputs("linear_bias_relu/f32/m9.k33.n47");
        let second = inputs("linear_bias/f32/m9.k47.n21");
        let cpu = Cpu::new(2).unwrap();
        let apart =
            [layer(&first, Variant::Unfused, &[]), layer(&second, Variant::Fused, &[(0, 0)])];
        let together = [layer(&whole, Variant::Fused, &[])];
        let mut both = cpu.prepare_sequences([&apart, &together]).unwrap().unwrap();
        for seed in 0..4 {
            let [apart, together] = Variant::ALL.map(|side| output(&mut both, side, seed));
            assert_close(&apart, &together);
            assert!(apart.iter().any(|number| number.abs() > 0.1));
        }
        assert_eq!(both.kernels(Variant::Unfused).len(), 4);
        assert_eq!(both.kernels(Variant::Fused).len(), 1);
        assert_eq!(both.layer_seconds(Variant::Unfused, 3).len(), 2);
        assert_eq!(both.counters().len(), 2);
    }

    #[test]
    fn a_residual_is_read_where_it_was_written() {
        // x -> relu -> linear -> + relu(x): fused, and op by op.
        let norm = inputs("relu/f32/m7.n19");
        let fused = inputs("linear+add/f32/m7.k19.n19");
        let (linear, add) = (inputs("linear/f32/m7.k19.n19"), inputs("add/f32/m7.n19"));
        let one =
            [layer(&norm, Variant::Fused, &[]), layer(&fused, Variant::Fused, &[(0, 0), (2, 0)])];
        let each = [
            layer(&norm, Variant::Fused, &[]),
            layer(&linear, Variant::Fused, &[(0, 0)]),
            layer(&add, Variant::Fused, &[(0, 1), (1, 0)]),
        ];
        let cpu = Cpu::new(1).unwrap();
        let mut both = cpu.prepare_sequences([&one, &each]).unwrap().unwrap();
        let [one, each] = Variant::ALL.map(|side| output(&mut both, side, 5));
        assert_close(&one, &each);
    }

    #[test]
    fn what_does_not_fit_feeds_nothing() {
        let (relu, linear) = (inputs("relu/f32/m7.n19"), inputs("linear/f32/m8.k19.n5"));
        let cpu = Cpu::new(1).unwrap();
        let alone = [layer(&linear, Variant::Fused, &[])];
        // Another size, a layer that comes later, a weight that is packed, and no such input.
        let fed = [
            layer(&relu, Variant::Fused, &[(0, 1), (7, 0)]),
            layer(&linear, Variant::Fused, &[(0, 0), (1, 0)]),
        ];
        let mut both = cpu.prepare_sequences([&alone, &fed]).unwrap().unwrap();
        let [alone, fed] = Variant::ALL.map(|side| output(&mut both, side, 5));
        assert_eq!(alone, fed);
    }

    #[test]
    fn deep_sequences_stay_finite_and_a_missing_kernel_is_named() {
        let cpu = Cpu::new(1).unwrap();
        let layer_of = inputs("linear_bias_relu/f32/m4.k300.n300");
        let deep: Vec<Layer<'_>> = (0..60_usize)
            .map(|at| layer(&layer_of, Variant::Fused, if at > 0 { &[(0, 0)] } else { &[] }))
            .zip(0..)
            .map(|(mut one, at): (Layer<'_>, usize)| {
                one.feeds.iter_mut().for_each(|feed| feed.from = at - 1);
                one
            })
            .collect();
        let mut both = cpu.prepare_sequences([&deep, &deep[..1]]).unwrap().unwrap();
        assert!(output(&mut both, Variant::Unfused, 1).iter().any(|number| *number > 1e-3));
        let foreign = inputs("relu/f64/m4.n4");
        let wrong = [layer(&foreign, Variant::Fused, &[])];
        assert_eq!(cpu.prepare_sequences([&deep[..1], &wrong]).unwrap().err(), Some(foreign.0));
    }
}
