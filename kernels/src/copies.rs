//! A problem that is prepared twice.

use std::time::Duration;

use crate::backend::{
    BackendError, FirstRuns, KernelFacts, Prepared, Sensors, ThreadCounters, Variant,
};
use crate::digest::OutputDigest;

/// Two copies of a problem, for an A/A run in which only the kernels are the same. A variant here is
/// a side: [`Variant::Unfused`] the first copy, [`Variant::Fused`] the second one, and both run the
/// one variant that they are copies of.
pub(crate) struct Copies<P> {
    copies: [P; 2],
    variant: Variant,
    /// The copy that ran last.
    last: usize,
}

impl<P: Prepared> Copies<P> {
    /// Copies that run this variant.
    pub(crate) fn new(copies: [P; 2], variant: Variant) -> Self {
        Self { copies, variant, last: 0 }
    }

    fn index(side: Variant) -> usize {
        match side {
            Variant::Unfused => 0,
            Variant::Fused => 1,
        }
    }
}

impl<P: Prepared> Prepared for Copies<P> {
    fn kernels(&self, side: Variant) -> Vec<String> {
        self.copies[Self::index(side)].kernels(self.variant)
    }

    fn new_layout(&mut self, seed: u64) -> Result<(), BackendError> {
        let [first, second] = &mut self.copies;
        first.new_layout(seed)?;
        // Another seed, so another placement.
        second.new_layout(!seed)
    }

    fn poison(&mut self) -> Result<(), BackendError> {
        self.copies.iter_mut().try_for_each(P::poison)
    }

    fn run_each(&mut self, hears: &mut FirstRuns<'_>) -> Result<(), BackendError> {
        self.copies.iter_mut().try_for_each(|copy| copy.run_each(hears))
    }

    fn run(&mut self, side: Variant, iterations: u32) -> Result<Duration, BackendError> {
        self.last = Self::index(side);
        self.copies[self.last].run(self.variant, iterations)
    }

    fn run_behind(
        &mut self,
        side: Variant,
        untimed: u32,
        iterations: u32,
    ) -> Result<[Duration; 2], BackendError> {
        self.last = Self::index(side);
        self.copies[self.last].run_behind(self.variant, untimed, iterations)
    }

    fn output(&mut self) -> Result<Vec<f32>, BackendError> {
        self.copies[self.last].output()
    }

    fn output_digest(&mut self) -> Result<OutputDigest, BackendError> {
        self.copies[self.last].output_digest()
    }

    fn scratch_bytes(&self, side: Variant) -> u64 {
        self.copies[Self::index(side)].scratch_bytes(self.variant)
    }

    fn kernel_facts(&self, side: Variant) -> Vec<KernelFacts> {
        self.copies[Self::index(side)].kernel_facts(self.variant)
    }

    fn sensors(&mut self) -> Sensors {
        // Both are on one device, but only one of them ran.
        self.copies[self.last].sensors()
    }

    fn counters(&mut self) -> Vec<ThreadCounters> {
        // Both run on the same threads.
        self.copies[0].counters()
    }

    fn huge_page_share(&self) -> Option<f64> {
        let [first, second] = &self.copies;
        Some(first.huge_page_share()?.min(second.huge_page_share()?))
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::{CacheState, Problem};

    use super::*;
    use crate::backend::Backend;
    use crate::cpu::Cpu;
    use crate::inputs::Inputs;
    use crate::proof::Expected;

    #[test]
    fn both_sides_compute_the_same_in_memory_of_their_own() {
        for text in ["linear_bias_relu/f32/m33.k65.n17", "add_layernorm/f32/m31.n200"] {
            for cache in [CacheState::Warm, CacheState::Cold] {
                let problem: Problem = text.parse().unwrap();
                let inputs = Inputs::random(&problem, 3);
                let expected = Expected::compute(&problem, &inputs, u64::MAX);
                let mut cpu = Cpu::new(2).unwrap().with_last_level_cache(20_000);
                for variant in Variant::ALL {
                    let mut copies = cpu
                        .prepare_copies(&problem, &inputs, cache.into(), variant)
                        .unwrap()
                        .unwrap();
                    copies.new_layout(5).unwrap();
                    copies.poison().unwrap();
                    copies.run(Variant::Unfused, 1).unwrap();
                    let first = copies.output().unwrap();
                    assert!(expected.error(&first) <= expected.tolerance(), "{text}");
                    copies.poison().unwrap();
                    copies.run(Variant::Fused, 1).unwrap();
                    assert_eq!(copies.output().unwrap(), first, "{text}");
                    assert_eq!(copies.output_digest().unwrap(), OutputDigest::of(&first));
                    assert_eq!(copies.kernels(Variant::Unfused), copies.kernels(Variant::Fused));
                    assert_eq!(copies.counters().len(), 2);
                }
            }
        }
    }

    #[test]
    fn copies_have_addresses_layouts_and_outputs_of_their_own() {
        let problem: Problem = "mul_add_relu/f32/m31.n100".parse().unwrap();
        let inputs = Inputs::random(&problem, 3);
        let cpu = Cpu::new(1).unwrap();
        let prepare =
            || cpu.prepare_sets(&problem, &inputs, CacheState::Warm.into()).unwrap().unwrap();
        let mut copies = Copies::new([prepare(), prepare()], Variant::Fused);
        let mut relative = Vec::new();
        for seed in 0..20 {
            copies.new_layout(seed).unwrap();
            let [first, second] = copies.copies.each_mut().map(|copy| copy.addresses());
            assert!(first.iter().all(|address| !second.contains(address)));
            relative.push([first, second].map(|all| {
                all.iter().map(|address| address.wrapping_sub(all[0])).collect::<Vec<_>>()
            }));
        }
        assert!(relative.iter().all(|[first, second]| first != second));
        copies.poison().unwrap();
        copies.run(Variant::Unfused, 1).unwrap();
        assert!(copies.copies[0].is_written(0) && !copies.copies[1].is_written(0));
        copies.run(Variant::Fused, 1).unwrap();
        assert!(copies.copies[1].is_written(0));
        assert!(copies.output().unwrap().iter().all(|number| !number.is_nan()));
    }
}
