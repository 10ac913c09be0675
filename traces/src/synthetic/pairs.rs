//! Pairs of every kind.

use super::{
    Annotation, Communication, Difference, Edit, Launching, Model, Pace, PairPlan, Phase, Plan,
    Side, Timing, Variation,
};
use crate::Vendor;

/// Pairs of each difference.
const EACH: usize = 12;

/// At least 250 pairs of every difference: of all vendors in both orders, models, ways to launch,
/// marks and none, phases, and numbers of layers and steps. The same ones every time.
#[must_use]
pub fn pair_plans() -> Vec<PairPlan> {
    let number = |difference: usize| (0..EACH).map(move |variant| (difference, variant));
    let all = (0..Difference::ALL.len()).flat_map(number);
    all.filter_map(|(at, variant)| Some(pair(*Difference::ALL.get(at)?, at, variant))).collect()
}

/// One of a list, over and over.
fn pick<T: Clone>(list: &[T], index: usize, otherwise: T) -> T {
    list.get(index % list.len().max(1)).cloned().unwrap_or(otherwise)
}

fn pair(difference: Difference, at: usize, variant: usize) -> PairPlan {
    // Differences begin at different places of the lists.
    let number = at * 7 + variant;
    let changed = if (variant / 2).is_multiple_of(2) { Side::First } else { Side::Second };
    let is_amd = |place: usize| !(number >> place).is_multiple_of(2);
    let mut vendors = [0, 1].map(|place| if is_amd(place) { Vendor::Amd } else { Vendor::Nvidia });
    if difference == Difference::FusedAllReduceNorm {
        vendors[usize::from(changed == Side::Second)] = Vendor::Nvidia;
    }
    let base = plan(difference, number);
    // How much slower the second device is, in thousandths.
    let slower = match (vendors[0] == vendors[1], difference.is_large()) {
        (true, _) => 0,
        (false, true) => pick(&[30, 12, 21], number, 0),
        (false, false) => pick(&[3, 0, 2], number, 0),
    };
    let side = |place: usize, permille| Plan {
        vendor: vendors[place],
        pace: Some(Pace { permille, ..Pace::default() }),
        seed: (2 * number + place) as u64 * 7919 + 1,
        ..base.clone()
    };
    let (first, second) = match variant % 3 {
        0 => (side(0, 1000 + slower), side(1, 1000)),
        _ => (side(0, 1000), side(1, 1000 + slower)),
    };
    PairPlan::new(first, second, difference, changed)
}

/// What both sides of a pair run.
fn plan(difference: Difference, number: usize) -> Plan {
    let model = pick(models(difference), number, Model::Dense);
    let communications: &[Communication] = match (difference, model) {
        (Difference::FusedAllReduceNorm, _) | (Difference::SlowAllReduce, Model::Training) => {
            &[Communication::SameStream]
        }
        (Difference::SlowAllReduce, _) => &[Communication::OwnStream, Communication::SameStream],
        _ => &[Communication::None, Communication::SameStream, Communication::OwnStream],
    };
    let variations: &[Variation] = match model {
        Model::Dense => &[Variation::None, Variation::SlidingWindow, Variation::OneExtra],
        // The activation must be fused with the same in all layers.
        Model::MixtureOfExperts
            if !matches!(
                difference,
                Difference::FusedExpertsAct
                    | Difference::SilentAct
                    | Difference::CheapAct
                    | Difference::ModestAct
            ) =>
        {
            &[Variation::None, Variation::FirstDense]
        }
        _ => &[Variation::None],
    };
    let annotations: [&[Annotation]; 5] = [
        &[Annotation::Vllm],
        &[],
        &[Annotation::ProfilerStep, Annotation::VllmDetailed],
        &[Annotation::Sglang],
        &[Annotation::ProfilerStep],
    ];
    let edits = match (model, difference) {
        (Model::MixtureOfExperts, Difference::FusedExpertsAct) => Vec::new(),
        (Model::MixtureOfExperts, _) => vec![Edit::SeparateExpertsAct],
        _ => Vec::new(),
    };
    let layers = pick(&[4, 3, 5, 2, 7, 6, 9], number / 2, 4);
    // A pattern of two kinds of layers shows only from four on.
    let is_mixed = model == Model::Hybrid || variations.len() == 2;
    let layers = if is_mixed { layers.max(4) } else { layers };
    let (layers, steps) = if number % 40 == 5 { (33, 2) } else { (layers, 3) };
    Plan {
        model,
        layers,
        steps: if difference == Difference::MoreSteps { 3 } else { steps + number as u64 / 3 % 2 },
        variation: pick(variations, number / 3, Variation::None),
        phases: pick(&phases(difference), number / 2, vec![Phase::Decode]),
        launching: if difference.needs_operators() {
            Launching::Eager
        } else {
            pick(&Launching::ALL, number + number / 4, Launching::Eager)
        },
        timing: pick(&Timing::ALL, number + number / 3, Timing::Synchronous),
        annotations: pick(&annotations, number, &[]).to_vec(),
        communication: pick(communications, number / 2, Communication::None),
        copies: number % 5 == 1,
        operators: number % 4 == 2 || difference.needs_operators(),
        device_annotations: number.is_multiple_of(2),
        frames: u64::from(number % 6 == 3),
        edits,
        ..Plan::default()
    }
}

/// The models that can have a difference.
fn models(difference: Difference) -> &'static [Model] {
    use Model::{Dense, Hybrid, MixtureOfExperts, StateSpace, Training};
    match difference {
        Difference::FusedExpertsAct => &[MixtureOfExperts],
        Difference::NoGatedNorm => &[StateSpace],
        // Kernels of a class must be missing in every layer, and the backward pass has its own.
        Difference::SilentAct
        | Difference::CheapAct
        | Difference::ModestAct
        | Difference::NoAct => &[Dense, MixtureOfExperts],
        Difference::FusedRopeCache
        | Difference::SilentRope
        | Difference::CheapRope
        | Difference::NoRope => &[Dense, MixtureOfExperts, Dense],
        Difference::OperatorAct
        | Difference::NoActSlowGemm
        | Difference::FusedActQuant
        | Difference::FusedGemmAct
        | Difference::SeparateGate
        | Difference::SeparateAttention => &[Dense],
        Difference::SeparateQkv | Difference::SeparateAddNorm => {
            &[Dense, MixtureOfExperts, Training, Dense]
        }
        Difference::FusedNormQuant | Difference::FusedAllReduceNorm | Difference::ExtraScale => {
            &[Dense, MixtureOfExperts]
        }
        _ => &[Dense, MixtureOfExperts, StateSpace, Dense, Hybrid, Training],
    }
}

/// What the steps may be for.
fn phases(difference: Difference) -> Vec<Vec<Phase>> {
    use Phase::{Decode, Mixed, Prefill};
    match difference {
        Difference::SeparateAttention => vec![vec![Prefill]],
        Difference::MoreSteps => {
            vec![vec![Decode], vec![Prefill, Decode, Mixed], vec![Prefill]]
        }
        _ => vec![vec![Decode], vec![Prefill], vec![Prefill, Decode, Mixed], vec![Decode, Prefill]],
    }
}
