//! From samples to a ratio with its interval: `rounds` makes numbers of the pairs of each process,
//! and the interval is made over the processes.

mod rounds;
#[cfg(test)]
mod tests;

use fusion_cost_model::calibration::{Disturbed, FusionRecord};

use super::interval::{Method, over_processes};
use super::samples::{Pair, Samples};
use super::statistics::{Quartiles, mean_and_error, quartiles, t_factor};
use rounds::{by_process, change_within, mean_of, order_sensitivity};

pub use rounds::log_ratios;

/// Processes that an interval over processes needs. With two, Student's t would stretch it to 12.7
/// standard errors, and one has no spread at all.
pub const LEAST_PROCESSES: usize = 3;

/// A ratio changes within processes only where chance would make such a change once in a hundred
/// measurements.
const CHANGES_WITHIN: f64 = 0.99;

/// What is taken as independent in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Each process counts once.
    Processes,
    /// Too few processes: each round counts once, and what differs between processes is not in the
    /// interval.
    Rounds,
}

/// What a measurement says about the time of a variant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VariantTime {
    /// Seconds per run. That of the first variant over that of the second is the ratio.
    pub seconds: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// The quartiles of the samples.
    pub samples: Quartiles,
}

/// What a measurement says in one state of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StateEstimate {
    /// The state.
    pub state: u32,
    /// Processes in it.
    pub processes: usize,
    /// The first variant's time over the second's.
    pub ratio: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
}

/// What a measurement says about the ratio of two variants.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The first variant's time over the second's.
    pub ratio: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// The standard error of the ratio's logarithm.
    pub standard_error: f64,
    /// What the intervals are made over.
    pub unit: Unit,
    /// The correlation of successive processes that the interval of the ratio allows for.
    pub correlation: f64,
    /// Whether it is that of these processes, which resemble those before them more than the processes
    /// of a run do.
    pub changes_slowly: bool,
    /// The states of the machine that the processes met.
    pub states: Vec<u32>,
    /// What they say apart, where the ratio depends on the state.
    pub by_state: Vec<StateEstimate>,
    /// The time of each variant.
    pub times: [VariantTime; 2],
    /// The same in each process with usable pairs, in seconds.
    pub by_process: Vec<[f64; 2]>,
    /// Fresh processes with undisturbed pairs.
    pub processes: usize,
    /// Rounds of all of them.
    pub rounds: usize,
    /// Pairs that were taken.
    pub pairs: usize,
    /// Pairs that nothing disturbed.
    pub pairs_kept: usize,
    /// Whether so few pairs are undisturbed that the numbers are those of all pairs. They must not
    /// be used.
    pub mostly_disturbed: bool,
    /// Ticks of the clock in the shortest sample of a process: at least half of the processes have as
    /// many.
    pub ticks: u64,
    /// What the logarithm of the ratio would have been off by, had the variants been measured one
    /// after the other; `None` when every last round was disturbed.
    pub order_sensitivity: Option<f64>,
    /// Whether that is more than what the back-to-back passes differ by between processes.
    pub is_order_sensitive: bool,
    /// How much the logarithm of the ratio changes from the first round of a process to its last one,
    /// where that is more than what it differs by between processes.
    pub change_within: Option<f64>,
    /// The disturbed pairs by cause.
    pub disturbed: Disturbed,
    /// Samples of either variant around which the clock of a GPU changed.
    pub clock_changes: [usize; 2],
}

impl Estimate {
    /// Half the width of the 95 % interval, in the logarithm.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        0.5 * (self.high / self.low).ln()
    }

    /// What an A/A run of two copies says about the kernel that is the same in both: it is as fast as
    /// itself, and its time is the middle of what both copies took.
    #[must_use]
    pub fn of_one_kernel(&self) -> Self {
        let [first, second] = self.times;
        let middle = |of: fn(&VariantTime) -> f64| (of(&first) * of(&second)).sqrt();
        let time = VariantTime {
            seconds: middle(|time| time.seconds),
            // Each of them is as wide as those of the copies, which is more than that of the middle.
            low: middle(|time| time.low),
            high: middle(|time| time.high),
            samples: Quartiles {
                q1: middle(|time| time.samples.q1),
                median: middle(|time| time.samples.median),
                q3: middle(|time| time.samples.q3),
            },
        };
        Self {
            ratio: 1.0,
            low: 1.0,
            high: 1.0,
            times: [time; 2],
            by_process: self.by_process.iter().map(|[a, b]| [(a * b).sqrt(); 2]).collect(),
            by_state: Vec::new(),
            order_sensitivity: None,
            is_order_sensitive: false,
            change_within: None,
            ..self.clone()
        }
    }
}

