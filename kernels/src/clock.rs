//! How finely the clock of this machine divides time.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Number of advances that are looked at: on a clock that is finer than reading it takes, the
/// shortest is then close to what reading takes.
const STEPS: u32 = 10_000;
/// A clock so coarse that they take longer is not looked at further once it has advanced.
const LONG_ENOUGH: Duration = Duration::from_millis(20);

/// The smallest step by which [`Instant`] was seen to advance: what one reading can be off by.
///
/// On a clock that counts faster than it can be read this is the time of one reading, some tens
/// of nanoseconds; on a coarse clock it is the true step. Measured at the first call, which takes
/// up to about 20 ms, and the same from then on.
#[must_use]
pub fn clock_tick() -> Duration {
    static TICK: OnceLock<Duration> = OnceLock::new();
    *TICK.get_or_init(|| smallest_step(Instant::now))
}

/// The smallest step of the readings that `now` returns.
fn smallest_step(mut now: impl FnMut() -> Instant) -> Duration {
    let begin = now();
    let (mut last, mut smallest, mut steps) = (begin, Duration::MAX, 0);
    while steps < STEPS && (steps == 0 || last.duration_since(begin) < LONG_ENOUGH) {
        let reading = now();
        let step = reading.duration_since(last);
        if !step.is_zero() {
            smallest = smallest.min(step);
            steps += 1;
            last = reading;
        }
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tick_is_short_and_stays_the_same() {
        let tick = clock_tick();
        assert!(tick > Duration::ZERO && tick < Duration::from_millis(20), "{tick:?}");
        assert_eq!(clock_tick(), tick);
    }

    /// A clock that advances by these steps in turn, in nanoseconds.
    fn clock(steps: &[u64]) -> impl FnMut() -> Instant {
        let mut now = Instant::now();
        let mut steps = steps.iter().cycle();
        move || {
            now += Duration::from_nanos(*steps.next().unwrap());
            now
        }
    }

    #[test]
    fn readings_without_an_advance_do_not_count() {
        assert_eq!(smallest_step(clock(&[0, 0, 45, 0, 41, 90])), Duration::from_nanos(41));
    }

    #[test]
    fn a_coarse_clock_has_its_own_step() {
        // 15.6 ms, as of old on Windows, after many readings of the same time.
        let mut steps = vec![0; 1000];
        steps.push(15_600_000);
        assert_eq!(smallest_step(clock(&steps)), Duration::from_micros(15_600));
    }
}
