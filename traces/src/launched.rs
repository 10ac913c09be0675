//! The call, and the operator, that launched each kernel.
//!
//! A kernel and its launch have the same correlation id. The id is not unique: every kernel of
//! one graph replay has that of the replay, and a call of the runtime may contain one of the
//! driver with the same id. Zero is not an id.

use rustc_hash::FxHashMap;

use crate::Trace;

/// For each kernel the row of the table of launches, or [`NONE`].
pub(crate) fn launches(trace: &Trace) -> Vec<u32> {
    let rows = ByCorrelation::of(trace);
    let kernels = &trace.kernels;
    let mut last = (0, NONE);
    let mut found = Vec::with_capacity(kernels.len());
    for (&correlation, &start) in kernels.correlation.iter().zip(kernels.start_ns.iter()) {
        // All kernels of a replay come one after another.
        if correlation == 0 {
            last = (0, NONE);
        } else if correlation != last.0 || rows.has_others(correlation) {
            last = (correlation, rows.launch(trace, correlation, start));
        }
        found.push(last.1);
    }
    found
}

/// For each kernel the row of the operator that launched it, or [`NONE`]: by its own id, else by
/// that of its launch.
pub(crate) fn operators(trace: &Trace, launches: &[u32]) -> Vec<u32> {
    let ids = &trace.ops.external_id;
    let lowest = ids.iter().copied().filter(|id| *id != 0).min().unwrap_or(0);
    let limit = ids.len().saturating_mul(SPARSEST);
    let place = |id: u64| {
        let offset = usize::try_from(id.checked_sub(lowest)?).ok();
        offset.filter(|offset| id != 0 && *offset < limit)
    };
    let highest = ids.iter().filter_map(|id| place(*id)).max();
    let mut dense = vec![NONE; highest.map_or(0, |highest| highest + 1)];
    let mut others: FxHashMap<u64, u32> = FxHashMap::default();
    for (row, &id) in (0_u32..).zip(ids.iter()).filter(|(_, id)| **id != 0) {
        match place(id).and_then(|place| dense.get_mut(place)) {
            Some(last) => *last = row,
            None => {
                others.insert(id, row);
            }
        }
    }
    let row_of = |id: u64| {
        let row = place(id).and_then(|place| dense.get(place).copied());
        row.or_else(|| others.get(&id).copied()).filter(|row| id != 0 && *row != NONE)
    };
    let of_launch = |launch: u32| trace.launches.external_id.get(launch as usize).copied();
    let kernels = trace.kernels.external_id.iter().zip(launches);
    kernels
        .map(|(&id, &launch)| row_of(id).or_else(|| row_of(of_launch(launch)?)).unwrap_or(NONE))
        .collect()
}

/// No launch.
pub(crate) const NONE: u32 = u32::MAX;

/// Launches by their correlation ids.
struct ByCorrelation {
    lowest: u64,
    /// The first launch of each id from the lowest on. Profilers count ids up by one.
    dense: Vec<u32>,
    /// The launches of ids that are far from the others, and the further ones of any id.
    others: FxHashMap<u64, Vec<u32>>,
    /// Of each name whether calls with it launch something, where ids have several calls.
    may_launch: Vec<bool>,
}

/// At most this many places are empty for each one that is used.
const SPARSEST: usize = 16;

impl ByCorrelation {
    fn of(trace: &Trace) -> Self {
        let ids = &trace.launches.correlation;
        let lowest = ids.iter().copied().filter(|id| *id != 0).min().unwrap_or(0);
        let limit = ids.len().saturating_mul(SPARSEST) as u64;
        let highest = ids.iter().filter_map(|id| id.checked_sub(lowest)).filter(|o| *o < limit);
        let size = highest.max().map_or(0, |offset| offset as usize + 1);
        let mut dense = vec![NONE; size];
        let mut others: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for (row, &id) in (0_u32..).zip(ids.iter()).filter(|(_, id)| **id != 0) {
            let offset = id.checked_sub(lowest).and_then(|offset| usize::try_from(offset).ok());
            match offset.and_then(|offset| dense.get_mut(offset)) {
                Some(place) if *place == NONE => *place = row,
                _ => others.entry(id).or_default().push(row),
            }
        }
        let mut may_launch = Vec::new();
        if !others.is_empty() {
            let launches = |name: &str| ["Launch", "Mem"].iter().any(|part| name.contains(part));
            may_launch.extend(trace.names.iter().map(|(_, name)| launches(name)));
        }
        Self { lowest, dense, others, may_launch }
    }

    fn has_others(&self, correlation: u64) -> bool {
        !self.others.is_empty() && self.others.contains_key(&correlation)
    }

    /// The last launch with an id that began before the kernel did, calls that launch before
    /// others.
    fn launch(&self, trace: &Trace, correlation: u64, kernel_start: i64) -> u32 {
        let offset = correlation.checked_sub(self.lowest).and_then(|o| usize::try_from(o).ok());
        let first = offset.and_then(|offset| self.dense.get(offset).copied()).unwrap_or(NONE);
        let Some(others) = self.others.get(&correlation) else { return first };
        let launches = &trace.launches;
        let quality = |row: u32| {
            let start = launches.start_ns.get(row as usize).copied().unwrap_or(i64::MAX);
            let name = launches.name.get(row as usize);
            let may_launch = name.and_then(|id| self.may_launch.get(id.0 as usize));
            (start <= kernel_start, may_launch == Some(&true), start)
        };
        let rows = others.iter().copied().chain((first != NONE).then_some(first));
        rows.max_by_key(|row| quality(*row)).unwrap_or(NONE)
    }
}