/// Estimates the ratio: the logarithm of each undisturbed pair's ratio, a median for each round,
/// the mean of its rounds for each process, and over the processes an [interval](super::Method), and
/// back. The times are what lies half the ratio above and below the middle of the two.
///
/// Processes are what is independent, or nearly: they differ in the placement of code, stack and
/// pages, and lie apart in time. `None` for no processes.
#[must_use]
pub fn estimate(processes: &[&Samples], method: &Method<'_>) -> Option<Estimate> {
    if processes.is_empty() {
        return None;
    }
    let pairs =
        || processes.iter().flat_map(|process| &process.rounds).flat_map(|round| &round.pairs);
    let (taken, undisturbed) = (pairs().count(), pairs().filter(|pair| pair.is_kept()).count());
    // A measurement discarded for its disturbances still shows its numbers.
    let kept = by_process(processes, false);
    let is_too_few = kept.iter().map(|(_, rounds)| rounds.len()).sum::<usize>() < 2;
    let mostly_disturbed = 2 * undisturbed < taken || is_too_few;
    let rounds = if mostly_disturbed { by_process(processes, true) } else { kept };
    let used = |pair: &&Pair| mostly_disturbed || pair.is_kept();

    let state_of = |index: usize| method.states.get(index).copied().unwrap_or_default();
    let mut states: Vec<u32> = rounds.iter().map(|(index, _)| state_of(*index)).collect();
    let (unit, values) = if rounds.len() >= LEAST_PROCESSES {
        (Unit::Processes, rounds.iter().map(|(_, rounds)| mean_of(rounds)).collect())
    } else {
        let values: Vec<[f64; 2]> = rounds.iter().flat_map(|(_, rounds)| rounds).copied().collect();
        (Unit::Rounds, values)
    };
    let series = |of: fn(&[f64; 2]) -> f64| values.iter().map(of).collect::<Vec<f64>>();
    let all: [Vec<f64>; 3] = [
        series(|[ratio, _]| *ratio),
        series(|[ratio, middle]| middle + 0.5 * ratio),
        series(|[ratio, middle]| middle - 0.5 * ratio),
    ];
    // Rounds of one process follow each other within milliseconds, in one state of the machine.
    #[expect(clippy::cast_precision_loss, reason = "one or two")]
    let (of_values, correlation, unseen) = match unit {
        Unit::Processes => (states.clone(), method.correlation, 0.0),
        Unit::Rounds => {
            let between = FusionRecord::BETWEEN_PROCESSES / (rounds.len().max(1) as f64).sqrt();
            (vec![0; values.len()], None, between)
        }
    };
    let method = Method { correlation, ..*method };
    let [ratio, first, second] =
        over_processes(all.each_ref().map(Vec::as_slice), &of_values, &method, unseen);

    let times = [(0, first), (1, second)].map(|(variant, found)| {
        let samples = pairs().filter(used).map(|pair| pair.seconds[variant]);
        VariantTime {
            seconds: found.centre.exp(),
            low: found.low.exp(),
            high: found.high.exp(),
            samples: quartiles(&samples.collect::<Vec<_>>()),
        }
    });
    let by_state = ratio.by_state.iter().map(|&(state, processes, [centre, low, high])| {
        let [ratio, low, high] = [centre, low, high].map(f64::exp);
        StateEstimate { state, processes, ratio, low, high }
    });
    let of_each = |of: &dyn Fn(&Samples) -> Option<f64>| -> Vec<f64> {
        processes.iter().filter_map(|process| of(process)).collect()
    };
    let sensitivities = of_each(&|process| order_sensitivity(process, used));
    let [sensitivity, half_of_it] = mean_and_half(&sensitivities, 0.95);
    let [change, half_of_change] =
        mean_and_half(&of_each(&|process| change_within(process, used)), CHANGES_WITHIN);
    let by_process = rounds.iter().map(|(_, rounds)| {
        let [ratio, middle] = mean_of(rounds);
        [(middle + 0.5 * ratio).exp(), (middle - 0.5 * ratio).exp()]
    });
    let by_process: Vec<[f64; 2]> = by_process.collect();
    states.sort_unstable();
    states.dedup();
    Some(Estimate {
        ratio: ratio.centre.exp(),
        low: ratio.low.exp(),
        high: ratio.high.exp(),
        standard_error: ratio.error,
        unit,
        correlation: ratio.correlation,
        changes_slowly: correlation.is_some_and(|of_run| ratio.correlation > of_run),
        states,
        by_state: by_state.collect(),
        times,
        by_process,
        processes: rounds.len(),
        rounds: processes.iter().map(|process| process.rounds.len()).sum(),
        pairs: taken,
        pairs_kept: undisturbed,
        mostly_disturbed,
        ticks: ticks_of_most(processes),
        order_sensitivity: (!sensitivities.is_empty()).then_some(sensitivity),
        is_order_sensitive: sensitivity.abs() > half_of_it,
        change_within: (change.abs() > half_of_change).then_some(change),
        disturbed: count_causes(processes),
        clock_changes: [0, 1].map(|one| pairs().filter(|pair| pair.clock_changed[one]).count()),
    })
}

/// The mean of some values, and half the width of its interval.
fn mean_and_half(values: &[f64], level: f64) -> [f64; 2] {
    let (mean, error) = mean_and_error(values);
    [mean, t_factor(values.len().saturating_sub(1), level) * error]
}

/// How many pairs each cause disturbed. A cause that some process could not observe has no number.
fn count_causes(processes: &[&Samples]) -> Disturbed {
    let mut disturbed = Disturbed::default();
    for &cause in &processes[0].observable {
        if processes.iter().all(|process| process.observable.contains(&cause)) {
            *cause.count_of(&mut disturbed) = Some(0);
        }
    }
    let pairs = processes.iter().flat_map(|process| &process.rounds).flat_map(|round| &round.pairs);
    for cause in pairs.flat_map(|pair| &pair.causes) {
        if let Some(count) = cause.count_of(&mut disturbed) {
            *count += 1;
        }
    }
    disturbed
}

/// The ticks of the shortest sample that at least half of the processes reach. A single process that
/// found out how many runs make a sample while something held it up is too short by chance, and a
/// twentieth of the samples.
fn ticks_of_most(processes: &[&Samples]) -> u64 {
    let mut ticks: Vec<u64> = processes.iter().map(|process| process.ticks).collect();
    ticks.sort_unstable();
    ticks.get(ticks.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}
