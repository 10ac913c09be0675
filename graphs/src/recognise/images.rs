//! Convolutions and pools. ONNX has images as `[n, c, h, w]`, the vocabulary as `[n, h, w, c]`: the
//! sizes are the same.

use fusion_cost_model::{ConvSizes, ImageSizes, Op, Pointwise, PoolWindow};

use super::assumption::Assumption;
use super::flow::Flow;
use super::unit::{Layout, OpSizes, Reason, Unit, UnitOp, dtype, shape};
use crate::shapes::Window;

/// A convolution of images, with its bias.
pub(crate) fn conv(flow: &Flow, node: usize) -> Result<Unit, Reason> {
    let of = flow.node(node);
    let (Some(image), Some(filter), Some(output)) = (of.input(0), of.input(1), of.output()) else {
        return Err("one of its inputs is missing".to_owned());
    };
    let (image_shape, filter_shape) = (shape(flow, image)?, shape(flow, filter)?);
    let (&[n, c, h, w], &[k, _, r, s]) = (image_shape, filter_shape) else {
        return Err("it is not of two dimensions".to_owned());
    };
    let Square { stride, pad, .. } = square(Window::of(of, image_shape, &[r, s]))?;
    let groups = u64::try_from(of.attributes.int("group").unwrap_or(1)).unwrap_or(0);
    let sizes = ConvSizes { n, c, h, w, k, r, s, stride, pad, groups };
    let &[_, _, out_h, out_w] = shape(flow, output)? else {
        return Err("its result is not an image".to_owned());
    };
    let op = UnitOp {
        op: Op::Conv2d,
        input: Layout::images([n, c, h, w]),
        output: Layout::images([n, k, out_h, out_w]),
        sizes: OpSizes::Conv(sizes),
        nodes: vec![node],
    };
    let weights = if flow.is_constant(filter) {
        Assumption::PrepackedWeights
    } else {
        Assumption::ComputedWeights
    };
    let unit = Unit {
        ops: vec![op],
        dtype: dtype(flow, image)?,
        nodes: vec![node],
        inputs: vec![image],
        operands: Vec::new(),
        output,
        adapts: false,
        assumptions: vec![weights],
    };
    let unit = unit.reading(flow, [filter]);
    Ok(match of.input(2) {
        Some(bias) => unit.then(Pointwise::Bias).reading(flow, [bias]),
        None => unit,
    })
}

/// A max-pool over images.
pub(crate) fn max_pool(flow: &Flow, node: usize) -> Result<Unit, Reason> {
    let of = flow.node(node);
    let (Some(image), Some(output)) = (of.input(0), of.output()) else {
        return Err("its input is missing".to_owned());
    };
    if flow.writes_more(node) {
        return Err("it writes the indices of the maxima too".to_owned());
    }
    let image_shape = shape(flow, image)?;
    let (&[n, c, h, w], &[_, _, out_h, out_w]) = (image_shape, shape(flow, output)?) else {
        return Err("it is not of two dimensions".to_owned());
    };
    let size = of.attributes.ints("kernel_shape").unwrap_or_default();
    let size: Vec<u64> = size.iter().filter_map(|&size| u64::try_from(size).ok()).collect();
    let Square { size, stride, pad } = square(Window::of(of, image_shape, &size))?;
    let size = size.ok_or_else(|| "its window is not square".to_owned())?;
    let rounded_down =
        |image: u64| (image + 2 * pad).checked_sub(size).map(|room| room / stride + 1);
    if (rounded_down(h), rounded_down(w)) != (Some(out_h), Some(out_w)) {
        return Err("its last windows are partly outside (ceil_mode)".to_owned());
    }
    let op = UnitOp {
        op: Op::MaxPool,
        input: Layout::images([n, c, h, w]),
        output: Layout::images([n, c, out_h, out_w]),
        sizes: OpSizes::Pool(ImageSizes { n, c, h, w }, PoolWindow { size, stride, pad }),
        nodes: vec![node],
    };
    Ok(Unit {
        ops: vec![op],
        dtype: dtype(flow, image)?,
        nodes: vec![node],
        inputs: vec![image],
        operands: Vec::new(),
        output,
        adapts: false,
        assumptions: Vec::new(),
    })
}

/// A window with one stride and one padding for all directions.
struct Square {
    /// `None` where height and width differ.
    size: Option<u64>,
    stride: u64,
    pad: u64,
}

fn square(window: Option<Window>) -> Result<Square, Reason> {
    let window = window.ok_or_else(|| "its attributes are those of no window".to_owned())?;
    if window.dilations.iter().any(|&dilation| dilation != 1) {
        return Err("it is dilated".to_owned());
    }
    let one = |values: &[u64], what: &str| match values {
        [first, rest @ ..] if rest.iter().all(|value| value == first) => Ok(*first),
        _ => Err(format!("its {what} {values:?} differ by direction")),
    };
    let pads = [window.before, window.after].concat();
    Ok(Square {
        size: one(&window.size, "sizes").ok(),
        stride: one(&window.strides, "strides")?,
        pad: one(&pads, "paddings")?,
    })
}
