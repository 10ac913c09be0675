//! What the whole machine did during a round: stolen time, and waiting for processors.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::time::{Duration, Instant};

use super::disturbance::Cause;

/// What the machine has counted since it was started.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reading {
    /// When it was read.
    pub at: Duration,
    /// Time that the hypervisor gave to other guests, summed over the processors.
    pub stolen: Option<Duration>,
    /// Time in which something waited for a processor.
    pub pressed: Option<Duration>,
}

/// Reads the machine's counters.
pub trait Watch {
    /// The counters now.
    fn read(&mut self) -> Reading;

    /// The processors that they are summed over.
    fn processors(&self) -> usize;
}

/// Share of the processors' time in a round that may be stolen.
const MOST_STOLEN: f64 = 0.01;

/// Share of the time in which something may wait for a processor. Small services wait behind the
/// kernels that are measured without slowing them.
const MOST_PRESSED: f64 = 0.1;

/// Linux adds up the pressure only this often.
const PRESSURE_PERIOD: Duration = Duration::from_secs(2);

/// The causes that a reading would show.
#[must_use]
pub(super) fn observable(reading: &Reading) -> Vec<Cause> {
    let steal = reading.stolen.map(|_| Cause::Steal);
    let pressure = reading.pressed.map(|_| Cause::CpuPressure);
    steal.into_iter().chain(pressure).collect()
}

/// What disturbed each round, from the readings at its beginning and its end.
///
/// The pressure is known only for the time between two moments at which the system added it up,
/// and belongs to all rounds that lie in it.
#[must_use]
pub(super) fn causes_of_rounds(readings: &[Reading], processors: usize) -> Vec<Vec<Cause>> {
    let mut rounds: Vec<Vec<Cause>> = readings
        .windows(2)
        .map(|ends| {
            let [begin, end] = [ends[0], ends[1]];
            #[expect(clippy::cast_precision_loss, reason = "a handful of processors")]
            let time = (end.at.saturating_sub(begin.at)).as_secs_f64() * processors as f64;
            let stolen = begin.stolen.zip(end.stolen);
            let stolen = stolen.map_or(Duration::ZERO, |(begin, end)| end.saturating_sub(begin));
            let disturbed = stolen.as_secs_f64() > MOST_STOLEN * time;
            if disturbed { vec![Cause::Steal] } else { Vec::new() }
        })
        .collect();
    let mut since = 0;
    for index in 1..readings.len() {
        let (Some(before), Some(now)) = (readings[since].pressed, readings[index].pressed) else {
            break;
        };
        if now <= before {
            continue;
        }
        let time = readings[index].at.saturating_sub(readings[since].at).max(PRESSURE_PERIOD);
        if (now - before).as_secs_f64() > MOST_PRESSED * time.as_secs_f64() {
            rounds[since..index].iter_mut().for_each(|causes| causes.push(Cause::CpuPressure));
        }
        since = index;
    }
    rounds
}

/// The counters of Linux; on other systems there are none.
#[derive(Debug)]
pub struct SystemWatch {
    began: Instant,
    /// The processors whose stolen time counts; all of them if there are none.
    watched: Vec<u32>,
    processors: usize,
    stat: Option<File>,
    pressure: Option<File>,
}

/// The unit of `/proc/stat`, the same on every architecture of Linux that Rust supports.
pub(super) const STAT_TICK: Duration = Duration::from_millis(10);

impl SystemWatch {
    /// Opens the files that exist, to watch these processors, or all of them if the threads are
    /// free to move.
    #[must_use]
    pub fn open(watched: Option<&[u32]>) -> Self {
        Self::open_under(Path::new("/proc"), watched)
    }

    fn open_under(proc: &Path, watched: Option<&[u32]>) -> Self {
        let all = || std::fs::read_to_string(proc.join("stat")).map_or(1, |text| count(&text));
        Self {
            began: Instant::now(),
            watched: watched.unwrap_or_default().to_vec(),
            processors: watched.map_or_else(all, <[u32]>::len),
            stat: File::open(proc.join("stat")).ok(),
            pressure: File::open(proc.join("pressure/cpu")).ok(),
        }
    }
}

impl Watch for SystemWatch {
    fn read(&mut self) -> Reading {
        let stolen = self.stat.as_mut().and_then(text_of);
        let stolen = stolen.and_then(|text| parse_stolen(&text, &self.watched));
        let pressed = self.pressure.as_mut().and_then(text_of);
        let pressed = pressed.and_then(|text| parse_pressed(&text));
        Reading { at: self.began.elapsed(), stolen, pressed }
    }

    fn processors(&self) -> usize {
        self.processors
    }
}

