//! The kernels in the order of their streams.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::Trace;

/// The kernels of a trace, stream by stream, each stream in the order in which its kernels ran.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StreamOrder {
    /// Rows of the table of kernels.
    pub(super) kernels: Vec<u32>,
    /// The part of `kernels` that ran on each lane.
    pub(super) lanes: Vec<Range<usize>>,
}

impl StreamOrder {
    /// The kernels of a lane.
    pub(super) fn of_lane(&self, lane: usize) -> &[u32] {
        let range = self.lanes.get(lane).cloned().unwrap_or_default();
        self.kernels.get(range).unwrap_or_default()
    }

    /// The devices, each with those of its lanes that have kernels.
    pub(super) fn devices(&self, trace: &Trace) -> BTreeMap<i64, Vec<usize>> {
        let mut devices: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (index, lane) in trace.lanes.iter().enumerate() {
            if !self.of_lane(index).is_empty() {
                devices.entry(lane.device).or_default().push(index);
            }
        }
        devices
    }

    /// The kernels of some lanes, by their starts.
    pub(super) fn merged(&self, trace: &Trace, lanes: &[usize]) -> Vec<u32> {
        let parts: Vec<&[u32]> = lanes.iter().map(|lane| self.of_lane(*lane)).collect();
        let mut rows = parts.concat();
        if lanes.len() > 1 {
            rows.sort_by_key(|row| trace.kernels.start_ns.get(*row as usize).copied());
        }
        rows
    }
}

/// Sorts the kernels of a trace by stream and start.
pub(super) fn by_stream(trace: &Trace) -> StreamOrder {
    let lane_of = &trace.kernels.lane;
    let mut ends = vec![0_usize; trace.lanes.len()];
    for &lane in lane_of.iter() {
        if let Some(count) = ends.get_mut(lane as usize) {
            *count += 1;
        }
    }
    let mut lanes = Vec::with_capacity(ends.len());
    let mut begin = 0;
    for end in &mut ends {
        lanes.push(begin..begin + *end);
        begin += *end;
        *end = begin - *end;
    }
    let mut kernels = vec![0_u32; begin];
    for (row, &lane) in (0_u32..).zip(lane_of.iter()) {
        if let Some(next) = ends.get_mut(lane as usize)
            && let Some(place) = kernels.get_mut(*next)
        {
            *place = row;
            *next += 1;
        }
    }
    let start_of = |row: &u32| trace.kernels.start_ns.get(*row as usize).copied();
    for lane in &lanes {
        // Profilers write most streams in order.
        if let Some(rows) = kernels.get_mut(lane.clone())
            && !rows.is_sorted_by_key(start_of)
        {
            rows.sort_by_key(start_of);
        }
    }
    StreamOrder { kernels, lanes }
}
