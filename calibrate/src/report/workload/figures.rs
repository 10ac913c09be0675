//! The figures of ways and their layers, predicted and measured.

use fusion_cost_model::{Estimate as Answer, Evidence, Interval, OnTarget, Problem};

use super::memory::ModelMemory;
use super::speed::{Speed, at_speed};
use super::{Known, Memory, Operator, WayReport};
use crate::measure::Estimate;
use crate::plan::workload::{Layer, Way, Ways};
use crate::report::estimated::Range;
use crate::report::partition::Splits;
use crate::run::workload::{MeasuredPair, MeasuredWorkload};

/// The figures of the ways to run a model.
pub(super) struct Figures<'a> {
    pub(super) ways: &'a Ways,
    pub(super) on: OnTarget<'a>,
    /// What the caches do not keep.
    pub(super) memory: ModelMemory<'a>,
    /// By how much the ways differ by the cost model.
    pub(super) splits: &'a Splits,
    pub(super) measured: Option<&'a MeasuredWorkload>,
    /// How fast the machine was during the run, where that is another speed than the profile's.
    pub(super) speed: Option<&'a Speed>,
}

/// The ratio of a measurement with its interval.
pub(super) fn ratio(estimate: &Estimate) -> Range {
    let Estimate { ratio: value, low, high, .. } = *estimate;
    Range { value, low, high }
}

/// The layers of each problem with their places, in the order of the first ones.
fn places(layers: &[Layer]) -> Vec<Vec<(usize, &Layer)>> {
    let mut all: Vec<Vec<(usize, &Layer)>> = Vec::new();
    for one in layers.iter().enumerate() {
        match all.iter_mut().find(|known| known[0].1.problem == one.1.problem) {
            Some(known) => known.push(one),
            None => all.push(vec![one]),
        }
    }
    all
}

/// Predicted less measured, in per cent of the latter.
pub(super) fn error_pct(predicted: Option<f64>, measured: Option<f64>) -> Option<f64> {
    let (predicted, measured) = (predicted?, measured?);
    (measured > 0.0).then(|| 100.0 * (predicted - measured) / measured)
}

