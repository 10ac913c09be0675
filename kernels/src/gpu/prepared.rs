//! A problem whose variants can be run on a GPU.

use std::time::Duration;

use fusion_cost_model::{Clock, DType};

use super::memory::DeviceTensors;
use super::queue::{Queue, Sets, Work};
use super::tensors::TensorId;
use crate::backend::{BackendError, FirstRuns, KernelFacts, Prepared, Sensors, Variant};
use crate::gpu::driver::{DeviceError, Driver};
use crate::numbers::{decode, encode};
use std::rc::Rc;

/// A problem with its kernels, its tensors, and the queue that it runs in.
///
/// The order of the fields is that in which they are dropped: what was recorded refers to kernels,
/// and kernels to tensors.
pub(crate) struct PreparedGpu {
    pub(super) queue: Queue,
    pub(super) work: Work,
    pub(super) tensors: DeviceTensors,
    pub(super) driver: Rc<dyn Driver>,
    pub(super) clock: Clock,
    pub(super) dtype: DType,
    /// The inputs as the device has them.
    pub(super) inputs: Vec<(TensorId, Vec<u8>)>,
    pub(super) output: TensorId,
    /// Of each variant.
    pub(super) scratch_bytes: [u64; 2],
    /// The set that the last run used.
    pub(super) current: usize,
    /// Whether the next run is to find the tensors as they were poisoned, and not what a run before
    /// it has left.
    pub(super) poisoned: bool,
}

/// Runs whose kernels are timed one by one behind one lead: the host submits them while the lead
/// runs, each with an event.
const MOST_STEP_RUNS: u32 = 8;

impl From<DeviceError> for BackendError {
    fn from(error: DeviceError) -> Self {
        match error.of_kernels() {
            Some(failure) => Self::Kernels { failure, source: Box::new(error) },
            None => Self::Device(Box::new(error)),
        }
    }
}

impl PreparedGpu {
    /// The inputs in their order, as the device has them.
    pub(super) fn encode(
        dtype: DType,
        ids: &[TensorId],
        tensors: &[Vec<f32>],
    ) -> Vec<(TensorId, Vec<u8>)> {
        ids.iter().zip(tensors).map(|(&id, tensor)| (id, encode(dtype, tensor))).collect()
    }

    fn write_inputs(&self) -> Result<(), DeviceError> {
        for (id, bytes) in &self.inputs {
            self.tensors.write(*id, bytes)?;
        }
        Ok(())
    }
}

impl Prepared for PreparedGpu {
    fn kernels(&self, variant: Variant) -> Vec<String> {
        // The device's time of small kernels then has gaps in it, which a reader must know.
        let how = if self.clock == Clock::Device && !self.queue.records() {
            " (submitted one by one)"
        } else {
            ""
        };
        let kernels = self.work.of(variant).iter();
        kernels.map(|kernel| format!("{}{how}", kernel.name())).collect()
    }

    fn new_layout(&mut self, seed: u64) -> Result<(), BackendError> {
        self.driver.synchronize()?;
        self.queue.forget();
        self.tensors.shuffle(seed);
        for variant in Variant::ALL {
            for kernel in self.work.of_mut(variant) {
                kernel.locate(&self.tensors)?;
            }
        }
        self.tensors.zero_counters()?;
        self.write_inputs()?;
        Ok(())
    }

    fn poison(&mut self) -> Result<(), BackendError> {
        self.tensors.poison()?;
        self.write_inputs()?;
        self.poisoned = true;
        Ok(())
    }

    fn run_each(&mut self, hears: &mut FirstRuns<'_>) -> Result<(), BackendError> {
        self.driver.synchronize()?;
        for kernel in Variant::ALL.into_iter().flat_map(|variant| self.work.of(variant)) {
            hears(Some(&kernel.name()));
            // SAFETY: as in `run`; there is at least one set.
            unsafe { kernel.launch(0)? };
            self.driver.synchronize().map_err(|error| kernel.failed(error))?;
            hears(None);
        }
        self.queue.run_stamps(hears)?;
        Ok(())
    }

    fn run(&mut self, variant: Variant, iterations: u32) -> Result<Duration, BackendError> {
        let count = self.tensors.sets();
        let sets = Sets { first: (self.current + 1) % count, count };
        self.current = (self.current + iterations as usize) % count;
        let has_lead = !std::mem::take(&mut self.poisoned);
        let (queue, work) = (&mut self.queue, &self.work);
        // SAFETY: `new_layout` located the kernels where the tensors are, which only it moves.
        let time = unsafe {
            match self.clock {
                Clock::LaunchInclusive => {
                    queue.launch_inclusive_time(work, variant, iterations, sets)
                }
                Clock::Host | Clock::Device => {
                    queue.device_time(work, variant, iterations, sets, has_lead)
                }
            }
        };
        Ok(time?)
    }

    /// `None` by the host's clock, which sees no kernel begin.
    fn run_steps(&mut self, iterations: u32) -> Result<Option<Vec<f64>>, BackendError> {
        if self.clock != Clock::Device {
            return Ok(None);
        }
        let runs = iterations.clamp(1, MOST_STEP_RUNS);
        let count = self.tensors.sets();
        let sets = Sets { first: (self.current + 1) % count, count };
        self.current = (self.current + runs as usize) % count;
        // SAFETY: as in `run`.
        let seconds = unsafe { self.queue.step_times(&self.work, runs, sets)? };
        Ok(Some(seconds))
    }

    fn scratch_bytes(&self, variant: Variant) -> u64 {
        let [unfused, fused] = self.scratch_bytes;
        if variant == Variant::Unfused { unfused } else { fused }
    }

    fn output(&mut self) -> Result<Vec<f32>, BackendError> {
        Ok(decode(self.dtype, &self.tensors.read(self.current, self.output)?))
    }

    fn kernel_facts(&self, variant: Variant) -> Vec<KernelFacts> {
        self.work.of(variant).iter().filter_map(|kernel| kernel.facts()).collect()
    }

    fn sensors(&mut self) -> Sensors {
        Sensors { device_clock_mhz: self.queue.clock_mhz(), ..self.driver.sensors() }
    }
}
