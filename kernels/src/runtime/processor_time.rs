//! The processor time of all that computes for a runtime: of threads that end before anybody looks
//! at them, and of other processes that it has started.

use std::time::{Duration, Instant};

use super::error::RuntimeError;
use super::threads::{BUSY, LONG_ENOUGH};
use crate::backend::Variant;
use crate::cpu::processor_time_of;

/// The system brings the clock of a running thread up to date this often. A thread that spins may
/// be running at either end of a run.
const TICK: Duration = Duration::from_millis(4);

/// The share of the time of all runs that other processes may compute.
const SHARE_OF_OTHERS: f64 = 0.3;

/// By how much the time of all runs grows until the next look.
const NEXT_LOOK: f64 = 1.25;

/// Runs of less time together say nothing of other processes, whose time is counted in hundredths
/// of a second.
const LONG_ENOUGH_FOR_OTHERS: Duration = Duration::from_millis(100);

/// The processor time of all that computes for a runtime, in the runs of a problem.
#[derive(Debug)]
pub(super) struct ProcessorTime {
    process: u32,
    variants: [Taken; 2],
    /// What other processes had taken when the problem began.
    others: Duration,
    /// Whether they had taken too much at the last look.
    suspects_others: bool,
    /// When the runs take this long together, it is looked at again.
    next_look: Duration,
}

/// What the runs of a variant took.
#[derive(Debug, Default)]
struct Taken {
    runs: u32,
    elapsed: Duration,
    processors: Duration,
    /// Whether that was too much at the last look.
    suspected: bool,
}

/// The clocks before runs.
pub(super) struct Before {
    began: Instant,
    processors: Option<Duration>,
}

impl ProcessorTime {
    pub(super) fn of(process: u32) -> Self {
        let (others, next_look) = (Duration::ZERO, LONG_ENOUGH);
        Self { process, variants: Default::default(), others, suspects_others: false, next_look }
    }

    /// Begins anew, with another problem.
    pub(super) fn begin(&mut self) {
        *self = Self { others: system::of_others(self.process), ..Self::of(self.process) };
    }

    /// To be called just before runs are asked for.
    pub(super) fn before_runs(&self) -> Before {
        let processors = processor_time_of(self.process);
        Before { began: Instant::now(), processors }
    }

    /// Counts runs whose answer has just come.
    pub(super) fn count(&mut self, variant: Variant, before: &Before) {
        let elapsed = before.began.elapsed();
        let now = processor_time_of(self.process);
        let Some((before, now)) = before.processors.zip(now) else { return };
        self.of_variant(variant).add(elapsed, now.saturating_sub(before));
    }

    fn of_variant(&mut self, variant: Variant) -> &mut Taken {
        let [unfused, fused] = &mut self.variants;
        match variant {
            Variant::Unfused => unfused,
            Variant::Fused => fused,
        }
    }

    /// What is wrong with the runs of a problem, which took this long together, when it is time to
    /// look. Twice in a row, since anything can happen once; and more often than at the threads, since
    /// a process of a quick run has a third of a second of runs.
    pub(super) fn look(&mut self, allowed: usize, runs: Duration) -> Option<RuntimeError> {
        if runs < self.next_look {
            return None;
        }
        self.next_look = runs.mul_f64(NEXT_LOOK);
        let others = if runs < LONG_ENOUGH_FOR_OTHERS {
            Duration::ZERO
        } else {
            system::of_others(self.process).saturating_sub(self.others)
        };
        let of_others = self.look_at_others(others, runs);
        let look = |variant| self.of_variant(variant).look(variant, allowed);
        // Both are looked at, so that what is in a row stays in a row.
        let [unfused, fused] = Variant::ALL.map(look);
        unfused.or(fused).or(of_others)
    }

    fn look_at_others(&mut self, others: Duration, runs: Duration) -> Option<RuntimeError> {
        let is_much = others > runs.mul_f64(SHARE_OF_OTHERS);
        let was_suspected = std::mem::replace(&mut self.suspects_others, is_much);
        (is_much && was_suspected).then_some(RuntimeError::OtherProcesses { others, runs })
    }
}

impl Taken {
    fn add(&mut self, elapsed: Duration, processors: Duration) {
        self.runs += 1;
        self.elapsed += elapsed;
        self.processors += processors;
    }

