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
pub(super) fn launch_us(pool: &mut Pool) -> f64 {
    let seconds = EFFORT.best_seconds(|iterations| {
        for _ in 0..iterations {
            pool.run(&|thread| {
                std::hint::black_box(thread);
            });
        }
    });
    seconds * 1e6
}
