//! The memory of a prepared problem on a device.

use std::rc::Rc;

use super::driver::{Address, DeviceError, Driver};
use super::tensors::{Role, TensorId, TensorTable};
use crate::numbers::NAN_PATTERN;
use crate::placement::{Gaps, Item, Placement};

/// Every tensor starts at a multiple of this many bytes: what a device's allocator guarantees, and
/// more than any access of a kernel needs.
pub(crate) const LINE: u64 = 256;

/// A single set may be shifted by up to 64 KiB, so that its tensors meet at every distance modulo
/// the channels and banks that addresses are spread over. Many sets are shifted by 1 KiB at least.
const GAPS: Gaps = Gaps { most: 256, least: 4 };

/// Memory behind the last tensor: a bulk access of a tile that ends there may touch it.
const SLACK: u64 = 4096;

/// Sets of the tensors of a problem in one block of a device's memory.
pub(crate) struct DeviceTensors {
    driver: Rc<dyn Driver>,
    table: TensorTable,
    placement: Placement,
    base: Address,
    bytes: u64,
}

impl DeviceTensors {
    /// Bytes of memory for `sets` sets.
    pub(crate) fn bytes_for(table: &TensorTable, sets: usize) -> u64 {
        Placement::lines_for(&items(table), sets, GAPS).saturating_mul(LINE).saturating_add(SLACK)
    }

    /// Allocates `sets` sets, at least one.
    pub(crate) fn allocate(
        driver: &Rc<dyn Driver>,
        table: TensorTable,
        sets: usize,
    ) -> Result<Self, DeviceError> {
        let sets = sets.max(1);
        let bytes = Self::bytes_for(&table, sets);
        let base = driver.allocate(bytes)?;
        let placement = Placement::new(items(&table), sets, GAPS);
        Ok(Self { driver: Rc::clone(driver), table, placement, base, bytes })
    }

    /// How many sets there are.
    pub(crate) fn sets(&self) -> usize {
        self.placement.sets()
    }

    /// Where a tensor of a set is.
    pub(crate) fn address(&self, set: usize, id: TensorId) -> Address {
        Address(self.base.0 + self.placement.of_set(set)[id.0] as u64 * LINE)
    }

    /// Draws a new placement. The contents of the tensors are lost.
    pub(crate) fn shuffle(&mut self, seed: u64) {
        self.placement.shuffle(seed);
    }

    /// Writes NaN to all tensors and the gaps between them, and zero to counters.
    pub(crate) fn poison(&self) -> Result<(), DeviceError> {
        // SAFETY: all of the memory that was allocated, which is a multiple of four bytes.
        unsafe { self.driver.fill(self.base, NAN_PATTERN, self.bytes / 4)? };
        self.zero_counters()
    }

    /// Writes zero to counters.
    pub(crate) fn zero_counters(&self) -> Result<(), DeviceError> {
        for (index, spec) in self.table.specs.iter().enumerate() {
            if spec.role == Role::Counters {
                // Shared by all sets, so that the first one's is everybody's.
                let at = self.address(0, TensorId(index));
                // SAFETY: the tensor's own memory.
                unsafe { self.driver.fill(at, 0, spec.bytes.div_ceil(4))? };
            }
        }
        Ok(())
    }

    /// Writes a tensor of all sets.
    pub(crate) fn write(&self, id: TensorId, bytes: &[u8]) -> Result<(), DeviceError> {
        assert_eq!(bytes.len() as u64, self.bytes_of(id));
        for set in 0..self.sets() {
            // SAFETY: the tensor has as many bytes.
            unsafe { self.driver.upload(self.address(set, id), bytes)? };
        }
        Ok(())
    }

    /// The bytes of a tensor.
    pub(crate) fn bytes_of(&self, id: TensorId) -> u64 {
        self.table.specs[id.0].bytes
    }

    /// Reads a tensor of a set.
    pub(crate) fn read(&self, set: usize, id: TensorId) -> Result<Vec<u8>, DeviceError> {
        let length = usize::try_from(self.bytes_of(id)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        // SAFETY: the tensor has as many bytes.
        unsafe { self.driver.download(&mut bytes, self.address(set, id))? };
        Ok(bytes)
    }
}

impl Drop for DeviceTensors {
    fn drop(&mut self) {
        // What still runs on the memory must end first; if that fails there is nothing to save.
        let _ = self.driver.synchronize();
        // SAFETY: it was allocated from this driver, and nothing else owns it.
        unsafe { self.driver.free(self.base) };
    }
}

fn items(table: &TensorTable) -> Vec<Item> {
    let lines = |bytes: u64| usize::try_from(bytes.div_ceil(LINE)).unwrap_or(usize::MAX);
    let item = |spec: &super::tensors::TensorSpec| Item {
        lines: lines(spec.bytes),
        shared: matches!(spec.role, Role::Scratch | Role::Counters),
    };
    table.specs.iter().map(item).collect()
}
