//! Taking samples.

use std::time::Duration;

use fused_kernels::{Prepared, Variant};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::schedule::{Order, draw_orders};
use crate::stop::Stop;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Procedure {
    /// Rounds, each with a fresh memory layout.
    pub rounds: usize,
    /// Pairs per round, unless the problem is so slow that the budget allows only fewer.
    pub pairs: usize,
    /// How long a sample lasts at least, unless one run lasts longer. At least 1000 ticks of the
    /// clock, so that its resolution adds at most 0.1 %.
    pub sample: Duration,
    /// How long the samples of one problem may take together. Slow problems get fewer pairs, but
    /// never fewer than one in each order.
    pub budget: Duration,
}

impl Procedure {
    /// The standard procedure.
    pub const STANDARD: Self = Self {
        rounds: 16,
        pairs: 8,
        sample: Duration::from_micros(500),
        budget: Duration::from_secs(8),
    };

    /// The shortened procedure of `--quick`.
    pub const QUICK: Self = Self {
        rounds: 8,
        pairs: 4,
        sample: Duration::from_micros(300),
        budget: Duration::from_millis(1500),
    };

    /// A round has one pair in each order at least.
    const LEAST_PAIRS: usize = 2;
}

/// Two samples taken one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Seconds per run of the first and of the second variant.
    pub seconds: [f64; 2],
    /// Which one was sampled first.
    pub order: Order,
}

/// The pairs that were taken in one memory layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// In the order in which they were taken.
    pub pairs: Vec<Pair>,
}

/// All samples of two variants.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// In the order in which they were taken.
    pub rounds: Vec<Round>,
    /// Runs per sample of each variant.
    pub iterations: [u32; 2],
}

/// Measures two variants against each other; `None` when the user stopped it.
///
/// A variant against itself is an A/A run. Every sample is preceded by an untimed run of the same
/// variant, so that it starts from the caches that the variant itself leaves.
pub fn measure(
    prepared: &mut dyn Prepared,
    variants: [Variant; 2],
    procedure: &Procedure,
    seed: u64,
    stop: &Stop,
) -> Option<Measurement> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    prepared.new_layout(random.next_u64());
    let once = variants.map(|variant| seconds_per_run(prepared, variant, procedure.sample));
    let iterations = once.map(|seconds| {
        let wanted = (procedure.sample.as_secs_f64() / seconds).ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let wanted = wanted as u32;
        wanted.max(1)
    });
    let sample = |index: usize| once[index] * f64::from(iterations[index] + 1);
    let pairs = affordable_pairs(procedure, sample(0) + sample(1));

    let mut rounds = Vec::with_capacity(procedure.rounds);
    for _ in 0..procedure.rounds {
        prepared.new_layout(random.next_u64());
        let mut round = Round { pairs: Vec::with_capacity(pairs) };
        for order in draw_orders(pairs, &mut random) {
            if stop.requested() {
                return None;
            }
            let mut seconds = [0.0; 2];
            let positions = match order {
                Order::FirstSecond => [0, 1],
                Order::SecondFirst => [1, 0],
            };
            for index in positions {
                let _ = prepared.run(variants[index], 1);
                let time = prepared.run(variants[index], iterations[index]);
                seconds[index] = time.as_secs_f64() / f64::from(iterations[index]);
            }
            round.pairs.push(Pair { seconds, order });
        }
        rounds.push(round);
    }
    Some(Measurement { rounds, iterations })
}

/// As many pairs per round as the budget allows, an even number.
fn affordable_pairs(procedure: &Procedure, pair_seconds: f64) -> usize {
    #[expect(clippy::cast_precision_loss, reason = "a handful of rounds")]
    let round_budget = procedure.budget.as_secs_f64() / procedure.rounds as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let affordable = (round_budget / pair_seconds) as usize;
    (affordable / 2 * 2).clamp(Procedure::LEAST_PAIRS, procedure.pairs)
}

/// Seconds that one run takes, after warming up.
fn seconds_per_run(prepared: &mut dyn Prepared, variant: Variant, sample: Duration) -> f64 {
    let _ = prepared.run(variant, 1);
    let mut iterations = 1;
    loop {
        let time = prepared.run(variant, iterations);
        if time >= sample / 4 || iterations >= 1 << 24 {
            return time.max(Duration::from_nanos(1)).as_secs_f64() / f64::from(iterations);
        }
        iterations *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device whose clock is a script: it records what it is asked for.
    #[derive(Default)]
    struct Scripted {
        calls: Vec<(Variant, u32)>,
        layouts: Vec<u64>,
    }

    impl Prepared for Scripted {
        fn kernels(&self, _: Variant) -> Vec<String> {
            Vec::new()
        }
        fn new_layout(&mut self, seed: u64) {
            self.layouts.push(seed);
        }
        fn poison(&mut self) {}
        fn run(&mut self, variant: Variant, iterations: u32) -> Duration {
            self.calls.push((variant, iterations));
            let micros = if variant == Variant::Unfused { 200 } else { 100 };
            Duration::from_micros(micros) * iterations
        }
        fn output(&mut self) -> Vec<f32> {
            Vec::new()
        }
    }

    const BOTH: [Variant; 2] = Variant::ALL;

    #[test]
    fn every_sample_follows_an_untimed_run_of_its_variant() {
        let mut device = Scripted::default();
        let procedure = Procedure { rounds: 3, pairs: 4, ..Procedure::STANDARD };
        let measurement = measure(&mut device, BOTH, &procedure, 1, &Stop::default()).unwrap();
        assert_eq!(measurement.iterations, [3, 5]);
        let samples = &device.calls[device.calls.len() - 3 * 4 * 2 * 2..];
        for call in samples.chunks(2) {
            assert_eq!(call[0], (call[1].0, 1), "an untimed run of the same variant first");
            let expected = if call[1].0 == Variant::Unfused { 3 } else { 5 };
            assert_eq!(call[1].1, expected);
        }
        assert_eq!(device.layouts.len(), 4, "one for the calibration, one per round");
        assert_eq!(measurement.rounds.len(), 3);
        for round in &measurement.rounds {
            assert_eq!(round.pairs.len(), 4);
            for pair in &round.pairs {
                assert!((pair.seconds[0] - 200e-6).abs() < 1e-12);
                assert!((pair.seconds[1] - 100e-6).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_layouts_and_orders() {
        let run = |seed| {
            let mut device = Scripted::default();
            let measurement =
                measure(&mut device, BOTH, &Procedure::QUICK, seed, &Stop::default()).unwrap();
            (device.layouts, measurement)
        };
        assert_eq!(run(5), run(5));
        assert_ne!(run(5).0, run(6).0);
    }

    #[test]
    fn slow_problems_get_fewer_pairs_but_both_orders() {
        let procedure = Procedure::STANDARD;
        assert_eq!(affordable_pairs(&procedure, 1e-3), procedure.pairs);
        assert_eq!(affordable_pairs(&procedure, 0.1), 4);
        assert_eq!(affordable_pairs(&procedure, 10.0), Procedure::LEAST_PAIRS);
    }
}
