//! The clock of another program, which says what its runs took and not in which steps it counts.

use std::time::Duration;

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
