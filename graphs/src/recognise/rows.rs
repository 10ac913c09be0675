//! Softmax, and normalisations that are one node.

use fusion_cost_model::{Op, Pointwise};

use super::flow::Flow;
use super::unit::{Layout, Reason, Unit, shape, split_at, with_columns};
use crate::tensor::TensorId;

/// The first version of ONNX's operators in which Softmax is over one axis. Before, it was over all
/// dimensions from its axis on, which was 1 by default.
const SOFTMAX_OVER_ONE_AXIS: u64 = 13;

/// A softmax over rows.
pub(crate) fn softmax(flow: &Flow, node: usize) -> Result<Unit, Reason> {
    let (x, output) = ends(flow, node)?;
    Unit::on_rows(flow, &[Op::Softmax], x, softmax_rows(flow, node)?, vec![node], output)
}

/// The rows that a softmax is over.
pub(crate) fn softmax_rows(flow: &Flow, node: usize) -> Result<Layout, Reason> {
    let (x, _) = ends(flow, node)?;
    let shape = shape(flow, x)?;
    let is_old = flow.graph.opset < SOFTMAX_OVER_ONE_AXIS;
    let axis = flow.node(node).attributes.int("axis").unwrap_or(if is_old { 1 } else { -1 });
    let axis = place(axis, shape)?;
    let is_over_rows = is_old || axis + 1 == shape.len();
    if !is_over_rows {
        return Err("it is not over the last axis".to_owned());
    }
    Ok(split_at(shape, axis))
}

/// A layer norm or RMS norm.
pub(crate) fn norm(flow: &Flow, node: usize, op: Op) -> Result<Unit, Reason> {
    let (x, output) = ends(flow, node)?;
    if flow.writes_more(node) {
        return Err("it writes its statistics too".to_owned());
    }
    let shape = shape(flow, x)?;
    let axis = place(flow.node(node).attributes.int("axis").unwrap_or(-1), shape)?;
    let weights = flow.node(node).inputs.iter().skip(1).flatten().copied();
    let unit = Unit::on_rows(flow, &[op], x, split_at(shape, axis), vec![node], output)?;
    Ok(unit.reading(flow, weights))
}

/// A norm of a sum, as ONNX Runtime fuses them: input, skip, weight, shift and bias, in which the
/// RMS norm has no shift.
pub(crate) fn skip_norm(flow: &Flow, node: usize, op: Op) -> Result<Unit, Reason> {
    let (x, output) = ends(flow, node)?;
    if flow.writes_more(node) {
        return Err("it writes the sum too".to_owned());
    }
    let shape = shape(flow, x)?;
    let layout = with_columns(shape, shape.len().saturating_sub(1));
    let bias = flow.node(node).input(if op == Op::LayerNorm { 4 } else { 3 });
    let mut ops = vec![Pointwise::Add.into(), op];
    if bias.is_some() {
        ops.insert(0, Pointwise::Bias.into());
    }
    let others = flow.node(node).inputs.iter().skip(2).flatten().copied();
    let unit = Unit::on_rows(flow, &ops, x, layout, vec![node], output)?;
    let add = usize::from(bias.is_some());
    Ok(unit.reading_at(add, flow, flow.node(node).input(1)).reading_at(add + 1, flow, others))
}

/// Batch norm with running statistics.
pub(crate) fn batch_norm(flow: &Flow, node: usize) -> Result<Unit, Reason> {
    let (x, output) = ends(flow, node)?;
    let is_training = flow.node(node).attributes.int("training_mode").unwrap_or(0) != 0;
    if is_training || flow.writes_more(node) {
        return Err("it is in training mode".to_owned());
    }
    let layout = with_columns(shape(flow, x)?, 1);
    let statistics = flow.node(node).inputs.iter().skip(1).flatten().copied();
    let ops = [Pointwise::BatchNorm.into()];
    let unit = Unit::on_rows(flow, &ops, x, layout, vec![node], output)?;
    Ok(unit.reading(flow, statistics))
}

fn ends(flow: &Flow, node: usize) -> Result<(TensorId, TensorId), Reason> {
    let node = flow.node(node);
    node.input(0).zip(node.output()).ok_or_else(|| "its input is missing".to_owned())
}

/// An axis counted from the first one.
fn place(axis: i64, shape: &[u64]) -> Result<usize, Reason> {
    let rank = i64::try_from(shape.len()).unwrap_or(i64::MAX);
    let from_start = if axis < 0 { axis.saturating_add(rank) } else { axis };
    usize::try_from(from_start)
        .ok()
        .filter(|&axis| axis < shape.len())
        .ok_or_else(|| format!("its tensor has no axis {axis}"))
}
