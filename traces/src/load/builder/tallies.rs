//! How often something was wrong with events, and the warnings that come of it.

use super::super::strays;
use super::Builder;
use crate::{OtherDevice, Trace, Warning};

/// How often something was wrong, and where first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    first_at: u64,
}

impl Tally {
    pub(super) fn add(&mut self, count: u64, first_at: u64) {
        if count > 0 {
            self.first_at = if self.count == 0 { first_at } else { self.first_at.min(first_at) };
            self.count += count;
        }
    }
}

/// What was wrong with events.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tallies {
    pub(super) broken: Tally,
    pub(super) broken_bytes: u64,
    pub(super) bad_times: Tally,
    pub(super) bad_durations: Tally,
    pub(super) bad_ids: Tally,
    pub(super) lost_shapes: Tally,
}

impl Tallies {
    /// Adds those of a part that follows.
    pub(super) fn add(&mut self, part: &Self) {
        self.broken_bytes += part.broken_bytes;
        for (tally, more) in [
            (&mut self.broken, part.broken),
            (&mut self.bad_times, part.bad_times),
            (&mut self.bad_durations, part.bad_durations),
            (&mut self.bad_ids, part.bad_ids),
            (&mut self.lost_shapes, part.lost_shapes),
        ] {
            tally.add(more.count, more.first_at);
        }
    }
}

impl Builder {
    /// The trace, with warnings about its events.
    pub(crate) fn finish(self) -> Trace {
        let mut trace = self.trace;
        let form = self.form;
        let Tallies { broken, broken_bytes, bad_times, bad_durations, bad_ids, lost_shapes } =
            self.tallies;
        let strays = strays::leave_out(&mut trace);
        if let Tally { count: count @ 1.., first_at } = broken {
            let bytes = broken_bytes;
            trace.warnings.push(Warning::BrokenEvents { form, count, bytes, first_at });
        }
        if let Tally { count: count @ 1.., first_at } = bad_times {
            trace.warnings.push(Warning::BadTimes { form, count, first_at });
        }
        if strays > 0 {
            trace.warnings.push(Warning::StrayTimes { count: strays });
        }
        if let Tally { count: count @ 1.., first_at } = bad_durations {
            trace.warnings.push(Warning::BadDurations { form, count, first_at });
        }
        if u64::try_from(trace.kernels.total_ns()).is_err() {
            trace.warnings.push(Warning::Overflow);
        }
        if let Tally { count: count @ 1.., first_at } = bad_ids {
            trace.warnings.push(Warning::BadIds { form, count, first_at });
        }
        if let Tally { count: count @ 1.., .. } = lost_shapes {
            trace.warnings.push(Warning::ManyShapes { count });
        }
        if trace.kernels.is_empty() && !self.gave_kernels {
            trace.warnings.push(match self.other_devices {
                [0, 0] => Warning::NoKernels,
                [0, count] => Warning::OtherDevice { device: OtherDevice::Mtia, count },
                [count, _] => Warning::OtherDevice { device: OtherDevice::Xpu, count },
            });
        }
        trace
    }
}
