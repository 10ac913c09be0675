//! Segments from recognised units.

use std::collections::BTreeMap;

use fusion_cost_model::Chain;
use rustc_hash::FxHashMap;

use super::segment::{Segment, SegmentOp, problem};
use super::{Edge, OpaqueNode, Place, Segments};
use crate::dims::Dims;
use crate::error::Error;
use crate::graph::Graph;
use crate::recognise::{Assumption, Flow, Found, OpSizes, Reason, Role, Unit, UnitOp, recognise};
use crate::shapes;
use crate::tensor::TensorId;

pub(super) fn segments(graph: &Graph, dims: &Dims) -> Result<Segments, Error> {
    let facts = shapes::facts(graph, dims)?;
    let flow = Flow::of(graph, &facts);
    let mut builder = Builder::new(&flow);
    for found in recognise(&flow) {
        match found {
            Found::Unit(unit) => builder.place(unit),
            Found::Opaque { node, reason } => builder.opaque(node, reason),
        }
    }
    Ok(builder.finish())
}

struct Builder<'f, 'a> {
    flow: &'f Flow<'a>,
    runs: Vec<Run>,
    opaque: Vec<OpaqueNode>,
    /// By the tensor that it writes last, the run that a unit may continue.
    ends: FxHashMap<TensorId, usize>,
    /// By root, who writes a tensor.
    writers: FxHashMap<TensorId, Place>,
    /// What each part reads besides what flows along in it.
    reads: Vec<Read>,
    assumptions: BTreeMap<Assumption, usize>,
    placed: usize,
}

/// A tensor that a part reads.
struct Read {
    root: TensorId,
    to: Place,
    op: usize,
    is_transformed: bool,
}

/// A segment that may still grow.
struct Run {
    ops: Vec<UnitOp>,
    dtype: fusion_cost_model::DType,
    output: TensorId,
    /// How many units were placed before the last one of this run.
    last: usize,
}

impl<'f, 'a> Builder<'f, 'a> {
    fn new(flow: &'f Flow<'a>) -> Self {
        Self {
            flow,
            runs: Vec::new(),
            opaque: Vec::new(),
            ends: FxHashMap::default(),
            writers: FxHashMap::default(),
            reads: Vec::new(),
            assumptions: BTreeMap::new(),
            placed: 0,
        }
    }

    /// Lets a unit continue a run, or begin one. One that can do neither is opaque.
    fn place(&mut self, mut unit: Unit) {
        let runs =
            unit.inputs.iter().filter_map(|&input| Some((self.continued(&unit, input)?, input)));
        // Of two runs that meet, the longer one goes on, which saves more. Of two equal ones the
        // later: the other result is there by then.
        let best = runs.max_by_key(|&(run, _)| (self.runs[run].ops.len(), run));
        let index = match best {
            Some((index, input)) => {
                if let Some(last) = self.runs[index].ops.last().filter(|_| unit.adapts) {
                    let layout = last.output;
                    for op in &mut unit.ops {
                        (op.input, op.output) = (layout, layout);
                    }
                }
                unit.inputs.retain(|&one| one != input);
                self.ends.remove(&self.flow.root(input));
                index
            }
            None => match begins(&unit) {
                Ok(()) => {
                    let output = unit.output;
                    self.runs.push(Run { ops: Vec::new(), dtype: unit.dtype, output, last: 0 });
                    self.runs.len() - 1
                }
                Err(reason) => {
                    unit.nodes.sort_unstable();
                    for &node in &unit.nodes {
                        self.opaque(node, reason.clone());
                    }
                    return;
                }
            },
        };
        let place = Place::Segment(index);
        let (to, first) = (place, self.runs[index].ops.len());
        let mut read = |id: TensorId, op: usize, is_transformed: bool| {
            let root = self.flow.root(id);
            self.reads.push(Read { root, to, op: first + op, is_transformed });
        };
        // A run that goes on transforms its own result.
        unit.inputs.iter().for_each(|&id| read(id, 0, best.is_none()));
        unit.operands.iter().for_each(|operand| read(operand.tensor, operand.op, false));
        for assumption in unit.assumptions {
            *self.assumptions.entry(assumption).or_default() += 1;
        }
        let run = &mut self.runs[index];
        run.ops.extend(unit.ops);
        run.output = unit.output;
        run.last = self.placed;
        self.placed += 1;
        self.ends.insert(self.flow.root(unit.output), index);
        self.writers.insert(self.flow.root(unit.output), place);
    }

