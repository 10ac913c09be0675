//! The time of each kernel of the unfused variant where it stands in the sequence.

use fused_kernels::{BackendError, Prepared, Variant};

use super::samples::Samples;
use super::statistics::median;

/// Samples of the steps in one process, at most. They come after all pairs, so that they disturb
/// none, and are few: half as many as a round has pairs, which is some 4 % of the runs of a process.
const MOST_SAMPLES: usize = 4;

/// Seconds of each kernel of the unfused variant, the median of a few samples in the layout of the
/// last round, each as long as a sample of the variant; nothing where the clock cannot be read
/// between kernels.
///
/// # Errors
///
/// [`BackendError`] when the device fails.
pub fn step_seconds(
    prepared: &mut dyn Prepared,
    samples: &Samples,
) -> Result<Vec<f64>, BackendError> {
    let pairs = samples.rounds.iter().map(|round| round.pairs.len()).max().unwrap_or(0);
    let count = (pairs / 2).clamp(1, MOST_SAMPLES);
    let mut steps: Vec<Vec<f64>> = Vec::new();
    for _ in 0..count {
        // As before every sample: from the caches that the variant itself leaves. A run so long that
        // there is time for one only is of tensors that no cache holds.
        if count > 1 {
            prepared.run(Variant::Unfused, 1)?;
        }
        let Some(seconds) = prepared.run_steps(samples.iterations[0])? else {
            return Ok(Vec::new());
        };
        steps.resize(seconds.len(), Vec::new());
        steps.iter_mut().zip(seconds).for_each(|(all, one)| all.push(one));
    }
    Ok(steps.iter().map(|all| median(all)).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::samples::Round;
    use super::super::{Order, Pair};
    use super::*;

    /// Counts its runs; the steps of every sample take a millisecond longer than those before.
    #[derive(Default)]
    struct Device {
        untimed: u32,
        sampled: u32,
        blind: bool,
    }

    impl Prepared for Device {
        fn kernels(&self, _: Variant) -> Vec<String> {
            Vec::new()
        }
        fn new_layout(&mut self, _: u64) -> Result<(), BackendError> {
            Ok(())
        }
        fn poison(&mut self) -> Result<(), BackendError> {
            Ok(())
        }
        fn run(&mut self, variant: Variant, iterations: u32) -> Result<Duration, BackendError> {
            assert_eq!((variant, iterations), (Variant::Unfused, 1));
            self.untimed += 1;
            Ok(Duration::ZERO)
        }
        fn run_steps(&mut self, iterations: u32) -> Result<Option<Vec<f64>>, BackendError> {
            assert_eq!(iterations, 7);
            self.sampled += 1;
            let late = f64::from(self.sampled) * 1e-3;
            Ok((!self.blind).then(|| vec![1.0 + late, 2.0 + late]))
        }
        fn output(&mut self) -> Result<Vec<f32>, BackendError> {
            Ok(Vec::new())
        }
    }

    fn samples(pairs: usize) -> Samples {
        let pair = Pair {
            seconds: [1.0; 2],
            order: Order::FirstSecond,
            causes: Vec::new(),
            clock_changed: [false; 2],
        };
        Samples {
            rounds: vec![Round { pairs: vec![pair; pairs] }; 2],
            iterations: [7, 9],
            ticks: 1,
            back_to_back: 0.0,
            observable: Vec::new(),
            sensors: None,
        }
    }

    #[test]
    fn a_few_samples_each_after_an_untimed_run() {
        for (pairs, expected) in [(8, 4), (4, 2), (2, 1)] {
            let mut device = Device::default();
            let seconds = step_seconds(&mut device, &samples(pairs)).unwrap();
            let untimed = if expected > 1 { expected } else { 0 };
            assert_eq!((device.untimed, device.sampled), (untimed, expected));
            let late = (f64::from(expected) + 1.0) / 2.0 * 1e-3;
            assert!((seconds[0] - 1.0 - late).abs() < 1e-12, "{seconds:?}");
            assert!((seconds[1] - 2.0 - late).abs() < 1e-12, "{seconds:?}");
        }
        let mut device = Device { blind: true, ..Device::default() };
        assert_eq!(step_seconds(&mut device, &samples(8)).unwrap(), [0.0; 0]);
    }
}
