//! A difference of known size, for the self-test.

use std::time::Duration;

use fused_kernels::{BackendError, KernelFacts, Prepared, Sensors, ThreadCounters, Variant};

/// A prepared problem whose two sides run the same, one of them a little more often. A variant here is
/// a side, and a run of the second side is `runs` runs of the kernels, one of the first side one more.
/// So the true ratio is `1 + 1 / runs`, whatever a run takes.
pub(super) struct Planted<'a> {
    prepared: &'a mut dyn Prepared,
    /// What is run for each side.
    sides: [Variant; 2],
    runs: u32,
}

impl<'a> Planted<'a> {
    pub(super) fn new(prepared: &'a mut dyn Prepared, sides: [Variant; 2], runs: u32) -> Self {
        Self { prepared, sides, runs }
    }

    fn variant(&self, side: Variant) -> Variant {
        let [first, second] = self.sides;
        if side == Variant::Unfused { first } else { second }
    }

    /// How often the kernels of a side run in this many of its runs.
    fn runs(&self, side: Variant, iterations: u32) -> u32 {
        iterations.saturating_mul(self.runs + u32::from(side == Variant::Unfused))
    }
}

impl Prepared for Planted<'_> {
    fn kernels(&self, side: Variant) -> Vec<String> {
        self.prepared.kernels(self.variant(side))
    }

    fn new_layout(&mut self, seed: u64) -> Result<(), BackendError> {
        self.prepared.new_layout(seed)
    }

    fn poison(&mut self) -> Result<(), BackendError> {
        self.prepared.poison()
    }

    fn run(&mut self, side: Variant, iterations: u32) -> Result<Duration, BackendError> {
        self.prepared.run(self.variant(side), self.runs(side, iterations))
    }

    fn run_behind(
        &mut self,
        side: Variant,
        untimed: u32,
        iterations: u32,
    ) -> Result<[Duration; 2], BackendError> {
        let [untimed, runs] = [untimed, iterations].map(|count| self.runs(side, count));
        self.prepared.run_behind(self.variant(side), untimed, runs)
    }

    fn output(&mut self) -> Result<Vec<f32>, BackendError> {
        self.prepared.output()
    }

    fn scratch_bytes(&self, side: Variant) -> u64 {
        self.prepared.scratch_bytes(self.variant(side))
    }

    fn kernel_facts(&self, side: Variant) -> Vec<KernelFacts> {
        self.prepared.kernel_facts(self.variant(side))
    }

    fn sensors(&mut self) -> Sensors {
        self.prepared.sensors()
    }

    fn counters(&mut self) -> Vec<ThreadCounters> {
        self.prepared.counters()
    }

    fn huge_page_share(&self) -> Option<f64> {
        self.prepared.huge_page_share()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records what is run; a run of either variant takes a microsecond.
    #[derive(Default)]
    struct Recorder(Vec<(Variant, u32)>);

    impl Prepared for Recorder {
        fn kernels(&self, variant: Variant) -> Vec<String> {
            vec![variant.name().to_owned()]
        }
        fn new_layout(&mut self, _: u64) -> Result<(), BackendError> {
            Ok(())
        }
        fn poison(&mut self) -> Result<(), BackendError> {
            Ok(())
        }
        fn run(&mut self, variant: Variant, iterations: u32) -> Result<Duration, BackendError> {
            self.0.push((variant, iterations));
            Ok(Duration::from_micros(1) * iterations)
        }
        fn output(&mut self) -> Result<Vec<f32>, BackendError> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn the_first_side_runs_longer_by_the_planted_share() {
        let mut recorder = Recorder::default();
        let mut planted = Planted::new(&mut recorder, [Variant::Fused; 2], 50);
        let [first, second] = Variant::ALL.map(|side| planted.run(side, 10).unwrap());
        assert!((first.as_secs_f64() / second.as_secs_f64() - 1.02).abs() < 1e-9);
        assert_eq!(planted.kernels(Variant::Unfused), ["fused"]);
        planted.run_behind(Variant::Unfused, 1, 10).unwrap();
        assert_eq!(recorder.0, [510, 500, 51, 510].map(|runs| (Variant::Fused, runs)));
    }
}
