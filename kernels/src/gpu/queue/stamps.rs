//! The clock of the processors, as they count it themselves.
//!
//! A management library reports what the clock was some tens of milliseconds ago, or in the mean of
//! them. Here a kernel before a sample and one behind it write down the cycles of each processor and
//! the device's time, outside of the two events: the differences are the clock during the sample.

use super::Launch;
use crate::gpu::driver::{Counters, DeviceError};
use crate::gpu::loaded::{LoadedKernel, Loader};
use crate::gpu::lower::probes;
use crate::gpu::memory::DeviceTensors;
use crate::gpu::tensors::{Role, TensorId, TensorTable};

/// The device's time has steps of a microsecond on NVIDIA, so that shorter samples would say little.
const LEAST_MICROSECONDS: u64 = 200;

/// Which stamps: those before a sample, or those behind it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Moment {
    Before,
    After,
}

/// The kernel that writes them, and where.
pub(crate) struct Stamps {
    kernel: LoadedKernel,
    tensors: DeviceTensors,
    table: TensorId,
    counters: Counters,
}

impl Stamps {
    /// Stamps of all processors of a device with counters.
    pub(crate) fn new(loader: &Loader, counters: Counters) -> Result<Self, DeviceError> {
        let processors = loader.driver().facts().processors;
        let mut table = TensorTable::default();
        let id = table.add(16 * u64::from(counters.places), Role::Result);
        let mut kernel = loader.load(probes::stamp(id, processors, counters.places))?;
        let tensors = DeviceTensors::allocate(loader.driver(), table, 2)?;
        kernel.locate(&tensors)?;
        // Zeros where no block ever comes.
        let zeros = vec![0; usize::try_from(tensors.bytes_of(id)).unwrap_or_default()];
        tensors.write(id, &zeros)?;
        Ok(Self { kernel, tensors, table: id, counters })
    }

    pub(super) fn kernel(&self) -> &dyn Launch {
        &self.kernel
    }

    /// Submits the kernel.
    pub(super) fn write(&self, moment: Moment) -> Result<(), DeviceError> {
        // SAFETY: it was located where the tensors are, which do not move.
        unsafe { self.kernel.launch(moment as usize) }
    }

    /// The clock between the two moments, in MHz: the median of the processors. `None` where they
    /// are too close together.
    pub(super) fn clock_mhz(&self) -> Result<Option<u32>, DeviceError> {
        let before = self.tensors.read(Moment::Before as usize, self.table)?;
        let after = self.tensors.read(Moment::After as usize, self.table)?;
        Ok(median_mhz(&before, &after, self.counters.ticks_khz))
    }
}

/// From cycles and ticks of each processor, two words of eight bytes.
fn median_mhz(before: &[u8], after: &[u8], ticks_khz: u32) -> Option<u32> {
    let least = LEAST_MICROSECONDS * u64::from(ticks_khz) / 1000;
    let words = |bytes: &[u8]| -> Vec<[u64; 2]> {
        let words = bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes);
        words.collect::<Vec<u64>>().as_chunks().0.to_vec()
    };
    let mhz = words(before).into_iter().zip(words(after)).filter_map(|(before, after)| {
        let (cycles, ticks) = (after[0].checked_sub(before[0])?, after[1].checked_sub(before[1])?);
        if before[1] == 0 || ticks < least.max(1) {
            return None;
        }
        let khz = u128::from(cycles) * u128::from(ticks_khz) / u128::from(ticks);
        u32::try_from(khz / 1000).ok()
    });
    let mut mhz: Vec<u32> = mhz.collect();
    mhz.sort_unstable();
    mhz.get(mhz.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(stamps: &[[u64; 2]]) -> Vec<u8> {
        stamps.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn the_clock_is_the_median_of_processors_that_have_both_stamps() {
        let before = bytes(&[[1000, 10], [0, 0], [500, 10], [7_000_000, 10], [0, 10]]);
        let after = bytes(&[
            [1000 + 1_980_000, 1_000_010],
            // Never before.
            [9_000_000, 1_000_010],
            [500 + 1_965_000, 1_000_010],
            // Not this time: an older stamp.
            [6_000_000, 5],
            [1_410_000, 1_000_010],
        ]);
        assert_eq!(median_mhz(&before, &after, 1_000_000), Some(1965));
        let too_early = bytes(&[[1000, 10], [0, 0], [500, 10], [7_000_000, 10], [0, 10]]);
        assert_eq!(median_mhz(&before, &too_early, 1_000_000), None);
        assert_eq!(median_mhz(&[], &[], 1_000_000), None);
    }
    /// Of 10 ns each, as on AMD; from 200 us on.
    #[test]
    fn ticks_are_as_long_as_the_device_says() {
        let before = bytes(&[[5_000, 700]]);
        for (ticks, expected) in [(100_000, Some(2100)), (20_000, Some(2100)), (19_999, None)] {
            let after = bytes(&[[5_000 + ticks * 21, 700 + ticks]]);
            assert_eq!(median_mhz(&before, &after, 100_000), expected, "{ticks}");
        }
        // No time that goes at all.
        assert_eq!(median_mhz(&before, &bytes(&[[6_000, 700]]), 0), None);
    }
}
