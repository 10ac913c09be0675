//! Attention: as one node, and as two MatMuls around a Softmax.

use fusion_cost_model::{AttentionSizes, DType, Op, Pointwise};

use super::assumption::Assumption;
use super::flow::Flow;
use super::links::{Links, is_near};
use super::unit::{Layout, OpSizes, Reason, Unit, UnitOp, dtype, shape};
use crate::graph::Node;
use crate::shapes::elements;
use crate::tensor::TensorId;

/// The attention around a Softmax: `Q K^T`, a scale, a mask, the Softmax, and `P V`, with the
/// transposes that split and join the heads.
pub(crate) fn around(flow: &Flow, taken: &[bool], softmax: usize) -> Option<Unit> {
    let node = flow.node(softmax);
    if !node.is("Softmax") || taken[softmax] {
        return None;
    }
    let mut links = Links::from(flow, taken, softmax);
    let scores = node.input(0)?;
    let sizes = shape(flow, scores).ok()?;
    let (b, h, q, kv) = match *sizes {
        [b, h, q, kv] => (b, h, q, kv),
        [b, q, kv] => (b, 1, q, kv),
        _ => return None,
    };
    if super::rows::softmax_rows(flow, softmax).ok()?.matrix.cols != kv {
        return None;
    }
    let mut before = before(&mut links, scores)?;
    if !has_matrices_of(flow, flow.shape(before.product)?, node) {
        return None;
    }
    let mut output = after(&mut links, node)?;
    let &[.., d] = flow.shape(before.query)? else { return None };
    let [.., value_rows, value_cols] = *flow.shape(output.value)? else { return None };
    let is_one_size = value_rows == kv && value_cols == d;
    let kvh = heads_of_keys(&mut links, &mut before, &mut output, [b, h]);
    // The first collected node is not the last one of the match, so each must be closed itself.
    let closed = links.nodes.iter().filter(|&&one| Some(one) != output.last);
    for &one in closed {
        let written = flow.node(one).output()?;
        if !flow.is_read_only_by(written, &links.nodes) {
            return None;
        }
    }
    // Half precision is scaled and masked in single precision, and never the other way round.
    let is_narrowed = dtype(flow, scores).ok()?.bytes() < dtype(flow, before.query).ok()?.bytes();
    if !is_one_size || is_narrowed {
        return None;
    }
    let softmax_op = (Op::Softmax, vec![softmax]);
    let mut ops = vec![(Op::Qk, before.qk_nodes)];
    ops.extend(before.pointwise.into_iter().map(|(op, node)| (op.into(), vec![node])));
    ops.extend([softmax_op, (Op::Pv, output.pv_nodes)]);
    let batch_of =
        |id| flow.shape(id).map(|shape| elements(&shape[..shape.len().saturating_sub(2)]));
    let [queries, keys, values] = [before.query, before.key, output.value].map(batch_of);
    // Masks are tensors here, whose numbers are not looked at.
    let of = AttentionSizes { b, h, q, kv, d, kvh, causal: false };
    let mut unit =
        assemble(flow, of, ops, links.nodes, before.query, output.tensor, output.joins).ok()?;
    let sources = [before.query_source, before.key_source, output.value_source];
    unit = reading(unit, flow, sources, &before.masks);
    if before.has_layout || output.has_layout {
        unit = unit.assuming(Assumption::HeadsInPlace);
    }
    let is_own = |batch: Option<u64>| batch == Some(b * h) || batch == Some(b * kvh);
    if queries != Some(b * h) || !is_own(keys) || !is_own(values) {
        unit = unit.assuming(Assumption::OwnKeysAndValues);
    }
    let is_broadcast = |&mask: &TensorId| flow.shape(mask) != Some(sizes);
    if before.masks.iter().any(is_broadcast) {
        unit = unit.assuming(Assumption::BroadcastOperand);
    }
    Some(unit)
}

/// How many heads of keys and values there are, once nodes that repeat them for the heads that share
/// them are left out: the kernel reads them where they are.
fn heads_of_keys(
    links: &mut Links,
    before: &mut Before,
    output: &mut After,
    [b, h]: [u64; 2],
) -> u64 {
    let [keys, values] =
        [before.key_source, output.value_source].map(|source| repeated(links, source, h));
    if let (Some(keys), Some(values)) = (keys, values)
        && keys.heads == values.heads
    {
        links.nodes.extend([keys.node, values.node]);
        (before.key_source, output.value_source) = (keys.source, values.source);
        return keys.heads;
    }
    // A GEMM broadcasts the one head of each batch.
    let is_one = |id| matches!(links.flow.shape(id), Some(&[of, 1, _, _]) if of == b);
    if is_one(before.key) && is_one(output.value) { 1 } else { h }
}

