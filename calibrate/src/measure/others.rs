//! How many processors other programs kept busy, as Linux counts it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::watch::STAT_TICK;

/// The shortest time for which the number means something: Linux counts in ticks of 10 ms, and one
/// of them is then a tenth of a processor.
const LEAST: Duration = STAT_TICK.saturating_mul(10);

/// Observes the processors from when it is started.
#[derive(Debug)]
pub struct Others {
    began: Instant,
    stat: PathBuf,
    before: Option<Counted>,
}

/// What was counted until a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    at: Duration,
    /// Time of all processors in programs and in the system's kernel.
    busy: Duration,
    /// The measurement's part of it.
    own: Duration,
}

impl Others {
    /// Starts to observe; `own` is the time on processors of all that measures, until now.
    #[must_use]
    pub fn start(own: Option<Duration>) -> Self {
        Self::start_under(Path::new("/proc"), own)
    }

    fn start_under(proc: &Path, own: Option<Duration>) -> Self {
        let stat = proc.join("stat");
        let mut others = Self { began: Instant::now(), stat, before: None };
        others.before = own.and_then(|own| others.count(own));
        others
    }

    /// Waits until it has observed for long enough. The processes of short problems are shorter, and
    /// without the wait a neighbour of theirs would never be seen.
    pub fn wait(&self) {
        if self.before.is_some() {
            std::thread::sleep(LEAST.saturating_sub(self.began.elapsed()));
        }
    }

    /// How many processors other programs have kept busy since, in the mean, by the time of all that
    /// measures until now; `None` where the system does not report it, and after less than a tenth of a
    /// second, in which its ticks of 10 ms would be off by more than a tenth of a processor.
    #[must_use]
    pub fn busy(&self, own: Option<Duration>) -> Option<f64> {
        busy_between(self.before?, self.count(own?)?)
    }

    fn count(&self, own: Duration) -> Option<Counted> {
        let text = std::fs::read_to_string(&self.stat).ok()?;
        Some(Counted { at: self.began.elapsed(), busy: parse_busy(&text)?, own })
    }
}

/// The processors that are left when the measurement's own time is taken off; `None` where that cannot
/// be known, as when a counter was set back.
fn busy_between(before: Counted, after: Counted) -> Option<f64> {
    let elapsed = after.at.checked_sub(before.at).filter(|elapsed| *elapsed >= LEAST)?;
    let busy = after.busy.checked_sub(before.busy)?;
    let own = after.own.checked_sub(before.own)?;
    Some(busy.saturating_sub(own).as_secs_f64() / elapsed.as_secs_f64())
}

/// The time in programs and in the kernel of the line
/// `cpu user nice system idle iowait irq softirq steal ...`, which sums up all processors. Guests
/// are part of `user`, and what the hypervisor gave to others is none of this system's programs.
fn parse_busy(stat: &str) -> Option<Duration> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> =
        line.split_whitespace().map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let [user, nice, system, _idle, _iowait, irq, softirq, ..] = *ticks.as_slice() else {
        return None;
    };
    let sum = [user, nice, system, irq, softirq].into_iter().try_fold(0, u64::checked_add)?;
    // Many processors count more ticks in weeks than a u32 holds.
    sum.checked_mul(STAT_TICK.as_millis().try_into().ok()?).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn counted(at: u32, busy: u32, own: u32) -> Counted {
        Counted { at: MS * at, busy: MS * busy, own: MS * own }
    }

    #[test]
    fn what_is_not_its_own_is_the_others() {
        let busy = |at: u32, busy: u32, own: u32| {
            busy_between(counted(50, 1000, 70), counted(50 + at, 1000 + busy, 70 + own))
        };
        assert_eq!(busy(1000, 2000, 1500), Some(0.5));
        assert_eq!(busy(200, 400, 400), Some(0.0));
        // Ticks may lag behind.
        assert_eq!(busy(200, 390, 400), Some(0.0));
        // Too short for ticks of 10 ms.
        assert_eq!(busy(99, 200, 100), None);
        assert_eq!(busy(100, 200, 100), Some(1.0));
    }

    #[test]
    fn a_counter_that_was_set_back_tells_nothing() {
        let before = counted(50, 1000, 70);
        for after in [counted(500, 900, 80), counted(500, 2000, 60), counted(40, 2000, 80)] {
            assert_eq!(busy_between(before, after), None);
        }
    }

    #[test]
    fn months_of_many_processors_are_a_number() {
        let stat = format!("cpu {} 0 0 0 0 0 0", 1_u64 << 36);
        assert_eq!(parse_busy(&stat), Some(Duration::from_millis(10 << 36)));
    }

    #[test]
    fn all_that_runs_counts_and_nothing_that_waits() {
        let stat = "cpu  100 20 3 1262498 3107 4 5 3840 7 8\ncpu0 1 2 3 4 5 6 7 3000 0\n";
        assert_eq!(parse_busy(stat), Some(MS * 1320));
        // Old systems end with the interrupts.
        assert_eq!(parse_busy("intr 3\ncpu 1 1 1 9 9 1 1\n"), Some(MS * 50));
        let too_large = format!("cpu {} 1 1 1 1 1 1", u64::MAX);
        for odd in ["", "cpu", "cpu0 1 2 3 4 5 6 7", "cpu  1 2 3", "cpu 1 2 x 4 5 6 7", &too_large]
        {
            assert_eq!(parse_busy(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn a_system_without_the_file_reports_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let watch = || Others::start_under(folder.path(), Some(MS));
        assert_eq!(watch().busy(Some(MS)), None);
        std::fs::write(folder.path().join("stat"), "cpu 1 1 1 1 1 1 1\n").unwrap();
        let others = watch();
        assert!(others.before.is_some());
        assert_eq!(others.busy(Some(MS)), None, "the time is too short");
        assert_eq!(Others::start_under(folder.path(), None).before, None);
        others.wait();
        assert_eq!(others.busy(Some(MS)), Some(0.0));
        assert_eq!(others.busy(None), None);
    }
}
