//! Whose each nanosecond of a device is.
//!
//! Durations count what runs at the same time several times, and idle time not at all, so they do
//! not add up to the time that passes. Here every nanosecond from the first beginning to the last
//! end has one owner: the kernel that runs; of several the first that began, and computation
//! before communication, copies and fills, which thus own only what nothing hides. A time in which
//! nothing runs is the waiting of the kernel that ends it.

use std::collections::VecDeque;

use crate::classify::Class;
use crate::{Classes, DeviceWork, Trace};

/// The time that each kernel of a device adds to that of the device, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Attribution {
    /// What it owns, by row of the trace's kernels; 0 for those of other devices.
    pub(super) own_ns: Vec<u64>,
    /// How long nothing ran before it.
    pub(super) wait_ns: Vec<u64>,
    /// From the first beginning to the last end.
    pub(super) span_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    row: u32,
    end_ns: i64,
}

impl Attribution {
    /// Attributes the time of a device to those of its kernels that are given.
    pub(super) fn of(trace: &Trace, classes: &Classes, rows: &[u32]) -> Self {
        let kernels = &trace.kernels;
        let start = |row: u32| kernels.start_ns.get(row as usize).copied().unwrap_or_default();
        let mut order = rows.to_vec();
        // Rows are nearly in order already. Of those that begin together the first one is first.
        order.sort_by_key(|row| start(*row));
        let mut attribution =
            Self { own_ns: vec![0; kernels.len()], wait_ns: vec![0; kernels.len()], span_ns: 0 };
        let Some(first) = order.first() else { return attribution };
        let first_ns = start(*first);
        let mut sweep =
            Sweep { now: first_ns, computing: VecDeque::new(), beside: VecDeque::new() };
        for &row in &order {
            let start_ns = start(row);
            let idle_ns = sweep.advance(start_ns, &mut attribution.own_ns);
            if let Some(wait) = attribution.wait_ns.get_mut(row as usize) {
                *wait = idle_ns;
            }
            let index = row as usize;
            let duration = kernels.duration_ns.get(index).copied().unwrap_or_default();
            let end_ns = start_ns.saturating_add_unsigned(duration);
            let computes = kernels.work.get(index) == Some(&DeviceWork::Kernel)
                && classes.get(index).main != Class::Comm;
            let queue = if computes { &mut sweep.computing } else { &mut sweep.beside };
            queue.push_back(Running { row, end_ns });
        }
        sweep.finish(&mut attribution.own_ns);
        attribution.span_ns = sweep.now.abs_diff(first_ns);
        attribution
    }
}

/// What runs, in the order in which it began.
struct Sweep {
    now: i64,
    computing: VecDeque<Running>,
    beside: VecDeque<Running>,
}

impl Sweep {
    /// The owner of the time from now on.
    fn owner(&mut self) -> Option<Running> {
        let now = self.now;
        for queue in [&mut self.computing, &mut self.beside] {
            while queue.front().is_some_and(|first| first.end_ns <= now) {
                queue.pop_front();
            }
            if let Some(first) = queue.front() {
                return Some(*first);
            }
        }
        None
    }

    /// Goes on to a time at which something begins. Returns for how long nothing ran before it.
    fn advance(&mut self, to: i64, own_ns: &mut [u64]) -> u64 {
        while self.now < to {
            let Some(owner) = self.owner() else {
                let idle_ns = to.abs_diff(self.now);
                self.now = to;
                return idle_ns;
            };
            self.spend(owner, owner.end_ns.min(to), own_ns);
        }
        0
    }

    fn finish(&mut self, own_ns: &mut [u64]) {
        while let Some(owner) = self.owner() {
            self.spend(owner, owner.end_ns, own_ns);
        }
    }

    fn spend(&mut self, owner: Running, until: i64, own_ns: &mut [u64]) {
        if let Some(own) = own_ns.get_mut(owner.row as usize) {
            *own += until.abs_diff(self.now);
        }
        self.now = until;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Kernels, Lane, device_times};