/// Keys or values before a node repeats them.
struct Repeated {
    node: usize,
    source: TensorId,
    heads: u64,
}

/// The Expand from `[b, kvh, 1, kv, d]` to `[b, kvh, h / kvh, kv, d]` that writes a tensor.
fn repeated(links: &Links, id: TensorId, h: u64) -> Option<Repeated> {
    let flow = links.flow;
    flow.sole_reader(id)?;
    let (node, expand) = links.peek(id, &["Expand"])?;
    let source = expand.input(0)?;
    let &[b, heads, 1, rows, d] = flow.shape(source)? else { return None };
    let group = h.checked_div(heads)?;
    let is_repeated = flow.shape(expand.output()?)? == [b, heads, group, rows, d];
    (is_repeated && heads * group == h).then_some(Repeated { node, source, heads })
}

/// What lies before a Softmax.
struct Before {
    /// What the GEMM writes.
    product: TensorId,
    query: TensorId,
    key: TensorId,
    query_source: TensorId,
    key_source: TensorId,
    /// Between the GEMM and the Softmax, in order.
    pointwise: Vec<(Pointwise, usize)>,
    /// What each Add of these adds.
    masks: Vec<TensorId>,
    qk_nodes: Vec<usize>,
    has_layout: bool,
}

fn before(links: &mut Links, scores: TensorId) -> Option<Before> {
    /// A scale, a mask, and room for a Cast.
    const MOST_STEPS: usize = 4;
    let flow = links.flow;
    let (mut pointwise, mut masks) = (Vec::new(), Vec::new());
    let mut qk_nodes = Vec::new();
    let mut here = scores;
    for _ in 0..MOST_STEPS {
        flow.sole_reader(here)?;
        let (index, node) = links.peek(here, &["MatMul", "Mul", "Div", "Add", "Cast"])?;
        links.step(here, &[node.op.as_str()]);
        match node.op.as_str() {
            "MatMul" => {
                let (query, key) = (node.input(0)?, node.input(1)?);
                let d = *flow.shape(query)?.last()?;
                fold_scale(flow, &mut pointwise, &mut qk_nodes, d);
                qk_nodes.push(index);
                pointwise.reverse();
                masks.reverse();
                let (query_source, key_source) = (heads(links, query), heads(links, key));
                let has_layout = (query_source, key_source) != (query, key);
                let product = node.output()?;
                return (!flow.is_constant(query) && !flow.is_constant(key)).then_some(Before {
                    product,
                    query,
                    key,
                    query_source,
                    key_source,
                    pointwise,
                    masks,
                    qk_nodes,
                    has_layout,
                });
            }
            "Cast" => here = node.input(0)?,
            "Add" => {
                let (main, mask) = masked(links, node)?;
                pointwise.push((Pointwise::Add, index));
                masks.push(mask);
                here = main;
            }
            _ => {
                let (a, b) = (node.input(0)?, node.input(1)?);
                here = if flow.is_scalar(b) { a } else { b };
                if !flow.is_scalar(if here == a { b } else { a }) || (here == b && node.is("Div")) {
                    return None;
                }
                pointwise.push((Pointwise::Scale, index));
            }
        }
    }
    None
}

/// The scale that is a part of `qk`.
#[expect(clippy::cast_precision_loss, reason = "the features of a head are few")]
fn root_scale(d: u64) -> f64 {
    (d as f64).sqrt().recip()
}

/// A scale that follows the GEMM by `1 / sqrt(d)` is part of it.
fn fold_scale(
    flow: &Flow,
    pointwise: &mut Vec<(Pointwise, usize)>,
    qk_nodes: &mut Vec<usize>,
    d: u64,
) {
    let Some(&(Pointwise::Scale, index)) = pointwise.last() else { return };
    let node = flow.node(index);
    let number = node.inputs.iter().flatten().find_map(|&id| flow.number(id));
    let number = number.map(|number| if node.is("Div") { number.recip() } else { number });
    if number.is_some_and(|number| is_near(number, root_scale(d))) {
        pointwise.pop();
        qk_nodes.push(index);
    }
}

