//! The shape and element type that each operator writes.

use super::layout::{self, axes, axis};
use super::windows::Window;
use super::{At, Shape, text};
use crate::tensor::Element;

/// Operators whose first output has the shape of their first input.
const LIKE_FIRST: &[&str] = &[
    "Abs",
    "BatchNormalization",
    "Cast",
    "CastLike",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "CumSum",
    "DequantizeLinear",
    "Dropout",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "GroupNormalization",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "InstanceNormalization",
    "IsInf",
    "IsNaN",
    "LRN",
    "LayerNormalization",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "MeanVarianceNormalization",
    "Mish",
    "Neg",
    "Not",
    "PRelu",
    "QuantizeLinear",
    "RMSNormalization",
    "Reciprocal",
    "Relu",
    "RotaryEmbedding",
    "Round",
    "ScatterElements",
    "ScatterND",
    "Selu",
    "Sigmoid",
    "Sign",
    "SimplifiedLayerNormalization",
    "Sin",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Swish",
    "Tanh",
    "Trilu",
    "com.microsoft.BiasGelu",
    "com.microsoft.FastGelu",
    "com.microsoft.Gelu",
    "com.microsoft.QuickGelu",
    "com.microsoft.RotaryEmbedding",
    "com.microsoft.SkipLayerNormalization",
    "com.microsoft.SkipSimplifiedLayerNormalization",
];

/// Operators that compare.
const COMPARE: &[&str] = &["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"];

/// Operators that broadcast their inputs against each other.
const BROADCAST: &[&str] = &[
    "Add", "And", "BitShift", "Div", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum",
    "Where", "Xor",
];

/// The shapes of the outputs, as far as they follow from the inputs, or what contradicts itself.
pub(super) fn shapes(at: &At) -> Result<Vec<Option<Shape>>, String> {
    let first = match at.node.op.as_str() {
        "Split" => return layout::split(at),
        op if LIKE_FIRST.contains(&op) => at.shape(0).map(<[u64]>::to_vec),
        op if BROADCAST.contains(&op) || COMPARE.contains(&op) => broadcast_all(at)?,
        op if op.starts_with("Reduce") => reduce(at)?,
        "ArgMax" | "ArgMin" => arg(at)?,
        "Attention" => attention(at),
        "AveragePool" | "LpPool" | "MaxPool" => pool(at)?,
        "Concat" => layout::concat(at)?,
        "ConstantOfShape" => filled(at),
        "Conv" => conv(at)?,
        "Expand" => expand(at)?,
        "Flatten" => layout::flatten(at)?,
        "Gather" => layout::gather(at)?,
        "Gemm" => gemm(at)?,
        "GlobalAveragePool" | "GlobalMaxPool" => global_pool(at),
        "Linear" => linear(at)?,
        "MatMul" => matmul(at)?,
        "Range" => progression(at),
        "Reshape" => layout::reshape(at)?,
        "Shape" => ranked(at)?,
        "Size" => Some(Vec::new()),
        "Slice" => layout::slice(at)?,
        "Squeeze" => layout::squeeze(at)?,
        "Transpose" => layout::transpose(at)?,
        "Unsqueeze" => layout::unsqueeze(at)?,
        _ => None,
    };
    Ok(vec![first])
}

/// The element type of the outputs whose shape is known.
pub(super) fn element(at: &At) -> Option<Element> {
    let of = |input| at.fact(input)?.element;
    let op = at.node.op.as_str();
    match op {
        "Cast" => {
            let attributes = &at.node.attributes;
            let named = attributes.text("to").and_then(|name| Element::parse(name).ok());
            let number = || Element::from_onnx(i32::try_from(attributes.int("to")?).ok()?);
            named.or_else(number)
        }
        "ArgMax" | "ArgMin" | "Shape" | "Size" => Some(Element::INT64),
        "IsInf" | "IsNaN" => Some(Element::BOOL),
        op if COMPARE.contains(&op) => Some(Element::BOOL),
        "CastLike" | "DequantizeLinear" | "Where" => of(1),
        "QuantizeLinear" => of(2),
        // Its value may be of any type, and is a number of 32 bits where none is given.
        "ConstantOfShape" => None,
        _ => of(0),
    }
}

/// Two shapes broadcast against each other.
fn broadcast(a: &[u64], b: &[u64]) -> Result<Shape, String> {
    let rank = a.len().max(b.len());
    let size = |shape: &[u64], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis])
    };
    let joined = (0..rank).map(|axis| match (size(a, axis), size(b, axis)) {
        (a, b) if a == b || b == 1 => Some(a),
        (1, b) => Some(b),
        _ => None,
    });
    joined
        .collect::<Option<Shape>>()
        .ok_or_else(|| format!("{} and {} do not broadcast against each other", text(a), text(b)))
}

