//! What a layer takes longer in its model than in a calibration, because the caches do not keep all of
//! the model.
//!
//! A record of warm caches is of a problem that finds its inputs, weights too, where the run before
//! left them. In a model, memory of a layer's own is touched once in each run of the whole: if that is
//! more than the caches hold, weights come from where the whole model lies, and so does the memory that
//! the result is written to. What other layers have just written is taken to be in the caches as ever.

use fused_kernels::InputSpec;
use fusion_cost_model::cost::Traffic;
use fusion_cost_model::{CacheState, OnTarget, Problem};

use crate::plan::workload::Layer;

/// The bytes of a model that are touched once in each run.
pub(super) struct ModelMemory<'m> {
    warm: OnTarget<'m>,
    cold: OnTarget<'m>,
    pub(super) bytes: u64,
}

impl<'m> ModelMemory<'m> {
    /// Of a way to run it, on a target whose ceilings say how fast memory is, and on the same target
    /// with cold caches.
    pub(super) fn of(layers: &[Layer], warm: OnTarget<'m>, cold: OnTarget<'m>) -> Self {
        Self { warm, cold, bytes: layers.iter().map(own_bytes).fold(0, u64::saturating_add) }
    }

    /// Whether it can be told how much longer layers take: not where no bandwidth was measured. Records
    /// of cold caches tell it by themselves.
    pub(super) fn is_known(&self, layers: &[Layer]) -> bool {
        let has_bandwidth = |layer: &Layer| {
            let ceilings = self.warm.ceilings(layer.problem.dtype());
            ceilings.and_then(|ceilings| ceilings.bandwidth_at(self.bytes)).is_some()
        };
        self.warm.target().cache_state == CacheState::Cold || layers.iter().all(has_bandwidth)
    }

    /// Milliseconds that a layer takes longer than its record. Of a record of cold caches, and where
    /// no bandwidth was measured, none.
    ///
    /// Where the problem, or others like it, were measured with cold caches too, that is what it
    /// took longer then, by the share that the bytes of its own have of all that it touches, and
    /// by how much of the model the caches do not hold. Otherwise it is the bytes of its own at
    /// the bandwidth of the whole model's working set, less those at the bandwidth of the
    /// problem's, as if they came one after the other.
    #[expect(clippy::cast_precision_loss, reason = "bytes as a time")]
    pub(super) fn extra_ms(&self, layer: &Layer) -> f64 {
        let problem: &Problem = &layer.problem;
        if self.warm.target().cache_state == CacheState::Cold {
            return 0.0;
        }
        let Some(ceilings) = self.warm.ceilings(problem.dtype()) else { return 0.0 };
        let touched = Traffic::of(problem).fused_bytes;
        // GB/s are bytes per nanosecond.
        let longer_per_byte = |bytes: u64| {
            let whole = ceilings.bandwidth_at(bytes.max(touched))?;
            Some((1.0 / whole - 1.0 / ceilings.bandwidth_at(touched)?).max(0.0))
        };
        let (Some(in_model), Some(in_memory)) =
            (longer_per_byte(self.bytes), longer_per_byte(u64::MAX))
        else {
            return 0.0;
        };
        let own = own_bytes(layer) as f64;
        let Some(cold_ms) = self.longer_when_cold_ms(layer).filter(|_| in_memory > 0.0) else {
            return own * in_model / 1e6;
        };
        cold_ms * (own / touched as f64).min(1.0) * (in_model / in_memory).min(1.0)
    }

    /// How much longer the kernels of a layer take with cold caches, if that is known from such kernels
    /// of about its size: what a time far beyond those measured is longer by says more of the
    /// extrapolation than of the caches.
    pub(super) fn longer_when_cold_ms(&self, layer: &Layer) -> Option<f64> {
        let time = |on: OnTarget<'_>| {
            let answer = on.estimate(&layer.problem);
            let time = if layer.fused { answer.fused_ms() } else { answer.unfused_ms() };
            let is_near = answer.evidence().is_from_kernels() && answer.octaves_beyond() <= 1.0;
            time.filter(|_| is_near).map(|time| time.value)
        };
        Some((time(self.cold)? - time(self.warm)?).max(0.0))
    }
}