/// Of an Add before a Softmax, the scores and the mask.
fn masked(links: &Links, add: &Node) -> Option<(TensorId, TensorId)> {
    let (a, b) = (add.input(0)?, add.input(1)?);
    let full = links.flow.shape(add.output()?)?;
    let are_scores = |id: TensorId| {
        links.flow.shape(id) == Some(full)
            && links.peek(id, &["MatMul", "Mul", "Div", "Cast"]).is_some()
    };
    match (are_scores(a), are_scores(b)) {
        (true, _) => Some((a, b)),
        (false, true) => Some((b, a)),
        (false, false) => None,
    }
}

/// Where Q, K or V comes from before the transposes that split its heads.
fn heads(links: &mut Links, id: TensorId) -> TensorId {
    /// One splits the heads, one turns K around.
    const MOST: usize = 2;
    let mut source = id;
    for _ in 0..MOST {
        if links.flow.sole_reader(source).is_none() {
            break;
        }
        match links.step(source, &["Transpose"]).and_then(|node| node.input(0)) {
            Some(before) => source = before,
            None => break,
        }
    }
    source
}

/// What lies behind a Softmax.
struct After {
    value: TensorId,
    value_source: TensorId,
    pv_nodes: Vec<usize>,
    tensor: TensorId,
    /// The node that writes the result.
    last: Option<usize>,
    has_layout: bool,
    /// Whether the heads of the result are joined.
    joins: bool,
}

fn after(links: &mut Links, softmax: &Node) -> Option<After> {
    let flow = links.flow;
    let mut weights = softmax.output()?;
    let mut reader = flow.sole_reader(weights)?;
    if flow.node(reader).is("Cast") {
        links.follow(reader)?;
        weights = flow.node(reader).output()?;
        reader = flow.sole_reader(weights)?;
    }
    let node = links.follow(reader)?;
    let is_product = node.is("MatMul") && flow.is_same(node.input(0)?, weights);
    let value = node.input(1)?;
    // Values that have more batches or heads than the scores, or make them more, are multiplied more
    // often than attention does.
    let (read, written) = (flow.shape(node.input(0)?)?, flow.shape(node.output()?)?);
    let is_of_scores = has_matrices_of(flow, read, softmax)
        && written.len() == read.len()
        && written.iter().zip(read).rev().skip(1).all(|(written, read)| written == read);
    if !is_of_scores {
        return None;
    }
    if !is_product || flow.is_constant(value) {
        return None;
    }
    let value_source = heads(links, value);
    let mut pv_nodes = vec![reader];
    let mut tensor = node.output()?;
    // The transpose that joins the heads: [b, h, q, d] to [b, q, h, d].
    if let Some(joining) = flow.sole_reader(tensor)
        && flow.node(joining).is("Transpose")
        && flow.node(joining).attributes.ints("perm") == Some(&[0, 2, 1, 3])
        && links.follow(joining).is_some()
    {
        pv_nodes.push(joining);
        tensor = flow.node(joining).output()?;
    }
    let joins = pv_nodes.len() > 1;
    let has_layout = value_source != value || joins;
    let last = pv_nodes.last().copied();
    Some(After { value, value_source, pv_nodes, tensor, last, has_layout, joins })
}

/// Whether the matrices of a shape are those of the scores, which views of them may split anew.
fn has_matrices_of(flow: &Flow, shape: &[u64], softmax: &Node) -> bool {
    let scores = softmax.input(0).and_then(|scores| flow.shape(scores));
    let last_two = |shape: &[u64]| shape.last_chunk::<2>().copied();
    scores.is_some_and(|scores| last_two(scores) == last_two(shape))
}

