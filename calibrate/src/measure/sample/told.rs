//! What another program says of its runs, and what shows that it cannot be so.

use std::time::Duration;

use fused_kernels::{BackendError, Prepared, Variant};

/// One of these multiples of the runs of a sample must take twice as long as they do. The first may
/// not: a call can cost more than its runs. To one that makes only the first run, all are alike.
const MORE: [u32; 3] = [4, 16, 64];

/// How often both are timed; the least time of each counts.
const ATTEMPTS: usize = 3;

/// Some runs took hardly longer than a few of them.
#[derive(Debug, thiserror::Error)]
#[error(
    "its {variant} variant takes {few:.1?} for {runs} runs and {many:.1?} for {more}, so it does not make \
     all runs that it is asked for"
)]
struct RunsLeftOut {
    variant: &'static str,
    runs: u32,
    few: Duration,
    more: u32,
    many: Duration,
}

/// Checks that a program makes as many runs as it is asked for. One that makes only the first, and
/// keeps its result, would be timed as that many times as fast, and its results would be right.
pub(super) fn check_that_more_takes_longer(
    prepared: &mut dyn Prepared,
    variant: Variant,
    runs: u32,
) -> Result<(), BackendError> {
    if runs == 1 {
        return Ok(());
    }
    let mut least = |runs| {
        let times = (0..ATTEMPTS).map(|_| prepared.run(variant, runs));
        times.reduce(|one, other| Ok(one?.min(other?))).unwrap_or(Ok(Duration::ZERO))
    };
    let few = least(runs)?;
    let (mut more, mut many) = (runs, few);
    for times in MORE {
        more = runs.saturating_mul(times);
        many = least(more)?;
        if many >= 2 * few {
            return Ok(());
        }
    }
    let variant = variant.name();
    Err(BackendError::Device(RunsLeftOut { variant, runs, few, more, many }.into()))
}

/// The step of a clock, from the times of the samples of each variant; `None` where nothing speaks
/// for a coarse one.
///
/// A clock of nanoseconds tells samples of hundreds of microseconds apart, and even a coarse one those
/// that differ by many of its steps: what it rounds off then cancels in the mean. Where most samples
/// of a variant take exactly as long as another one, they are counted in few steps, and the smallest
/// difference is one; without any, all that is known is that the step is no longer than the time.
pub(super) fn coarse_step(times: &[Vec<Duration>; 2]) -> Option<Duration> {
    times.iter().filter_map(|times| step_of_equals(times)).max()
}

fn step_of_equals(times: &[Duration]) -> Option<Duration> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let groups = || sorted.chunk_by(|one, other| one == other);
    let equals: usize = groups().map(<[Duration]>::len).filter(|count| *count > 1).sum();
    if 2 * equals <= sorted.len() {
        return None;
    }
    sorted.dedup();
    sorted.windows(2).map(|two| two[1] - two[0]).min().or_else(|| sorted.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(times: &[u64]) -> Vec<Duration> {
        times.iter().copied().map(Duration::from_micros).collect()
    }

    #[test]
    fn times_that_most_share_show_the_step() {
        let fine = us(&[501, 498, 510, 503, 499, 501]);
        let coarse = us(&[500, 600, 500, 500, 600, 500]);
        assert_eq!(coarse_step(&[fine.clone(), fine.clone()]), None);
        let step = Some(Duration::from_micros(100));
        assert_eq!(coarse_step(&[fine.clone(), coarse.clone()]), step);
        assert_eq!(coarse_step(&[coarse, fine]), step);
        // All alike: the step may be as long as the time.
        let alike = us(&[500; 4]);
        assert_eq!(coarse_step(&[alike, Vec::new()]), Some(Duration::from_micros(500)));
        assert_eq!(coarse_step(&[us(&[500]), Vec::new()]), None, "one is equal to no other");
    }

    #[test]
    fn steps_that_the_noise_exceeds_by_far_are_no_matter() {
        // A millisecond in samples of a second that differ by tens of them.
        let times = us(&[1_013_000, 987_000, 1_002_000, 1_041_000, 995_000, 1_013_000]);
        assert_eq!(coarse_step(&[times.clone(), times]), None);
    }
}
