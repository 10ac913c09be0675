//! What starting a graph takes by itself.
//!
//! Between two events lies a graph's start as well as its kernels: a microsecond or more, which an
//! eager launch of the same kernels behind others does not have. Two graphs of N and of 2N runs
//! differ by N runs and by no start.

use std::time::Duration;

use super::{MOST_KERNELS, Queue, Sets, Work};
use crate::backend::Variant;
use crate::gpu::driver::DeviceError;

/// The shorter graph lasts about this long, so that what kernels differ by is small beside a start.
const SHORTER: Duration = Duration::from_micros(100);

/// A variant that takes this long has a start of less than 1 % of its time, which is also what its
/// runs differ by: nothing would be found.
const LONG: Duration = Duration::from_millis(1);

/// How often both are run; the median counts.
const TIMES: u32 = 9;

impl Queue {
    /// What starting a graph of a variant takes, found out once.
    ///
    /// # Safety
    ///
    /// As for [`Self::device_time`].
    pub(super) unsafe fn start_of_graph(
        &mut self,
        work: &Work,
        variant: Variant,
        sets: Sets,
    ) -> Result<Duration, DeviceError> {
        if let Some(&known) = self.starts.get(&variant) {
            return Ok(known);
        }
        // SAFETY: the caller's guarantee, for all of these.
        let mut time = |runs| unsafe { self.between_events(work, variant, runs, sets, true) };
        // The first time, something may have to be made ready.
        let once = time(1)?.min(time(1)?);
        let most = u32::try_from(MOST_KERNELS / 2 / work.of(variant).len().max(1)).unwrap_or(1);
        let mut starts = Vec::new();
        if once < LONG && most > 0 {
            let wanted = SHORTER.as_nanos() / once.as_nanos().max(1);
            let runs = u32::try_from(wanted).unwrap_or(u32::MAX).clamp(1, most);
            for _ in 0..TIMES {
                let (one, two) = (time(runs)?, time(2 * runs)?);
                // Never more than a graph of one run takes.
                starts.push((2 * one).saturating_sub(two).min(once));
            }
        }
        starts.sort_unstable();
        let is_graph = self.records();
        let start = starts.get(starts.len() / 2).copied().filter(|_| is_graph).unwrap_or_default();
        self.starts.insert(variant, start);
        Ok(start)
    }
}
