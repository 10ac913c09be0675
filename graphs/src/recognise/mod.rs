//! Which nodes are ops of the vocabulary.
//!
//! `flow` says which nodes work at all. Rules for several nodes come first: `attention`, `norms`,
//! `activations`; what they take, no later rule sees. Then each remaining node is looked at by
//! itself: `linear`, `images`, `rows`, `pointwise`. A rule gives a `unit`, or the reason why the
//! node is opaque.

mod activations;
mod assumption;
mod attention;
mod flow;
mod images;
mod linear;
mod links;
mod norms;
mod pointwise;
mod rows;
mod unit;

use fusion_cost_model::{Op, Pointwise};

pub use assumption::Assumption;
pub(crate) use flow::{Flow, Role};
pub(crate) use unit::{Layout, OpSizes, Reason, Unit, UnitOp};

use crate::graph::Origin;
use crate::tensor::Element;

/// Why a node is opaque whose operator has no counterpart.
const NO_OP: &str = "the vocabulary has no such op";

/// What becomes of the working nodes, in an order in which they can run.
#[derive(Debug)]
pub(crate) enum Found {
    Unit(Unit),
    Opaque { node: usize, reason: Reason },
}

/// Every working node, as a part of a unit or as an opaque node.
pub(crate) fn recognise(flow: &Flow) -> Vec<Found> {
    let mut taken = vec![false; flow.graph.nodes.len()];
    // By the place of the last node, which the others come before.
    let mut found: Vec<(usize, Found)> = Vec::new();
    // A layer norm contains what would be an RMS norm by itself, and so comes first.
    for rule in [attention::around, norms::layer_norm, norms::rms_norm, activations::at] {
        for node in flow.work() {
            if taken[node] {
                continue;
            }
            let unit = rule(flow, &taken, node);
            if let Some(unit) = unit.filter(|unit| changed_dtype(flow, unit).is_none()) {
                unit.nodes.iter().for_each(|&node| taken[node] = true);
                let last = unit.nodes.iter().max().copied().unwrap_or(node);
                found.push((last, Found::Unit(unit)));
            }
        }
    }
    for node in flow.work().filter(|&node| !taken[node]) {
        let unit = alone(flow, node).and_then(|unit| match changed_dtype(flow, &unit) {
            Some(reason) => Err(reason),
            None => Ok(unit),
        });
        found.push((
            node,
            match unit {
                Ok(unit) => Found::Unit(unit),
                Err(reason) => Found::Opaque { node, reason },
            },
        ));
    }
    found.sort_by_key(|(last, _)| *last);
    found.into_iter().map(|(_, found)| found).collect()
}

/// Why a unit is no problem: those read and write one dtype.
fn changed_dtype(flow: &Flow, unit: &Unit) -> Option<Reason> {
    let written = flow.element(unit.output)?;
    let is_changed = written != Element::Number(unit.dtype);
    is_changed.then(|| format!("it reads {} and writes {written}", unit.dtype))
}

/// A node by itself.
fn alone(flow: &Flow, index: usize) -> Result<Unit, Reason> {
    let node = flow.node(index);
    match node.origin {
        Origin::Known => {}
        Origin::Custom => return Err("its operator is none of ONNX".to_owned()),
        Origin::LocalFunction => {
            return Err("it is a function of the model; inline it with onnx.inliner".to_owned());
        }
    }
    match node.op.as_str() {
        "Add" | "Div" | "Mul" | "Sum" => pointwise::binary(flow, index),
        "Attention" => attention::whole(flow, index),
        "BatchNormalization" => rows::batch_norm(flow, index),
        "Conv" => images::conv(flow, index),
        "Gemm" => linear::gemm(flow, index),
        "LayerNormalization" => rows::norm(flow, index, Op::LayerNorm),
        "Linear" => linear::linear(flow, index),
        "MatMul" => linear::matmul(flow, index),
        "MaxPool" => images::max_pool(flow, index),
        "RMSNormalization" | "SimplifiedLayerNormalization" => rows::norm(flow, index, Op::RmsNorm),
        "Softmax" => rows::softmax(flow, index),
        "com.microsoft.BiasGelu" => pointwise::bias_gelu(flow, index, Pointwise::Gelu),
        "com.microsoft.FastGelu" => pointwise::bias_gelu(flow, index, Pointwise::GeluTanh),
        "com.microsoft.SkipLayerNormalization" => rows::skip_norm(flow, index, Op::LayerNorm),
        "com.microsoft.SkipSimplifiedLayerNormalization" => {
            rows::skip_norm(flow, index, Op::RmsNorm)
        }
        "Transpose" => Err("it moves data, and the vocabulary has no such op".to_owned()),
        _ => pointwise::unary(flow, index),
    }
}