    #[expect(clippy::cast_precision_loss, reason = "threads")]
    fn look(&mut self, variant: Variant, allowed: usize) -> Option<RuntimeError> {
        let Self { runs, elapsed, processors, .. } = *self;
        if elapsed < LONG_ENOUGH {
            return None;
        }
        // Whether a clock is brought up to date in a run or before it is chance: three times the
        // deviation of a sum of differences between two parts of a tick, or of whole ticks in
        // shorter runs.
        let ticks = elapsed.as_secs_f64() / TICK.as_secs_f64();
        let deviation = TICK.mul_f64((f64::from(runs) / 6.0).min(ticks).sqrt());
        let threads = allowed as f64;
        let more = elapsed.mul_f64(BUSY).max(deviation.mul_f64(3.0 * threads));
        let is_too_much = processors > elapsed.mul_f64(threads) + more;
        let was_suspected = std::mem::replace(&mut self.suspected, is_too_much);
        let error =
            RuntimeError::ProcessorTime { variant: variant.name(), processors, elapsed, allowed };
        (is_too_much && was_suspected).then_some(error)
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::time::Duration;

    use crate::worker::descendants;

    /// What the processes below one have had of the processors, and those that have ended.
    pub(super) fn of_others(process: u32) -> Duration {
        descendants::processor_time_below(process)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::time::Duration;

    /// Not reported by this system.
    pub(super) fn of_others(_process: u32) -> Duration {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    /// Of a process that does not exist, so that it has started none.
    fn without_others() -> ProcessorTime {
        ProcessorTime::of(u32::MAX)
    }

    /// What is said at each of some looks, before which a variant had runs of this time.
    fn looks<const COUNT: usize>(
        allowed: usize,
        runs: [(u64, u64); COUNT],
    ) -> [Option<String>; COUNT] {
        let mut time = without_others();
        let mut all = Duration::ZERO;
        runs.map(|(elapsed, processors)| {
            time.of_variant(Variant::Fused).add(ms(elapsed), ms(processors));
            all += ms(elapsed);
            time.look(allowed, all.max(LONG_ENOUGH)).map(|error| error.to_string())
        })
    }

    #[test]
    fn more_processor_time_than_the_threads_have_is_too_much_at_the_second_look() {
        let [first, second] = looks(1, [(100, 200), (100, 200)]);
        assert_eq!(first, None);
        let expected = "the runs of its fused variant took 400.0ms of processor time in 200.0ms, and it \
                        was given 1 thread: threads that end are counted too";
        assert_eq!(second.as_deref(), Some(expected));
        let [.., last] = looks(4, [(1000, 5000), (1000, 5000)]);
        assert!(
            last.is_some_and(|text| text.ends_with("4 threads: threads that end are counted too"))
        );
    }

    #[test]
    fn threads_that_spin_and_clocks_that_lag_are_no_fault() {
        for (allowed, runs) in [
            (1, [(100, 165), (100, 165)]),
            (16, [(100, 1640), (100, 1640)]),
            // A part of a tick in each run, of each thread, that was not counted before.
            (1, [(6, 10), (6, 10)]),
            (16, [(6, 170), (6, 170)]),
            // Too short to tell, and too much only once.
            (1, [(2, 80), (2, 80)]),
            (1, [(100, 200), (900, 900)]),
        ] {
            assert_eq!(looks(allowed, runs), [None, None], "{allowed} {runs:?}");
        }
    }

    /// What is right in one variant does not excuse the other.
    #[test]
    fn variants_are_judged_by_themselves() {
        let mut time = without_others();
        for (look, is_found) in [(1, false), (2, true)] {
            time.of_variant(Variant::Fused).add(ms(900), ms(900));
            time.of_variant(Variant::Unfused).add(ms(100), ms(200));
            assert_eq!(time.look(1, ms(1000 * look)).is_some(), is_found, "{look}");
            assert!(time.look(1, ms(1100 * look)).is_none(), "it is not time to look again");
        }
    }

    #[test]
    fn other_processes_may_do_little() {
        let mut time = without_others();
        let mut look =
            |others, runs| time.look_at_others(ms(others), ms(runs)).map(|error| error.to_string());
        assert_eq!(look(29, 100), None);
        assert_eq!(look(50, 100), None);
        assert_eq!(look(50, 200), None, "only once");
        assert_eq!(look(150, 400), None);
        let expected = "processes that it has started took 300.0ms of processor time while its runs \
                        took 800.0ms; it must compute in its own process, on the threads that it was \
                        given";
        assert_eq!(look(300, 800).as_deref(), Some(expected));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn threads_that_have_ended_are_counted() {
        let mut time = ProcessorTime::of(std::process::id());
        let before = time.before_runs();
        let works = || {
            let began = crate::cpu::counters_of_this_thread().processor_time.unwrap();
            let now = || crate::cpu::counters_of_this_thread().processor_time.unwrap();
            while now() - began < ms(30) {
                std::hint::spin_loop();
            }
        };
        std::thread::spawn(works).join().unwrap();
        time.count(Variant::Unfused, &before);
        let Taken { runs, elapsed, processors, .. } = time.variants[0];
        assert_eq!(runs, 1);
        assert!(elapsed >= ms(30) && processors >= ms(30), "{elapsed:?} {processors:?}");
    }
}