impl Figures<'_> {
    /// What the cost model expects of a layer by itself.
    fn alone(&self, layer: &Layer) -> Option<Range> {
        let answer = self.on.estimate(&layer.problem);
        let time: Option<Interval> =
            if layer.fused { answer.fused_ms() } else { answer.unfused_ms() };
        time.map(Range::from)
    }

    /// What the cost model expects of a layer, and what it takes longer in this model.
    pub(super) fn predicted(&self, layer: &Layer) -> Option<Range> {
        Some(longer(self.alone(layer)?, self.memory.extra_ms(layer)))
    }

    fn evidence(&self, problem: &Problem) -> Evidence {
        let answer: Answer<'_> = self.on.estimate(problem);
        answer.evidence()
    }

    /// The layers whose times speak for a way: another way's, where both are the same.
    fn measured_as(&self, way: Way) -> Way {
        match way {
            Way::AlwaysFused if self.ways.is_best_to_always_fuse() => Way::BestPartition,
            other => other,
        }
    }

    /// Milliseconds of a layer of a way, as it was measured in its place.
    pub(super) fn measured_ms(&self, way: Way, layer: usize) -> Option<f64> {
        let seconds = self.measured?.layer_seconds.get(&self.measured_as(way))?;
        seconds.get(layer).map(|seconds| 1e3 * seconds)
    }

    /// The problems of a way, each once.
    ///
    /// At the speed of the machine during the run, what the memory takes longer stays as it is: no
    /// problem that was measured again tells its speed.
    pub(super) fn operators(&self, way: Way) -> Vec<Operator> {
        let places = places(self.ways.of_way(way));
        places.into_iter().map(|places| self.operator(way, &places)).collect()
    }

    fn operator(&self, way: Way, places: &[(usize, &Layer)]) -> Operator {
        let (_, layer) = places[0];
        let alone = self.alone(layer).map(|one| times(one, places.len()));
        let extra = places.iter().map(|(_, layer)| self.memory.extra_ms(layer)).sum();
        let factor = self.speed.map(|speed| speed.factor_of(&layer.problem));
        let predicted_ms = alone.map(|alone| longer(alone, extra));
        let predicted_now_ms =
            alone.zip(factor).map(|(alone, factor)| longer(at_speed(alone, factor), extra));
        let measured_ms = places.iter().map(|(at, _)| self.measured_ms(way, *at)).sum();
        let error = |time: Option<Range>| error_pct(time.map(|time| time.value), measured_ms);
        Operator {
            way,
            problem: layer.problem,
            times: places.len(),
            evidence: self.evidence(&layer.problem),
            predicted_ms,
            measured_ms,
            error_pct: error(predicted_ms),
            predicted_now_ms,
            error_now_pct: error(predicted_now_ms),
        }
    }

    /// What the cost model expects that a layer saves as one kernel against one for each op.
    pub(super) fn saved_ms(&self, layer: &Layer) -> Option<f64> {
        let answer = self.on.estimate(&layer.problem);
        let (speedup, fused) = (answer.speedup()?, answer.fused_ms()?);
        Some(if layer.fused { fused.value * (speedup.value - 1.0) } else { 0.0 })
    }

    /// The time of a way that the cost model expects: that of the kernels of the best partition, and
    /// by how much another way is slower, as `calibrate partition` has it. Speedups are known better
    /// than times of different problems, from whose sums the ways could not be told apart.
    fn total(&self, way: Way) -> Option<Range> {
        let operators = self.operators(Way::BestPartition).into_iter();
        let best = sum(operators.map(|one| one.predicted_ms).collect::<Option<Vec<Range>>>()?);
        Some(self.slower(way).map_or(best, |slower| sum([best, slower])))
    }

    /// By how much the cost model expects a way to be slower than the best partition.
    fn slower(&self, way: Way) -> Option<Range> {
        match way {
            Way::Unfused => Some(self.splits.never.slower_by_ms),
            Way::AlwaysFused => Some(self.splits.always.slower_by_ms),
            Way::BestPartition => None,
        }
    }

    /// The time of a way that is expected at the speed of the machine during the run. Problems of a
    /// family share a factor, so that they are off by it together.
    fn total_now(&self, way: Way) -> Option<Range> {
        let speed = self.speed?;
        let layers = self.ways.of_way(Way::BestPartition);
        let mut families: Vec<(Range, Vec<Range>)> = Vec::new();
        for operator in self.operators(Way::BestPartition) {
            let layer = layers.iter().find(|layer| layer.problem == operator.problem)?;
            let factor = speed.factor_of(&operator.problem);
            let alone = times(self.alone(layer)?, operator.times);
            match families.iter_mut().find(|(known, _)| *known == factor) {
                Some((_, all)) => all.push(alone),
                None => families.push((factor, vec![alone])),
            }
        }
        let of_families = families.into_iter().map(|(factor, all)| at_speed(sum(all), factor));
        let slower = self.slower(way).map(|slower| at_speed(slower, speed.factor_of_all()));
        let extra = layers.iter().map(|layer| self.memory.extra_ms(layer)).sum();
        Some(longer(sum(of_families.chain(slower)), extra))
    }

    /// What the caches do not keep, of the best partition: the other ways are predicted by how much
    /// slower they are.
    pub(super) fn memory(&self) -> Memory {
        let layers = self.ways.of_way(Way::BestPartition);
        let by_bandwidth = |layer: &&Layer| {
            self.memory.extra_ms(layer) > 0.0 && self.memory.longer_when_cold_ms(layer).is_none()
        };
        Memory {
            bytes: self.memory.bytes,
            extra_ms: self
                .memory
                .is_known(layers)
                .then(|| layers.iter().map(|layer| self.memory.extra_ms(layer)).sum()),
            layers: layers.len(),
            by_bandwidth: layers.iter().filter(by_bandwidth).count(),
        }
    }

    pub(super) fn way(&self, way: Way) -> WayReport {
        let [predicted_ms, predicted_now_ms] = [self.total(way), self.total_now(way)];
        let unfused = self.total(Way::Unfused);
        let measured_ms = self.time(way);
        let measured = measured_ms.map(|time| time.value);
        let pair = self.pair(way).filter(|_| way != Way::Unfused);
        let kernels = self.ways.of_way(way).iter();
        let kernels =
            kernels.map(|layer| if layer.fused { 1 } else { layer.problem.chain().len() });
        let same_as = self.measured_as(way);
        WayReport {
            way,
            same_as: (same_as != way).then_some(same_as),
            kernels: kernels.sum(),
            predicted_ms,
            measured_ms,
            error_pct: error_pct(predicted_ms.map(|time| time.value), measured),
            predicted_now_ms,
            error_now_pct: error_pct(predicted_now_ms.map(|time| time.value), measured),
            predicted_speedup: unfused
                .zip(predicted_ms)
                .filter(|_| way != Way::Unfused)
                .map(|(unfused, own)| unfused.value / own.value),
            speedup: pair.map(|pair| ratio(&pair.estimate)),
            verdict: pair.map(|pair| pair.verdict),
        }
    }

    /// What was measured of the unfused way against another one.
    fn pair(&self, way: Way) -> Option<&MeasuredPair> {
        let way = self.measured_as(way);
        self.measured?.pairs.iter().find(|pair| pair.ways == [Way::Unfused, way])
    }

    /// The measured time of a way. The unfused one has that of its pair with the best partition.
    fn time(&self, way: Way) -> Option<Range> {
        let (pair, side) = match way {
            Way::Unfused => (self.pair(Way::BestPartition)?, 0),
            other => (self.pair(other)?, 1),
        };
        let time = pair.estimate.times[side];
        let [value, low, high] = [time.seconds, time.low, time.high].map(|seconds| 1e3 * seconds);
        Some(Range { value, low, high })
    }

    pub(super) fn known(&self) -> Known {
        let mut known = Known::default();
        for problem in self.ways.problems() {
            known.problems += 1;
            match self.evidence(&problem) {
                Evidence::Measured => {
                    known.measured += 1;
                    continue;
                }
                Evidence::Roofline => known.roofline += 1,
                Evidence::Unknown => known.unknown += 1,
                _ => known.interpolated += 1,
            }
            known.missing.push(problem);
        }
        known
    }
}