/// ONNX's own attention, of tensors `[b, h, q, d]` or `[b, q, h d]`.
pub(crate) fn whole(flow: &Flow, index: usize) -> Result<Unit, Reason> {
    let node = flow.node(index);
    let (Some(query), Some(key), Some(value), Some(output)) =
        (node.input(0), node.input(1), node.input(2), node.output())
    else {
        return Err("one of its inputs is missing".to_owned());
    };
    if flow.writes_more(index) || node.input(4).is_some() {
        return Err("it has a cache of keys, or writes its scores".to_owned());
    }
    // 0 is ONNX's word for none.
    if node.attributes.float("softcap").is_some_and(|cap| cap != 0.0) {
        return Err("it caps its scores".to_owned());
    }
    let count = |name| node.attributes.int(name).and_then(|heads| u64::try_from(heads).ok());
    let split = |id, heads: Option<u64>| match (shape(flow, id)?, heads) {
        (&[b, h, rows, d], _) => Ok([b, h, rows, d]),
        (&[b, rows, features], Some(h)) if h > 0 => Ok([b, h, rows, features / h]),
        _ => Err("its heads are unknown".to_owned()),
    };
    let [b, h, q, d] = split(query, count("q_num_heads"))?;
    let [_, kv_heads, kv, _] = split(key, count("kv_num_heads"))?;
    let [_, _, _, value_d] = split(value, count("kv_num_heads"))?;
    if value_d != d {
        return Err("its values have other sizes than its keys".to_owned());
    }
    if kv_heads == 0 || h % kv_heads != 0 {
        return Err("its heads cannot share their keys".to_owned());
    }
    let causal = node.attributes.int("is_causal").unwrap_or(0) != 0;
    if causal && q != kv {
        return Err("its causal mask puts the first query at the first key".to_owned());
    }
    let of = AttentionSizes { b, h, q, kv, d, kvh: kv_heads, causal };
    let mask = node.input(3);
    let here = || vec![index];
    let mut ops = vec![(Op::Qk, here()), (Op::Softmax, here()), (Op::Pv, here())];
    if mask.is_some() {
        ops.insert(1, (Pointwise::Add.into(), here()));
    }
    if node.attributes.float("scale").is_some_and(|scale| !is_near(scale, root_scale(d))) {
        ops.insert(1, (Pointwise::Scale.into(), here()));
    }
    let are_joined = shape(flow, output)?.len() == 3;
    let unit = assemble(flow, of, ops, here(), query, output, are_joined)?;
    let mut unit = reading(unit, flow, [query, key, value], mask.as_slice());
    if mask.is_some_and(|mask| flow.shape(mask) != Some(&[b, h, q, kv])) {
        unit = unit.assuming(Assumption::BroadcastOperand);
    }
    Ok(unit)
}

fn assemble(
    flow: &Flow,
    of: AttentionSizes,
    ops: Vec<(Op, Vec<usize>)>,
    nodes: Vec<usize>,
    query: TensorId,
    output: TensorId,
    are_joined: bool,
) -> Result<Unit, Reason> {
    let AttentionSizes { b, h, q, kv, d, .. } = of;
    let dtype: DType = dtype(flow, query)?;
    let queries = Layout::rows(b * h * q, d);
    let scores = Layout::rows(b * h * q, kv);
    // Heads that no transpose joins are not the columns of one matrix, unless there is one of them.
    let joined = Layout::rows(b * q, h * d);
    let joined = if are_joined || h == 1 || q == 1 { joined } else { joined.scattered() };
    let place = |(op, nodes): (Op, Vec<usize>)| {
        let (input, output, sizes) = match op {
            // The softmax alone has the mask.
            Op::Qk => (queries, scores, OpSizes::Attention(AttentionSizes { causal: false, ..of })),
            Op::Pv => (scores, joined, OpSizes::Attention(AttentionSizes { causal: false, ..of })),
            Op::Softmax if of.causal => (scores, scores, OpSizes::Attention(of)),
            _ => (scores, scores, OpSizes::Matrices),
        };
        UnitOp { op, input, output, sizes, nodes }
    };
    Ok(Unit {
        ops: ops.into_iter().map(place).collect(),
        dtype,
        nodes,
        inputs: Vec::new(),
        operands: Vec::new(),
        output,
        adapts: false,
        assumptions: Vec::new(),
    })
}

/// The same with what it reads, each by the op that does: a kernel of a part of it reads no more.
fn reading(
    mut unit: Unit,
    flow: &Flow,
    [query, key, value]: [TensorId; 3],
    masks: &[TensorId],
) -> Unit {
    let is_add = |op: &UnitOp| op.op == Op::Pointwise(Pointwise::Add);
    let adds: Vec<usize> = (0..unit.ops.len()).filter(|&op| is_add(&unit.ops[op])).collect();
    let last = unit.ops.len().saturating_sub(1);
    unit.inputs = vec![query];
    unit = unit.reading(flow, [key]);
    for (add, &mask) in adds.into_iter().zip(masks) {
        unit = unit.reading_at(add, flow, [mask]);
    }
    unit.reading_at(last, flow, [value])
}
