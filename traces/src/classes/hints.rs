//! The operator and the python frame that launched a kernel, as far as they say what it does.
//!
//! A replayed graph launches kernels that were recorded somewhere else: whatever stands around
//! the launch of the graph says nothing about them.

use rustc_hash::FxHashMap;

use crate::classify::{class_of_frame, class_of_op};
use crate::enclosing::{Intervals, Moment};
use crate::launched::{NONE, launches};
use crate::{NameId, Trace};

/// Who launched a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Hint {
    /// The innermost operator that says what the kernel does.
    pub(super) op: Option<NameId>,
    /// The innermost python frame that does; only if no operator does.
    pub(super) frame: Option<NameId>,
}

/// Frames are searched up to the innermost module, and at most this many: frames further out
/// belong to whole layers and models.
const MOST_FRAMES: usize = 12;

/// The hints for some kernels, in their order.
pub(super) fn hints(trace: &Trace, kernels: &[usize]) -> Vec<Hint> {
    let launches = launches(trace);
    let launch_of = |kernel: usize| launches.get(kernel).copied().filter(|&row| row != NONE);
    let launch_of = |kernel: usize| launch_of(kernel).map(|row| row as usize);
    let mut hints = vec![Hint::default(); kernels.len()];
    // The places in `kernels` of those that were launched one by one.
    let launched: Vec<usize> = (0..kernels.len())
        .filter(|&place| !is_replayed(trace, kernels[place], launch_of(kernels[place])))
        .collect();

    let id_of_launch = |kernel| launch_of(kernel).map_or(0, |row| trace.launches.external_id[row]);
    let ids_of = |kernel: usize| [trace.kernels.external_id[kernel], id_of_launch(kernel)];
    let by_id = ops_by_id(trace, launched.iter().flat_map(|&place| ids_of(kernels[place])));
    let mut says = Memo::new(trace, |op| class_of_op(op).is_some());
    for &place in &launched {
        let ops = ids_of(kernels[place]).map(|id| by_id.get(&id).copied().flatten());
        hints[place].op = ops.into_iter().flatten().find(|&op| says.holds(op));
    }

    let moments_of = |hints: &[Hint]| -> (Vec<usize>, Vec<Moment>) {
        let open = launched.iter().filter(|&&place| hints[place].op.is_none());
        open.filter_map(|&place| {
            let row = launch_of(kernels[place])?;
            let (thread, time_ns) = (trace.launches.thread[row], trace.launches.start_ns[row]);
            Some((place, Moment { thread, time_ns }))
        })
        .unzip()
    };
    let (places, moments) = moments_of(&hints);
    let ops = &trace.ops;
    let intervals =
        Intervals { start_ns: &ops.start_ns, duration_ns: &ops.duration_ns, thread: &ops.thread };
    intervals.around(&moments, |moment, rows| {
        hints[places[moment]].op = rows.iter().map(|&row| ops.name[row]).find(|&op| says.holds(op));
    });

    let (places, moments) = moments_of(&hints);
    let frames = &trace.frames;
    let intervals = Intervals {
        start_ns: &frames.start_ns,
        duration_ns: &frames.duration_ns,
        thread: &frames.thread,
    };
    let mut says = Memo::new(trace, |frame| class_of_frame(frame).is_some());
    let mut is_module = Memo::new(trace, |frame| frame.starts_with("nn.Module: "));
    intervals.around(&moments, |moment, rows| {
        let names = rows.iter().map(|&row| frames.name[row]).take(MOST_FRAMES);
        for frame in names {
            if says.holds(frame) {
                hints[places[moment]].frame = Some(frame);
            }
            if says.holds(frame) || is_module.holds(frame) {
                break;
            }
        }
    });
    hints
}

/// Whether a kernel is a part of a graph that was launched as a whole.
fn is_replayed(trace: &Trace, kernel: usize, launch: Option<usize>) -> bool {
    match launch {
        Some(row) => trace.names.text(trace.launches.name[row]).contains("GraphLaunch"),
        None => trace.kernels.graph_node[kernel] != 0,
    }
}

/// The operators with these ids; of several with one id the last. A table of all would take longer
/// than the rest of the classification.
fn ops_by_id(trace: &Trace, ids: impl Iterator<Item = u64>) -> FxHashMap<u64, Option<NameId>> {
    let mut ops: FxHashMap<u64, Option<NameId>> =
        ids.filter(|&id| id != 0).map(|id| (id, None)).collect();
    if !ops.is_empty() {
        for (id, &name) in trace.ops.external_id.iter().zip(trace.ops.name.iter()) {
            if let Some(op) = ops.get_mut(id) {
                *op = Some(name);
            }
        }
    }
    ops
}

/// Asks each name once.
struct Memo<'a, F> {
    trace: &'a Trace,
    asked: FxHashMap<NameId, bool>,
    holds: F,
}

impl<'a, F: Fn(&str) -> bool> Memo<'a, F> {
    fn new(trace: &'a Trace, holds: F) -> Self {
        Self { trace, asked: FxHashMap::default(), holds }
    }

    fn holds(&mut self, name: NameId) -> bool {
        let (trace, holds) = (self.trace, &self.holds);
        *self.asked.entry(name).or_insert_with(|| holds(trace.names.text(name)))
    }
}
