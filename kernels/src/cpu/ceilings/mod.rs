//! Measures the ceilings of the CPU: its peak rate, its bandwidth over the working set, and what
//! starting a kernel costs.
//!
//! Every number is that of the best sample: nothing can make a loop faster than the machine, and
//! much can make it slower. A look says what of it holds at the moment.

mod bandwidth;
mod compute;
mod launch;
mod look;
mod streaming;

use std::time::{Duration, Instant};

use fusion_cost_model::cost::Ceilings;

use self::bandwidth::Curve;
pub(crate) use self::compute::Arithmetic;
pub(crate) use self::look::Look;
use super::pool::Pool;
use crate::clock::clock_tick;

/// The ceilings on all threads of the pool, the best of some rounds: the peak rate is that of the
/// arithmetic of a dtype's GEMMs, and the others are the same for all of them. Takes about a second for
/// each. What disturbs a machine comes in bursts: one that spoils all samples of a number in one
/// round is over in the next.
pub(crate) fn measure(pool: &Pool, arithmetic: Arithmetic, rounds: u32) -> Ceilings {
    let mut peak_gflops = 0.0_f64;
    let mut launch_us = f64::INFINITY;
    let mut curve = Curve::new(pool);
    for _ in 0..rounds.max(1) {
        peak_gflops = peak_gflops.max(compute::peak_gflops(pool, arithmetic));
        launch_us = launch_us.min(launch::launch_us(pool));
        curve.improve(pool);
    }
    Ceilings { peak_gflops, launch_us, bandwidth: curve.points() }
}

/// How long to look for the best sample.
#[derive(Debug, Clone, Copy)]
struct Effort {
    /// A sample lasts at least this long: many ticks of the clock, and far longer than starting
    /// the threads.
    sample: Duration,
    /// Samples are taken for this long, ...
    budget: Duration,
    /// ... and this many in any case.
    least_samples: u32,
}

impl Effort {
    /// The shortest time that an iteration took, in seconds; `job` runs the given number of
    /// iterations.
    fn best_seconds(self, mut job: impl FnMut(u32)) -> f64 {
        self.best_of(|iterations| {
            let start = Instant::now();
            job(iterations);
            // A clock that did not move would make a rate without end.
            start.elapsed().max(clock_tick())
        })
    }

    /// The same, where `timed` does that many iterations and returns how long they took.
    fn best_of(self, mut timed: impl FnMut(u32) -> Duration) -> f64 {
        let (mut iterations, mut spent) = (1_u32, Duration::ZERO);
        // Also the warm-up.
        let mut best = loop {
            let elapsed = timed(iterations);
            spent += elapsed;
            let Some(more) = iterations.checked_mul(2).filter(|_| elapsed < self.sample) else {
                break elapsed;
            };
            iterations = more;
        };
        let mut samples = 1;
        while samples < self.least_samples || spent < self.budget {
            let elapsed = timed(iterations);
            spent += elapsed;
            best = best.min(elapsed);
            samples += 1;
        }
        best.as_secs_f64() / f64::from(iterations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_are_positive_and_ordered() {
        let pool = Pool::new(2, pulp::Arch::new()).unwrap();
        let ceilings = measure(&pool, Arithmetic::MultiplyAdds, 1);
        assert!(ceilings.peak_gflops > 0.0 && ceilings.peak_gflops.is_finite());
        assert!(ceilings.launch_us > 0.0 && ceilings.launch_us.is_finite());
        assert!(!ceilings.bandwidth.is_empty());
        assert!(ceilings.bandwidth.is_sorted_by(|a, b| a.working_set_bytes < b.working_set_bytes));
        for point in &ceilings.bandwidth {
            let rates = [Some(point.gb_per_s), point.nontemporal_gb_per_s, point.read_gb_per_s];
            let good = |rate: f64| rate > 0.0 && rate.is_finite();
            assert!(rates.into_iter().flatten().all(good), "{point:?}");
            assert!(point.read_gb_per_s.is_some());
            assert_eq!(point.nontemporal_gb_per_s.is_some(), cfg!(target_arch = "x86_64"));
        }
    }

    const MS: Duration = Duration::from_millis(1);

    /// The calls and the result of an effort, when samples take these times in milliseconds and
    /// the last one again and again.
    fn script(effort: Effort, times: &[u32]) -> (Vec<u32>, f64) {
        let mut calls = Vec::new();
        let best = effort.best_of(|iterations| {
            let time = times.get(calls.len()).or(times.last()).unwrap();
            calls.push(iterations);
            MS * *time
        });
        (calls, best)
    }

    #[test]
    fn the_best_sample_of_at_least_so_many_counts_after_the_warm_up() {
        let effort = Effort { sample: 4 * MS, budget: Duration::ZERO, least_samples: 5 };
        let (calls, best) = script(effort, &[1, 2, 8, 9, 6, 7]);
        assert_eq!(calls, [1, 2, 4, 4, 4, 4, 4]);
        assert_eq!(best, 0.006 / 4.0);
        // One iteration is long enough.
        assert_eq!(script(effort, &[5]).0, [1; 5]);
    }

    #[test]
    fn samples_are_taken_until_the_time_is_used_up() {
        let effort = Effort { sample: 4 * MS, budget: 30 * MS, least_samples: 1 };
        // 1 + 2 + 4 and six times 4 are 31 ms.
        let (calls, best) = script(effort, &[1, 2, 4]);
        assert_eq!(calls, [1, 2, 4, 4, 4, 4, 4, 4, 4]);
        assert_eq!(best, 0.001);
    }

    #[test]
    fn a_job_that_takes_no_time_ends() {
        let effort = Effort { sample: MS, budget: Duration::ZERO, least_samples: 2 };
        let (calls, best) = script(effort, &[0]);
        assert_eq!(calls.len(), 33);
        assert_eq!(best, 0.0);
    }

    #[test]
    fn time_passes_while_a_job_runs() {
        let effort = Effort { sample: MS, budget: Duration::ZERO, least_samples: 2 };
        let seconds = effort.best_seconds(|iterations| std::thread::sleep(MS * iterations));
        assert!(seconds >= 0.001, "{seconds}");
    }
}