/// A time with what it takes longer in a model.
fn longer(Range { value, low, high }: Range, extra: f64) -> Range {
    Range { value: value + extra, low: low + extra, high: high + extra }
}

/// The time of several places of one problem, whose predictions are off by the same.
fn times(one: Range, count: usize) -> Range {
    #[expect(clippy::cast_precision_loss, reason = "a count of layers")]
    let of = |value: f64| value * count as f64;
    Range { value: of(one.value), low: of(one.low), high: of(one.high) }
}

/// The sum of times of different problems, whose predictions are off independently.
fn sum(all: impl IntoIterator<Item = Range>) -> Range {
    let (mut value, mut below, mut above) = (0.0, 0.0_f64, 0.0_f64);
    for one in all {
        value += one.value;
        below = below.hypot(one.value - one.low);
        above = above.hypot(one.high - one.value);
    }
    Range { value, low: value - below, high: value + above }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use fusion_cost_model::calibration::HardwareCalibration;
    use fusion_cost_model::{CacheState, FusionCostModel, Target};

    use super::*;
    use crate::plan::workload::Fed;
    use crate::report::partition::Split;

    const EXAMPLE: &str = include_str!("../../../../tests/data/example.toml");
    const LINEAR: &str = "linear_bias_relu/f32/m512.k512.n512";
    const ADD: &str = "add_relu/f32/m4096.n1024";

    /// The best partition alone, no way slower than it.
    fn splits() -> Splits {
        let slower_by_ms = Range { value: 0.0, low: 0.0, high: 0.0 };
        let split = Split { kernels: 0, total_ms: None, slower_by_ms, peak_bytes: 0 };
        Splits { best: split.clone(), second: None, always: split.clone(), never: split }
    }

    fn layer(problem: &str, inputs: &[usize]) -> Layer {
        let feeds = inputs.iter().map(|&input| Fed { input, from: 0 }).collect();
        Layer { problem: problem.parse().unwrap(), fused: true, feeds }
    }

    /// Every place of a problem has the extra time of its own bytes, and the sums of both are one.
    #[test]
    fn operators_are_the_total_of_the_best_partition() {
        let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
        let mut cold = calibration.records[0].clone();
        assert_eq!(cold.problem.to_string(), LINEAR);
        cold.cache_state = CacheState::Cold;
        cold.fused_latency_ms += 0.5;
        cold.unfused_latency_ms += 0.7;
        calibration.records.push(cold);
        let model = FusionCostModel::new(calibration);
        let on = model.on(Target::cpu(2));
        let cold = model.on(Target::cpu(2).with_cache_state(CacheState::Cold));
        // The first place reads the input of the network.
        let first = layer(LINEAR, &[]);
        let later = layer(LINEAR, &[0]);
        let add = [layer(ADD, &[0]), layer(ADD, &[0, 1])];
        let layers = [first.clone(), add[0].clone(), later.clone(), add[1].clone(), later];
        let layers = HashMap::from([(Way::BestPartition, layers.to_vec())]);
        let ways = Ways { always: Vec::new(), best: Vec::new(), layers };
        let mut memory = ModelMemory::of(ways.of_way(Way::BestPartition), on, cold);
        // None of it is in the caches.
        memory.bytes = u64::MAX;
        let around = |value: f64| [value, 0.99 * value, 1.01 * value];
        let speed = Speed::of_times(&[(first.problem, around(1.0), around(0.8))]).unwrap();
        let splits = splits();
        let speed = Some(&speed);
        let figures = Figures { ways: &ways, on, memory, splits: &splits, measured: None, speed };
        let operators = figures.operators(Way::BestPartition);
        let one = |problem: &str| {
            let problem: Problem = problem.parse().unwrap();
            let operator = operators.iter().find(|one| one.problem == problem).unwrap();
            (operator, on.estimate(&problem).fused_ms().unwrap())
        };
        // 512 * 512 numbers in the input, the weight and the result, and a bias: the first place
        // takes all of 0.5 ms longer, and the two others the share without the input.
        let (linear, alone) = one(LINEAR);
        let extra = 0.5 * (1.0 + 2.0 * (2.0 * 262_144.0 + 512.0) / (3.0 * 262_144.0 + 512.0));
        let predicted = linear.predicted_ms.unwrap();
        assert_eq!(linear.times, 3);
        assert!((predicted.value - (3.0 * alone.value + extra)).abs() < 1e-9, "{predicted:?}");
        assert!((predicted.low - (3.0 * alone.low + extra)).abs() < 1e-9, "{predicted:?}");
        let now = linear.predicted_now_ms.unwrap();
        assert!((now.value - (0.8 * 3.0 * alone.value + extra)).abs() < 1e-9, "{now:?}");
        // By bandwidth: two tensors of the one sum are its own, and one of the other.
        let (add, alone_add) = one(ADD);
        let ceilings = on.ceilings(add.problem.dtype()).unwrap();
        let per_byte = |bytes: u64| 1.0 / ceilings.bandwidth_at(bytes).unwrap();
        let tensor = 4096 * 1024 * 4;
        let longer = (per_byte(u64::MAX) - per_byte(3 * tensor)).max(0.0);
        let extra_of_sums = 3.0 * tensor as f64 * longer / 1e6;
        let predicted = add.predicted_ms.unwrap().value;
        assert!((predicted - (2.0 * alone_add.value + extra_of_sums)).abs() < 1e-9, "{add:?}");
        // And the way is their sum, at either speed.
        let way = figures.way(Way::BestPartition);
        let all = |of: fn(&Operator) -> Option<Range>| {
            operators.iter().map(|one| of(one).unwrap().value).sum::<f64>()
        };
        let of_operators = all(|one| one.predicted_ms);
        let of_times = 3.0 * alone.value + 2.0 * alone_add.value;
        let extra = figures.memory().extra_ms.unwrap();
        for (a, b) in [
            (way.predicted_ms.unwrap().value, of_operators),
            (of_times + extra, of_operators),
            (way.predicted_now_ms.unwrap().value, all(|one| one.predicted_now_ms)),
        ] {
            assert!((a - b).abs() < 1e-9, "{a} {b}");
        }
    }
}
