//! Linear layers: MatMul and Gemm, and the Linear of PyTorch that only JSON has.

use fusion_cost_model::{Op, Pointwise};

use super::assumption::Assumption;
use super::flow::Flow;
use super::links::is_near;
use super::unit::{Layout, OpSizes, Reason, Unit, UnitOp, dtype, is_vector, shape};
use crate::shapes::elements;
use crate::tensor::TensorId;

/// A MatMul whose second input is one matrix.
pub(crate) fn matmul(flow: &Flow, node: usize) -> Result<Unit, Reason> {
    let (x, weight, output) = parts(flow, node)?;
    let (x_shape, w_shape) = (shape(flow, x)?, shape(flow, weight)?);
    let [batch @ .., k, n] = w_shape else {
        return Err("it multiplies by a vector".to_owned());
    };
    let (k, n) = (*k, *n);
    if batch.iter().any(|&size| size != 1) {
        return Err("a batched GEMM: its second input is not one matrix".to_owned());
    }
    let m = elements(x_shape).checked_div(k).unwrap_or(0);
    unit(flow, node, x, weight, Layout::rows(m, k), n, output)
}

/// A Gemm: a linear layer with what it adds.
pub(crate) fn gemm(flow: &Flow, node: usize) -> Result<Unit, Reason> {
    let (x, weight, output) = parts(flow, node)?;
    let attributes = &flow.node(node).attributes;
    if attributes.int("transA").unwrap_or(0) != 0 {
        return Err("it transposes its first input".to_owned());
    }
    let (&[m, k], &[_, n]) = (shape(flow, x)?, shape(flow, output)?) else {
        return Err("its inputs are not matrices".to_owned());
    };
    let mut linear = unit(flow, node, x, weight, Layout::rows(m, k), n, output)?;
    // What is known ahead of time is multiplied ahead of time.
    let is_scaled = |factor, of: Option<TensorId>| {
        !is_near(attributes.float(factor).unwrap_or(1.0), 1.0)
            && of.is_some_and(|of| !flow.is_constant(of))
    };
    if is_scaled("alpha", Some(weight)) || is_scaled("beta", flow.node(node).input(2)) {
        linear = linear.assuming(Assumption::FreeFactors);
    }
    with_addend(flow, node, linear, &[m, n])
}

/// PyTorch's linear layer: an input of any shape, a weight `[n, k]`, and a bias.
pub(crate) fn linear(flow: &Flow, node: usize) -> Result<Unit, Reason> {
    let (x, weight, output) = parts(flow, node)?;
    let &[n, k] = shape(flow, weight)? else { return Err("its weight is not a matrix".to_owned()) };
    let rows = elements(shape(flow, x)?).checked_div(k).unwrap_or(0);
    let linear = unit(flow, node, x, weight, Layout::rows(rows, k), n, output)?;
    with_addend(flow, node, linear, shape(flow, output)?)
}

/// The same with what the node's third input adds to the product.
fn with_addend(flow: &Flow, node: usize, linear: Unit, full: &[u64]) -> Result<Unit, Reason> {
    let Some(added) = flow.node(node).input(2) else { return Ok(linear) };
    if full.last().is_some_and(|&cols| is_vector(flow, added, cols)) {
        return Ok(linear.then(Pointwise::Bias));
    }
    let is_full = shape(flow, added)? == full;
    let linear = linear.then(Pointwise::Add).reading_at(1, flow, [added]);
    Ok(if is_full { linear } else { linear.assuming(Assumption::BroadcastOperand) })
}

/// The input, the weight and the output of a GEMM.
fn parts(flow: &Flow, node: usize) -> Result<(TensorId, TensorId, TensorId), Reason> {
    let of = flow.node(node);
    let (Some(x), Some(weight), Some(output)) = (of.input(0), of.input(1), of.output()) else {
        return Err("one of its inputs is missing".to_owned());
    };
    if flow.is_constant(x) && !flow.is_constant(weight) {
        return Err("its first input is constant: it computes W X, and a linear op X W".to_owned());
    }
    Ok((x, weight, output))
}

fn unit(
    flow: &Flow,
    node: usize,
    x: TensorId,
    weight: TensorId,
    input: Layout,
    n: u64,
    output: TensorId,
) -> Result<Unit, Reason> {
    let op = UnitOp {
        op: Op::Linear,
        input,
        output: Layout::rows(input.matrix.rows, n),
        sizes: OpSizes::Matrices,
        nodes: vec![node],
    };
    let weights = if flow.is_constant(weight) {
        Assumption::PrepackedWeights
    } else {
        Assumption::ComputedWeights
    };
    let unit = Unit {
        ops: vec![op],
        dtype: dtype(flow, x)?,
        nodes: vec![node],
        inputs: vec![x],
        operands: Vec::new(),
        output,
        adapts: false,
        assumptions: vec![weights],
    };
    Ok(unit.reading(flow, [weight]))
}
