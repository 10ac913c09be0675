//! What another program says of its runs, and what shows that it cannot be so.

use std::time::{Duration, Instant};

use fused_kernels::{BackendError, Prepared, Variant};

use super::runs_in;

/// So many times the runs of a sample must take at least half as many times as long.
const MORE: u32 = 4;

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
    let more = runs.saturating_mul(MORE);
    let (few, many) = (least(runs)?, least(more)?);
    if many >= few * (MORE / 2) {
        return Ok(());
    }
    let variant = variant.name();
    Err(BackendError::Device(RunsLeftOut { variant, runs, few, more, many }.into()))
}

/// How often it is looked at whether what a program says is so: a busy machine spoils some looks, and
/// what is wrong spoils each of them.
const LOOKS: usize = 15;

/// Runs that take this long together show a clock that is a little slow: messages take far less.
const LONG: Duration = Duration::from_millis(50);

/// What messages take at most around such runs, and the share of their time that may be missing.
const MESSAGES: Duration = Duration::from_micros(500);
const MISSING_SHARE: f64 = 0.02;

/// By this share a run of many may take longer than a run of few. More shows a clock that leaves out
/// a part of each answer's time.
const LONGER_SHARE: f64 = 0.05;

/// The clock is slow, or leaves something out each time.
#[derive(Debug, thiserror::Error)]
#[error(
    "its {variant} variant says {few:.1?} of {runs} runs, and {many:.1?} of {more} in which {passed:.1?} \
     went by, so its clock cannot be right"
)]
struct ClockTooSlow {
    variant: &'static str,
    runs: u32,
    few: Duration,
    more: u32,
    many: Duration,
    passed: Duration,
}

/// Checks the clock of a program by runs that take so long that messages explain nothing: it must say
/// all of the time that passed, and as much of each run as where it made the few of a sample.
pub(super) fn check_its_clock(
    prepared: &mut dyn Prepared,
    variant: Variant,
    runs: u32,
    seconds: f64,
) -> Result<(), BackendError> {
    let more = runs_in(LONG, seconds).max(runs);
    let each = |time: Duration, runs: u32| time.as_secs_f64() / f64::from(runs);
    let mut look = || {
        let few = if more > runs { Some(prepared.run(variant, runs)?) } else { None };
        let began = Instant::now();
        let many = prepared.run(variant, more)?;
        let (passed, few) = (began.elapsed(), few.unwrap_or(many));
        let variant = variant.name();
        Ok::<_, BackendError>(ClockTooSlow { variant, runs, few, more, many, passed })
    };
    let is_right = |it: &ClockTooSlow| {
        let missing = it.passed.saturating_sub(it.many);
        missing <= it.passed.mul_f64(MISSING_SHARE) + MESSAGES
            && each(it.many, more) <= each(it.few, runs) * (1.0 + LONGER_SHARE)
    };
    let mut looked = look()?;
    for _ in 1..LOOKS {
        if is_right(&looked) {
            break;
        }
        looked = look()?;
    }
    if is_right(&looked) { Ok(()) } else { Err(BackendError::Device(looked.into())) }
}

/// What the first answer after runs may take longer than the next one, since the runs took its data out
/// of the caches: this long, half of the next one's time, and half of a run.
const COLD: Duration = Duration::from_micros(200);

/// The result was not there when the runs were said to be over.
#[derive(Debug, thiserror::Error)]
#[error(
    "its {variant} variant says {said:.1?} of {runs} runs, and then takes {first:.1?} to write the result, \
     and {again:.1?} to write it once more, so it is still at work when its time ends"
)]
struct WorkLeft {
    variant: &'static str,
    runs: u32,
    said: Duration,
    first: Duration,
    again: Duration,
}

/// Checks that the work of a program is over when it says how long it took. One that hands its work to
/// somebody else and does not wait, or computes when it is asked for the result, would be timed by
/// what handing over takes, and its results would be right.
pub(super) fn check_that_no_work_is_left(
    prepared: &mut dyn Prepared,
    variant: Variant,
    runs: u32,
) -> Result<(), BackendError> {
    let runs = if runs == 1 { 1 } else { runs.saturating_mul(MORE) };
    let timed_output = |prepared: &mut dyn Prepared| {
        let began = Instant::now();
        prepared.output().map(|_| began.elapsed())
    };
    let [mut shortest, mut shortest_again] = [Duration::MAX; 2];
    let mut said = Duration::ZERO;
    for _ in 0..LOOKS {
        said = prepared.run(variant, runs)?;
        shortest = shortest.min(timed_output(prepared)?);
        shortest_again = shortest_again.min(timed_output(prepared)?);
        if shortest <= shortest_again.mul_f64(1.5) + COLD + said / runs / 2 {
            return Ok(());
        }
    }
    let (first, again) = (shortest, shortest_again);
    let variant = variant.name();
    Err(BackendError::Device(WorkLeft { variant, runs, said, first, again }.into()))
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
