//! Layer and RMS norms that exporters write as several nodes.

use fusion_cost_model::Op;

use super::flow::Flow;
use super::links::{Links, is_near};
use super::unit::{Unit, is_last, is_vector, with_columns};
use crate::tensor::TensorId;

/// The layer norm whose last node is an Add: `(x - mean) / sqrt(variance + eps) * weight + shift`.
pub(crate) fn layer_norm(flow: &Flow, taken: &[bool], last: usize) -> Option<Unit> {
    let mut links = Links::from(flow, taken, last);
    let node = flow.node(last);
    let output = node.output().filter(|_| node.is("Add"))?;
    let (scaled, _) = split_vector(&links, node.input(0)?, node.input(1)?)?;
    let scaled = links.step(scaled, &["Mul"])?;
    let (normal, _) = split_vector(&links, scaled.input(0)?, scaled.input(1)?)?;
    let normal = links.uncast(normal);
    let (centred, squares) = over_root(&mut links, normal)?;
    let squared = mean(&mut links, squares)?;
    let base = square(&mut links, squared)?;
    // Some exporters subtract the mean twice.
    let (x, mean_of) = difference(&mut links, centred)?;
    let same = links.flow.is_same(base, centred)
        || difference(&mut links, base).is_some_and(|(other, _)| links.flow.is_same(other, x));
    let averaged = mean(&mut links, mean_of)?;
    // A view of another shape has means of other rows.
    let has_rows_of_x = |id| links.flow.shape(id) == links.flow.shape(x);
    if !same
        || !links.flow.is_same(averaged, x)
        || !has_rows_of_x(squared)
        || !has_rows_of_x(averaged)
    {
        return None;
    }
    finish(links, Op::LayerNorm, x, output)
}

/// The RMS norm whose last node is a Mul: `x / sqrt(mean(x^2) + eps) * weight`.
pub(crate) fn rms_norm(flow: &Flow, taken: &[bool], last: usize) -> Option<Unit> {
    let mut links = Links::from(flow, taken, last);
    let node = flow.node(last);
    let output = node.output().filter(|_| node.is("Mul"))?;
    let (normal, _) = split_vector(&links, node.input(0)?, node.input(1)?)?;
    let normal = links.uncast(normal);
    let (x, squares) = over_root(&mut links, normal)?;
    let squared = mean(&mut links, squares)?;
    let base = square(&mut links, squared)?;
    if !links.flow.is_same(base, x) || links.flow.shape(squared) != links.flow.shape(x) {
        return None;
    }
    finish(links, Op::RmsNorm, x, output)
}

fn finish(mut links: Links, op: Op, x: TensorId, output: TensorId) -> Option<Unit> {
    let flow = links.flow;
    let cast = links.peek(x, &["Cast"]).and_then(|(_, cast)| cast.input(0));
    // A cast is a part of a norm that writes what the cast reads. Another norm reads what it writes.
    let x = match cast {
        Some(before) if flow.element(before) == flow.element(output) => links.uncast(x),
        _ => x,
    };
    let shape = links.flow.shape(x)?;
    if !links.is_closed() || links.flow.shape(output)? != shape {
        return None;
    }
    let layout = with_columns(shape, shape.len().checked_sub(1)?);
    Unit::on_rows(links.flow, &[op], x, layout, links.nodes, output).ok()
}

/// Of two operands, the tensor and the constant that has one value for each of its columns.
fn split_vector(links: &Links, a: TensorId, b: TensorId) -> Option<(TensorId, TensorId)> {
    let is_vector_of = |vector, tensor| {
        let cols = links.flow.shape(tensor).and_then(|shape| shape.last().copied());
        cols.is_some_and(|cols| is_vector(links.flow, vector, cols))
    };
    match (is_vector_of(b, a), is_vector_of(a, b)) {
        (true, _) => Some((a, b)),
        (_, true) => Some((b, a)),
        _ => None,
    }
}

/// Of `x / sqrt(v + eps)`, however it is divided, `x` and `v`.
fn over_root(links: &mut Links, id: TensorId) -> Option<(TensorId, TensorId)> {
    let node = links.step(id, &["Div", "Mul"])?;
    let (a, b) = (node.input(0)?, node.input(1)?);
    let (x, root) = if node.is("Div") {
        (a, b)
    } else {
        let is_inverse = |id| {
            let found = links.peek(id, &["Reciprocal", "Div"]);
            found.is_some_and(|(_, node)| {
                node.is("Reciprocal")
                    || node.input(0).and_then(|one| links.flow.number(one)) == Some(1.0)
            })
        };
        let (x, inverse) = if is_inverse(b) { (a, b) } else { (b, a) };
        if !is_inverse(inverse) {
            return None;
        }
        let node = links.step(inverse, &["Reciprocal", "Div"])?;
        (x, node.input(usize::from(node.is("Div")))?)
    };
    let root = links.step(root, &["Sqrt"])?;
    let sum = links.step(root.input(0)?, &["Add"])?;
    let (squares, epsilon) = links.with_number(sum)?;
    // Far above any epsilon in use; a larger number does not guard against a division by zero.
    (epsilon < 0.01).then_some((x, squares))
}

/// What a tensor is the mean of, over the last axis.
fn mean(links: &mut Links, id: TensorId) -> Option<TensorId> {
    let node = links.step(id, &["ReduceMean"])?;
    let x = node.input(0)?;
    let shape = links.flow.shape(x)?;
    let values = || links.flow.facts[node.input(1)?].values.as_deref();
    let is_over_last = match (node.attributes.ints("axes"), values()) {
        (Some(&[axis]), _) => is_last(axis, shape),
        #[expect(clippy::cast_possible_truncation, reason = "an axis is small")]
        (None, Some(&[axis])) => is_last(axis as i64, shape),
        _ => false,
    };
    (is_over_last && node.attributes.int("keepdims").unwrap_or(1) != 0).then_some(x)
}

/// What a tensor is the square of.
fn square(links: &mut Links, id: TensorId) -> Option<TensorId> {
    let node = links.step(id, &["Pow", "Mul"])?;
    let x = node.input(0)?;
    let is_square = if node.is("Pow") {
        links.flow.number(node.input(1)?).is_some_and(|exponent| is_near(exponent, 2.0))
    } else {
        links.flow.is_same(x, node.input(1)?)
    };
    is_square.then_some(x)
}

/// The two sides of a Sub.
fn difference(links: &mut Links, id: TensorId) -> Option<(TensorId, TensorId)> {
    let node = links.step(id, &["Sub"])?;
    Some((node.input(0)?, node.input(1)?))
}
