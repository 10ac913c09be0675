//! Logarithmic axes.

use crate::digits::rounded;

/// The ticks of an axis of ratios, from the finest.
const RATIO_TICKS: [&[f64]; 6] = [
    &[0.9, 0.92, 0.94, 0.96, 0.98, 1.0, 1.02, 1.04, 1.06, 1.08, 1.1],
    &[0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4],
    &[0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 5.0],
    &[0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0],
    &[0.125, 0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0],
    &[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0],
];

/// Ticks are at least this share of the axis apart, so that their labels do not touch on a phone.
const LEAST_APART: f64 = 0.075;

/// An axis of ratios holds at least this much to both sides of 1.
const LEAST_RATIO: f64 = 1.06;

/// And at most this much: what lies beyond is drawn at its end.
const MOST_RATIO: f64 = 64.0;

/// Room beyond the outermost values, as a share of the axis.
const ROOM: f64 = 0.03;

/// A logarithmic axis.
#[derive(Debug, Clone, PartialEq)]
pub struct LogAxis {
    /// The logarithms of its ends.
    ends: [f64; 2],
    ticks: Vec<f64>,
}

impl LogAxis {
    /// An axis of ratios that holds 1 and these.
    #[must_use]
    pub fn of_ratios(values: impl IntoIterator<Item = f64>) -> Self {
        let ends = extent(values, [1.0 / LEAST_RATIO, LEAST_RATIO]);
        let ends = ends.map(|end| end.clamp(1.0 / MOST_RATIO, MOST_RATIO).ln());
        let mut axis = Self { ends: with_room(ends), ticks: Vec::new() };
        let fits = |ticks: &Vec<f64>| {
            let apart = |pair: &[f64]| axis.at(pair[1]) - axis.at(pair[0]) >= LEAST_APART;
            ticks.len() > 2 && ticks.windows(2).all(apart)
        };
        let within = RATIO_TICKS.map(|ticks| axis.within(ticks.iter().copied()));
        let [.., coarsest] = &within;
        axis.ticks = within.iter().find(|ticks| fits(ticks)).unwrap_or(coarsest).clone();
        axis
    }

    /// An axis of rates that holds these, with a tick at each power of ten.
    #[must_use]
    pub fn of_rates(values: impl IntoIterator<Item = f64>) -> Self {
        let is_rate = |value: &f64| value.is_finite() && *value > 0.0;
        let values: Vec<f64> = values.into_iter().filter(is_rate).collect();
        let first = values.first().copied().unwrap_or(1.0);
        let ends = extent(values, [first / 1.5, first * 1.5]).map(f64::ln);
        let mut axis = Self { ends: with_room(ends), ticks: Vec::new() };
        let steps: &[f64] =
            if ends[1] - ends[0] > 100_f64.ln() { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let powers = (-12..=12).map(|power| 10_f64.powi(power));
        axis.ticks =
            axis.within(powers.flat_map(|power| steps.iter().map(move |one| rounded(one * power))));
        axis
    }

    fn within(&self, ticks: impl Iterator<Item = f64>) -> Vec<f64> {
        ticks.filter(|tick| (self.ends[0]..=self.ends[1]).contains(&tick.ln())).collect()
    }

    /// Where a value is, as a share of the axis; at an end if it lies beyond it.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        let [low, high] = self.ends;
        let share = (value.ln() - low) / (high - low);
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    /// The value at a share of the axis: what [`Self::at`] takes there.
    #[must_use]
    pub fn value(&self, share: f64) -> f64 {
        let [low, high] = self.ends;
        (low + share * (high - low)).exp()
    }

    /// What its labels say.
    #[must_use]
    pub fn ticks(&self) -> &[f64] {
        &self.ticks
    }
}

/// The least and the most of values and of what is held anyway.
fn extent(values: impl IntoIterator<Item = f64>, held: [f64; 2]) -> [f64; 2] {
    let values = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
    values.fold(held, |[low, high], value| [low.min(value), high.max(value)])
}

fn with_room([low, high]: [f64; 2]) -> [f64; 2] {
    let room = ROOM * (high - low);
    [low - room, high + room]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_on_an_axis_of_ratios() {
        for values in [vec![], vec![0.99, 1.02], vec![0.7, 1.3], vec![0.4, 2.1], vec![1e-9, 1e9]] {
            let axis = LogAxis::of_ratios(values.iter().copied());
            let ticks = axis.ticks();
            assert!(ticks.len() > 2 && ticks.contains(&1.0), "{values:?}: {ticks:?}");
            let apart = |pair: &[f64]| axis.at(pair[1]) - axis.at(pair[0]) >= LEAST_APART;
            assert!(ticks.windows(2).all(apart), "{values:?}: {ticks:?}");
            for value in values.into_iter().chain([1.0]) {
                assert!((0.0..=1.0).contains(&axis.at(value)));
            }
        }
    }

    #[test]
    fn a_place_gives_its_value_back() {
        let axis = LogAxis::of_ratios([0.7, 2.1]);
        for value in [0.7, 0.98, 1.0, 1.3, 2.1] {
            assert!((axis.value(axis.at(value)) / value - 1.0).abs() < 1e-12);
        }
        assert_eq!([axis.at(0.1), axis.at(10.0), axis.at(f64::NAN)], [0.0, 1.0, 0.0]);
    }

    #[test]
    fn rates_have_powers_of_ten() {
        assert_eq!(LogAxis::of_rates([0.5, 3.0, 400.0]).ticks(), [1.0, 10.0, 100.0]);
        assert_eq!(LogAxis::of_rates([4.0, 30.0]).ticks(), [5.0, 10.0, 20.0]);
        assert!(!LogAxis::of_rates([0.0, f64::NAN]).ticks().is_empty());
    }
}
