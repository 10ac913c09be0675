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
    on: OnTarget<'m>,
    pub(super) bytes: u64,
}

impl<'m> ModelMemory<'m> {
    /// Of a way to run it, on a target whose ceilings say how fast memory is.
    pub(super) fn of(layers: &[Layer], on: OnTarget<'m>) -> Self {
        Self { on, bytes: layers.iter().map(own_bytes).fold(0, u64::saturating_add) }
    }

    /// Milliseconds that a layer takes longer than its record: the bytes of its own at the bandwidth
    /// of the whole model's working set, less those at the bandwidth of the problem's. Of a record of
    /// cold caches, and where no bandwidth was measured, none.
    #[expect(clippy::cast_precision_loss, reason = "bytes as a time")]
    pub(super) fn extra_ms(&self, layer: &Layer) -> f64 {
        let problem: &Problem = &layer.problem;
        if self.on.target().cache_state == CacheState::Cold {
            return 0.0;
        }
        let Some(ceilings) = self.on.ceilings(problem.dtype()) else { return 0.0 };
        let alone = Traffic::of(problem).fused_bytes;
        let whole = self.bytes.max(alone);
        let Some((alone, whole)) = ceilings.bandwidth_at(alone).zip(ceilings.bandwidth_at(whole))
        else {
            return 0.0;
        };
        // GB/s are bytes per nanosecond.
        let nanoseconds = own_bytes(layer) as f64 * (1.0 / whole - 1.0 / alone).max(0.0);
        nanoseconds / 1e6
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
    use fusion_cost_model::{FusionCostModel, Target};

    use super::*;
    use crate::plan::workload::Fed;

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

    #[test]
    fn a_model_that_the_caches_hold_takes_no_longer() {
        let model = FusionCostModel::new(HardwareCalibration::from_toml(EXAMPLE).unwrap());
        let one = layer("linear_bias/f32/m64.k512.n512", Vec::new());
        let extra = |count: usize, target: Target| {
            let layers = vec![one.clone(); count];
            ModelMemory::of(&layers, model.on(target)).extra_ms(&one)
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
}
