//! What passes are known by beside the classes of their kernels, which layers of two models may have
//! in common: the sizes of their weights, how many attentions a layer has, and how long one takes.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::cut::Recording;
use super::sequence::Sequence;
use crate::classify::Class;
use crate::launched::{NONE, operators};
use crate::ratio::ratio;
use crate::shapes::Problem;
use crate::{NameId, Trace};

/// Sizes say which model it is where this share of the GEMMs have them.
const ENOUGH_SIZES: f64 = 0.5;

/// Passes of one model have at least this share of their calls with the same weights.
const SAME_WEIGHTS: f64 = 0.5;

/// Layers of two models differ by this factor, or more, in every pass. How much the passes of one
/// model differ depends on their tokens.
const OTHER_TIME: f64 = 1.5;

/// Fewer passes do not show that something takes another time whenever it runs.
const LEAST_PASSES: usize = 2;

/// The sizes of the weights that kernels multiply with.
pub(super) struct Weights<'t> {
    trace: &'t Trace,
    launches: &'t [u32],
    /// Most traces have one model and need none of this.
    operators: OnceCell<Vec<u32>>,
    known: RefCell<FxHashMap<(NameId, u32), Size>>,
}

/// Rows and columns of a weight, where an operator says them.
type Size = Option<[u64; 2]>;

impl<'t> Weights<'t> {
    pub(super) fn of(trace: &'t Trace, launches: &'t [u32]) -> Self {
        Self { trace, launches, operators: OnceCell::new(), known: RefCell::default() }
    }

    /// Rows and columns of the weight; none if the operator of the kernel does not say.
    fn size(&self, kernel: usize) -> Size {
        let Self { trace, launches, .. } = self;
        let operators = self.operators.get_or_init(|| operators(trace, launches));
        let op = *operators.get(kernel).filter(|row| **row != NONE)? as usize;
        let key = (*trace.ops.name.get(op)?, *trace.ops.shape.get(op)?);
        *self.known.borrow_mut().entry(key).or_insert_with(|| {
            let (name, shape) = (trace.names.text(key.0), trace.shapes.text(NameId(key.1)));
            match Problem::of(name, shape)? {
                Problem::Gemm { batch: 1, n, k, .. } => Some([n, k]),
                _ => None,
            }
        })
    }
}

/// What a pass is known by, or several.
#[derive(Debug, Clone, Default)]
pub(super) struct Signature {
    /// How many GEMMs have weights of each size.
    weights: FxHashMap<[u64; 2], u64>,
    gemms: u64,
    /// How many attentions the layers have.
    attentions: FxHashSet<usize>,
    /// The layer in the middle of each pass, in nanoseconds.
    layer_ns: Vec<u64>,
}

impl Signature {
    /// Of a pass: its layers, the first `whole` of which have both ends.
    pub(super) fn of(
        recording: &Recording<'_>,
        sequence: &Sequence<'_>,
        layers: &[Range<usize>],
        whole: usize,
    ) -> Self {
        let mut own = Self::default();
        for at in layers.iter().flat_map(Clone::clone).filter(|at| sequence.is_gemm(*at)) {
            own.gemms += 1;
            if let Some(size) = recording.weights.size(sequence.kernel(at)) {
                *own.weights.entry(size).or_default() += 1;
            }
        }
        let whole = layers.get(..whole).unwrap_or_default();
        own.attentions = whole.iter().map(|layer| attentions(sequence, layer)).collect();
        let mut times: Vec<u64> =
            whole.iter().map(|layer| sequence.total_ns(recording.trace, layer.clone())).collect();
        times.sort_unstable();
        own.layer_ns.extend(times.get(times.len() / 2));
        own
    }

    /// Of this and other passes.
    pub(super) fn join(&mut self, other: &Self) {
        for (size, count) in &other.weights {
            *self.weights.entry(*size).or_default() += count;
        }
        self.gemms += other.gemms;
        self.attentions.extend(&other.attentions);
        self.layer_ns.extend(&other.layer_ns);
    }

    /// Whether the weights are those of another model; none if their sizes are not known.
    pub(super) fn has_other_weights(&self, model: &Self) -> Option<bool> {
        let sized = |one: &Self| one.weights.values().sum::<u64>();
        let is_known = |one: &Self| one.gemms > 0 && ratio(sized(one), one.gemms) >= ENOUGH_SIZES;
        if !is_known(self) || !is_known(model) {
            return None;
        }
        let shared = self.weights.iter().filter(|(size, _)| model.weights.contains_key(*size));
        let shared = shared.map(|(_, count)| count).sum();
        Some(ratio(shared, sized(self)) < SAME_WEIGHTS)
    }

    /// Whether no layer has as many attentions as any of the other's.
    pub(super) fn has_other_attentions(&self, model: &Self) -> bool {
        let are_known = !self.attentions.is_empty() && !model.attentions.is_empty();
        are_known && self.attentions.is_disjoint(&model.attentions)
    }

    /// Whether layers take another time, in all of several passes of both.
    #[expect(clippy::cast_precision_loss, reason = "a comparison of times")]
    pub(super) fn takes_other_times(&self, model: &Self) -> bool {
        let range = |one: &Self| {
            let are_several = one.layer_ns.len() >= LEAST_PASSES;
            let (least, most) = (one.layer_ns.iter().min(), one.layer_ns.iter().max());
            least.zip(most).filter(|_| are_several).map(|(a, b)| (*a as f64, *b as f64))
        };
        let (Some(own), Some(other)) = (range(self), range(model)) else { return false };
        own.0 > OTHER_TIME * other.1 || other.0 > OTHER_TIME * own.1
    }
}

/// How many attentions a layer has: kernels of attention with no GEMM between them are one.
fn attentions(sequence: &Sequence<'_>, layer: &Range<usize>) -> usize {
    let mut count = 0;
    let mut is_open = false;
    for at in layer.clone() {
        if sequence.class(at) == Class::Attn {
            count += usize::from(!is_open);
            is_open = true;
        } else if sequence.is_gemm(at) {
            is_open = false;
        }
    }
    count
}
