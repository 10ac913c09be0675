//! Problems of a model that are measured once more beside it, each alone.
//!
//! A machine has times when it is faster than at others, and a profile knows only those in which it was
//! measured. What its problems take now tells how fast the machine is now, whatever the model takes.

use fusion_cost_model::{Evidence, Family, OnTarget, Problem};

use super::Layer;
use crate::plan::{Comparison, Subject};

/// At most this many problems are measured again: each costs time in every pass.
const MOST: usize = 8;

/// At most this many of one family, so that each speaks for its own layers.
const MOST_OF_FAMILY: usize = 4;

/// A problem that is measured again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Again {
    /// The problem.
    pub problem: Problem,
    /// Milliseconds of its one kernel in the profile with their 95 % interval: value, low, high.
    pub in_profile_ms: [f64; 3],
}

impl Again {
    /// The problems in which the kernels of a sequence spend the most time, of those that the profile
    /// has a record of.
    #[must_use]
    pub fn of(layers: &[Layer], on: OnTarget<'_>) -> Vec<Self> {
        let mut known: Vec<(Self, f64)> = Vec::new();
        for layer in layers {
            if let Some((one, total)) =
                known.iter_mut().find(|(one, _)| one.problem == layer.problem)
            {
                *total += one.in_profile_ms[0];
                continue;
            }
            let answer = on.estimate(&layer.problem);
            let measured = answer.fused_ms().filter(|_| answer.evidence() == Evidence::Measured);
            if let Some(time) = measured {
                let in_profile_ms = [time.value, time.low, time.high];
                known.push((Self { problem: layer.problem, in_profile_ms }, time.value));
            }
        }
        known.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut chosen: Vec<Self> = Vec::new();
        for (one, _) in known {
            let of_family = chosen.iter().filter(|other| other.family() == one.family()).count();
            if chosen.len() < MOST && of_family < MOST_OF_FAMILY {
                chosen.push(one);
            }
        }
        chosen
    }

    /// Its family.
    #[must_use]
    pub fn family(&self) -> Family {
        Family::of(self.problem.chain().form())
    }

    /// Its one kernel against a copy of itself: the time counts, and no ratio.
    #[must_use]
    pub fn subject(&self) -> Subject {
        let subject = Subject::fusion(self.problem);
        if self.problem.chain().is_single() {
            return subject;
        }
        Subject { comparison: Comparison::FusedCopy, ..subject }
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::HardwareCalibration;
    use fusion_cost_model::{FusionCostModel, Target};

    use super::*;

    #[test]
    fn the_longest_problems_with_a_record_are_measured_again() {
        let example = include_str!("../../../../tests/data/example.toml");
        let mut calibration = HardwareCalibration::from_toml(example).unwrap();
        let record = calibration.records[1].clone();
        let mut add = |text: &str, ms: f64| {
            let mut record = record.clone();
            record.problem = text.parse().unwrap();
            let factor = ms / record.fused_latency_ms;
            record.fused_latency_ms *= factor;
            for end in [&mut record.fused_timing.low_ms, &mut record.fused_timing.high_ms] {
                *end = end.map(|end| end * factor);
            }
            calibration.records.push(record);
        };
        (1..=6_u32).for_each(|m| add(&format!("linear_bias_relu/f32/m{m}.k64.n64"), f64::from(m)));
        add("add_relu/f32/m64.n64", 0.5);
        add("layer_norm/f32/m64.n64", 0.1);
        let model = FusionCostModel::new(calibration);
        let layer =
            |text: &str| Layer { problem: text.parse().unwrap(), fused: true, feeds: Vec::new() };
        let mut layers: Vec<Layer> =
            (1..=6).map(|m| layer(&format!("linear_bias_relu/f32/m{m}.k64.n64"))).collect();
        layers.extend(
            ["add_relu/f32/m64.n64", "add_relu/f32/m65.n64", "layer_norm/f32/m64.n64"].map(layer),
        );
        // Seven places make the second one longer than the sixth.
        layers.extend(vec![layer("linear_bias_relu/f32/m2.k64.n64"); 6]);
        let again = Again::of(&layers, model.on(Target::cpu(2)));
        let names: Vec<String> = again.iter().map(|one| one.problem.to_string()).collect();
        assert_eq!(
            names,
            [
                "linear_bias_relu/f32/m2.k64.n64",
                "linear_bias_relu/f32/m6.k64.n64",
                "linear_bias_relu/f32/m5.k64.n64",
                "linear_bias_relu/f32/m4.k64.n64",
                "add_relu/f32/m64.n64",
                "layer_norm/f32/m64.n64",
            ]
        );
        let comparisons: Vec<Comparison> =
            again.iter().map(|one| one.subject().comparison).collect();
        assert_eq!(comparisons[..5], [Comparison::FusedCopy; 5]);
        assert_eq!(comparisons[5], Comparison::UnfusedCopy);
        assert_eq!(again[4].in_profile_ms[0], 0.5);
        assert_eq!(Again::of(&layers, model.on(Target::cpu(64))), []);
    }
}
