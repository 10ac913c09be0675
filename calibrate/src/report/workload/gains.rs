//! Where the best partition differs from one kernel per op.

use serde::Serialize;

use super::figures::Figures;
use crate::plan::workload::{Layer, Region, Way};

/// Ops that the best partition runs in fewer kernels, in all places together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gain {
    /// The ops, as the problems of the kernels that always fusing would have.
    pub problems: Vec<String>,
    /// The problems of the kernels of the best partition.
    pub best: Vec<String>,
    /// In how many places.
    pub times: usize,
    /// The times of all places.
    pub predicted: Option<Times>,
    /// The same as they were measured, each kernel in its place of the sequence.
    pub measured: Option<Times>,
}

/// Times of ops in two ways, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Times {
    /// One kernel for each op.
    pub unfused_ms: f64,
    /// The kernels of the best partition.
    pub best_ms: f64,
    /// The difference.
    pub gain_ms: f64,
}

impl Times {
    fn of(unfused_ms: f64, best_ms: f64) -> Self {
        Self { unfused_ms, best_ms, gain_ms: unfused_ms - best_ms }
    }

    fn and(self, other: Self) -> Self {
        Self::of(self.unfused_ms + other.unfused_ms, self.best_ms + other.best_ms)
    }
}

/// The ops that the best partition has other kernels for, the largest gains first.
pub(super) fn of(figures: &Figures<'_>) -> Vec<Gain> {
    let mut gains: Vec<Gain> = Vec::new();
    for region in figures.ways.regions() {
        let one = of_region(figures, &region);
        let is_same = |known: &&mut Gain| known.problems == one.problems && known.best == one.best;
        match gains.iter_mut().find(is_same) {
            Some(known) => {
                known.times += 1;
                known.predicted = known.predicted.zip(one.predicted).map(|(a, b)| a.and(b));
                known.measured = known.measured.zip(one.measured).map(|(a, b)| a.and(b));
            }
            None => gains.push(one),
        }
    }
    // One kernel for one op is the same in both ways.
    gains.retain(|gain| !is_alike(gain));
    let size = |gain: &Gain| gain.measured.or(gain.predicted).map_or(0.0, |times| times.gain_ms);
    gains.sort_by(|a, b| size(b).abs().total_cmp(&size(a).abs()));
    gains
}

fn is_alike(gain: &Gain) -> bool {
    let is_single = |text: &String| {
        let problem: Result<fusion_cost_model::Problem, _> = text.parse();
        problem.is_ok_and(|problem| problem.chain().is_single())
    };
    gain.problems == gain.best && gain.problems.iter().all(is_single)
}

fn of_region(figures: &Figures<'_>, region: &Region) -> Gain {
    let sides = [(Way::Unfused, &region.unfused), (Way::BestPartition, &region.best)];
    let names = sides.map(|(way, layers)| {
        let layers = layers.iter().filter_map(|&at| figures.ways.of_way(way).get(at));
        layers.map(|layer| layer.problem.to_string()).collect::<Vec<String>>()
    });
    // By what the kernels save: times of different problems are less certain.
    let of_best = |of: &dyn Fn(&Layer) -> Option<f64>| {
        let layers = figures.ways.of_way(Way::BestPartition);
        let all = region.best.iter().map(|&at| of(layers.get(at)?));
        all.sum::<Option<f64>>()
    };
    let best_ms = of_best(&|layer| figures.predicted(layer).map(|time| time.value));
    let saved_ms = of_best(&|layer| figures.saved_ms(layer));
    let measured = sides.map(|(way, layers)| {
        let all = layers.iter().map(|&at| figures.measured_ms(way, at));
        all.collect::<Option<Vec<f64>>>().map(|all| all.iter().sum::<f64>())
    });
    let predicted = best_ms.zip(saved_ms).map(|(best, saved)| Times::of(best + saved, best));
    let measured = match measured {
        [Some(unfused), Some(best)] => Some(Times::of(unfused, best)),
        _ => None,
    };
    let [problems, best] = names;
    Gain { problems, best, times: 1, predicted, measured }
}
