//! The problems of a calibration that show best whether it has drifted.

use crate::model::cloud::padded;
use crate::model::covariance::{Place, spread_out};
use crate::model::features::{CloudKey, Features};
use crate::model::matern;
use crate::model::on_target::OnTarget;
use crate::vocabulary::{Family, Problem};

/// The variances of what the drift of two problems have in common: because they are of one machine,
/// one family, one cloud; and, in a cloud, because their sizes are alike.
const OF_MACHINE: f64 = 0.1 * 0.1;
const OF_FAMILY: f64 = 0.05 * 0.05;
const OF_CLOUD: f64 = 0.03 * 0.03;
const OF_SIZES: f64 = 0.03 * 0.03;

/// Two sizes are alike over this many octaves.
const OCTAVES: f64 = 3.0;

/// The variance of two measurements of one problem.
const NOISE: f64 = 0.02 * 0.02;

/// Of more problems, some are looked at: a matrix of all of them would be large.
const MOST: usize = 600;

impl OnTarget<'_> {
    /// The problems of the calibration whose measurement would say most about the drift of all
    /// others, the first one most, given that some are measured already: at most `count`, each with a
    /// record that is valid.
    ///
    /// Drift is what the same machine's times and speedups change by with another version of the
    /// software, see [`FusionCostModel::with_prior`](crate::FusionCostModel::with_prior). Problems of
    /// one family have most of it in common, and of one chain nearly all, so that the first few are
    /// spread over both.
    #[must_use]
    pub fn points_to_refresh(&self, count: usize, measured: &[Problem]) -> Vec<Problem> {
        let all = self.measured_problems();
        let looked_at = spread_out(all.len(), MOST).map(|index| all[index]);
        let mut candidates: Vec<Problem> =
            if all.len() > MOST { looked_at.collect() } else { all.clone() };
        candidates.retain(|problem| !measured.contains(problem));
        let open = candidates.len();
        candidates.extend(measured.iter().filter(|problem| all.contains(problem)));
        let n = candidates.len();
        let mut left = covariances(&candidates);
        (open..n).for_each(|member| measure(&mut left, n, member));
        let mut chosen: Vec<usize> = Vec::new();
        while chosen.len() < count.min(open) {
            let worth = |member: usize| {
                let own = &left[member * n..][..n];
                own.iter().map(|one| one * one).sum::<f64>() / (own[member] + NOISE)
            };
            let others = (0..open).filter(|member| !chosen.contains(member));
            // The first of several, so that the choice is the same on every machine.
            let best = others.rev().max_by(|a, b| worth(*a).total_cmp(&worth(*b)));
            let Some(best) = best else { break };
            measure(&mut left, n, best);
            chosen.push(best);
        }
        chosen.into_iter().map(|member| candidates[member]).collect()
    }
}

/// How alike the drifts of problems are, row by row.
fn covariances(problems: &[Problem]) -> Vec<f64> {
    let described: Vec<(Family, CloudKey, Features)> = problems
        .iter()
        .map(|problem| {
            let family = Family::of(problem.chain().form());
            (family, CloudKey::of(problem), Features::of(problem))
        })
        .collect();
    let places: Vec<Place> = described
        .iter()
        .map(|(_, _, features)| Place { at: padded(features), proportion: 0.0 })
        .collect();
    let n = problems.len();
    let alike = |row: usize, col: usize| {
        let (a, b) = (&described[row], &described[col]);
        let mut sum = OF_MACHINE;
        if a.0 == b.0 {
            sum += OF_FAMILY;
        }
        if a.1 == b.1 {
            let apart = places[row].at.iter().zip(&places[col].at);
            let squared: f64 = apart.map(|(x, y)| ((x - y) / OCTAVES).powi(2)).sum();
            sum += OF_CLOUD + OF_SIZES * matern::correlation(squared);
        }
        sum
    };
    (0..n * n).map(|index| alike(index / n, index % n)).collect()
}

/// What is left of the covariances when one of the problems is measured.
fn measure(left: &mut [f64], n: usize, member: usize) {
    let own = left[member * n..][..n].to_vec();
    let variance = own[member] + NOISE;
    for row in 0..n {
        for col in 0..n {
            left[row * n + col] -= own[row] * own[col] / variance;
        }
    }
}
