//! How many sequences a pass is of, by the table of pages that a server copies to the device before
//! it: a row for each sequence.

use rustc_hash::FxHashMap;

use super::super::layers::Layers;
use super::outputs::only;
use super::training::moment;
use crate::shapes::{Shape, base};
use crate::{NameId, Trace};

/// The launches of a pass.
struct Launched {
    pass: usize,
    first_ns: i64,
    last_ns: i64,
}

/// The sequences of each pass; none if no table is copied between the launches of the pass before
/// and its own, or several of other sizes are.
pub(super) fn sequences(
    trace: &Trace,
    launches: &[u32],
    operators: &[u32],
    layers: &Layers,
) -> Vec<Option<u64>> {
    let copied = copied(trace);
    let mut found = vec![None; layers.passes.len()];
    if copied.is_empty() {
        return found;
    }
    let mut passes: Vec<Launched> = layers
        .passes
        .iter()
        .enumerate()
        .filter_map(|(pass, own)| {
            let of_pass = layers.list.get(own.layers.clone()).unwrap_or_default();
            let rows = of_pass.iter().flat_map(|layer| layers.kernels(layer));
            let mut times = rows
                .filter_map(|row| Some(moment(trace, *row as usize, launches, operators)?.time_ns));
            let first = times.next()?;
            let (first_ns, last_ns) =
                times.fold((first, first), |(from, to), time| (from.min(time), to.max(time)));
            Some(Launched { pass, first_ns, last_ns })
        })
        .collect();
    passes.sort_by_key(|pass| pass.first_ns);
    let mut before_ns = i64::MIN;
    for Launched { pass, first_ns, last_ns } in passes {
        let at = |time: i64| copied.partition_point(|(start_ns, _)| *start_ns < time);
        let between = copied.get(at(before_ns)..at(first_ns)).unwrap_or_default();
        found[pass] = only(between.iter().map(|(_, rows)| Some(*rows)).collect());
        before_ns = before_ns.max(last_ns);
    }
    found
}

/// When tables of whole numbers were copied, and how many rows they have.
fn copied(trace: &Trace) -> Vec<(i64, u64)> {
    let ops = &trace.ops;
    let mut known: FxHashMap<(NameId, u32), Option<u64>> = FxHashMap::default();
    let mut all: Vec<(i64, u64)> = (0..ops.len())
        .filter_map(|row| {
            let call = (ops.name[row], ops.shape[row]);
            let rows = *known.entry(call).or_insert_with(|| {
                let is_copy = base(trace.names.text(call.0)) == "copy_";
                is_copy.then(|| rows(trace.shapes.text(NameId(call.1)))).flatten()
            });
            Some((ops.start_ns[row], rows?))
        })
        .collect();
    all.sort_unstable();
    all
}

/// The rows of a table, as servers keep it: of 32 bits. Positions and the like have 64.
fn rows(text: &str) -> Option<u64> {
    let shape = Shape::of(text);
    let table = shape.inputs.first().filter(|input| input.kind == "int")?;
    let &[Some(rows), Some(_)] = table.dims.as_slice() else { return None };
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_two_dimensions_of_whole_numbers() {
        assert_eq!(rows("46x72 int;46x72 int; Scalar=False"), Some(46));
        for other in
            ["46 int;46 int", "3x512 long int;3x512 long int", "46x72 float;46x72 float", ""]
        {
            assert_eq!(rows(other), None, "{other}");
        }
    }
}
