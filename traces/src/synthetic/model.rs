//! The blocks of a model: which kernels, in which order.

use super::kernels::{self as k, Kernel};
use super::random::Random;
use super::{Communication, Edit, Model, Phase, Plan, Variation};

/// Kernels in the order in which they are launched.
pub(super) type Kernels = Vec<&'static Kernel>;

/// One layer in this many has windowed attention, if the model has any.
const WINDOW_EVERY: u64 = 4;

/// Kernels of a step without layers, for each layer that the plan asks for.
const BAG_PART: u64 = 8;

/// What comes before the first block.
pub(super) fn head(plan: &Plan) -> Kernels {
    if plan.model == Model::Bag { Vec::new() } else { vec![&k::EMBEDDING] }
}

/// What comes after the last block and may be in a graph with it.
pub(super) fn tail(plan: &Plan) -> Kernels {
    match plan.model {
        Model::Bag => Vec::new(),
        Model::Training => vec![&k::OPTIMIZER, &k::OPTIMIZER],
        _ => edited(plan, vec![&k::NORM, &k::SELECT, &k::LM_HEAD], Edit::reaches_tail),
    }
}

/// Kernels with what the plan does in another way.
fn edited(plan: &Plan, kernels: Kernels, reaches: impl Fn(Edit) -> bool) -> Kernels {
    let edits = plan.edits.iter().copied().filter(|edit| reaches(*edit));
    edits.fold(kernels, |kernels, edit| edit.apply(kernels))
}

/// What makes tokens of the result, and never is in a graph.
pub(super) fn sampling(plan: &Plan) -> Kernels {
    match plan.model {
        Model::Bag | Model::Training => Vec::new(),
        _ => vec![&k::TO_FLOAT, &k::ARGMAX],
    }
}

/// The blocks of a step with the layers that they are, and what is between them without one.
pub(super) fn body(plan: &Plan, phase: Phase, random: &mut Random) -> Vec<(Option<u64>, Kernels)> {
    let of_layer = |layer| edited(plan, block(plan, layer, phase), |_| true);
    let forward = (0..plan.layers).map(|layer| (Some(layer), of_layer(layer)));
    match plan.model {
        Model::Bag => vec![(None, bag(plan, random))],
        Model::Training => {
            let loss = vec![&k::NORM, &k::LM_HEAD, &k::LOSS, &k::GRADIENT];
            let loss = edited(plan, loss, Edit::reaches_tail);
            let backward = (0..plan.layers).rev().map(|layer| (Some(layer), backward(plan)));
            forward.chain([(None, loss)]).chain(backward).collect()
        }
        _ => forward.collect(),
    }
}

fn block(plan: &Plan, layer: u64, phase: Phase) -> Kernels {
    let has_attention = match plan.model {
        Model::StateSpace => false,
        Model::Hybrid => layer % 2 == 1,
        _ => true,
    };
    let mut kernels: Kernels = vec![if layer == 0 { &k::FIRST_NORM } else { &k::NORM }];
    if has_attention {
        attention(plan, layer, phase, &mut kernels);
    } else {
        state_space(phase, &mut kernels);
    }
    kernels.extend(all_reduce(plan));
    let has_experts = plan.model == Model::MixtureOfExperts
        && !(layer == 0 && plan.variation == Variation::FirstDense);
    if has_attention {
        kernels.push(&k::NORM);
        if has_experts {
            kernels.extend([&k::ROUTER, &k::TOP_K, &k::ALIGN, &k::SORT_TOKENS, &k::GATE]);
            kernels.extend([&k::EXPERTS_UP, &k::EXPERTS_DOWN, &k::FINALIZE]);
        } else {
            kernels.extend([&k::GATE_UP, &k::ACT_MUL, &k::DOWN]);
        }
        kernels.extend(all_reduce(plan));
    }
    if plan.variation == Variation::OneExtra && layer == plan.layers / 2 {
        kernels.push(&k::EXTRA);
    }
    kernels
}

fn attention(plan: &Plan, layer: u64, phase: Phase, kernels: &mut Kernels) {
    kernels.extend([&k::QKV, &k::ROPE]);
    if plan.model == Model::Training {
        kernels.extend([&k::ATTENTION_TRAIN, &k::OUT]);
        return;
    }
    kernels.push(&k::CACHE_WRITE);
    let is_window =
        plan.variation == Variation::SlidingWindow && layer % WINDOW_EVERY == WINDOW_EVERY - 1;
    if phase != Phase::Decode {
        kernels.push(if is_window { &k::WINDOW_PREFILL } else { &k::ATTENTION_PREFILL });
    }
    if phase != Phase::Prefill {
        kernels.push(if is_window { &k::WINDOW_DECODE } else { &k::ATTENTION_DECODE });
        kernels.push(&k::ATTENTION_REDUCE);
    }
    if plan.copies {
        kernels.push(&k::CLEAR);
    }
    kernels.push(&k::OUT);
    if phase == Phase::Decode {
        kernels.push(&k::SPLIT_K);
    }
}

fn state_space(phase: Phase, kernels: &mut Kernels) {
    let (conv, scan) = match phase {
        Phase::Decode => (&k::CONV_DECODE, &k::SCAN_DECODE),
        Phase::Prefill | Phase::Mixed => (&k::CONV_PREFILL, &k::SCAN_PREFILL),
    };
    kernels.extend([&k::IN_PROJECTION, conv, &k::STATE_PROJECTION, scan, &k::GATED_NORM, &k::OUT]);
}

fn backward(plan: &Plan) -> Kernels {
    let mut kernels: Kernels = vec![&k::GRADIENT, &k::GRADIENT, &k::ACT_BACKWARD, &k::GRADIENT];
    kernels.extend([&k::GRADIENT, &k::NORM_BACKWARD, &k::GRADIENT, &k::GRADIENT]);
    kernels.extend([&k::ATTENTION_BACKWARD, &k::GRADIENT, &k::GRADIENT, &k::NORM_BACKWARD]);
    kernels.extend(all_reduce(plan));
    kernels
}

fn bag(plan: &Plan, random: &mut Random) -> Kernels {
    let pool: [&Kernel; 8] = [
        &k::PERMUTE,
        &k::BAGS,
        &k::MLP,
        &k::RELU,
        &k::CONCATENATE,
        &k::SUM,
        &k::SORT,
        &k::OPTIMIZER,
    ];
    let mut kernels = Vec::new();
    for _ in 0..plan.layers {
        for _ in 0..BAG_PART {
            kernels.extend(pool.get(random.below(pool.len() as u64) as usize));
        }
        kernels.extend(all_reduce(plan));
    }
    kernels
}

fn all_reduce(plan: &Plan) -> Option<&'static Kernel> {
    match plan.communication {
        Communication::None => None,
        Communication::SameStream => Some(&k::ALL_REDUCE_SAME),
        Communication::OwnStream => Some(&k::ALL_REDUCE_OWN),
    }
}