/// The processors of the machine, one line each after the sum; this process may use fewer.
fn count(stat: &str) -> usize {
    let lines = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    lines.count().max(1)
}

/// The text of a file of the system as it is now.
fn text_of(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    Some(text)
}

/// The eighth number of the lines `cpuN user nice system idle iowait irq softirq steal ...` of the
/// processors that are watched, or of the line `cpu` that sums up all of them.
fn parse_stolen(stat: &str, watched: &[u32]) -> Option<Duration> {
    let of_line = |name: &str| {
        let line = stat.lines().find(|line| line.split(' ').next() == Some(name))?;
        let ticks: u32 = line.split_whitespace().nth(8)?.parse().ok()?;
        Some(STAT_TICK * ticks)
    };
    if watched.is_empty() {
        return of_line("cpu");
    }
    watched.iter().map(|processor| of_line(&format!("cpu{processor}"))).sum()
}

/// The total of the line `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`, in microseconds.
fn parse_pressed(text: &str) -> Option<Duration> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let total = line.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
    Some(Duration::from_micros(total.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(values: &[(u64, u64, u64)]) -> Vec<Reading> {
        let reading = |&(at, stolen, pressed): &(u64, u64, u64)| Reading {
            at: Duration::from_millis(at),
            stolen: Some(Duration::from_millis(stolen)),
            pressed: Some(Duration::from_millis(pressed)),
        };
        values.iter().map(reading).collect()
    }

    #[test]
    fn stolen_time_disturbs_its_round() {
        let causes = causes_of_rounds(&readings(&[(0, 50, 0), (20, 50, 0), (40, 60, 0)]), 2);
        assert_eq!(causes, [vec![], vec![Cause::Steal]]);
        // One tick in a long round is less than a hundredth.
        let causes = causes_of_rounds(&readings(&[(0, 50, 0), (1000, 60, 0)]), 2);
        assert_eq!(causes, [vec![]]);
    }

    #[test]
    fn pressure_disturbs_all_rounds_since_it_was_last_added_up() {
        let causes = causes_of_rounds(
            &readings(&[
                (0, 0, 7),
                (900, 0, 7),
                (1800, 0, 7),
                (2700, 0, 400),
                (3600, 0, 400),
                (4500, 0, 410),
            ]),
            2,
        );
        let pressed = vec![Cause::CpuPressure];
        assert_eq!(causes, [pressed.clone(), pressed.clone(), pressed, vec![], vec![]]);
    }

    #[test]
    fn what_was_added_up_before_the_process_is_not_taken_for_a_short_one() {
        // 150 ms in the last two seconds; this process was there for only 20 of them.
        let causes = causes_of_rounds(&readings(&[(0, 0, 0), (20, 0, 150)]), 2);
        assert_eq!(causes, [vec![]]);
    }

    #[test]
    fn the_files_of_the_system_are_read() {
        let stat = "cpu  930509 0 33909 1262498 3107 0 351 3840 0 0\n\
                    cpu0 1 2 3 4 5 6 7 3000 0\ncpu1 1 2 3 4 5 6 7 800\ncpu12 1 2 3 4 5 6 7 40\n";
        assert_eq!(parse_stolen(stat, &[]), Some(Duration::from_millis(38_400)));
        assert_eq!(parse_stolen(stat, &[12, 1]), Some(Duration::from_millis(8_400)));
        assert_eq!(parse_stolen(stat, &[0, 2]), None, "one of them is not told");
        assert_eq!((count(stat), count("cpu  1\ncpu0 1\ncpu1 1\nintr 3\n"), count("")), (3, 2, 1));
        let pressure = "some avg10=0.00 avg60=0.00 avg300=1.90 total=406721610\nfull total=0\n";
        assert_eq!(parse_pressed(pressure), Some(Duration::from_micros(406_721_610)));
        for garbage in ["", "cpu", "cpu  1 2", "some total=x", "some"] {
            assert_eq!((parse_stolen(garbage, &[]), parse_pressed(garbage)), (None, None));
        }
    }

    #[test]
    fn a_system_without_them_has_no_readings() {
        let folder = tempfile::tempdir().unwrap();
        let mut watch = SystemWatch::open_under(folder.path(), None);
        let reading = watch.read();
        assert_eq!((reading.stolen, reading.pressed), (None, None));
        assert_eq!(observable(&reading), []);
        assert_eq!(causes_of_rounds(&[reading, watch.read()], 2), [vec![]]);
        assert_eq!(watch.processors(), 1);
        assert_eq!(SystemWatch::open_under(folder.path(), Some(&[3, 5])).processors(), 2);
    }
}
