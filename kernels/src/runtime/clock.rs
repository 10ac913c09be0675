//! Whether the times of a runtime can be right.

use std::collections::VecDeque;
use std::time::Duration;

use super::error::RuntimeError;
use crate::backend::Variant;

/// Runs of a variant whose times are looked at together.
const TOGETHER: usize = 15;

/// How long a busy machine can hold up the two messages of a run, many times in a row: a thread
/// that waits for a shared processor waits for some turns of the others.
const HELD_UP: Duration = Duration::from_millis(50);

/// A run that takes this long is judged by itself: a busy machine holds a run up for much less.
const LONG: Duration = Duration::from_secs(1);

/// The share of the time that went by which may be missing in what a runtime says.
const MISSING_SHARE: f64 = 0.02;

/// The same for a single long run, which anything may hold up.
const MISSING_SHARE_OF_ONE: f64 = 0.2;

/// What waking up takes longer after a run than between messages that follow each other at once.
const WAKING: Duration = Duration::from_micros(100);

/// A message that takes longer than this explains no more: a runtime does not choose how much of its
/// runs it leaves out.
const LONGEST_MESSAGE: Duration = Duration::from_millis(1);

/// Runs of a variant by which it is seen what goes by around a run: at most, and at least.
const KNOWN: usize = 32;
const FEW: usize = 4;

/// Two readings of the same clock by two processes may differ by this.
const READING: Duration = Duration::from_micros(1);

/// Holds what a runtime says of its runs against the time that went by here. What a message takes
/// explains the difference, and nothing else does.
#[derive(Debug)]
pub(super) struct ClockCheck {
    /// What a message without a run takes at most.
    message: Duration,
    /// Unfused and fused.
    variants: [Runs; 2],
}

/// The last runs of a variant.
#[derive(Debug, Default)]
struct Runs {
    /// How many at last were all too short for the time that went by.
    short: usize,
    /// How many at last were longer than what lay between its answers.
    held_back: usize,
    /// What went by and was in no run.
    around: VecDeque<Duration>,
}

impl Runs {
    fn add(&mut self, around: Duration) {
        if self.around.len() == KNOWN {
            self.around.pop_front();
        }
        self.around.push_back(around);
    }

    /// The lower quartile of what went by around a run, which few that were held up do not change;
    /// `None` as long as there are few.
    fn usual(&self) -> Option<Duration> {
        let mut sorted = Vec::from_iter(self.around.iter().copied());
        sorted.sort_unstable();
        (sorted.len() >= FEW).then(|| sorted[sorted.len() / 4])
    }
}

impl ClockCheck {
    /// With what a message without a run takes at most.
    pub(super) fn new(message: Duration) -> Self {
        Self { message: message.min(LONGEST_MESSAGE), variants: Default::default() }
    }

    /// No run takes longer than the time that went by in it.
    pub(super) fn check_longest(
        &self,
        passed: Duration,
        said: Duration,
    ) -> Result<(), RuntimeError> {
        match said > passed + passed / 1000 + READING {
            true => Err(wrong(said, passed, "a run")),
            false => Ok(()),
        }
    }

    /// Looks at the second of two times that were asked for together. Those runs began behind the first
    /// answer, so they took no longer than what lay between the answers. If they did, the first answer
    /// was read too late here, or the runtime held it back and may have moved time from one answer to
    /// the other, which their sum does not show.
    pub(super) fn add_second(
        &mut self,
        variant: Variant,
        apart: Duration,
        said: Duration,
    ) -> Result<Duration, RuntimeError> {
        let missing = said.saturating_sub(apart + WAKING + said.mul_f64(MISSING_SHARE));
        let [unfused, fused] = &mut self.variants;
        let runs = match variant {
            Variant::Unfused => unfused,
            Variant::Fused => fused,
        };
        runs.held_back = if missing.is_zero() { 0 } else { runs.held_back + 1 };
        match runs.held_back >= TOGETHER {
            true => Err(RuntimeError::Clock(format!(
                "it says {said:.1?} of runs whose answer came {apart:.1?} behind the one before, as \
                 {TOGETHER} times in a row; it must answer each request as soon as its runs are \
                 done"
            ))),
            false => Ok(missing),
        }
    }

