//! From samples to a ratio with its interval.

use super::sample::Measurement;
use super::statistics::{Quartiles, mean_interval, median, quartiles};

/// What a measurement says about the ratio of two variants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The first variant's time over the second's.
    pub ratio: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// Seconds per run of each variant.
    pub seconds: [Quartiles; 2],
    /// Pairs that were taken.
    pub pairs: usize,
    /// Pairs that were used.
    pub pairs_kept: usize,
}

/// Estimates the ratio: the logarithm of each pair's ratio, the median of each round, the mean
/// over the rounds with an interval by Student's t, and back.
///
/// Rounds are what is independent here: they differ in the memory layout, which moves a ratio far
/// more than the noise of the pairs does.
#[must_use]
pub fn estimate(measurement: &Measurement) -> Estimate {
    let rounds: Vec<f64> = measurement
        .rounds
        .iter()
        .map(|round| {
            let ratios = round.pairs.iter().map(|pair| (pair.seconds[0] / pair.seconds[1]).ln());
            median(&ratios.collect::<Vec<_>>())
        })
        .collect();
    let (mean, half_width) = mean_interval(&rounds);
    let pairs = || measurement.rounds.iter().flat_map(|round| &round.pairs);
    let seconds = [0, 1]
        .map(|variant| quartiles(&pairs().map(|pair| pair.seconds[variant]).collect::<Vec<_>>()));
    Estimate {
        ratio: mean.exp(),
        low: (mean - half_width).exp(),
        high: (mean + half_width).exp(),
        seconds,
        pairs: pairs().count(),
        pairs_kept: pairs().count(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Order, Pair, Round};
    use super::*;

    fn measurement(rounds: &[&[(f64, f64)]]) -> Measurement {
        let round = |pairs: &&[(f64, f64)]| Round {
            pairs: pairs
                .iter()
                .map(|&(a, b)| Pair { seconds: [a, b], order: Order::FirstSecond })
                .collect(),
        };
        Measurement { rounds: rounds.iter().map(round).collect(), iterations: [1, 1] }
    }

    #[test]
    fn one_spike_per_round_does_not_move_the_ratio() {
        let round: &[(f64, f64)] = &[(2.0, 1.0), (2.0, 1.0), (90.0, 1.0)];
        let estimate = estimate(&measurement(&[round, round, round]));
        assert!((estimate.ratio - 2.0).abs() < 1e-12);
        assert!((estimate.high / estimate.low - 1.0).abs() < 1e-9);
        assert_eq!((estimate.pairs, estimate.pairs_kept), (9, 9));
        assert_eq!(estimate.seconds[0].median, 2.0);
    }

    #[test]
    fn the_interval_comes_from_the_rounds_and_is_symmetric_in_the_logarithm() {
        let rounds: &[&[(f64, f64)]] = &[&[(2.0, 1.0)], &[(4.0, 1.0)]];
        let estimate = estimate(&measurement(rounds));
        assert!((estimate.ratio - 8.0_f64.sqrt()).abs() < 1e-12);
        let (down, up) = (estimate.ratio / estimate.low, estimate.high / estimate.ratio);
        assert!((down / up - 1.0).abs() < 1e-9);
        // Standard error ln(2) / 2, t with one degree 12.706.
        assert!((up.ln() - 12.706 * 0.5 * 2.0_f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn a_drift_that_hits_both_variants_cancels() {
        let drifting: Vec<(f64, f64)> =
            (0..8).map(|i| 1.0 + f64::from(i)).map(|slow| (3.0 * slow, 2.0 * slow)).collect();
        let estimate = estimate(&measurement(&[&drifting, &drifting]));
        assert!((estimate.ratio - 1.5).abs() < 1e-12);
    }
}
