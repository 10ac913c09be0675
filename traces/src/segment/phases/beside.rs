//! Kernels on other streams than the layers of passes.
//!
//! They run when they can: the inputs of the next pass are copied while this one computes. When
//! they ran says nothing of what they are for, their launches do.

use super::super::layers::{Layers, Pass};
use super::super::order::StreamOrder;
use super::Known;
use crate::Trace;
use crate::launched::NONE;

/// The lane of each pass: that of most of its kernels, the first of equals.
fn lanes(trace: &Trace, layers: &Layers) -> Vec<Option<u32>> {
    let mut counts = vec![0_usize; trace.lanes.len()];
    let busiest = |pass: &Pass| {
        counts.fill(0);
        for row in rows(layers, pass) {
            let lane = trace.kernels.lane.get(row as usize);
            if let Some(count) = lane.and_then(|lane| counts.get_mut(*lane as usize)) {
                *count += 1;
            }
        }
        let of_lane = (0..).zip(&counts).filter(|(_, count)| **count > 0);
        let most = of_lane.max_by_key(|(lane, count)| (**count, std::cmp::Reverse(*lane)));
        most.map(|(lane, _)| lane)
    };
    layers.passes.iter().map(busiest).collect()
}

/// The lanes of all passes, each once.
pub(super) fn used_lanes(trace: &Trace, layers: &Layers) -> Vec<u32> {
    let mut used: Vec<u32> = lanes(trace, layers).into_iter().flatten().collect();
    used.sort_unstable();
    used.dedup();
    used
}

fn rows<'l>(layers: &'l Layers, pass: &Pass) -> impl Iterator<Item = u32> + 'l {
    let of_pass = layers.list.get(pass.layers.clone()).unwrap_or_default();
    of_pass.iter().flat_map(|layer| layers.kernels(layer).iter().copied())
}

/// The launches of a pass, from the first one to the last, or of several that overlap.
struct Window {
    first_ns: i64,
    last_ns: i64,
    phase: Known,
}

/// Gives the kernels of a device that are on no lane of its passes the phase of the pass in which
/// they were launched, or of both between which they were.
pub(super) fn fill(
    trace: &Trace,
    launches: &[u32],
    layers: &Layers,
    order: &StreamOrder,
    known: &[Known],
    by_kernel: &mut [Known],
) {
    let of_passes = lanes(trace, layers);
    let launched_ns = |row: u32| {
        let launch = launches.get(row as usize).copied().filter(|launch| *launch != NONE)?;
        trace.launches.start_ns.get(launch as usize).copied()
    };
    for (device, lanes) in order.devices(trace) {
        let passes = layers.passes.iter().zip(&of_passes).zip(known);
        let of_device = passes.filter(|((pass, _), _)| pass.device == device);
        let windows = of_device.filter_map(|((pass, lane), phase)| {
            let own = |row: &u32| trace.kernels.lane.get(*row as usize) == lane.as_ref();
            let times = || rows(layers, pass).filter(own).filter_map(launched_ns);
            Some(Window { first_ns: times().min()?, last_ns: times().max()?, phase: *phase })
        });
        let windows = disjoint(windows.collect());
        let beside = lanes.iter().filter(|lane| {
            let lane = u32::try_from(**lane).ok();
            !of_passes.contains(&lane)
        });
        for lane in beside {
            let rows = order.of_lane(*lane);
            let mut before: Option<(usize, Known)> = None;
            for (at, &row) in rows.iter().enumerate() {
                let Some(time) = launched_ns(row) else {
                    put(by_kernel, &[row], None);
                    continue;
                };
                let phase = phase(&windows, time);
                // A stream runs kernels in the order of their launches.
                if let Some((from, of_before)) = before
                    && phase == of_before
                {
                    put(by_kernel, rows.get(from + 1..at).unwrap_or_default(), phase);
                }
                put(by_kernel, &[row], phase);
                before = Some((at, phase));
            }
        }
    }
}

/// Windows in order. What was launched in several at once is of a phase if all have it.
fn disjoint(mut windows: Vec<Window>) -> Vec<Window> {
    windows.sort_by_key(|window| window.first_ns);
    windows.dedup_by(|next, window| {
        let overlaps = next.first_ns <= window.last_ns;
        if overlaps {
            window.last_ns = window.last_ns.max(next.last_ns);
            window.phase = common(window.phase, next.phase);
        }
        overlaps
    });
    windows
}

fn common(one: Known, other: Known) -> Known {
    one.filter(|(phase, _)| other.is_some_and(|(other, _)| *phase == other))
}

/// The phase of what was launched at a time.
fn phase(windows: &[Window], time: i64) -> Known {
    let next = windows.partition_point(|window| window.first_ns <= time);
    let before = windows.get(next.checked_sub(1)?)?;
    if time <= before.last_ns {
        return before.phase;
    }
    common(before.phase, windows.get(next)?.phase)
}

pub(super) fn put(by_kernel: &mut [Known], rows: &[u32], phase: Known) {
    for row in rows {
        if let Some(place) = by_kernel.get_mut(*row as usize) {
            *place = phase;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::marks::Phase;
    use super::super::PhaseEvidence;
    use super::*;

    #[test]
    fn launches_are_of_passes_that_they_lie_in_or_between() {
        let [prefill, decode] =
            [Phase::Prefill, Phase::Decode].map(|phase| Some((phase, PhaseEvidence::Sizes)));
        let window = |first_ns, last_ns, phase| Window { first_ns, last_ns, phase };
        // Out of order; the last two overlap, with the same phase and with different ones.
        let windows = disjoint(vec![
            window(30, 40, decode),
            window(10, 20, prefill),
            window(50, 60, decode),
            window(55, 70, decode),
            window(80, 90, decode),
            window(90, 100, prefill),
        ]);
        assert_eq!(windows.len(), 4);
        let of = |time| phase(&windows, time);
        assert_eq!([of(9), of(10), of(20), of(25)], [None, prefill, prefill, None]);
        assert_eq!([of(30), of(45), of(62), of(75)], [decode, decode, decode, None]);
        assert_eq!([of(85), of(95), of(101)], [None; 3]);
        assert_eq!(phase(&[], 5), None);
    }
}