    /// Looks at what one or two messages made a runtime run. What went by in it and is neither in what
    /// the runtime says nor in what its messages take is time that something else had: the sample was
    /// disturbed, or the clock is wrong.
    ///
    /// Around a run of one variant goes by what goes by around one of the other: the messages are the
    /// same.
    pub(super) fn add(
        &mut self,
        variant: Variant,
        messages: u32,
        passed: Duration,
        said: Duration,
    ) -> Result<Duration, RuntimeError> {
        self.check_longest(passed, said)?;
        let most = 2 * messages * self.message + WAKING;
        let around = passed.saturating_sub(said);
        if passed > LONG && around > most + passed.mul_f64(MISSING_SHARE_OF_ONE) {
            return Err(wrong(said, passed, "a run"));
        }
        let [unfused, fused] = &mut self.variants;
        let (runs, others) = match variant {
            Variant::Unfused => (unfused, fused),
            Variant::Fused => (fused, unfused),
        };
        let share = passed.mul_f64(MISSING_SHARE);
        runs.short = if around > most + share.max(HELD_UP) { runs.short + 1 } else { 0 };
        if runs.short >= TOGETHER {
            let what = format!("a run, as in the {TOGETHER} runs of the variant before it,");
            return Err(wrong(said, passed, &what));
        }
        runs.add(around);
        let explained = others.usual().map_or(most, |usual| most.min(usual + WAKING));
        Ok(around.saturating_sub(explained + share))
    }
}

