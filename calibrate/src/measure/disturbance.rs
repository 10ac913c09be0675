//! What can disturb a sample, and how it is noticed.

use std::time::Duration;

use fused_kernels::{Sensors, ThreadCounters};
use fusion_cost_model::Clock;
use fusion_cost_model::calibration::Disturbed;
use serde::{Deserialize, Serialize};

/// Something that makes a sample longer than the work in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The system took the processor from a thread so often that switching made one sample longer
    /// than the other by more than `MOST_SWITCHING`.
    InvoluntarySwitch,
    /// A thread moved to another processor.
    Migration,
    /// A thread was ready and waited for a processor, in one sample longer than in the other by more
    /// than `MOST_RUN_DELAY`.
    RunDelay,
    /// The measuring thread was off its processor, in one sample longer than in the other by more
    /// than `MOST_OFF_PROCESSOR`.
    OffProcessor,
    /// Memory was touched for the first time, or moved by the system.
    PageFault,
    /// The hypervisor ran something else during the round.
    Steal,
    /// Something on the machine waited for a processor during the round.
    CpuPressure,
    /// The clock of a GPU changed by more than `MOST_CLOCK_CHANGE` between two readings around a sample
    /// of the pair.
    ClockChange,
}

/// What a thread loses each time the processor is taken from it for a moment: the two switches,
/// and refilling the nearest caches. A sample of half a millisecond does not survive one, but one
/// of 20 ms does, and on a busy system no sample of 20 ms would be without.
const SWITCH_COST: Duration = Duration::from_micros(50);

/// How far apart the shares may be that go into involuntary switches in the two samples of a pair.
const MOST_SWITCHING: f64 = 0.01;

/// The same of the shares that a thread waits for a processor.
const MOST_RUN_DELAY: f64 = 0.01;

/// The same of the shares that the measuring thread is off its processor. More than
/// `MOST_RUN_DELAY`, since interrupts are counted here and are part of every machine.
const MOST_OFF_PROCESSOR: f64 = 0.02;

/// Share of a sample that may be lost even if the other sample of the pair loses as much. Small
/// services take half a percent of a processor on most machines. A sample of a millisecond meets
/// one seldom; in one of 100 ms they add up, alike in both samples, and their ratio is right.
const MOST_LOST: f64 = 0.03;

/// How much the clock of a GPU may change around a sample and count as steady: it has steps of 0.8 %
/// on NVIDIA, and wanders by one or two of them.
const MOST_CLOCK_CHANGE: f64 = 0.02;

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 8] = [
        Self::InvoluntarySwitch,
        Self::Migration,
        Self::RunDelay,
        Self::OffProcessor,
        Self::PageFault,
        Self::Steal,
        Self::CpuPressure,
        Self::ClockChange,
    ];

    /// Whether a pair that it disturbed is left out. A change of a GPU's clock comes from outside or from
    /// the kernels themselves, by the power that they take. Without the pairs in which a variant slows
    /// itself down, it would seem faster than it is.
    #[must_use]
    pub const fn leaves_out(self) -> bool {
        !matches!(self, Self::ClockChange)
    }

    /// Whether it can disturb a time by a clock.
    #[must_use]
    pub fn can_disturb(self, clock: Clock) -> bool {
        Disturbed::causes_of(clock).contains(&self.name())
    }

    /// The key of this cause in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvoluntarySwitch => "involuntary_switch",
            Self::Migration => "migration",
            Self::RunDelay => "run_delay",
            Self::OffProcessor => "off_processor",
            Self::PageFault => "page_fault",
            Self::Steal => "steal",
            Self::CpuPressure => "cpu_pressure",
            Self::ClockChange => "clock_change",
        }
    }

    /// The number of this cause in a count by cause.
    pub fn count_of(self, disturbed: &mut Disturbed) -> &mut Option<u32> {
        match self {
            Self::InvoluntarySwitch => &mut disturbed.involuntary_switch,
            Self::Migration => &mut disturbed.migration,
            Self::RunDelay => &mut disturbed.run_delay,
            Self::OffProcessor => &mut disturbed.off_processor,
            Self::PageFault => &mut disturbed.page_fault,
            Self::Steal => &mut disturbed.steal,
            Self::CpuPressure => &mut disturbed.cpu_pressure,
            Self::ClockChange => &mut disturbed.clock_change,
        }
    }

    /// The pairs of two measurements together, by cause.
    #[must_use]
    pub fn sum(mut one: Disturbed, mut other: Disturbed) -> Disturbed {
        for cause in Self::ALL {
            if let Some(count) = *cause.count_of(&mut other) {
                *cause.count_of(&mut one).get_or_insert(0) += count;
            }
        }
        one
    }
}

