//! How long kernels take by what they do, so that two traces can be compared.

use super::kernels::Kernel;
use super::random::Random;
use super::{Phase, Plan};
use crate::DeviceWork;

/// How fast a device is. The host is always faster: it launches a kernel in less time than one
/// runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How long kernels take, in thousandths of the usual times.
    pub permille: u64,
    /// How many thousandths longer or shorter than that a kernel may take.
    pub noise: u64,
    /// How long the stream that computes waits before the first kernel of each call, in addition to
    /// the short pause before every kernel, in nanoseconds.
    pub call_pause_ns: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { permille: 1000, noise: 10, call_pause_ns: 0 }
    }
}

/// The pause before each kernel, in nanoseconds.
const PAUSE_NS: u64 = 500;

impl Pace {
    /// The pause before a kernel, in nanoseconds.
    pub(super) fn pause_ns(self, begins_call: bool) -> u64 {
        PAUSE_NS + if begins_call { self.call_pause_ns } else { 0 }
    }

    /// How long a kernel takes, in nanoseconds.
    pub(super) fn duration_ns(
        self,
        plan: &Plan,
        kernel: &Kernel,
        phase: Phase,
        random: &mut Random,
    ) -> u64 {
        let absorbed = plan.edits.iter().map(|edit| edit.absorbed_ns(kernel, usual_ns));
        let own_ns = usual_ns(kernel.role) + absorbed.sum::<u64>();
        let usual_ns =
            plan.edits.iter().fold(own_ns, |usual_ns, edit| edit.duration_ns(kernel, usual_ns));
        let tokens = match phase {
            Phase::Decode => 1,
            Phase::Mixed => 2,
            Phase::Prefill => 3,
        };
        let size = if kernel.work == DeviceWork::Kernel { tokens } else { 1 };
        let noise = 1000 - self.noise + random.below(2 * self.noise + 1);
        usual_ns * size * self.permille * noise / 1_000_000
    }
}

/// How long a kernel takes by what it is for in its layer, in a decode step, in nanoseconds.
fn usual_ns(role: &str) -> u64 {
    match role {
        "inputs" | "positions" | "outputs" | "clear" | "select" => 6000,
        "kv_cache" | "k" | "v" | "attention_reduce" | "out_split_k" | "extra" => 7000,
        "embedding" | "routing" | "router" | "cast" | "extra_fill" => 7000,
        "norm" | "rope" | "add" | "quant" | "extra_copy" | "extra_scale" | "gated_norm"
        | "gate" => 8000,
        "finalize" | "qkv_split_k" => 8000,
        "state" | "conv" | "norm_backward" | "act_backward" => 10_000,
        "rope_kv_cache" | "norm_quant" | "sampling" => 10_000,
        "act" => 12_000,
        "act_quant" | "q" => 14_000,
        "out" => 15_000,
        "all_reduce" | "qkv" => 18_000,
        "attention_softmax" | "attention_scores" | "attention_values" => 18_000,
        "gradient" | "all_reduce_norm" | "loss" => 20_000,
        "down" => 22_000,
        "in" | "scan" | "attention" => 25_000,
        "gate_up" => 30_000,
        "experts_down" => 32_000,
        "gate_up_act" => 36_000,
        "experts_up" => 40_000,
        "experts_up_act" => 46_000,
        "attention_backward" => 50_000,
        "lm_head" | "optimizer" => 60_000,
        _ => 9000,
    }
}