    /// A trace of copies, collectives and other kernels.
    fn trace(parts: &[(i64, u64, u8)]) -> (Trace, Classes) {
        let mut trace = Trace { lanes: vec![Lane { device: 0, stream: 7 }], ..Trace::default() };
        for &(start, duration, kind) in parts {
            let (name, work) = match kind {
                0 => ("gemm", DeviceWork::Kernel),
                1 => ("ncclDevKernel_AllReduce_Sum_f16_RING_LL", DeviceWork::Kernel),
                _ => ("Memcpy DtoD (Device -> Device)", DeviceWork::Memcpy),
            };
            let name = trace.names.intern(name.as_bytes());
            let Kernels { start_ns, duration_ns, .. } = &mut trace.kernels;
            start_ns.push(start);
            duration_ns.push(duration);
            trace.kernels.name.push(name);
            trace.kernels.lane.push(0);
            trace.kernels.work.push(work);
            trace.kernels.correlation.push(0);
            trace.kernels.external_id.push(0);
            trace.kernels.graph_node.push(0);
        }
        let classes = Classes::of(&trace);
        (trace, classes)
    }

    fn of(parts: &[(i64, u64, u8)]) -> Attribution {
        let (trace, classes) = trace(parts);
        let rows: Vec<u32> = (0..parts.len() as u32).collect();
        Attribution::of(&trace, &classes, &rows)
    }

    #[test]
    fn one_after_another() {
        let found = of(&[(10, 5, 0), (15, 5, 0), (30, 2, 0)]);
        assert_eq!(found.own_ns, [5, 5, 2]);
        assert_eq!(found.wait_ns, [0, 0, 10]);
        assert_eq!(found.span_ns, 22);
    }

    #[test]
    fn computation_hides_communication() {
        // A collective from 0 to 10, with computation alongside from 2 to 5 and from 8 to 12.
        let found = of(&[(0, 10, 1), (2, 3, 0), (8, 4, 0)]);
        assert_eq!(found.own_ns, [2 + 3, 3, 4]);
        assert_eq!(found.span_ns, 12);
    }

    #[test]
    fn of_several_the_first_that_began() {
        let found = of(&[(0, 10, 0), (2, 12, 0), (4, 2, 0), (3, 20, 2)]);
        assert_eq!(found.own_ns, [10, 4, 0, 9]);
        assert_eq!(of(&[(5, 0, 0), (9, 0, 0)]).wait_ns, [0, 4]);
        assert_eq!(of(&[]), Attribution::default());
    }

    proptest! {
        #[test]
        fn every_nanosecond_has_one_owner(
            parts in prop::collection::vec((-60_i64..60, 0_u64..25, 0..3_u8), 1..30),
        ) {
            let (trace, classes) = trace(&parts);
            let rows: Vec<u32> = (0..parts.len() as u32).collect();
            let found = Attribution::of(&trace, &classes, &rows);
            let own: u64 = found.own_ns.iter().sum();
            let wait: u64 = found.wait_ns.iter().sum();
            let time = &device_times(&trace, &classes)[0];
            prop_assert_eq!(own, time.busy_ns);
            prop_assert_eq!(wait, time.idle.total_ns);
            prop_assert_eq!(found.span_ns, time.span_ns);
            let of_kind = |kind: u8| -> u64 {
                let owns = parts.iter().zip(&found.own_ns);
                owns.filter(|((.., of), _)| *of == kind).map(|(_, own)| *own).sum()
            };
            prop_assert_eq!(of_kind(0), time.compute_ns);
            // Where only a collective and a copy run, the first that began owns the time.
            let exposed = (time.communication.exposed_ns, time.copies.exposed_ns);
            prop_assert!(of_kind(1) >= exposed.0 && of_kind(1) <= exposed.0 + time.mixed_ns);
            prop_assert!(of_kind(2) >= exposed.1 && of_kind(2) <= exposed.1 + time.mixed_ns);
            for ((_, duration, _), own) in parts.iter().zip(&found.own_ns) {
                prop_assert!(own <= duration);
            }
        }
    }
}
