//! What the machine did in a short while: the difference of two readings.
//!
//! The load average would be simpler, but looks back a minute, and right after compiling it is
//! high on a machine that has nothing left to do.

use std::time::{Duration, Instant};

use procfs_core::VmStat;

use crate::machine::system_files::SystemFiles;

/// What happened between two readings; `None` where the system does not report it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Window {
    /// Share of all processors' time that was spent on work.
    pub(super) busy: Option<f64>,
    /// What a hypervisor took away.
    pub(super) stolen: Option<Stolen>,
    /// Pages that were written to swap or read back.
    pub(super) swapped_pages: Option<u64>,
    /// How long all processors together had.
    pub(super) processor_time: Option<Duration>,
}

/// Time in which this machine was ready to work and the hypervisor let another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stolen {
    /// Share of all processors' time.
    pub(super) share: f64,
    /// The same in the units that the system counts in, usually 10 ms.
    pub(super) ticks: u64,
}

/// A reading of counters that only rise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    at: Instant,
    processors: Option<Processors>,
    swapped_pages: Option<u64>,
}

impl Reading {
    /// Reads the counters now.
    pub(super) fn take(files: &SystemFiles) -> Self {
        Self {
            at: Instant::now(),
            processors: files.text("proc/stat").as_deref().and_then(Processors::parse),
            swapped_pages: files.parsed("proc/vmstat").as_ref().and_then(swapped_pages),
        }
    }

    /// What happened since an earlier reading.
    pub(super) fn since(&self, earlier: &Self) -> Window {
        let elapsed = self.at.saturating_duration_since(earlier.at);
        let mut window = Window::default();
        if let (Some(now), Some(before)) = (self.processors, earlier.processors) {
            window.processor_time = Some(elapsed * now.count);
            // Ticks that the kernel did not count say nothing about any share.
            let total = now.total.saturating_sub(before.total);
            if total > 0 {
                let stolen = now.stolen.saturating_sub(before.stolen);
                window.busy = Some(share(now.busy.saturating_sub(before.busy), total));
                window.stolen = Some(Stolen { share: share(stolen, total), ticks: stolen });
            }
        }
        if let (Some(now), Some(before)) = (self.swapped_pages, earlier.swapped_pages) {
            window.swapped_pages = Some(now.saturating_sub(before));
        }
        window
    }
}

/// What all processors did since the machine was started, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Processors {
    count: u32,
    busy: u64,
    stolen: u64,
    total: u64,
}

impl Processors {
    /// From the text of `/proc/stat`.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let ticks = lines.next()?.strip_prefix("cpu ")?.split_whitespace();
        let ticks: Vec<u64> = ticks.map(str::parse).collect::<Result<_, _>>().ok()?;
        // What comes after these is counted among them already. Old kernels end earlier.
        let [user, nice, system, idle, io_wait, irq, soft_irq, stolen] = *ticks.first_chunk()?;
        let busy = [nice, system, irq, soft_irq].into_iter().fold(user, u64::saturating_add);
        let total = [idle, io_wait, stolen].into_iter().fold(busy, u64::saturating_add);
        let count = lines.take_while(|line| line.starts_with("cpu")).count();
        Some(Self { count: u32::try_from(count).ok()?.max(1), busy, stolen, total })
    }
}

/// Pages that went to swap and came back since the machine was started.
fn swapped_pages(VmStat(counts): &VmStat) -> Option<u64> {
    let count = |name| u64::try_from(*counts.get(name)?).ok();
    Some(count("pswpin")?.saturating_add(count("pswpout")?))
}

#[expect(clippy::cast_precision_loss, reason = "a share of a short time")]
fn share(part: u64, total: u64) -> f64 {
    (part as f64 / total as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::system_files::tests::made_up;

    const EARLIER: &str = "cpu  100 10 50 1000 40 1 2 30 7 7\ncpu0 50 5\ncpu1 50 5\nintr 12\n";
    const LATER: &str = "cpu  110 11 53 1024 40 1 4 32 9 9\ncpu0 60 5\ncpu1 50 5\nintr 13\n";

    fn reading(at: Instant, stat: &str, vmstat: &str) -> Reading {
        let (_folder, files) = made_up(&[("proc/stat", stat), ("proc/vmstat", vmstat)]);
        Reading { at, ..Reading::take(&files) }
    }

    #[test]
    fn the_difference_of_two_readings() {
        let (start, length) = (Instant::now(), Duration::from_millis(200));
        let before = reading(start, EARLIER, "nr_free 9\npswpin 3\npswpout 4\n");
        let after = reading(start + length, LATER, "nr_free 5\npswpin 5\npswpout 8\n");
        let window = after.since(&before);
        // 16 ticks of work, 24 idle, 2 stolen; guests are counted among the work already.
        assert!((window.busy.unwrap() - 16.0 / 42.0).abs() < 1e-12);
        let stolen = window.stolen.unwrap();
        assert_eq!(stolen.ticks, 2);
        assert!((stolen.share - 2.0 / 42.0).abs() < 1e-12);
        assert_eq!(window.swapped_pages, Some(6));
        assert_eq!(window.processor_time, Some(2 * length));
    }

    #[test]
    fn counters_that_stand_still_or_fall_back() {
        let now = Instant::now();
        let before = reading(now, LATER, "pswpin 5\npswpout 8\n");
        let same = before.since(&before);
        assert_eq!((same.busy, same.stolen, same.swapped_pages), (None, None, Some(0)));
        let fallen = reading(now, EARLIER, "pswpin 0\npswpout 0\n").since(&before);
        assert_eq!((fallen.busy, fallen.stolen, fallen.swapped_pages), (None, None, Some(0)));
    }

    #[test]
    fn garbage_and_nothing_tell_nothing() {
        let now = Instant::now();
        for (stat, vmstat) in [
            ("", ""),
            ("cpu  1 2 3\n", "pswpin 1\n"),
            ("cpu  1 2 3 x 5 6 7 8\n", "pswpin x\npswpout 1\n"),
            ("cpu0 1 2 3 4 5 6 7 8\n", "pswpinned 1\npswpout 1\n"),
        ] {
            let reading = reading(now, stat, vmstat);
            assert_eq!(reading.since(&reading), Window::default(), "{stat}");
        }
        let (_folder, nothing) = made_up(&[]);
        let reading = Reading::take(&nothing);
        assert_eq!(reading.since(&reading), Window::default());
    }
}
