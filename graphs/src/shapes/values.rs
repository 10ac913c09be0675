//! Small constants that are computed ahead of time. Exporters compute shapes by nodes.

use super::layout::ranges;
use super::{At, elements};
use crate::graph::Origin;
use crate::tensor::{Element, MAX_VALUES};

/// Operators whose result differs from run to run.
const RANDOM: [&str; 6] = [
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
];

/// Whether a node reads constants only, so that its results are computed ahead of time.
pub(super) fn is_computed_ahead(at: &At) -> bool {
    let node = at.node;
    let mut reads = node.reads().peekable();
    node.origin == Origin::Known
        && !node.is_any(&RANDOM)
        && reads.peek().is_some()
        && reads.all(|read| at.facts[read].is_constant)
}

/// The sizes that a Shape node writes.
pub(super) fn dimensions<'a>(at: &At<'a>) -> Result<Option<&'a [u64]>, String> {
    let Some(shape) = at.shape(0) else { return Ok(None) };
    let rank = i64::try_from(shape.len()).unwrap_or(i64::MAX);
    let place = |name, default| {
        let place = at.node.attributes.int(name).unwrap_or(default);
        let from_start = if place < 0 { place.saturating_add(rank) } else { place };
        usize::try_from(from_start.clamp(0, rank)).unwrap_or(0)
    };
    let (start, end) = (place("start", 0), place("end", rank));
    shape.get(start..end).map(Some).ok_or_else(|| "its end is before its start".to_owned())
}

/// The elements of a node's first output of a known shape, if they are few and follow from
/// constants.
pub(super) fn of(at: &At, shape: &[u64], element: Option<Element>) -> Option<Vec<f64>> {
    let count = usize::try_from(elements(shape)).ok().filter(|&count| count <= MAX_VALUES)?;
    if at.node.origin != Origin::Known {
        return None;
    }
    let is_integer = element.is_some_and(Element::is_integer);
    let values = match at.node.op.as_str() {
        "Shape" => numbers(dimensions(at).ok()??),
        "Size" => numbers(&[elements(at.shape(0)?)]),
        "Cast" if is_integer => at.values(0)?.iter().map(|value| value.trunc()).collect(),
        "Cast" | "Flatten" | "Identity" | "Reshape" | "Squeeze" | "Unsqueeze" => {
            at.values(0)?.to_vec()
        }
        "Concat" if shape.len() == 1 => concat(at)?,
        "ConstantOfShape" => {
            vec![at.node.attributes.float("value").unwrap_or(0.0); count]
        }
        "Expand" => vec![*at.values(0).filter(|values| values.len() == 1)?.first()?; count],
        "Gather" => gather(at)?,
        "Range" => progression(at, count)?,
        "Slice" if shape.len() == 1 => slice(at)?,
        "Neg" => map(at, |x| -x)?,
        "Sqrt" => map(at, f64::sqrt)?,
        "Reciprocal" => map(at, f64::recip)?,
        "Floor" => map(at, f64::floor)?,
        "Ceil" => map(at, f64::ceil)?,
        "Add" => zip(at, |a, b| a + b)?,
        "Sub" => zip(at, |a, b| a - b)?,
        "Mul" => zip(at, |a, b| a * b)?,
        "Div" if is_integer => zip(at, |a, b| (a / b).trunc())?,
        "Div" => zip(at, |a, b| a / b)?,
        "Pow" => zip(at, f64::powf)?,
        "Equal" => zip(at, |a, b| f64::from(u8::from(a.total_cmp(&b).is_eq())))?,
        "Where" => choose(at)?,
        _ => return None,
    };
    // What broadcasts in more than one dimension, or divides by 0, is left alone.
    (values.len() == count && values.iter().all(|value| value.is_finite())).then_some(values)
}

#[expect(clippy::cast_precision_loss, reason = "a dimension is far below 2^53")]
fn numbers(sizes: &[u64]) -> Vec<f64> {
    sizes.iter().map(|&size| size as f64).collect()
}

fn map(at: &At, function: impl Fn(f64) -> f64) -> Option<Vec<f64>> {
    Some(at.values(0)?.iter().map(|&value| function(value)).collect())
}

/// The element of a list at an index, where a list of one stands for any length.
fn broadcast(values: &[f64], index: usize) -> Option<f64> {
    values.get(if values.len() == 1 { 0 } else { index }).copied()
}

fn zip(at: &At, function: impl Fn(f64, f64) -> f64) -> Option<Vec<f64>> {
    let (a, b) = (at.values(0)?, at.values(1)?);
    let count = if a.len() == 1 { b.len() } else { a.len() };
    (0..count).map(|index| Some(function(broadcast(a, index)?, broadcast(b, index)?))).collect()
}

fn choose(at: &At) -> Option<Vec<f64>> {
    let (condition, yes, no) = (at.values(0)?, at.values(1)?, at.values(2)?);
    let count = [condition, yes, no].map(<[f64]>::len).into_iter().find(|&count| count != 1);
    let one = |index| {
        let is_yes = broadcast(condition, index)? != 0.0;
        broadcast(if is_yes { yes } else { no }, index)
    };
    (0..count.unwrap_or(1)).map(one).collect()
}

fn concat(at: &At) -> Option<Vec<f64>> {
    let mut joined = Vec::new();
    for input in 0..at.node.inputs.len() {
        joined.extend_from_slice(at.values(input)?);
    }
    Some(joined)
}

#[expect(clippy::cast_possible_truncation, reason = "an index that is too large finds nothing")]
fn gather(at: &At) -> Option<Vec<f64>> {
    let (values, indices) = (at.values(0)?, at.values(1)?);
    let length = i64::try_from(values.len()).ok()?;
    if at.shape(0)?.len() != 1 {
        return None;
    }
    let one = |&index: &f64| {
        let index = index as i64;
        let from_start = if index < 0 { index.saturating_add(length) } else { index };
        values.get(usize::try_from(from_start).ok()?).copied()
    };
    indices.iter().map(one).collect()
}

fn slice(at: &At) -> Option<Vec<f64>> {
    let values = at.values(0)?;
    let &[range] = ranges(at, at.shape(0)?).ok()??.as_slice() else { return None };
    let one = |index: u64| {
        let offset = range.step.checked_mul(i64::try_from(index).ok()?)?;
        values.get(usize::try_from(range.start.checked_add(offset)?).ok()?).copied()
    };
    (0..range.count).map(one).collect()
}

#[expect(clippy::cast_precision_loss, reason = "at most MAX_VALUES")]
fn progression(at: &At, count: usize) -> Option<Vec<f64>> {
    let (start, step) = (at.facts.number(at.node.input(0)?)?, at.facts.number(at.node.input(2)?)?);
    Some((0..count).map(|index| start + step * index as f64).collect())
}
