//! The operators that launched collectives, where the names of the kernels say too little.
//!
//! Kernels of AMD's library have no name, and NCCL does an all-to-all by sending. The operator is
//! found by its id, else as the one that was open when the kernel was launched; where there is none,
//! the mark counts that the framework puts around each collective, `nccl:all_to_all`.

use rustc_hash::FxHashMap;

use super::operation::Operation;
use crate::enclosing::{Intervals, Moment};
use crate::launched::{self, NONE};
use crate::{Shape, Trace, dtypes};

/// What an operator says of the collective that it launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operator {
    pub(super) operation: Operation,
    /// How large it is, by the sizes of its tensors.
    pub(super) bytes: Option<u64>,
}

/// The operators of some kernels.
pub(super) struct Operators {
    by_kernel: FxHashMap<usize, Operator>,
}

impl Operators {
    /// Those of kernels that communicate.
    pub(super) fn of(trace: &Trace, kernels: &[usize]) -> Self {
        let has_message =
            |kernel: usize| trace.kernels.message.get(kernel).is_some_and(|id| *id != 0);
        let rows: Vec<usize> = kernels.iter().copied().filter(|row| !has_message(*row)).collect();
        let mut by_kernel = by_id(trace, &rows);
        let rows: Vec<usize> =
            rows.into_iter().filter(|row| !by_kernel.contains_key(row)).collect();
        if !rows.is_empty() {
            by_kernel.extend(by_time(trace, &rows));
        }
        Self { by_kernel }
    }

    pub(super) fn of_kernel(&self, kernel: usize) -> Option<Operator> {
        self.by_kernel.get(&kernel).copied()
    }
}

/// By the ids of the kernels. The first operator that names an operation counts.
fn by_id(trace: &Trace, rows: &[usize]) -> FxHashMap<usize, Operator> {
    let id_of = |row: &usize| trace.kernels.external_id.get(*row).copied().filter(|id| *id != 0);
    let mut by_id: FxHashMap<u64, Option<Operator>> =
        rows.iter().filter_map(id_of).map(|id| (id, None)).collect();
    if by_id.is_empty() {
        return FxHashMap::default();
    }
    for (op, id) in trace.ops.external_id.iter().enumerate() {
        if let Some(found @ None) = by_id.get_mut(id) {
            *found = operator(trace, op);
        }
    }
    let known = |row: &usize| Some((*row, by_id.get(&id_of(row)?).copied().flatten()?));
    rows.iter().filter_map(known).collect()
}

/// By the moments of the launches: the innermost operator that names an operation counts.
fn by_time(trace: &Trace, rows: &[usize]) -> FxHashMap<usize, Operator> {
    let launches = launched::launches(trace);
    let moment = |row: &usize| {
        let launch = *launches.get(*row).filter(|launch| **launch != NONE)? as usize;
        let (thread, time_ns) =
            (*trace.launches.thread.get(launch)?, *trace.launches.start_ns.get(launch)?);
        Some((*row, Moment { thread, time_ns }))
    };
    let (rows, moments): (Vec<usize>, Vec<Moment>) = rows.iter().filter_map(moment).unzip();
    let ops = Intervals {
        start_ns: &trace.ops.start_ns,
        duration_ns: &trace.ops.duration_ns,
        thread: &trace.ops.thread,
    };
    let marks = Intervals {
        start_ns: &trace.annotations.start_ns,
        duration_ns: &trace.annotations.duration_ns,
        thread: &trace.annotations.thread,
    };
    let mut found = FxHashMap::default();
    // Operators come last, since they also say how large it is.
    marks.around(&moments, |place, open| {
        let named = open.iter().find_map(|mark| marked(trace, *mark));
        if let (Some(operator), Some(row)) = (named, rows.get(place)) {
            found.insert(*row, operator);
        }
    });
    ops.around(&moments, |place, open| {
        let named = open.iter().find_map(|op| operator(trace, *op));
        if let (Some(operator), Some(row)) = (named, rows.get(place)) {
            found.insert(*row, operator);
        }
    });
    found
}

/// What the framework's mark of a collective says.
fn marked(trace: &Trace, mark: usize) -> Option<Operator> {
    let name = trace.names.text(*trace.annotations.name.get(mark)?).strip_prefix("nccl:")?;
    let operation = Operation::of(name);
    (operation != Operation::Unnamed).then_some(Operator { operation, bytes: None })
}

/// What an operator says, if it names an operation.
fn operator(trace: &Trace, op: usize) -> Option<Operator> {
    let name = trace.names.text(*trace.ops.name.get(op)?);
    // The framework's own operators do not communicate, whatever words their names have.
    let is_own = name.starts_with("aten::");
    let operation = if is_own { Operation::Unnamed } else { Operation::of(name) };
    if operation == Operation::Unnamed {
        return None;
    }
    let shape = trace.ops.shape.get(op).map_or("", |id| trace.shapes.text(crate::NameId(*id)));
    Some(Operator { operation, bytes: bytes(shape) })
}

/// The larger of what is given and got: operators on single tensors have these two first.
fn bytes(shape: &str) -> Option<u64> {
    let shape = Shape::of(shape);
    let tensors = shape.inputs.iter().take(2).filter(|input| !input.dims.is_empty());
    let size = |input: &crate::Input<'_>| {
        let elements = input.dims.iter().try_fold(1_u64, |size, dim| size.checked_mul((*dim)?))?;
        elements.checked_mul(dtypes::bytes(input.kind)?)
    };
    tensors.filter_map(size).max().filter(|bytes| *bytes > 0)
}
