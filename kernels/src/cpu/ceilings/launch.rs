//! What starting a kernel costs.

use std::time::Duration;

use super::super::pool::Pool;
use super::Effort;

const EFFORT: Effort = Effort {
    sample: Duration::from_millis(2),
    budget: Duration::from_millis(40),
    least_samples: 3,
};

/// Time to start an empty kernel on all threads and wait for them, in microseconds.
pub(super) fn launch_us(pool: &Pool) -> f64 {
    EFFORT.best_seconds(|iterations| launch(pool, iterations)) * 1e6
}

/// Starts an empty kernel on all threads and waits for them, `times` times.
pub(super) fn launch(pool: &Pool, times: u32) {
    for _ in 0..times {
        pool.run(&|thread| {
            std::hint::black_box(thread);
        });
    }
}
