//! What runs between the passes through a model: looking up tokens, the first norm and projection,
//! the last norm, sampling.

use rustc_hash::FxHashSet;

use super::side::Chosen;

/// Longer stretches are not compared kernel by kernel.
const LONGEST: usize = 4096;

/// The stretches of kernels outside of layers, each in the order in which its kernels began. A
/// stretch ends where a marked step does. If layers were found on streams of their own, only those
/// streams are looked at: what runs alongside them has no place among their kernels.
pub(super) fn stretches(side: &Chosen<'_>) -> Vec<Vec<u32>> {
    let trace = side.side.trace;
    let segments = side.side.segments;
    let passes = || segments.layers.passes.iter().filter(|pass| pass.device == side.device);
    let streams: FxHashSet<Option<i64>> = passes().map(|pass| pass.stream).collect();
    let start = |row: &u32| trace.kernels.start_ns.get(*row as usize).copied().unwrap_or_default();
    let mut found = Vec::new();
    let mut streams: Vec<Option<i64>> = streams.into_iter().collect();
    streams.sort_unstable();
    for stream in streams {
        let is_here = |row: &&u32| {
            let lane = trace.lane_of(**row as usize);
            stream.is_none_or(|stream| lane.is_some_and(|lane| lane.stream == stream))
        };
        let mut rows: Vec<u32> = side.rows.iter().filter(is_here).copied().collect();
        rows.sort_by_key(start);
        let place = |row: u32| {
            let is_in_layer = segments.layers.layer(row as usize).is_some();
            (is_in_layer, segments.steps.step(row as usize))
        };
        // Where the recording begins or ends inside of a pass there is a part of a layer as well.
        let mut own = passes().filter(|pass| pass.stream == stream);
        let begins_cut = own.next().is_some_and(|pass| pass.is_cut);
        let ends_cut = own.next_back().map_or(begins_cut, |pass| pass.is_cut);
        let is_in_layer = |row: &u32| place(*row).0;
        let from = if begins_cut { rows.iter().position(is_in_layer) } else { Some(0) };
        let to =
            if ends_cut { rows.iter().rposition(is_in_layer) } else { rows.len().checked_sub(1) };
        let whole = from.zip(to).and_then(|(from, to)| rows.get(from..=to)).unwrap_or_default();
        let runs = whole.chunk_by(|a, b| place(*a) == place(*b));
        let outside = runs.filter(|run| {
            run.len() <= LONGEST && run.first().is_some_and(|first| !place(*first).0)
        });
        found.extend(outside.map(<[u32]>::to_vec));
    }
    found
}
