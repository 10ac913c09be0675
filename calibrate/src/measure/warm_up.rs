//! Bringing a GPU to the clock that it holds under this work.

use std::time::{Duration, Instant};

use fused_kernels::{BackendError, Prepared, Variant};

/// A GPU is kept at work at least this long, and exactly this long where its clock cannot be read.
const LEAST: Duration = Duration::from_secs(1);

/// And at most this long: a clock that still moves then is for the rule about pairs.
const MOST: Duration = Duration::from_secs(5);

/// The clock must have been steady for this long.
const STEADY: Duration = Duration::from_millis(500);

/// How far the readings of a steady clock may lie apart.
const STEADY_WITHIN: f64 = 1.01;

/// The clock is read about this often.
const STRETCH: Duration = Duration::from_millis(20);

/// Runs both variants in turn until the clock of the device is steady.
///
/// # Errors
///
/// [`BackendError`] when the device fails.
pub fn warm_up(prepared: &mut dyn Prepared, variants: [Variant; 2]) -> Result<(), BackendError> {
    let began = Instant::now();
    warm_up_by(prepared, variants, || began.elapsed())
}

/// The same by any clock.
fn warm_up_by(
    prepared: &mut dyn Prepared,
    variants: [Variant; 2],
    mut elapsed: impl FnMut() -> Duration,
) -> Result<(), BackendError> {
    let mut readings: Vec<(Duration, u32)> = Vec::new();
    let mut iterations = 1_u32;
    loop {
        let before = elapsed();
        for variant in variants {
            prepared.run(variant, iterations)?;
        }
        let now = elapsed();
        if now.saturating_sub(before) < STRETCH / 2 {
            iterations = iterations.saturating_mul(2);
        }
        if let Some(mhz) = prepared.sensors().clock_mhz {
            readings.push((now, mhz));
        }
        let enough = now >= LEAST && (readings.is_empty() || is_steady(&readings, now));
        if enough || now >= MOST {
            return Ok(());
        }
    }
}

/// Whether the readings go back so far, and all since then agree with the last one before.
fn is_steady(readings: &[(Duration, u32)], now: Duration) -> bool {
    let since = now.saturating_sub(STEADY);
    let before = readings.partition_point(|(at, _)| *at <= since);
    let Some(first) = before.checked_sub(1) else { return false };
    let last = || readings[first..].iter().map(|(_, mhz)| *mhz);
    let (low, high) = (last().min().unwrap_or(0), last().max().unwrap_or(0));
    f64::from(high) < f64::from(low) * STEADY_WITHIN
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use fused_kernels::Sensors;

    use super::*;

    /// A device whose runs take 1 ms and whose clock is a function of the time.
    struct Device<'a> {
        now: &'a Cell<Duration>,
        mhz: fn(f64) -> Option<u32>,
        runs: [u32; 2],
    }

    impl Prepared for Device<'_> {
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
            let time = Duration::from_millis(1) * iterations;
            self.now.set(self.now.get() + time);
            self.runs[usize::from(variant == Variant::Fused)] += iterations;
            Ok(time)
        }
        fn output(&mut self) -> Result<Vec<f32>, BackendError> {
            Ok(Vec::new())
        }
        fn sensors(&mut self) -> Sensors {
            let clock_mhz = (self.mhz)(self.now.get().as_secs_f64());
            Sensors { clock_mhz, ..Sensors::default() }
        }
    }

    /// How long the warm-up of such a device takes.
    fn seconds(mhz: fn(f64) -> Option<u32>) -> f64 {
        let now = Cell::new(Duration::ZERO);
        let mut device = Device { now: &now, mhz, runs: [0; 2] };
        warm_up_by(&mut device, Variant::ALL, || now.get()).unwrap();
        assert_eq!(device.runs[0], device.runs[1]);
        now.get().as_secs_f64()
    }

    /// It may end a stretch later.
    fn is_about(seconds: f64, expected: f64) -> bool {
        (expected..expected + 0.1).contains(&seconds)
    }

    #[test]
    fn a_steady_clock_takes_a_second() {
        let seconds = seconds(|_| Some(1980));
        assert!(is_about(seconds, 1.0), "{seconds}");
    }

    #[test]
    fn a_clock_that_cannot_be_read_takes_a_second() {
        let seconds = seconds(|_| None);
        assert!(is_about(seconds, 1.0), "{seconds}");
    }

    #[test]
    fn a_clock_that_falls_is_waited_for() {
        // By 5 % until two seconds have gone, then steady; half a second of that is needed.
        let seconds =
            seconds(|now| Some(if now < 2.0 { 2000 - (now * 50.0) as u32 } else { 1900 }));
        assert!((2.1..2.6).contains(&seconds), "{seconds}");
    }

    #[test]
    fn small_steps_count_as_steady_and_larger_ones_do_not() {
        let small =
            seconds(|now| Some(if ((now * 20.0) as u32).is_multiple_of(2) { 1980 } else { 1965 }));
        assert!(is_about(small, 1.0), "{small}");
        let large =
            seconds(|now| Some(if ((now * 20.0) as u32).is_multiple_of(2) { 1980 } else { 1950 }));
        assert!(is_about(large, 5.0), "{large}");
    }
}
