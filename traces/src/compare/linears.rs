//! The calls of `aten::linear`: an addition in one is that of a bias. The operator adds it by a kernel
//! of its own where its input is not contiguous.

use crate::Trace;

const LINEAR: &str = "aten::linear";

/// The calls: thread, begin, end; sorted. They do not contain each other.
#[derive(Debug)]
pub(super) struct Linears(Vec<(u32, i64, i64)>);

impl Linears {
    pub(super) fn of(trace: &Trace) -> Self {
        let ops = &trace.ops;
        let Some((name, _)) = trace.names.iter().find(|(_, name)| *name == LINEAR) else {
            return Self(Vec::new());
        };
        let times = ops.start_ns.iter().zip(ops.duration_ns.iter());
        let times =
            times.map(|(start, duration)| (*start, start.saturating_add_unsigned(*duration)));
        let all = ops.name.iter().zip(ops.thread.iter().zip(times));
        let mut calls: Vec<(u32, i64, i64)> = all
            .filter(|(of, _)| **of == name)
            .map(|(_, (thread, (start, end)))| (*thread, start, end))
            .collect();
        calls.sort_unstable();
        Self(calls)
    }

    /// Whether something that began on a thread at a time is in one: what begins when one ends is
    /// behind it.
    pub(super) fn contain(&self, thread: u32, time_ns: i64) -> bool {
        let behind = self.0.partition_point(|(on, start, _)| (*on, *start) <= (thread, time_ns));
        let last = behind.checked_sub(1).and_then(|last| self.0.get(last));
        last.is_some_and(|(on, _, end)| *on == thread && time_ns < *end)
    }
}
