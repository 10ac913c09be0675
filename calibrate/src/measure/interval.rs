//! Intervals over processes that are neither independent nor all alike.

use fusion_cost_model::calibration::FusionRecord;

use super::statistics::{mean, mean_and_error, normal_quantile, t_factor};

/// States differ only where chance would make such a difference once in a hundred measurements.
const STATES_DIFFER: f64 = 0.99;

/// What an interval is made with, in addition to the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Method<'a> {
    /// The share of such intervals that contain the truth: above 0.95 where a result is looked at
    /// more than once, so that it is 0.95 after all looks.
    pub level: f64,
    /// The correlation of successive processes in a run; a series whose own is higher beyond chance has
    /// its own. `None` of values that are not processes.
    pub correlation: Option<f64>,
    /// The state of the machine in each process, in order; of processes beyond its end it is the same
    /// unknown one.
    pub states: &'a [u32],
}

/// A value with its interval, in the logarithm.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) centre: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The standard error of the centre, with the correlation and without the resolution.
    pub(super) error: f64,
    /// The correlation of successive values that it allows for.
    pub(super) correlation: f64,
    /// By state, where it depends on that: the state, how many values it has, and the centre with
    /// its ends.
    pub(super) by_state: Vec<(u32, usize, [f64; 3])>,
}

/// Intervals of several series over the same processes.
///
/// Where a series depends on the state of the machine, its interval holds the intervals of all
/// states, and each state counts once in the centre: how long the machine stayed in one while it was
/// measured says nothing of how long it stays there for a user. The centres of all series are made
/// with the same weights, so that what is true of their values is true of them.
///
/// `unseen` is the standard error of what the values do not show, in the logarithm: rounds of one
/// process do not show how others differ from it.
pub(super) fn over_processes<const N: usize>(
    series: [&[f64]; N],
    states: &[u32],
    method: &Method<'_>,
    unseen: f64,
) -> [Found; N] {
    let mut groups: Vec<(u32, Vec<usize>)> = Vec::new();
    for (index, &state) in states.iter().enumerate() {
        match groups.iter_mut().find(|(known, _)| *known == state) {
            Some((_, members)) => members.push(index),
            None => groups.push((state, vec![index])),
        }
    }
    groups.sort_unstable();
    let layouts = series.map(|values| OneWay::of(values, &groups, method.correlation));
    if !layouts.iter().any(OneWay::differs) {
        return series.map(|values| of_one_state(values, method, unseen));
    }
    layouts.map(|layout| layout.found(&groups, method.level))
}

/// The interval of values that are all of one kind.
fn of_one_state(values: &[f64], method: &Method<'_>, unseen: f64) -> Found {
    let (centre, error) = mean_and_error(values);
    let deviations: Vec<f64> = values.iter().map(|value| value - centre).collect();
    let correlation = at_least(method.correlation, &deviations);
    let error = error * inflation(values.len(), correlation);
    let half = half_width(values.len(), values.len().saturating_sub(1), method.level, error)
        .hypot(normal_quantile(0.5 + 0.5 * method.level) * unseen);
    let error = error.hypot(unseen);
    let (low, high) = (centre - half, centre + half);
    Found { centre, low, high, error, correlation, by_state: Vec::new() }
}

/// Half the width of an interval over some values, whose spread has these degrees of freedom.
fn half_width(values: usize, degrees: usize, level: f64, error: f64) -> f64 {
    (t_factor(degrees, level) * error).hypot(FusionRecord::resolution(values))
}

/// Values in groups that may have centres of their own and have one spread.
struct OneWay {
    /// The centre of each group, and its standard error.
    groups: Vec<[f64; 2]>,
    degrees: usize,
    correlation: f64,
}

impl OneWay {
    #[expect(clippy::cast_precision_loss, reason = "a handful of values")]
    fn of(values: &[f64], groups: &[(u32, Vec<usize>)], correlation: Option<f64>) -> Self {
        let members = |indices: &[usize]| indices.iter().map(|&at| values[at]).collect::<Vec<_>>();
        let centres: Vec<f64> = groups.iter().map(|(_, all)| mean(&members(all))).collect();
        let mut deviations = vec![0.0; values.len()];
        for ((_, indices), centre) in groups.iter().zip(&centres) {
            indices.iter().for_each(|&at| deviations[at] = values[at] - centre);
        }
        let correlation = at_least(correlation, &deviations);
        let squares: f64 = deviations.iter().map(|off| off * off).sum();
        let degrees = values.len().saturating_sub(groups.len());
        let deviation = (squares / degrees as f64).sqrt();
        let error =
            |count: usize| deviation / (count as f64).sqrt() * inflation(count.max(2), correlation);
        let groups =
            groups.iter().zip(centres).map(|((_, all), centre)| [centre, error(all.len())]);
        Self { groups: groups.collect(), degrees, correlation }
    }