fn broadcast_all(at: &At) -> Result<Option<Shape>, String> {
    check_alignment(at)?;
    let mut result = Vec::new();
    for input in 0..at.node.inputs.len() {
        let Some(shape) = at.shape(input) else { return Ok(None) };
        result = broadcast(&result, shape)?;
    }
    Ok(Some(result))
}

/// Whether an operator of old aligns the last dimensions of its inputs, as today's do.
fn check_alignment(at: &At) -> Result<(), String> {
    /// The first version of the operators without the attribute.
    const WITHOUT_AXIS: u64 = 7;
    let Some(axis) = at.node.attributes.int("axis").filter(|_| at.opset < WITHOUT_AXIS) else {
        return Ok(());
    };
    let (Some(a), Some(b)) = (at.shape(0), at.shape(1)) else { return Ok(()) };
    if layout::axis(axis, a.len())? + b.len() == a.len() {
        return Ok(());
    }
    Err(format!(
        "axis {axis} of opset {} broadcasts {} along other dimensions than the last ones; convert the \
         model with onnx.version_converter",
        at.opset,
        text(b)
    ))
}

fn expand(at: &At) -> Result<Option<Shape>, String> {
    let (Some(shape), Some(wanted)) = (at.shape(0), at.list(1, "shape")) else { return Ok(None) };
    let wanted: Result<Shape, _> = wanted.iter().map(|&size| u64::try_from(size)).collect();
    broadcast(shape, &wanted.map_err(|_| "its shape has a negative size")?).map(Some)
}

fn matmul(at: &At) -> Result<Option<Shape>, String> {
    let (Some(a), Some(b)) = (at.shape(0), at.shape(1)) else { return Ok(None) };
    if a.is_empty() || b.is_empty() {
        return Err("it multiplies a single number".to_owned());
    }
    // A vector is a matrix of one row or column, which the result does not have.
    let (rows, a_matrix) =
        if a.len() == 1 { (None, [&[1], a].concat()) } else { (Some(a[a.len() - 2]), a.to_vec()) };
    let (cols, b_matrix) =
        if b.len() == 1 { (None, [b, &[1]].concat()) } else { (Some(b[b.len() - 1]), b.to_vec()) };
    let (a_rank, b_rank) = (a_matrix.len(), b_matrix.len());
    if a_matrix[a_rank - 1] != b_matrix[b_rank - 2] {
        return Err(format!("the columns of {} are not the rows of {}", text(a), text(b)));
    }
    let mut result = broadcast(&a_matrix[..a_rank - 2], &b_matrix[..b_rank - 2])?;
    result.extend(rows);
    result.extend(cols);
    Ok(Some(result))
}

/// PyTorch's linear layer: the weight is `[n, k]`.
fn linear(at: &At) -> Result<Option<Shape>, String> {
    let (Some(x), Some(weight)) = (at.shape(0), at.shape(1)) else { return Ok(None) };
    match (x, weight) {
        ([rows @ .., k], [n, columns]) if k == columns => Ok(Some([rows, &[*n]].concat())),
        _ => Err(format!("{} does not fit a weight of {}", text(x), text(weight))),
    }
}

fn gemm(at: &At) -> Result<Option<Shape>, String> {
    let (Some(a), Some(b)) = (at.shape(0), at.shape(1)) else { return Ok(None) };
    let oriented = |shape: &[u64], flag| match (shape, at.node.attributes.int(flag).unwrap_or(0)) {
        (&[rows, cols], 0) => Ok((rows, cols)),
        (&[rows, cols], _) => Ok((cols, rows)),
        (shape, _) => Err(format!("{} is not a matrix", text(shape))),
    };
    let ((m, k), (rows, n)) = (oriented(a, "transA")?, oriented(b, "transB")?);
    if k != rows {
        return Err(format!("{} and {} cannot be multiplied", text(a), text(b)));
    }
    Ok(Some(vec![m, n]))
}

fn conv(at: &At) -> Result<Option<Shape>, String> {
    let (Some(image), Some(filter)) = (at.shape(0), at.shape(1)) else { return Ok(None) };
    if image.len() < 3 || image.len() != filter.len() {
        return Err(format!("{} does not fit a filter of {}", text(image), text(filter)));
    }
    let groups = at.node.attributes.int("group").unwrap_or(1);
    if u64::try_from(groups).ok().and_then(|groups| groups.checked_mul(filter[1])) != Some(image[1])
    {
        return Err(format!(
            "{} does not have the channels of {groups} groups of {}",
            text(image),
            text(filter)
        ));
    }
    let Some(window) = Window::of(at.node, image, &filter[2..]) else { return Ok(None) };
    let mut result = vec![image[0], filter[0]];
    result.extend(window.output(&image[2..])?);
    Ok(Some(result))
}

