//! Pointwise ops that are one node.

use fusion_cost_model::kernel::LEAKY_SLOPE;
use fusion_cost_model::{Op, Pointwise};

use super::assumption::Assumption;
use super::flow::{Flow, drops};
use super::links::is_near;
use super::unit::{Layout, Reason, Unit, is_vector, shape, with_columns};
use crate::graph::Node;
use crate::tensor::TensorId;

/// An op that transforms each element of its one input.
pub(crate) fn unary(flow: &Flow, node: usize) -> Result<Unit, Reason> {
    let of = flow.node(node);
    let (Some(x), Some(output)) = (of.input(0), of.output()) else {
        return Err("its input is missing".to_owned());
    };
    if of.is("Dropout") && flow.writes_more(node) {
        return Err("its mask is read too".to_owned());
    }
    Unit::pointwise(flow, unary_op(flow, of)?, x, vec![node], output)
}

fn unary_op(flow: &Flow, node: &Node) -> Result<Pointwise, Reason> {
    let number = |name, default| node.attributes.float(name).unwrap_or(default);
    match node.op.as_str() {
        "Clip" => return clip(flow, node),
        "Dropout" if drops(node, flow.facts, flow.graph.opset) => return Ok(Pointwise::Dropout),
        "Gelu" if node.attributes.text("approximate") == Some("tanh") => {
            return Ok(Pointwise::GeluTanh);
        }
        "HardSigmoid" if is_onnx_hard_sigmoid(node) => return Ok(Pointwise::OnnxHardSigmoid),
        "HardSigmoid" if !is_hard_sigmoid(node) => {
            return Err("its slope is neither 0.2 nor 1/6, or its offset not 1/2".to_owned());
        }
        "LeakyRelu" if !is_near(number("alpha", LEAKY_SLOPE), LEAKY_SLOPE) => {
            return Err(format!("its slope is not {LEAKY_SLOPE}"));
        }
        "Swish" if !is_near(number("alpha", 1.0), 1.0) => {
            return Err("its alpha is not 1".to_owned());
        }
        _ => {}
    }
    // The vocabulary knows the names of ONNX and PyTorch.
    match node.op.parse::<Op>() {
        Ok(Op::Pointwise(op)) if op.operands().is_empty() => Ok(op),
        _ => Err(super::NO_OP.to_owned()),
    }
}

/// Whether a HardSigmoid is PyTorch's.
pub(crate) fn is_hard_sigmoid(node: &Node) -> bool {
    has_slope(node, 1.0 / 6.0)
}

/// Whether a HardSigmoid is the one that ONNX has by default.
fn is_onnx_hard_sigmoid(node: &Node) -> bool {
    has_slope(node, 0.2)
}

fn has_slope(node: &Node, slope: f64) -> bool {
    let number = |name, default| node.attributes.float(name).unwrap_or(default);
    // The slope and offset that ONNX has by default are 0.2 and 0.5.
    is_near(number("alpha", 0.2), slope) && is_near(number("beta", 0.5), 0.5)
}

/// The bounds of a Clip, which older operators have as attributes.
pub(crate) fn clip_bounds(flow: &Flow, node: &Node) -> Option<(f64, f64)> {
    let bound = |input, name, default| match node.input(input) {
        Some(id) => flow.number(id),
        None => Some(node.attributes.float(name).unwrap_or(default)),
    };
    Some((bound(1, "min", f64::NEG_INFINITY)?, bound(2, "max", f64::INFINITY)?))
}

fn clip(flow: &Flow, node: &Node) -> Result<Pointwise, Reason> {
    // Some exporters write the largest float for no bound.
    match clip_bounds(flow, node) {
        Some((0.0, 6.0)) => Ok(Pointwise::Relu6),
        Some((0.0, max)) if max >= f64::from(f32::MAX) => Ok(Pointwise::Relu),
        _ => Err("its bounds are not those of ReLU or ReLU6".to_owned()),
    }
}