    /// Half the width of an interval over some of the values.
    fn half_width(&self, values: usize, level: f64, error: f64) -> f64 {
        half_width(values, self.degrees, level, error)
    }

    /// Whether two groups differ by more than chance, and by more than matters.
    fn differs(&self) -> bool {
        // With as many states as values nothing says how far the values of one state lie apart.
        if self.degrees == 0 {
            return false;
        }
        let factor = t_factor(self.degrees, STATES_DIFFER);
        let differ = |[one, error]: &[f64; 2], [other, its_error]: &[f64; 2]| {
            (one - other).abs() > (factor * error.hypot(*its_error)).max(FusionRecord::RESOLUTION)
        };
        let pairs = self.groups.iter().enumerate();
        pairs.into_iter().any(|(at, one)| self.groups[..at].iter().any(|other| differ(one, other)))
    }

    #[expect(clippy::cast_precision_loss, reason = "a handful of states")]
    fn found(&self, groups: &[(u32, Vec<usize>)], level: f64) -> Found {
        let correlation = self.correlation;
        let count = self.groups.len() as f64;
        let centre = self.groups.iter().map(|[centre, _]| centre).sum::<f64>() / count;
        let error = self.groups.iter().map(|[_, error]| error * error).sum::<f64>().sqrt() / count;
        if !self.differs() {
            let half = self.half_width(groups.iter().map(|(_, all)| all.len()).sum(), level, error);
            let (low, high) = (centre - half, centre + half);
            return Found { centre, low, high, error, correlation, by_state: Vec::new() };
        }
        let of_state = |((state, members), [centre, error]): (&(u32, Vec<usize>), &[f64; 2])| {
            let half = self.half_width(members.len(), level, *error);
            (*state, members.len(), [*centre, centre - half, centre + half])
        };
        let by_state: Vec<_> = groups.iter().zip(&self.groups).map(of_state).collect();
        let low = by_state.iter().map(|(.., [_, low, _])| *low).fold(f64::INFINITY, f64::min);
        let high = by_state.iter().map(|(.., [.., high])| *high).fold(f64::NEG_INFINITY, f64::max);
        Found { centre, low, high, error, correlation, by_state }
    }
}

/// By what factor the standard error of a mean grows when each value is correlated with the one
/// before it, as in an autoregressive process of the first order: the variance of the mean, and what
/// the variance of the values underestimates (Law, Simulation Modeling and Analysis, section 4.4).
#[expect(clippy::cast_precision_loss, reason = "a handful of values")]
fn inflation(count: usize, correlation: f64) -> f64 {
    let whole = count as f64;
    let lags = (1..count).map(|lag| (1.0 - lag as f64 / whole) * correlation.powf(lag as f64));
    let sum: f64 = lags.sum();
    let shrunk = 1.0 - 2.0 * sum / (whole - 1.0);
    ((1.0 + 2.0 * sum) / shrunk.max(f64::EPSILON)).sqrt()
}

/// The correlation of successive processes that is expected before anything is measured: about what
/// standard runs had on a virtual machine.
const PRIOR_CORRELATION: f64 = 0.2;

/// How many pairs of successive values that expectation weighs as much as.
const PRIOR_WEIGHT: f64 = 40.0;

/// The highest correlation that is allowed for. Beyond it the values of ten processes say nearly as
/// little as one.
const MOST_CORRELATION: f64 = 0.8;

/// The correlation of successive processes over all records of a run: one record has too few
/// processes to show it.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a handful of values")]
pub fn pooled_correlation(records: &[Vec<f64>]) -> f64 {
    let (mut sum, mut weight) = (PRIOR_WEIGHT * PRIOR_CORRELATION, PRIOR_WEIGHT);
    for values in records {
        let count = values.len() as f64;
        let centre = mean(values);
        let deviations: Vec<f64> = values.iter().map(|value| value - centre).collect();
        let Some(correlation) = successive(&deviations) else { continue };
        sum += (count - 1.0) * correlation.clamp(-1.0, 1.0);
        weight += count - 1.0;
    }
    (sum / weight).clamp(0.0, MOST_CORRELATION)
}