/// The causes that the threads' counters would show.
#[must_use]
pub(super) fn observable(counters: &[ThreadCounters]) -> Vec<Cause> {
    let all = |told: fn(&ThreadCounters) -> bool| !counters.is_empty() && counters.iter().all(told);
    let first = |told: fn(&ThreadCounters) -> bool| counters.first().is_some_and(told);
    [
        (Cause::InvoluntarySwitch, all(|thread| thread.involuntary_switches.is_some())),
        (Cause::Migration, all(|thread| thread.processor.is_some())),
        (Cause::RunDelay, all(|thread| thread.run_delay.is_some())),
        (Cause::OffProcessor, first(|thread| thread.processor_time.is_some())),
        (Cause::PageFault, all(|thread| thread.page_faults.is_some())),
    ]
    .into_iter()
    .filter_map(|(cause, told)| told.then_some(cause))
    .collect()
}

/// What the threads lost in a sample. Shares are of the thread that lost most.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Lost {
    /// Share of the time that went into involuntary switches.
    switching: f64,
    /// Share of the time that a thread waited for a processor.
    run_delay: f64,
    /// Share of the time that the measuring thread was off its processor.
    off_processor: f64,
    /// Whether a thread moved to another processor.
    migrated: bool,
    /// Whether memory was touched for the first time, or moved by the system.
    page_fault: bool,
}

impl Lost {
    /// What the threads lost between two readings of their counters that are `elapsed` apart.
    #[must_use]
    pub(super) fn between(
        before: &[ThreadCounters],
        after: &[ThreadCounters],
        elapsed: Duration,
    ) -> Self {
        let elapsed = elapsed.as_secs_f64();
        let mut lost = Self::default();
        for (index, (before, after)) in before.iter().zip(after).enumerate() {
            if let (Some(before), Some(after)) =
                (before.involuntary_switches, after.involuntary_switches)
            {
                let switches = u32::try_from(after.saturating_sub(before)).unwrap_or(u32::MAX);
                let switching = SWITCH_COST.saturating_mul(switches).as_secs_f64() / elapsed;
                lost.switching = lost.switching.max(switching);
            }
            if let (Some(before), Some(after)) = (before.run_delay, after.run_delay) {
                let waited = after.saturating_sub(before).as_secs_f64() / elapsed;
                lost.run_delay = lost.run_delay.max(waited);
            }
            // Only the measuring thread is busy all the time: the others may sleep when their share
            // of a long kernel is done.
            if index == 0
                && let (Some(before), Some(after)) = (before.processor_time, after.processor_time)
            {
                lost.off_processor = 1.0 - after.saturating_sub(before).as_secs_f64() / elapsed;
            }
            lost.migrated |= before.processor.is_some() && before.processor != after.processor;
            lost.page_fault |=
                before.page_faults.is_some() && before.page_faults < after.page_faults;
        }
        lost
    }