/// GELU with a bias, as ONNX Runtime fuses them.
pub(crate) fn bias_gelu(flow: &Flow, node: usize, gelu: Pointwise) -> Result<Unit, Reason> {
    let of = flow.node(node);
    let (Some(x), Some(output)) = (of.input(0), of.output()) else {
        return Err("its input is missing".to_owned());
    };
    let Some(bias) = of.input(1) else {
        return Unit::pointwise(flow, gelu, x, vec![node], output);
    };
    let ops = [Pointwise::Bias.into(), gelu.into()];
    let full = shape(flow, x)?;
    let columns = with_columns(full, full.len().saturating_sub(1));
    let unit = Unit::on_rows(flow, &ops, x, columns, vec![node], output)?;
    Ok(unit.reading(flow, [bias]))
}

/// An Add or Mul of two tensors, or a Div by a number.
pub(crate) fn binary(flow: &Flow, node: usize) -> Result<Unit, Reason> {
    let of = flow.node(node);
    let (&[Some(a), Some(b)], Some(output)) = (of.inputs.as_slice(), of.output()) else {
        return Err("it does not have two inputs".to_owned());
    };
    let is_add = of.is_any(&["Add", "Sum"]);
    let full = shape(flow, output)?;
    let (a_shape, b_shape) = (shape(flow, a)?, shape(flow, b)?);
    if full.iter().all(|&size| size == 1) {
        return Err("it computes a single number".to_owned());
    }
    // The tensor that flows along, and what is added to it or multiplied with it.
    let (x, operand) = match (a_shape == full, b_shape == full) {
        (true, true) if flow.is_constant(a) => (b, a),
        (true, _) => (a, b),
        (false, true) => (b, a),
        (false, false) => return Err("both of its inputs broadcast".to_owned()),
    };
    if flow.is_scalar(operand) {
        let is_first = operand == a;
        return match of.op.as_str() {
            "Div" if is_first => Err("it divides a number by a tensor".to_owned()),
            "Add" | "Sum" => Err("it adds one number to all elements".to_owned()),
            _ => {
                let unit = Unit::pointwise(flow, Pointwise::Scale, x, vec![node], output)?;
                Ok(unit.reading(flow, [operand]))
            }
        };
    }
    if of.is("Div") {
        return Err("it divides by a tensor".to_owned());
    }
    if let Some(columns) = bias_columns(flow, operand, x).filter(|_| is_add) {
        let ops = [Pointwise::Bias.into()];
        return Unit::on_rows(flow, &ops, x, columns, vec![node], output);
    }
    let op = if is_add { Pointwise::Add } else { Pointwise::Mul };
    let unit = Unit::pointwise(flow, op, x, vec![node], output)?;
    let is_full = flow.shape(operand) == Some(full);
    // Either of two tensors of one shape may be the one that flows along. A tensor with itself is
    // both.
    let (inputs, operands) = match is_full && !flow.is_constant(operand) {
        _ if flow.is_same(x, operand) => (vec![x], vec![x]),
        true => (vec![x, operand], vec![]),
        false => (vec![x], vec![operand]),
    };
    let unit = Unit { inputs, ..unit }.reading(flow, operands);
    Ok(if is_full { unit } else { unit.assuming(Assumption::BroadcastOperand) })
}

/// The matrix that a tensor is where a constant has one value for each of its columns.
fn bias_columns(flow: &Flow, bias: TensorId, x: TensorId) -> Option<Layout> {
    let (full, given) = (flow.shape(x)?, flow.shape(bias)?);
    let last = full.len().checked_sub(1)?;
    if is_vector(flow, bias, full[last]) {
        return Some(with_columns(full, last));
    }
    // One value for each channel of images: [c, 1, 1] or [1, c, 1, 1].
    let per_channel = |channels: u64| match given {
        &[c, 1, 1] | &[1, c, 1, 1] => c == channels,
        _ => false,
    };
    let is_channel = full.len() == 4 && flow.is_constant(bias) && per_channel(full[1]);
    is_channel.then(|| with_columns(full, 1))
}
