//! What comes out of the model: which tokens have a next one predicted, and what becomes of that.
//!
//! A model predicts tokens of the table that it looks up, by a GEMM as wide as that table has rows.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::layers::Layers;
use super::super::order::StreamOrder;
use super::beside;
use crate::launched::NONE;
use crate::shapes::{Problem, Shape, base};
use crate::{NameId, Trace};

/// What comes out of the model.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    /// Whether the model says which token is next, which encoders do not.
    pub(super) predicts_tokens: bool,
    pub(super) computes_loss: bool,
    /// The most tokens whose probabilities are computed over the whole vocabulary at once.
    scored: u64,
    /// By pass, for how many tokens a next one is predicted; none if that is unknown or several.
    pub(super) of_pass: Vec<Option<u64>>,
}

impl Outputs {
    pub(super) fn of(
        trace: &Trace,
        operators: &[u32],
        layers: &Layers,
        order: &StreamOrder,
    ) -> Self {
        let ops = &trace.ops;
        let calls: FxHashSet<(NameId, u32)> =
            ops.name.iter().copied().zip(ops.shape.iter().copied()).collect();
        let text = |(name, shape): (NameId, u32)| {
            (trace.names.text(name), trace.shapes.text(NameId(shape)))
        };
        let (mut vocabularies, mut widths) = (FxHashSet::default(), FxHashSet::default());
        let mut found = Self::default();
        for (op, shape) in calls.iter().copied().map(text) {
            let name = base(op);
            found.computes_loss |= name.contains("nll_loss") || name.contains("cross_entropy");
            match Problem::of(op, shape) {
                Some(Problem::Embedding { vocabulary, .. }) => {
                    vocabularies.insert(vocabulary);
                }
                Some(Problem::Gemm { batch: 1, n, .. }) => {
                    widths.insert(n);
                }
                _ => {}
            }
        }
        found.predicts_tokens = vocabularies.intersection(&widths).next().is_some();
        for (op, shape) in calls.iter().copied().map(text) {
            found.scored = found.scored.max(scored(op, shape, &vocabularies).unwrap_or(0));
        }
        let heads = calls.into_iter().filter_map(|call| {
            let (op, shape) = text(call);
            match Problem::of(op, shape)? {
                Problem::Gemm { batch: 1, m, n, .. } if vocabularies.contains(&n) => {
                    Some((call, m))
                }
                _ => None,
            }
        });
        let heads: Heads = heads.collect();
        found.of_pass = of_passes(trace, operators, layers, order, &heads);
        found
    }

    /// Whether probabilities are computed for most of the tokens of a pass, as an evaluation does;
    /// who generates needs those of the last token of a sequence.
    pub(super) fn are_scored(&self, tokens: u64) -> bool {
        self.scored > tokens / 2
    }
}

/// For how many tokens an operator computes probabilities of all that the model knows.
fn scored(op: &str, shape: &str, vocabularies: &FxHashSet<u64>) -> Option<u64> {
    let has_logarithm = matches!(base(op), "_log_softmax" | "log_softmax" | "logsumexp");
    if !has_logarithm && !matches!(base(op), "_softmax" | "softmax") {
        return None;
    }
    let shape = Shape::of(shape);
    let (width, rows) = shape.inputs.first()?.dims.split_last()?;
    // That of attention is over keys.
    (has_logarithm || vocabularies.contains(&(*width)?)).then_some(())?;
    rows.iter().try_fold(1_u64, |rows, dim| rows.checked_mul((*dim)?))
}

/// The calls of GEMMs that predict tokens, with their rows.
type Heads = FxHashMap<(NameId, u32), u64>;

/// The rows of the GEMM that predicts tokens behind the layers of each pass.
fn of_passes(
    trace: &Trace,
    operators: &[u32],
    layers: &Layers,
    order: &StreamOrder,
    heads: &Heads,
) -> Vec<Option<u64>> {
    let mut rows_of: Vec<Vec<Option<u64>>> = vec![Vec::new(); layers.passes.len()];
    let rows = |row: u32| {
        let op = operators.get(row as usize).copied().filter(|op| *op != NONE)? as usize;
        heads.get(&(*trace.ops.name.get(op)?, *trace.ops.shape.get(op)?)).copied()
    };
    for lane in beside::used_lanes(trace, layers) {
        let mut pass = None;
        for row in order.of_lane(lane as usize) {
            if let Some(layer) = layers.layer(*row as usize).and_then(|at| layers.list.get(at)) {
                pass = Some(layer.pass as usize);
            }
            if let Some(rows) = rows(*row)
                && let Some(of_pass) = pass.and_then(|pass| rows_of.get_mut(pass))
            {
                of_pass.push(Some(rows));
            }
        }
    }
    rows_of.into_iter().map(only).collect()
}

/// What all have in common; none if they differ.
pub(super) fn only<T: PartialEq + Copy>(mut all: Vec<Option<T>>) -> Option<T> {
    all.dedup();
    match all[..] {
        [only] => only,
        _ => None,
    }
}
