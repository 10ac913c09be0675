//! How far a run is, and how long the rest of it will take.

use std::time::{Duration, Instant};

use crate::run::Extent;

/// Processes that must have been measured before the time left is said: problems differ by a factor
/// of ten in the time of a process.
const LEAST_TIMED: u32 = 5;

/// Counts the processes of a run and the time that they take.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Planned for each problem.
    each: u64,
    /// All that will be made, as far as is known.
    expected: u64,
    /// The time that the planned ones are spread over at least.
    spread: Duration,
    /// Those made, also in an earlier part of the run.
    done: u64,
    /// Those made in this part of the run.
    timed: u32,
    /// When the first of them began.
    began: Option<Instant>,
    is_measuring: bool,
}

impl Pace {
    pub(super) fn run_starts(&mut self, extent: Extent) {
        self.each = extent.processes.into();
        self.spread = extent.spread;
        self.expected = (extent.problems + extent.controls) * self.each;
    }

    pub(super) fn process_starts(&mut self, now: Instant) {
        self.began.get_or_insert(now);
        self.is_measuring = true;
    }

    pub(super) fn process_ends(&mut self) {
        self.done += 1;
        // A/A runs go on for as long as a problem does.
        self.expected = self.expected.max(self.done);
        self.timed += u32::from(self.is_measuring);
        self.is_measuring = false;
    }

    pub(super) fn processes_added(&mut self, count: u64) {
        self.expected += count;
    }

    /// The rest of what was planned for a problem is not made.
    pub(super) fn problem_ends(&mut self, made: usize) {
        let spared = self.each.saturating_sub(made as u64);
        self.expected = self.expected.saturating_sub(spared).max(self.done);
    }

    pub(super) fn done(&self) -> u64 {
        self.done
    }

    pub(super) fn expected(&self) -> u64 {
        self.expected
    }

    /// Processes made in this part of the run.
    pub(super) fn timed(&self) -> u32 {
        self.timed
    }

    /// The time that the rest will take if it goes on as it did, waits before the last planned processes
    /// included; `None` before that can be said.
    pub(super) fn left(&self, now: Instant) -> Option<Duration> {
        let began = self.began.filter(|_| self.timed >= LEAST_TIMED)?;
        let gone = now.saturating_duration_since(began);
        let each = gone.as_secs_f64() / f64::from(self.timed);
        let remaining = self.expected - self.done;
        let left = Duration::try_from_secs_f64(each * remaining as f64).ok()?;
        (remaining > 0).then(|| left.max(self.spread.saturating_sub(gone)))
    }
}

/// The time left in words, with no more digits than the estimate deserves.
pub(super) fn left_in_words(left: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    let seconds = left.as_secs();
    match seconds {
        0..10 => "a few seconds left".to_owned(),
        10..55 => format!("about {} s left", (seconds + 5) / 10 * 10),
        55..HOUR => match (seconds + MINUTE / 2) / MINUTE {
            60 => "about 1 h left".to_owned(),
            minutes => format!("about {minutes} min left"),
        },
        _ => {
            let tens = (seconds + 5 * MINUTE) / (10 * MINUTE);
            match (tens / 6, tens % 6 * 10) {
                (hours, 0) => format!("about {hours} h left"),
                (hours, minutes) => format!("about {hours} h {minutes} min left"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Extent =
        Extent { problems: 4, controls: 2, processes: 10, spread: Duration::ZERO };

    #[test]
    fn a_short_run_that_is_spread_waits_for_its_last_processes() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (mut pace, spread) = (Pace::default(), Duration::from_secs(120));
        pace.run_starts(Extent { spread, ..EXTENT });
        for process in 0..6 {
            pace.process_starts(at(process));
            pace.process_ends();
        }
        // At a second each, 54 processes take less than what is left of the two minutes.
        assert_eq!(pace.left(at(6)), Some(Duration::from_secs(114)));
        assert_eq!(pace.left(at(100)).map(|left| left > Duration::from_secs(800)), Some(true));
    }

    #[test]
    fn nothing_is_said_of_the_time_before_it_is_known() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut pace = Pace::default();
        pace.run_starts(Extent { problems: 8, ..EXTENT });
        // Left by an earlier part of the run, in no time.
        (0..50).for_each(|_| pace.process_ends());
        assert_eq!((pace.done(), pace.expected(), pace.left(at(1))), (50, 100, None));
        for process in 0..10 {
            assert_eq!(pace.left(at(2 * process)).is_some(), process >= 5, "{process}");
            pace.process_starts(at(2 * process));
            pace.process_ends();
        }
        assert_eq!(pace.left(at(20)), Some(Duration::from_secs(2 * 40)));
        // One problem fails after six of its ten processes, another needs one more.
        pace.problem_ends(6);
        pace.processes_added(1);
        assert_eq!(pace.expected(), 97);
        (0..37).for_each(|_| pace.process_ends());
        assert_eq!((pace.done(), pace.left(at(20))), (97, None));
        // A/A runs that nobody planned.
        pace.process_ends();
        assert_eq!((pace.done(), pace.expected()), (98, 98));
    }

    #[test]
    fn the_time_left_is_rounded_and_never_zero() {
        for (seconds, words) in [
            (0, "a few seconds left"),
            (9, "a few seconds left"),
            (10, "about 10 s left"),
            (47, "about 50 s left"),
            (54, "about 50 s left"),
            (55, "about 1 min left"),
            (89, "about 1 min left"),
            (90, "about 2 min left"),
            (340, "about 6 min left"),
            (3569, "about 59 min left"),
            (3590, "about 1 h left"),
            (4900, "about 1 h 20 min left"),
            (7300, "about 2 h left"),
        ] {
            assert_eq!(left_in_words(Duration::from_secs(seconds)), words);
        }
    }
}
