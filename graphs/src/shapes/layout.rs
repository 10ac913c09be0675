//! Shapes of what operators write that only move elements.

use super::{At, Shape, elements, text};

/// An axis, which counts from the end where it is negative.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize, String> {
    let signed = i64::try_from(rank).unwrap_or(i64::MAX);
    let from_start = if axis < 0 { axis.saturating_add(signed) } else { axis };
    match usize::try_from(from_start) {
        Ok(from_start) if from_start < rank => Ok(from_start),
        _ => Err(format!("it has no axis {axis}: its tensor has {rank} dimensions")),
    }
}

/// Several axes, as flags.
pub(super) fn axes(axes: &[i64], rank: usize) -> Result<Vec<bool>, String> {
    let mut flags = vec![false; rank];
    for &one in axes {
        flags[axis(one, rank)?] = true;
    }
    Ok(flags)
}

pub(super) fn transpose(at: &At) -> Result<Option<Shape>, String> {
    let Some(shape) = at.shape(0) else { return Ok(None) };
    let Some(order) = at.node.attributes.ints("perm") else {
        return Ok(Some(shape.iter().rev().copied().collect()));
    };
    let is_met = axes(order, shape.len())?;
    if order.len() != shape.len() || is_met.contains(&false) {
        return Err(format!("perm {order:?} does not order {} dimensions", shape.len()));
    }
    order.iter().map(|&one| Ok(shape[axis(one, shape.len())?])).collect::<Result<_, _>>().map(Some)
}

/// The shape that a Reshape asks for: 0 keeps a dimension, -1 takes what is left.
pub(super) fn reshape(at: &At) -> Result<Option<Shape>, String> {
    let (Some(shape), Some(wanted)) = (at.shape(0), at.list(1, "shape")) else { return Ok(None) };
    let keeps_zero = at.node.attributes.int("allowzero").unwrap_or(0) != 0;
    let mut result = Vec::with_capacity(wanted.len());
    let mut free = None;
    for (index, &size) in wanted.iter().enumerate() {
        result.push(match (u64::try_from(size), shape.get(index)) {
            (Ok(0), Some(&kept)) if !keeps_zero => kept,
            (Ok(size), _) => size,
            (Err(_), _) if size == -1 && free.is_none() => {
                free = Some(index);
                1
            }
            (Err(_), _) => return Err(format!("{wanted:?} is not a shape")),
        });
    }
    let all = elements(shape);
    let given = result.iter().try_fold(1_u64, |product, &size| product.checked_mul(size));
    let fits = match (free, given) {
        (Some(free), Some(given)) if given > 0 && all.is_multiple_of(given) => {
            result[free] = all / given;
            true
        }
        (None, Some(given)) => given == all,
        _ => false,
    };
    if fits {
        return Ok(Some(result));
    }
    Err(format!(
        "{} cannot become {wanted:?}; if the model was exported for one batch, give that one",
        text(shape)
    ))
}

/// Two dimensions: those before an axis, and those from it on.
pub(super) fn flatten(at: &At) -> Result<Option<Shape>, String> {
    let Some(shape) = at.shape(0) else { return Ok(None) };
    let split = at.node.attributes.int("axis").unwrap_or(1);
    let rank = shape.len();
    let split = if usize::try_from(split) == Ok(rank) { rank } else { axis(split, rank)? };
    Ok(Some(vec![elements(&shape[..split]), elements(&shape[split..])]))
}

pub(super) fn squeeze(at: &At) -> Result<Option<Shape>, String> {
    let Some(shape) = at.shape(0) else { return Ok(None) };
    let is_dropped = match at.list(1, "axes") {
        Some(list) => axes(&list, shape.len())?,
        // The axes are computed while the graph runs.
        None if at.node.input(1).is_some() => return Ok(None),
        None => shape.iter().map(|&size| size == 1).collect(),
    };
    let kept = shape.iter().zip(is_dropped).filter(|(_, is_dropped)| !is_dropped);
    Ok(Some(kept.map(|(&size, _)| size).collect()))
}

pub(super) fn unsqueeze(at: &At) -> Result<Option<Shape>, String> {
    let (Some(shape), Some(list)) = (at.shape(0), at.list(1, "axes")) else { return Ok(None) };
    let is_new = axes(&list, shape.len() + list.len())?;
    let mut old = shape.iter();
    let size = |is_new| if is_new { 1 } else { old.next().copied().unwrap_or(1) };
    Ok(Some(is_new.into_iter().map(size).collect()))
}

pub(super) fn concat(at: &At) -> Result<Option<Shape>, String> {
    let count = at.node.inputs.len();
    let Some(shapes) = (0..count).map(|input| at.shape(input)).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let Some((first, others)) = shapes.split_first() else { return Ok(None) };
    let along = axis(at.node.attributes.int("axis").unwrap_or(0), first.len())?;
    let mut result = first.to_vec();
    for shape in others {
        let agrees = shape.len() == first.len()
            && shape.iter().zip(*first).enumerate().all(|(axis, (a, b))| axis == along || a == b);
        if !agrees {
            return Err(format!("{} and {} cannot be joined", text(first), text(shape)));
        }
        result[along] = result[along].saturating_add(shape[along]);
    }
    Ok(Some(result))
}