    /// What disturbed a pair of samples that lost this.
    #[must_use]
    pub(super) fn causes([one, other]: [Self; 2]) -> Vec<Cause> {
        let differs = |share: fn(&Self) -> f64, most: f64| {
            let (one, other) = (share(&one), share(&other));
            (one - other).abs() > most || one.max(other) > MOST_LOST
        };
        [
            (Cause::InvoluntarySwitch, differs(|lost| lost.switching, MOST_SWITCHING)),
            (Cause::Migration, one.migrated || other.migrated),
            (Cause::RunDelay, differs(|lost| lost.run_delay, MOST_RUN_DELAY)),
            (Cause::OffProcessor, differs(|lost| lost.off_processor, MOST_OFF_PROCESSOR)),
            (Cause::PageFault, one.page_fault || other.page_fault),
        ]
        .into_iter()
        .filter_map(|(cause, disturbed)| disturbed.then_some(cause))
        .collect()
    }
}

/// Whether the clock of a GPU changed between these readings. A clock that is not reported counts as
/// unchanged.
#[must_use]
pub(super) fn clock_changed(readings: &[Sensors]) -> bool {
    let clocks = || readings.iter().filter_map(|sensors| sensors.clock_mhz);
    let ends = clocks().min().zip(clocks().max());
    ends.is_some_and(|(low, high)| f64::from(high) > f64::from(low) * (1.0 + MOST_CLOCK_CHANGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn quiet() -> ThreadCounters {
        ThreadCounters {
            involuntary_switches: Some(3),
            page_faults: Some(100),
            processor: Some(1),
            processor_time: Some(MS * 10),
            run_delay: Some(MS),
        }
    }

    /// What disturbs a pair of which one sample lost this, and the other nothing.
    fn alone(lost: Lost) -> Vec<Cause> {
        let (causes, mirrored) =
            (Lost::causes([lost, Lost::default()]), Lost::causes([Lost::default(), lost]));
        assert_eq!(causes, mirrored);
        causes
    }

    /// The second of two threads after a millisecond, in which `change` happened.
    fn after(change: impl Fn(&mut ThreadCounters)) -> Vec<Cause> {
        let mut worker = quiet();
        change(&mut worker);
        let first = ThreadCounters { processor_time: Some(MS * 11), ..quiet() };
        alone(Lost::between(&[quiet(), quiet()], &[first, worker], MS))
    }

    #[test]
    fn each_cause_is_seen_on_any_thread_and_none_without_one() {
        assert_eq!(after(|_| {}), []);
        assert_eq!(after(|t| t.involuntary_switches = Some(4)), [Cause::InvoluntarySwitch]);
        assert_eq!(after(|t| t.processor = Some(0)), [Cause::Migration]);
        assert_eq!(after(|t| t.page_faults = Some(101)), [Cause::PageFault]);
        assert_eq!(after(|t| t.run_delay = Some(MS + MS / 50)), [Cause::RunDelay]);
        assert_eq!(after(|t| t.run_delay = Some(MS + MS / 200)), []);
    }

    #[test]
    fn long_samples_survive_a_switch() {
        let after = |switches| ThreadCounters { involuntary_switches: Some(switches), ..quiet() };
        let causes = |switches, time| {
            let busy = Some(MS * 10 + time);
            let after = ThreadCounters { processor_time: busy, ..after(switches) };
            alone(Lost::between(&[quiet()], &[after], time))
        };
        assert_eq!(causes(4, MS * 4), [Cause::InvoluntarySwitch]);
        assert_eq!(causes(4, MS * 6), []);
        assert_eq!(causes(7, MS * 20), []);
        assert_eq!(causes(8, MS * 20), [Cause::InvoluntarySwitch]);
    }

    #[test]
    fn only_the_measuring_thread_must_be_busy() {
        let first = |busy| ThreadCounters { processor_time: Some(MS * 10 + busy), ..quiet() };
        let causes = |busy| alone(Lost::between(&[quiet()], &[first(busy)], MS));
        assert_eq!(causes(MS), []);
        assert_eq!(causes(MS.mul_f64(0.985)), []);
        assert_eq!(causes(MS.mul_f64(0.97)), [Cause::OffProcessor]);
    }

    #[test]
    fn what_both_samples_lose_alike_disturbs_nothing_unless_it_is_much() {
        let waits = |run_delay| Lost { run_delay, ..Lost::default() };
        let causes = |one, other| Lost::causes([waits(one), waits(other)]);
        assert_eq!(causes(0.015, 0.012), []);
        assert_eq!(causes(0.025, 0.014), [Cause::RunDelay]);
        assert_eq!(causes(0.032, 0.031), [Cause::RunDelay]);
        let off = |off_processor| Lost { off_processor, ..Lost::default() };
        assert_eq!(Lost::causes([off(0.028), off(0.009)]), []);
        assert_eq!(Lost::causes([off(0.029), off(0.008)]), [Cause::OffProcessor]);
        assert_eq!(Lost::causes([off(0.04), off(0.04)]), [Cause::OffProcessor]);
    }

    #[test]
    fn the_thread_that_lost_most_counts() {
        let slow = ThreadCounters { run_delay: Some(MS * 2), ..quiet() };
        let between = |after: [ThreadCounters; 2]| Lost::between(&[quiet(); 2], &after, MS * 10);
        assert_eq!(between([slow, quiet()]).run_delay, between([quiet(), slow]).run_delay);
        assert!((between([slow, slow]).run_delay - 0.1).abs() < 1e-12);
    }

    #[test]
    fn what_the_system_does_not_tell_disturbs_nothing() {
        let nothing = ThreadCounters::default();
        assert_eq!(alone(Lost::between(&[nothing], &[nothing], MS)), []);
        assert_eq!(observable(&[nothing]), []);
        assert_eq!(observable(&[]), []);
        assert_eq!(observable(&[quiet(), quiet()]).len(), 5);
        let partly = ThreadCounters { run_delay: None, ..quiet() };
        assert!(!observable(&[quiet(), partly]).contains(&Cause::RunDelay));
    }

    #[test]
    fn only_what_the_kernels_cannot_cause_leaves_pairs_out() {
        let kept: Vec<Cause> = Cause::ALL.into_iter().filter(|cause| !cause.leaves_out()).collect();
        assert_eq!(kept, [Cause::ClockChange]);
    }

    #[test]
    fn a_clock_may_move_by_two_percent_around_a_sample() {
        let changed = |clocks: &[Option<u32>]| {
            let reading = |&clock_mhz| Sensors { clock_mhz, ..Sensors::default() };
            clock_changed(&clocks.iter().map(reading).collect::<Vec<_>>())
        };
        assert!(!changed(&[Some(1000), Some(1020), Some(1010), Some(1000)]));
        assert!(changed(&[Some(1000), Some(1000), Some(1021), Some(1010)]));
        assert!(changed(&[Some(1021), None, Some(1000), None]));
        assert!(!changed(&[None, None]) && !changed(&[]));
    }

    #[test]
    fn every_cause_belongs_to_a_clock() {
        for cause in Cause::ALL {
            assert!(Clock::ALL.iter().any(|clock| cause.can_disturb(*clock)));
        }
        assert!(!Cause::ClockChange.can_disturb(Clock::Host));
    }

    #[test]
    fn every_cause_has_a_number_of_its_own() {
        let mut disturbed = Disturbed::default();
        for (cause, count) in Cause::ALL.into_iter().zip(1..) {
            *cause.count_of(&mut disturbed) = Some(count);
        }
        let mut counts: Vec<_> = disturbed.causes().iter().filter_map(|(_, n)| *n).collect();
        counts.sort_unstable();
        assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8]);
        // The names in the journal are those in the file.
        for (cause, (name, _)) in Cause::ALL.into_iter().zip(disturbed.causes()) {
            assert_eq!(serde_json::to_string(&cause).unwrap(), format!("\"{name}\""));
            assert_eq!(cause.name(), name);
        }
    }
}