fn pool(at: &At) -> Result<Option<Shape>, String> {
    let size = at.node.attributes.ints("kernel_shape");
    let (Some(image), Some(size)) = (at.shape(0), size) else { return Ok(None) };
    let size: Option<Shape> = size.iter().map(|&size| u64::try_from(size).ok()).collect();
    let window = size
        .filter(|size| size.iter().all(|&size| size <= crate::dims::MAX_DIM))
        .and_then(|size| Window::of(at.node, image, &size));
    let Some(window) = window else { return Ok(None) };
    let mut result = image[..2].to_vec();
    result.extend(window.output(&image[2..])?);
    Ok(Some(result))
}

fn global_pool(at: &At) -> Option<Shape> {
    let image = at.shape(0)?;
    let kept = |(axis, &size): (usize, &u64)| if axis < 2 { size } else { 1 };
    Some(image.iter().enumerate().map(kept).collect())
}

/// ONNX's own attention, of tensors `[b, h, q, d]` or `[b, q, h d]`.
fn attention(at: &At) -> Option<Shape> {
    match (at.shape(0)?, at.shape(2)?) {
        (&[b, h, q, _], &[_, _, _, d]) => Some(vec![b, h, q, d]),
        (&[b, q, _], &[_, _, features]) => {
            let heads = |name| u64::try_from(at.node.attributes.int(name)?).ok();
            let (q_heads, kv_heads) = (heads("q_num_heads")?, heads("kv_num_heads")?);
            let d = features.checked_div(kv_heads)?;
            Some(vec![b, q, d.checked_mul(q_heads)?])
        }
        _ => None,
    }
}

fn reduce(at: &At) -> Result<Option<Shape>, String> {
    let Some(shape) = at.shape(0) else { return Ok(None) };
    let list = at.list(1, "axes");
    if list.is_none() && at.node.input(1).is_some() {
        return Ok(None);
    }
    let is_reduced = match list {
        Some(list) if !list.is_empty() => axes(&list, shape.len())?,
        _ => {
            let keeps_all = at.node.attributes.int("noop_with_empty_axes").unwrap_or(0) != 0;
            vec![!keeps_all; shape.len()]
        }
    };
    Ok(Some(reduced(at, shape, &is_reduced)))
}

fn arg(at: &At) -> Result<Option<Shape>, String> {
    let Some(shape) = at.shape(0) else { return Ok(None) };
    let along = axis(at.node.attributes.int("axis").unwrap_or(0), shape.len())?;
    let is_reduced: Vec<bool> = (0..shape.len()).map(|axis| axis == along).collect();
    Ok(Some(reduced(at, shape, &is_reduced)))
}

fn reduced(at: &At, shape: &[u64], is_reduced: &[bool]) -> Shape {
    let keeps = at.node.attributes.int("keepdims").unwrap_or(1) != 0;
    let size = |(&size, &is_reduced): (&u64, &bool)| match (is_reduced, keeps) {
        (false, _) => Some(size),
        (true, true) => Some(1),
        (true, false) => None,
    };
    shape.iter().zip(is_reduced).filter_map(size).collect()
}

/// The shape that the first input says, if that is known.
fn filled(at: &At) -> Option<Shape> {
    let size = |size: i64| u64::try_from(size).ok();
    at.list(0, "shape")?.into_iter().map(size).collect()
}

/// As many elements as there are steps from a start to a limit.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
fn progression(at: &At) -> Option<Shape> {
    let number = |input| at.facts.number(at.node.input(input)?);
    let (start, limit, step) = (number(0)?, number(1)?, number(2)?);
    let count = ((limit - start) / step).ceil();
    (count >= 0.0 && count <= crate::dims::MAX_DIM as f64).then(|| vec![count as u64])
}

/// As many elements as a tensor has dimensions, or those between two axes.
fn ranked(at: &At) -> Result<Option<Shape>, String> {
    let count = super::values::dimensions(at)?.map(|dims| dims.len() as u64);
    Ok(count.map(|count| vec![count]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_from_their_last_dimension() {
        assert_eq!(broadcast(&[8, 1, 3], &[5, 3]), Ok(vec![8, 5, 3]));
        assert_eq!(broadcast(&[], &[2]), Ok(vec![2]));
        assert_eq!(broadcast(&[1], &[0]), Ok(vec![0]));
        assert!(broadcast(&[2, 3], &[3, 2]).unwrap_err().contains("[2, 3] and [3, 2] do not"));
    }

    #[test]
    fn operators_have_one_rule() {
        for list in [LIKE_FIRST, BROADCAST, COMPARE] {
            assert!(list.is_sorted(), "{list:?}");
        }
        assert!(LIKE_FIRST.iter().all(|op| !BROADCAST.contains(op) && !COMPARE.contains(op)));
    }
}