    /// The run that a unit may continue by way of one of its inputs.
    fn continued(&self, unit: &Unit, input: TensorId) -> Option<usize> {
        let &index = self.ends.get(&self.flow.root(input))?;
        let run = &self.runs[index];
        let (last, first) = (run.ops.last()?, unit.ops.first()?);
        // An op that reads its own input once more needs it in memory.
        if unit.operands.iter().any(|operand| self.flow.is_same(operand.tensor, input)) {
            return None;
        }
        let is_same_matrix = if unit.adapts {
            last.output.matrix.elements() == first.input.matrix.elements()
        } else {
            last.output.is_same(first.input) && has_images_of(run, first)
        };
        if run.dtype != unit.dtype
            || !is_same_matrix
            || !self.flow.is_read_only_by(input, &unit.nodes)
        {
            return None;
        }
        // Some kernel must be able to hold the end of the run and the beginning of the unit.
        let mut joined: Vec<UnitOp> =
            run.ops.iter().rev().take(Chain::MAX_OPS - 1).rev().cloned().collect();
        let first = if unit.adapts {
            UnitOp { input: last.output, output: last.output, ..first.clone() }
        } else {
            first.clone()
        };
        joined.push(first);
        (0..joined.len() - 1)
            .any(|start| problem(&joined[start..], unit.dtype).is_ok())
            .then_some(index)
    }

    fn opaque(&mut self, node: usize, reason: Reason) {
        let place = Place::Opaque(self.opaque.len());
        let of = self.flow.node(node);
        for read in of.reads().filter(|&read| !self.flow.is_constant(read)) {
            let root = self.flow.root(read);
            self.reads.push(Read { root, to: place, op: 0, is_transformed: false });
        }
        for &output in of.outputs.iter().flatten() {
            self.writers.insert(self.flow.root(output), place);
        }
        self.opaque.push(OpaqueNode { name: of.name.clone(), op: of.op.clone(), reason });
    }

    fn finish(self) -> Segments {
        let Self { flow, runs, opaque, writers, reads, assumptions, .. } = self;
        // What an op reads was placed before it, so by their last ops segments can run.
        let mut order: Vec<usize> = (0..runs.len()).collect();
        order.sort_by_key(|&run| runs[run].last);
        let mut at = vec![0; runs.len()];
        for (place, &run) in order.iter().enumerate() {
            at[run] = place;
        }
        let moved = |place| match place {
            Place::Segment(run) => Place::Segment(at[run]),
            Place::Opaque(_) => place,
        };
        let mut edges: Vec<Edge> = Vec::new();
        for Read { root, to, op, is_transformed } in reads {
            // Inputs of the graph have no writer.
            if let Some(&from) = writers.get(&root) {
                let (from, to) = (moved(from), moved(to));
                edges.push(Edge {
                    tensor: flow.name(root).to_owned(),
                    from,
                    to,
                    op,
                    is_transformed,
                });
            }
        }
        let mut segments: Vec<(usize, Segment)> =
            runs.into_iter().map(|run| (run.last, segment(flow, run))).collect();
        segments.sort_by_key(|(last, _)| *last);
        Segments {
            segments: segments.into_iter().map(|(_, segment)| segment).collect(),
            opaque,
            edges,
            assumptions,
            views: flow.count(Role::View),
            computed_ahead: flow.count(Role::Ahead),
            unused: flow.count(Role::Unused),
        }
    }
}

/// Whether an op that slides over images is over those that a run has. Images of as many pixels may
/// have another height.
fn has_images_of(run: &Run, op: &UnitOp) -> bool {
    let OpSizes::Pool(images, _) = op.sizes else { return true };
    run.ops.iter().all(|one| match one.sizes {
        OpSizes::Conv(sizes) => sizes.out_h() == images.h,
        _ => true,
    })
}

/// Whether a unit can begin a kernel, or why not.
fn begins(unit: &Unit) -> Result<(), Reason> {
    let mut why = None;
    for end in 1..=unit.ops.len() {
        match problem(&unit.ops[..end], unit.dtype) {
            Ok(_) => return Ok(()),
            Err(error) => why = Some(error.to_string()),
        }
    }
    Err(why.unwrap_or_default())
}

fn segment(flow: &Flow, run: Run) -> Segment {
    let name = |&node: &usize| {
        let node = flow.node(node);
        match (node.name.as_str(), node.output()) {
            ("", Some(output)) => flow.name(output).to_owned(),
            (name, _) => name.to_owned(),
        }
    };
    let op = |unit: UnitOp| SegmentOp { nodes: unit.nodes.iter().map(name).collect(), unit };
    Segment {
        ops: run.ops.into_iter().map(op).collect(),
        dtype: run.dtype,
        output: flow.name(run.output).to_owned(),
        is_output: flow.is_output(run.output),
    }
}