/// The shapes of all outputs.
pub(super) fn split(at: &At) -> Result<Vec<Option<Shape>>, String> {
    let Some(shape) = at.shape(0) else { return Ok(Vec::new()) };
    let along = axis(at.node.attributes.int("axis").unwrap_or(0), shape.len())?;
    let parts = at.node.outputs.len() as u64;
    let sizes: Vec<u64> = match at.list(1, "split") {
        Some(list) => list.iter().map(|&size| u64::try_from(size).unwrap_or(0)).collect(),
        None if at.node.input(1).is_some() => return Ok(Vec::new()),
        // Equal parts; the last one may be smaller.
        None => {
            let size = shape[along].div_ceil(parts);
            (0..parts).map(|part| size.min(shape[along].saturating_sub(part * size))).collect()
        }
    };
    let sum = sizes.iter().try_fold(0_u64, |sum, &size| sum.checked_add(size));
    if sum != Some(shape[along]) {
        return Err(format!("{} cannot be split into {sizes:?} along axis {along}", text(shape)));
    }
    let part = |size| {
        let mut part = shape.to_vec();
        part[along] = size;
        Some(part)
    };
    Ok(sizes.into_iter().map(part).collect())
}

/// Which indices of an axis a Slice takes: the first, the step, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: i64,
    pub(super) step: i64,
    pub(super) count: u64,
}

/// The ranges of a Slice by axis; `None` where they are computed while the graph runs.
pub(super) fn ranges(at: &At, shape: &[u64]) -> Result<Option<Vec<Range>>, String> {
    let (Some(starts), Some(ends)) = (at.list(1, "starts"), at.list(2, "ends")) else {
        return Ok(None);
    };
    let defaults = || (0..).take(starts.len()).collect();
    let optional = |input, name, default: &dyn Fn() -> Vec<i64>| match at.list(input, name) {
        None if at.node.input(input).is_some() => None,
        None => Some(default()),
        list => list,
    };
    let (Some(along), Some(steps)) =
        (optional(3, "axes", &defaults), optional(4, "steps", &|| vec![1; starts.len()]))
    else {
        return Ok(None);
    };
    let lengths = [ends.len(), along.len(), steps.len()];
    if lengths.iter().any(|&length| length != starts.len()) {
        return Err("its starts, ends, axes and steps are not equally many".to_owned());
    }
    let whole = |&size: &u64| Range { start: 0, step: 1, count: size };
    let mut ranges: Vec<Range> = shape.iter().map(whole).collect();
    for (index, &one) in along.iter().enumerate() {
        let one = axis(one, shape.len())?;
        ranges[one] = range(shape[one], starts[index], ends[index], steps[index])?;
    }
    Ok(Some(ranges))
}

fn range(size: u64, start: i64, end: i64, step: i64) -> Result<Range, String> {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let from_start = |index: i64| if index < 0 { index.saturating_add(size) } else { index };
    let (start, end) = (from_start(start), from_start(end));
    let (start, end) = match step {
        0 => return Err("its step is 0".to_owned()),
        _ if size == 0 => (0, 0),
        1.. => (start.clamp(0, size), end.clamp(0, size)),
        _ => (start.clamp(0, (size - 1).max(0)), end.clamp(-1, size - 1)),
    };
    let distance = if step > 0 { end - start } else { start - end };
    let count = u64::try_from(distance).unwrap_or(0).div_ceil(step.unsigned_abs());
    Ok(Range { start, step, count })
}

pub(super) fn slice(at: &At) -> Result<Option<Shape>, String> {
    let Some(shape) = at.shape(0) else { return Ok(None) };
    let ranges = ranges(at, shape)?;
    Ok(ranges.map(|ranges| ranges.iter().map(|range| range.count).collect()))
}

/// The dimensions before an axis, those of the indices, and those after the axis.
pub(super) fn gather(at: &At) -> Result<Option<Shape>, String> {
    let (Some(shape), Some(indices)) = (at.shape(0), at.shape(1)) else { return Ok(None) };
    let along = axis(at.node.attributes.int("axis").unwrap_or(0), shape.len())?;
    Ok(Some([&shape[..along], indices, &shape[along + 1..]].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_take_what_numpy_takes() {
        let count = |size, start, end, step| range(size, start, end, step).unwrap().count;
        assert_eq!(count(10, 0, 5, 1), 5);
        assert_eq!(count(10, 2, i64::MAX, 1), 8);
        assert_eq!(count(10, -3, i64::MAX, 1), 3);
        assert_eq!(count(10, 0, -1, 2), 5);
        assert_eq!(count(10, 9, i64::MIN, -1), 10);
        assert_eq!(count(10, -1, 0, -3), 3);
        assert_eq!(count(10, 5, 2, 1), 0);
        assert_eq!(count(0, 0, 5, 1), 0);
        assert_eq!(count(0, -1, i64::MIN, -1), 0);
        assert_eq!(count(10, i64::MIN, i64::MAX, i64::MAX), 1);
        assert_eq!(count(10, i64::MAX, i64::MIN, i64::MIN), 1);
        assert!(range(10, 0, 5, 0).is_err());
    }

    #[test]
    fn axes_count_from_either_end() {
        assert_eq!((axis(0, 3), axis(-1, 3), axis(-3, 3)), (Ok(0), Ok(2), Ok(0)));
        for bad in [3, -4, i64::MIN, i64::MAX] {
            assert!(axis(bad, 3).unwrap_err().contains("3 dimensions"));
        }
        assert!(axis(0, 0).is_err());
    }
}
