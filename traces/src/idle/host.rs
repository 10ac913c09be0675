//! What the host did while a device waited.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::Cause;
use super::gaps::{Part, between};
use crate::enclosing::{Intervals, Moment};
use crate::{NameId, Trace};

/// What the host did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// A call of the runtime or the driver.
    Call,
    /// An operator.
    Operator,
    /// A Python function or module.
    Frame,
    /// Something that the program marked.
    Mark,
}

/// Shorter waiting for the host is not looked up: it is what lies between two launches.
const LEAST_NS: u64 = 10_000;

/// The calls in which the host waits for the device.
pub(super) struct Host {
    /// By name, whether it is such a call.
    waits_by_name: Vec<bool>,
    /// By thread, in the order of time: beginning and end.
    waits: FxHashMap<u32, Vec<(i64, i64)>>,
}

impl Host {
    pub(super) fn of(trace: &Trace) -> Self {
        let waits_by_name: Vec<bool> = trace.names.iter().map(|(_, name)| is_wait(name)).collect();
        let calls = &trace.launches;
        let mut waits: FxHashMap<u32, Vec<(i64, i64)>> = FxHashMap::default();
        let rows = calls.start_ns.iter().zip(calls.duration_ns.iter());
        for ((start, duration), (name, thread)) in
            rows.zip(calls.name.iter().zip(calls.thread.iter()))
        {
            if waits_by_name.get(name.0 as usize) == Some(&true) {
                let end = start.saturating_add_unsigned(*duration);
                waits.entry(*thread).or_default().push((*start, end));
            }
        }
        for calls in waits.values_mut() {
            calls.sort_unstable();
        }
        Self { waits_by_name, waits }
    }

    /// Whether a call of a name returns only when the device has done something.
    pub(super) fn waits_in(&self, name: NameId) -> bool {
        self.waits_by_name.get(name.0 as usize) == Some(&true)
    }

    /// How long a thread waited for the device in a part of its time.
    pub(super) fn waited_ns(&self, thread: u32, start_ns: i64, end_ns: i64) -> u64 {
        let Some(calls) = self.waits.get(&thread) else { return 0 };
        // A thread is in one such call at a time, so ends are in the order of beginnings.
        let from = calls.partition_point(|(_, end)| *end <= start_ns);
        let calls = calls.get(from..).unwrap_or_default().iter();
        let inside = calls.take_while(|(start, _)| *start < end_ns);
        let waits = inside.map(|(start, end)| between((*start).max(start_ns), (*end).min(end_ns)));
        waits.fold(0, u64::saturating_add)
    }

    /// What the host did in most of each part that waits for it: of what was open in the middle,
    /// the innermost that lasted for half of the part.
    #[expect(clippy::unused_self, reason = "it is what the host did")]
    pub(super) fn doing(&self, trace: &Trace, parts: &[Part]) -> Vec<Option<(Doing, NameId)>> {
        let mut found = vec![None; parts.len()];
        let waits: Vec<(usize, Moment)> = parts
            .iter()
            .enumerate()
            .filter(|(_, part)| {
                let is_of_host =
                    matches!(part.cause, Cause::Host | Cause::Synchronisation | Cause::Launch);
                is_of_host && part.ns >= LEAST_NS
            })
            .filter_map(|(place, part)| {
                let time_ns = part.start_ns.saturating_add_unsigned(part.ns / 2);
                Some((place, Moment { thread: part.thread?, time_ns }))
            })
            .collect();
        let moments: Vec<Moment> = waits.iter().map(|(_, moment)| *moment).collect();
        macro_rules! look {
            ($table:ident, $kind:expr) => {
                let table = &trace.$table;
                let intervals = Intervals {
                    start_ns: &table.start_ns,
                    duration_ns: &table.duration_ns,
                    thread: &table.thread,
                };
                intervals.around(&moments, |place, open| {
                    let Some((place, _)) = waits.get(place) else { return };
                    let (Some(part), Some(found @ None)) =
                        (parts.get(*place), found.get_mut(*place))
                    else {
                        return;
                    };
                    let end_ns = part.start_ns.saturating_add_unsigned(part.ns);
                    let lasts = |row: &&usize| {
                        let start = table.start_ns.get(**row).copied().unwrap_or(0);
                        let duration = table.duration_ns.get(**row).copied().unwrap_or(0);
                        let end = start.saturating_add_unsigned(duration).min(end_ns);
                        between(start.max(part.start_ns), end) >= part.ns / 2
                    };
                    let row = open.iter().find(lasts);
                    *found = row.and_then(|row| Some(($kind, *table.name.get(*row)?)));
                });
            };
        }
        look!(launches, Doing::Call);
        look!(ops, Doing::Operator);
        look!(frames, Doing::Frame);
        look!(annotations, Doing::Mark);
        found
    }
}

/// Whether a call returns only when the device has done something.
fn is_wait(name: &str) -> bool {
    let is_call = name.starts_with("cuda") || name.starts_with("hip") || name.starts_with("cu");
    let copies = name.contains("Memcpy") && !name.contains("Async");
    is_call && (name.contains("Synchronize") || copies)
}