/// The correlation of successive values, from how far they lie from their centre; `None` of fewer than
/// four, and of those that are all alike.
fn successive(deviations: &[f64]) -> Option<f64> {
    let squares: f64 = deviations.iter().map(|off| off * off).sum();
    if deviations.len() < 4 || squares <= 0.0 {
        return None;
    }
    let products: f64 = deviations.windows(2).map(|two| two[0] * two[1]).sum();
    // The centre is that of the same values, which pulls the estimate down by this much (Marriott
    // and Pope, Biometrika 1954).
    Some((products / squares + 1.0 / count_of(deviations)) * unbiased(deviations))
}

/// What makes up for the centre in a correlation of successive values.
fn unbiased(deviations: &[f64]) -> f64 {
    1.0 / (1.0 - 4.0 / (count_of(deviations) + 1.0))
}

#[expect(clippy::cast_precision_loss, reason = "a handful of values")]
fn count_of(values: &[f64]) -> f64 {
    values.len() as f64
}

/// One series in twenty is taken for more correlated than it is.
const MORE_CORRELATED: f64 = 0.95;

/// The correlation that an interval allows for: that of the run, or the series' own where it is higher
/// by more than chance. A state of the machine that no look shows may change one problem alone.
fn at_least(of_run: Option<f64>, deviations: &[f64]) -> f64 {
    let Some(of_run) = of_run else { return 0.0 };
    let Some(own) = successive(deviations) else { return of_run };
    // The error of such a correlation (Bartlett, Journal of the Royal Statistical Society 1946).
    let error = ((1.0 - of_run * of_run) / count_of(deviations)).sqrt() * unbiased(deviations);
    if own > of_run + normal_quantile(MORE_CORRELATED) * error {
        own.min(MOST_CORRELATION)
    } else {
        of_run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Method<'_> = Method { level: 0.95, correlation: Some(0.0), states: &[] };

    fn over(values: &[f64], states: &[u32]) -> Found {
        let [found] = over_processes([values], states, &PLAIN, 0.0);
        found
    }

    #[test]
    fn one_state_has_the_interval_of_students_t_and_the_resolution() {
        let found = over(&[0.1, 0.2, 0.3], &[1; 3]);
        // Standard error 0.1 / sqrt(3); t with two degrees: 4.302653.
        let half = (4.302_652_729_7 * 0.1 / 3.0_f64.sqrt()).hypot(1.01_f64.ln());
        assert!((found.centre - 0.2).abs() < 1e-12);
        assert!((found.high - 0.2 - half).abs() < 1e-9 && (0.2 - found.low - half).abs() < 1e-9);
        assert!(found.by_state.is_empty());
        let same = over(&[0.1; 5], &[1; 5]);
        assert!(
            (same.high - 0.1 - FusionRecord::RESOLUTION).abs() < 1e-12,
            "never narrower than that"
        );
        assert!((FusionRecord::RESOLUTION - 1.01_f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn many_processes_resolve_more() {
        let half = |count: usize| {
            let found = over(&vec![0.1; count], &vec![1; count]);
            found.high - 0.1
        };
        assert!((half(28) - FusionRecord::RESOLUTION).abs() < 1e-12);
        // 0.928^40 is 5 %.
        assert!((half(40) / FusionRecord::RESOLUTION - 0.722).abs() < 1e-3, "{}", half(40));
    }

    #[test]
    fn states_that_differ_count_once_each_and_both_lie_in_the_interval() {
        let values = [0.101, 0.099, 0.100, 0.300, 0.301, 0.102, 0.098];
        let states = [1, 1, 1, 2, 2, 1, 1];
        let found = over(&values, &states);
        assert!((found.centre - 0.200_25).abs() < 1e-9, "{found:?}");
        assert!(found.low < 0.09 && found.high > 0.31);
        let counts: Vec<_> = found.by_state.iter().map(|(state, n, _)| (*state, *n)).collect();
        assert_eq!(counts, [(1, 5), (2, 2)]);
        // One process suffices to show another state.
        let one = over(&values[..4], &states[..4]);
        assert!(one.high > 0.3 && one.by_state.len() == 2);
    }

    #[test]
    fn what_the_values_do_not_show_makes_the_interval_wider() {
        let [found] = over_processes([&[0.1; 4]], &[0; 4], &PLAIN, 0.04);
        let half = (1.959_964 * 0.04_f64).hypot(FusionRecord::RESOLUTION);
        assert!((found.high - 0.1 - half).abs() < 1e-6, "{found:?}");
        assert!((found.error - 0.04).abs() < 1e-12);
    }

    #[test]
    fn states_that_do_not_differ_are_one() {
        let values = [0.10, 0.12, 0.11, 0.13, 0.09, 0.11];
        assert_eq!(over(&values, &[1, 2, 1, 2, 1, 2]), over(&values, &[1; 6]));
        // Nor do differences below the resolution, however small the spread.
        let close = [0.1, 0.1, 0.1, 0.105, 0.105, 0.105];
        assert!(over(&close, &[1, 1, 1, 2, 2, 2]).by_state.is_empty());
    }

    /// On a busy machine every process may meet a state of its own.
    #[test]
    fn as_many_states_as_values_are_one() {
        for states in [&[1, 2, 3][..], &[1, 2]] {
            let values = &[0.1, 0.5, 0.9][..states.len()];
            let found = over(values, states);
            assert_eq!(found, over(values, &vec![1; states.len()]));
            assert!(found.low.is_finite() && found.high.is_finite() && found.error.is_finite());
        }
    }

    #[test]
    fn what_is_true_of_the_values_is_true_of_the_centres() {
        let unfused = [1.0, 1.1, 1.0, 2.0, 2.1];
        let fused = [0.5, 0.6, 0.5, 0.6, 0.5];
        let ratio: Vec<f64> = unfused.iter().zip(fused).map(|(a, b)| a - b).collect();
        for states in [[1; 5], [1, 1, 1, 2, 2]] {
            let [u, f, r] = over_processes([&unfused, &fused, &ratio], &states, &PLAIN, 0.0);
            assert!((u.centre - f.centre - r.centre).abs() < 1e-12);
        }
    }

    #[test]
    fn correlated_values_have_wider_intervals() {
        assert!((inflation(10, 0.0) - 1.0).abs() < 1e-12);
        // The limit for many values: (1 + r) / (1 - r).
        assert!((inflation(100_000, 0.5).powi(2) - 3.0).abs() < 1e-3);
        assert!(inflation(10, 0.6) > inflation(10, 0.3));
    }

    /// Of series without any, as many are taken for correlated as was said, or fewer.
    #[test]
    fn few_series_have_a_correlation_of_their_own_by_chance() {
        use rand::SeedableRng;
        use rand_distr::{Distribution, StandardNormal};
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(2);
        for (count, of_run) in [(10, 0.0), (20, 0.0), (40, 0.0), (40, 0.2)] {
            let taken = (0..2000).filter(|_| {
                let values: Vec<f64> =
                    (0..count).map(|_| StandardNormal.sample(&mut random)).collect();
                let centre = mean(&values);
                let deviations: Vec<f64> = values.iter().map(|value| value - centre).collect();
                at_least(Some(of_run), &deviations) > of_run
            });
            assert!(taken.count() <= 120, "{count} values, {of_run}");
        }
        assert_eq!(at_least(Some(0.2), &[0.0; 9]), 0.2);
        assert_eq!(at_least(Some(0.2), &[-1.0, 0.0, 1.0]), 0.2);
        let step = [-1.0, -1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
        assert_eq!(at_least(Some(0.2), &step), MOST_CORRELATION);
        assert_eq!(at_least(None, &step), 0.0, "these are not processes");
    }

    #[test]
    fn the_correlation_is_found_over_many_records_and_expected_without_any() {
        use rand::SeedableRng;
        use rand_distr::{Distribution, StandardNormal};
        assert!((pooled_correlation(&[]) - PRIOR_CORRELATION).abs() < 1e-12);
        assert!((pooled_correlation(&[vec![1.0; 10]]) - PRIOR_CORRELATION).abs() < 1e-12);
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        for truth in [0.0, 0.3, 0.6] {
            let records: Vec<Vec<f64>> = (0..400)
                .map(|_| {
                    let mut last: f64 = StandardNormal.sample(&mut random);
                    let next = |_| {
                        let fresh: f64 = StandardNormal.sample(&mut random);
                        last = truth * last + (1.0_f64 - truth * truth).sqrt() * fresh;
                        last
                    };
                    (0..10).map(next).collect()
                })
                .collect();
            let found = pooled_correlation(&records);
            assert!((found - truth).abs() < 0.06, "{truth}: {found}");
        }
    }
}