/// The bytes of a layer that no other one touches: inputs that no layer writes, and its result.
fn own_bytes(layer: &Layer) -> u64 {
    let specs = InputSpec::of(&layer.problem).into_iter().enumerate();
    let is_fed = |input: usize| layer.feeds.iter().any(|fed| fed.input == input);
    let own = specs.filter(|(input, _)| !is_fed(*input));
    let inputs: u64 = own.map(|(_, spec)| spec.shape.elements()).fold(0, u64::saturating_add);
    let result = layer.problem.steps().last().map_or(0, |step| step.output.elements());
    inputs.saturating_add(result).saturating_mul(layer.problem.dtype().bytes())
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::HardwareCalibration;
    use fusion_cost_model::{FusionCostModel, NodeOps, Target};

    use super::*;
    use crate::plan::workload::{Cut, Fed, layers};
    use crate::profiles::find_model;

    const EXAMPLE: &str = include_str!("../../../../tests/data/example.toml");

    fn layer(problem: &str, feeds: Vec<Fed>) -> Layer {
        Layer { problem: problem.parse().unwrap(), fused: true, feeds }
    }

    #[test]
    fn what_others_write_is_not_of_a_layers_own() {
        let problem = "linear_bias/f32/m4.k8.n16";
        let first = layer(problem, Vec::new());
        assert_eq!(own_bytes(&first), 4 * (4 * 8 + 8 * 16 + 16 + 4 * 16));
        let later = layer(problem, vec![Fed { input: 0, from: 0 }]);
        assert_eq!(own_bytes(&first) - own_bytes(&later), 4 * 4 * 8);
    }

    /// Queries, keys and values too are what other layers write, in the graph of a real model.
    #[test]
    fn a_model_has_its_weights_its_results_and_its_input() {
        let found = find_model("bert-base", &[]).unwrap().segments().unwrap();
        let nodes = found.graph_nodes().unwrap();
        // Queries, keys and values, attention, the layer behind it, its norm, the two layers of the
        // feed-forward part, and what follows them.
        let of_block = [2, 2, 2, 3, 3, 1, 4, 3];
        let lengths = std::iter::once(1).chain(of_block.into_iter().cycle().take(12 * 8));
        let mut ops = (0..nodes.len()).map(|node| NodeOps { node, ops: 0..1 });
        let cut: Cut = lengths.map(|length| ops.by_ref().take(length).collect()).collect();
        assert_eq!((cut.len(), ops.next()), (97, None));
        let layers = layers(&nodes, &cut, true).unwrap();
        let tensor = 128 * 768;
        let attention = &layers[4];
        assert_eq!(attention.problem.to_string(), "attention_head/f32/b1.h12.q128.d64");
        let feeds: Vec<(usize, usize)> =
            attention.feeds.iter().map(|fed| (fed.input, fed.from)).collect();
        assert_eq!(feeds, [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(own_bytes(attention), 4 * tensor);
        let projections = 4 * (768 * 768 + 768);
        let feed_forward = 2 * 768 * 3072 + 3072 + 768;
        let weights = 12 * (projections + feed_forward + 4 * 768) + 2 * 768;
        let all: u64 = layers.iter().map(own_bytes).sum();
        assert_eq!(all, 4 * (weights + (97 + 1) * tensor));
        assert_eq!(all, 378_759_168);
    }

    #[test]
    fn a_model_that_the_caches_hold_takes_no_longer() {
        let model = FusionCostModel::new(HardwareCalibration::from_toml(EXAMPLE).unwrap());
        let one = layer("linear_bias/f32/m64.k512.n512", Vec::new());
        let extra = |count: usize, target: Target| {
            let layers = vec![one.clone(); count];
            let cold = target.with_cache_state(CacheState::Cold);
            ModelMemory::of(&layers, model.on(target), model.on(cold)).extra_ms(&one)
        };
        let on_cpu = Target::cpu(2);
        assert_eq!(extra(1, on_cpu), 0.0);
        let (some, many) = (extra(100, on_cpu), extra(10_000, on_cpu));
        assert!(0.0 < some && some <= many, "{some} {many}");
        // As long as all bytes take from memory, at most.
        let slowest =
            model.on(on_cpu).ceilings(one.problem.dtype()).unwrap().bandwidth_at(u64::MAX);
        assert!(many <= own_bytes(&one) as f64 / slowest.unwrap() / 1e6);
        assert_eq!(extra(10_000, on_cpu.with_cache_state(CacheState::Cold)), 0.0);
        assert_eq!(extra(10_000, Target::cpu(64)), 0.0);
    }

    /// Without ceilings nobody knows, which is not the same as no longer.
    #[test]
    fn without_ceilings_nothing_is_known() {
        let model = FusionCostModel::new(HardwareCalibration::from_toml(EXAMPLE).unwrap());
        let layers = vec![layer("linear_bias/f32/m64.k512.n512", Vec::new()); 3];
        let is_known = |target: Target, cold: Target| {
            ModelMemory::of(&layers, model.on(target), model.on(cold)).is_known(&layers)
        };
        for (threads, expected) in [(2, true), (64, false)] {
            let warm = Target::cpu(threads);
            let cold = warm.with_cache_state(CacheState::Cold);
            assert_eq!(is_known(warm, cold), expected);
            assert!(is_known(cold, cold), "records of cold caches tell it");
        }
    }

    #[test]
    fn records_of_cold_caches_say_how_much_longer_a_layer_takes() {
        let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
        let warm = calibration.records[0].clone();
        assert_eq!(warm.problem.to_string(), "linear_bias_relu/f32/m512.k512.n512");
        let mut cold = warm.clone();
        cold.cache_state = CacheState::Cold;
        cold.fused_latency_ms += 0.5;
        cold.unfused_latency_ms += 0.7;
        calibration.records.push(cold);
        let model = FusionCostModel::new(calibration);
        let on = [Target::cpu(2), Target::cpu(2).with_cache_state(CacheState::Cold)];
        let [warm_on, cold_on] = on.map(|target| model.on(target));
        let extra = |layer: &Layer, count: usize| {
            ModelMemory::of(&vec![layer.clone(); count], warm_on, cold_on).extra_ms(layer)
        };
        // Far more than any cache: all of its own bytes come from memory.
        let tensor = 512.0 * 512.0 * 4.0;
        let bias = 512.0 * 4.0;
        let touched = 3.0 * tensor + bias;
        let first = layer("linear_bias_relu/f32/m512.k512.n512", Vec::new());
        let all = extra(&first, 10_000);
        assert!((all - 0.5).abs() < 1e-9, "{all}");
        // What another layer has just written is in the caches.
        let fed = layer("linear_bias_relu/f32/m512.k512.n512", vec![Fed { input: 0, from: 0 }]);
        let part = extra(&fed, 10_000);
        assert!((part - 0.5 * (2.0 * tensor + bias) / touched).abs() < 1e-9, "{part}");
        let apart = extra(&Layer { fused: false, ..fed.clone() }, 10_000);
        assert!((apart / part - 0.7 / 0.5).abs() < 1e-9, "{apart}");
        // The caches hold it all, or a part of it.
        assert_eq!(extra(&first, 1), 0.0);
        let some = extra(&first, 8);
        assert!(0.0 < some && some < all, "{some}");
        // A size is near, and one with sixty times the work is not.
        let memory = ModelMemory::of(&[], warm_on, cold_on);
        for (problem, is_near) in [
            ("linear_bias_relu/f32/m600.k512.n512", true),
            ("linear_bias_relu/f32/m2048.k2048.n2048", false),
            ("linear_bias_relu/f32/m64.k512.n512", false),
        ] {
            let layer = layer(problem, Vec::new());
            assert_eq!(memory.longer_when_cold_ms(&layer).is_some(), is_near, "{problem}");
        }
        let both = ModelMemory::of(&vec![first.clone(); 10_000], cold_on, cold_on);
        assert_eq!(both.extra_ms(&first), 0.0);
    }
}