fn wrong(said: Duration, passed: Duration, of: &str) -> RuntimeError {
    RuntimeError::Clock(format!("it says {said:.1?} of {of} in which {passed:.1?} went by"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: Duration = Duration::from_micros(100);

    fn check() -> ClockCheck {
        ClockCheck::new(MESSAGE)
    }

    fn us(time: u64) -> Duration {
        Duration::from_micros(time)
    }

    /// What becomes of many runs that take this long by each clock, in microseconds.
    fn runs(passed: u64, said: u64) -> Result<Duration, String> {
        let mut check = check();
        let mut missing = Duration::ZERO;
        for _ in 0..2 * TOGETHER {
            let run = check.add(Variant::Fused, 1, us(passed), us(said));
            missing += run.map_err(|error| error.to_string())?;
        }
        Ok(missing)
    }

    #[test]
    fn messages_explain_a_difference_and_nothing_more() {
        for (passed, said) in [(600, 500), (700, 500), (20_000, 19_500), (100, 101)] {
            assert_eq!(runs(passed, said), Ok(Duration::ZERO), "{passed} {said}");
        }
        // The machine may have held them up, and it may be the clock: they are disturbed.
        for (passed, said) in [(1100, 500), (20_000, 18_000), (80_000, 40_000)] {
            assert!(runs(passed, said).unwrap() > Duration::ZERO, "{passed} {said}");
        }
        assert!(runs(200_000, 140_000).unwrap_err().contains("as in the 15 runs"));
    }

    #[test]
    fn the_second_runs_take_no_longer_than_what_lies_between_the_answers() {
        let mut check = check();
        let mut missing = |apart, said| {
            let missing = check.add_second(Variant::Unfused, us(apart), us(said));
            missing.map_err(|error| error.to_string())
        };
        for (apart, said) in [(5000, 5000), (5000, 5200), (9000, 5000), (0, 100), (0, 0)] {
            assert_eq!(missing(apart, said), Ok(Duration::ZERO), "{apart} {said}");
        }
        assert_eq!(missing(10, 5000), Ok(us(4790)));
        // Once in a while a machine reads an answer too late; each of those is disturbed.
        for index in 0..4 * TOGETHER {
            let apart = if index % TOGETHER == 0 { 5000 } else { 2500 };
            assert!(missing(apart, 5000).is_ok());
        }
        assert_eq!(missing(5000, 5000), Ok(Duration::ZERO));
        for _ in 1..TOGETHER {
            assert!(missing(20, 5000).is_ok());
        }
        assert_eq!(
            missing(20, 5000).unwrap_err(),
            "its clock cannot be right: it says 5.0ms of runs whose answer came 20.0µs behind the one \
             before, as 15 times in a row; it must answer each request as soon as its runs are done"
        );
    }

    #[test]
    fn no_run_takes_longer_than_the_time_in_which_it_was_made() {
        let error = runs(500, 600).unwrap_err();
        assert_eq!(
            error,
            "its clock cannot be right: it says 600.0µs of a run in which 500.0µs went by"
        );
    }

    /// Runs of the variants take turns: the right ones do not excuse the others.
    #[test]
    fn a_clock_that_is_wrong_for_one_variant_is_seen() {
        let mut check = check();
        let mut each = |variant, said| check.add(variant, 1, us(200_000), us(said));
        for run in 1..TOGETHER {
            assert_eq!(each(Variant::Unfused, 199_900).unwrap(), Duration::ZERO);
            // Two messages explain 0.3 ms, and what goes by around the other variant 0.2 ms.
            let missing = if run < FEW { 95_700 } else { 95_800 };
            assert_eq!(each(Variant::Fused, 100_000).unwrap(), us(missing));
        }
        assert!(each(Variant::Unfused, 199_900).is_ok() && each(Variant::Fused, 100_000).is_err());
    }

    /// One right run in a few does not excuse the others either: each is disturbed.
    #[test]
    fn what_is_missing_is_said_of_each_run() {
        let mut check = check();
        for index in 0..5 * TOGETHER {
            let is_right = index % 14 == 0;
            let said = if is_right { 200_000 } else { 100_000 };
            let missing = check.add(Variant::Fused, 1, us(200_000), us(said)).unwrap();
            assert_eq!(missing.is_zero(), is_right);
        }
    }

    #[test]
    fn slow_messages_explain_no_more_than_a_message_takes() {
        let mut check = ClockCheck::new(Duration::from_millis(50));
        let missing = check.add(Variant::Fused, 1, us(10_000), us(1_000)).unwrap();
        assert_eq!(missing, us(10_000 - 1_000 - 2_000 - 100 - 200));
    }

    /// What a message may take at most would hide it.
    #[test]
    fn short_samples_of_a_wrong_variant_are_disturbed() {
        let mut check = check();
        let mut missing = [0; 2];
        for _ in 0..2 * KNOWN {
            for (index, (variant, said)) in
                [(Variant::Unfused, 500), (Variant::Fused, 250)].into_iter().enumerate()
            {
                let run = check.add(variant, 1, us(550), us(said)).unwrap();
                missing[index] += u32::from(!run.is_zero());
            }
        }
        assert_eq!(missing[0], 0);
        assert!(missing[1] as usize >= KNOWN, "{missing:?}");
    }

    /// A machine that holds up most runs makes nobody a liar, and disturbs what it held up.
    #[test]
    fn a_busy_machine_disturbs_both_variants() {
        let mut check = check();
        for index in 0..4 * KNOWN {
            let held_up = if index % 3 == 0 { 0 } else { 5000 };
            for variant in Variant::ALL {
                let missing = check.add(variant, 1, us(560 + held_up), us(500)).unwrap();
                assert_eq!(missing.is_zero(), held_up == 0, "{index}");
            }
        }
    }

    #[test]
    fn a_run_that_was_held_up_is_no_lie_and_a_long_lie_is_seen_at_once() {
        let mut check = check();
        for index in 0..3 * TOGETHER {
            let held_up = if index % 4 == 0 { 8000 } else { 0 };
            let missing = check.add(Variant::Unfused, 1, us(600 + held_up), us(500)).unwrap();
            assert_eq!(missing.is_zero(), held_up == 0);
        }
        let [two, one] = [Duration::from_secs(2), Duration::from_secs(1)];
        assert!(check.add(Variant::Unfused, 1, two, one).is_err());
        for [passed, said] in [[118, 92], [900, 700], [2000, 1900]] {
            let [passed, said] = [passed, said].map(Duration::from_millis);
            assert!(check.add(Variant::Unfused, 1, passed, said).is_ok(), "{passed:?} {said:?}");
        }
    }
}
