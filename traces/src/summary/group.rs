//! The summary of kernels with one thing in common.

use serde::Serialize;

use crate::ratio::ratio;

/// The kernels with one thing in common.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The class, or the name of the kernel.
    pub name: String,
    /// The class of a kernel; that of a class is its name.
    pub class: String,
    /// How many there are.
    pub count: usize,
    /// Their durations together, in nanoseconds.
    pub total_ns: u64,
    /// Their mean duration, in nanoseconds.
    pub mean_ns: f64,
    /// Their median duration, in nanoseconds.
    pub median_ns: u64,
    /// The duration that 95 % of them do not exceed, in nanoseconds.
    pub p95_ns: u64,
    /// Their part of the durations of all kernels.
    pub share: f64,
}

impl Group {
    pub(super) fn new(name: String, class: String, times: &Times, whole_ns: u64) -> Self {
        Self {
            name,
            class,
            count: times.count,
            total_ns: times.total_ns,
            mean_ns: times.mean_ns(),
            median_ns: times.median_ns,
            p95_ns: times.p95_ns,
            share: ratio(times.total_ns, whole_ns),
        }
    }
}

/// Groups as reports list them; those of the same total by name.
pub(crate) fn longest_first(mut groups: Vec<Group>) -> Vec<Group> {
    groups.sort_by(|a, b| {
        let by_name = || (&a.name, &a.class).cmp(&(&b.name, &b.class));
        b.total_ns.cmp(&a.total_ns).then_with(by_name)
    });
    groups
}

/// The durations of some kernels, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Times {
    /// How many kernels there are.
    pub count: usize,
    /// Their durations together.
    pub total_ns: u64,
    /// The smallest duration that half of them do not exceed.
    pub median_ns: u64,
    /// The smallest duration that 95 % of them do not exceed.
    pub p95_ns: u64,
}

impl Times {
    /// Their mean duration, in nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        ratio(self.total_ns, self.count as u64)
    }
}
