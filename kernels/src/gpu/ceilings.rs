//! The ceilings of a GPU: how fast it multiplies, moves bytes, and starts kernels.

use std::time::Duration;

use fusion_cost_model::cost::{BandwidthPoint, Ceilings};
use fusion_cost_model::{Clock, DType};

use super::driver::DeviceError;
use super::loaded::Loader;
use super::lower::probes::{TILE_BYTES, multiply, nothing, read, triad};
use super::memory::DeviceTensors;
use super::plan::KernelPlan;
use super::queue::{Launch, Queue, Sets, Work};
use super::tensors::{Role, TensorId, TensorTable};
use crate::backend::{FirstRuns, Variant};
use crate::numbers::decode;

/// A sample lasts at least this long, so that the resolution of events, half a microsecond, does
/// not matter.
const SAMPLE: Duration = Duration::from_micros(300);

/// Samples of each ceiling; the best counts, as nothing makes a loop faster than the device.
const SAMPLES: u32 = 7;

/// Samples have no more runs, even where the clock does not move.
const MOST_RUNS: u32 = 1 << 14;

/// Measures the ceilings for a dtype, as a clock sees them.
pub(super) fn measure(
    loader: &Loader,
    dtype: DType,
    clock: Clock,
    hears: &mut FirstRuns<'_>,
) -> Result<Ceilings, DeviceError> {
    let launch_us = launch_us(loader, clock, hears)?;
    let bandwidth = bandwidth(loader, hears)?;
    let peak_gflops = multiply_gflops(loader, dtype, hears)?;
    Ok(Ceilings { peak_gflops, launch_us, bandwidth })
}

/// A kernel with its tensors, ready to be timed.
struct Probe {
    queue: Queue,
    work: Work,
    tensors: DeviceTensors,
}

impl Probe {
    /// A kernel that has run once.
    fn new(
        loader: &Loader,
        table: TensorTable,
        plan: KernelPlan,
        hears: &mut FirstRuns<'_>,
    ) -> Result<Self, DeviceError> {
        let mut kernel = loader.load(plan)?;
        let tensors = DeviceTensors::allocate(loader.driver(), table, 1)?;
        kernel.locate(&tensors)?;
        // What a kernel does not write is not a number, and nothing that was there before.
        tensors.poison()?;
        hears(Some(&kernel.name()));
        // SAFETY: it was just located where the tensors are.
        unsafe { kernel.launch(0)? };
        loader.driver().synchronize().map_err(|error| kernel.failed(error))?;
        hears(None);
        let queue = Queue::new(loader.driver())?;
        Ok(Self {
            queue,
            work: Work { unfused: vec![Box::new(kernel)], fused: Vec::new() },
            tensors,
        })
    }

    fn time(&mut self, runs: u32, clock: Clock) -> Result<Duration, DeviceError> {
        let sets = Sets { first: 0, count: 1 };
        let Self { queue, work, .. } = self;
        // SAFETY: the kernel was located where the tensors are, and they do not move.
        unsafe {
            match clock {
                Clock::LaunchInclusive => {
                    queue.launch_inclusive_time(work, Variant::Unfused, runs, sets)
                }
                Clock::Host | Clock::Device => {
                    queue.device_time(work, Variant::Unfused, runs, sets, true)
                }
            }
        }
    }

    /// The names of its kernels.
    fn name(&self) -> String {
        let names: Vec<String> = self.work.unfused.iter().map(|kernel| kernel.name()).collect();
        names.join(", ")
    }

    /// The shortest time of a run, in seconds. It is said when the kernel begins and when it has ended,
    /// since one can hang after its first run.
    fn best(&mut self, clock: Clock, hears: &mut FirstRuns<'_>) -> Result<f64, DeviceError> {
        hears(Some(&self.name()));
        let best = self.shortest(clock);
        hears(None);
        best
    }

    /// Gives back what it used, which a driver may never do.
    fn end(self, hears: &mut FirstRuns<'_>) {
        hears(Some(&format!("{} and gave back what it used", self.name())));
        drop(self);
        hears(None);
    }

    fn shortest(&mut self, clock: Clock) -> Result<f64, DeviceError> {
        let mut runs = 1;
        while runs < MOST_RUNS && self.time(runs, clock)? < SAMPLE {
            runs *= 2;
        }
        let mut best = f64::INFINITY;
        for _ in 0..SAMPLES {
            best = best.min(self.time(runs, clock)?.as_secs_f64() / f64::from(runs));
        }
        // A clock that did not move would make a rate of infinity.
        Ok(best.max(1e-9))
    }
}

/// What a launch costs: on the device, the time between the starts of two kernels that do nothing;
/// on the host, that of handing one to an idle device and waiting for it.
fn launch_us(loader: &Loader, clock: Clock, hears: &mut FirstRuns<'_>) -> Result<f64, DeviceError> {
    let mut probe = Probe::new(loader, TensorTable::default(), nothing(), hears)?;
    let seconds = probe.best(clock, hears)?;
    probe.end(hears);
    Ok(seconds * 1e6)
}

/// Bandwidth over the working set, from a part of the second-level cache to far beyond the last.
fn bandwidth(
    loader: &Loader,
    hears: &mut FirstRuns<'_>,
) -> Result<Vec<BandwidthPoint>, DeviceError> {
    let facts = loader.driver().facts();
    let free = loader.driver().memory()?.free;
    let (l2, last) = (facts.l2_bytes.max(1 << 16), facts.last_level_bytes.max(1 << 16));
    let wanted = [l2 / 8, l2 / 4, l2 / 2, l2, 2 * l2, last / 2, last, 2 * last, 8 * last];
    let mut tiles: Vec<u64> = wanted
        .into_iter()
        .filter(|&bytes| bytes <= free / 2)
        .map(|bytes| (bytes / (3 * TILE_BYTES)).max(1))
        .collect();
    tiles.sort_unstable();
    tiles.dedup();
    tiles.into_iter().map(|tiles| bandwidth_at(loader, tiles, hears)).collect()
}

/// Bandwidth of three arrays of `tiles` tiles.
#[expect(clippy::cast_precision_loss, reason = "rates")]
fn bandwidth_at(
    loader: &Loader,
    tiles: u64,
    hears: &mut FirstRuns<'_>,
) -> Result<BandwidthPoint, DeviceError> {
    let bytes = 3 * tiles * TILE_BYTES;
    let mut table = TensorTable::default();
    let arrays = [0; 3].map(|_| table.add(tiles * TILE_BYTES, Role::Input));
    let mut probe = Probe::new(loader, table, triad(arrays, tiles), hears)?;
    probe.fill(arrays)?;
    let triad_seconds = probe.best(Clock::Device, hears)?;
    probe.end(hears);

    let mut table = TensorTable::default();
    let array = table.add(3 * tiles * TILE_BYTES, Role::Input);
    let never = table.add(4, Role::Result);
    let mut probe = Probe::new(loader, table, read(array, never, 3 * tiles), hears)?;
    probe.fill([array])?;
    let read_seconds = probe.best(Clock::Device, hears)?;
    probe.end(hears);
    Ok(BandwidthPoint {
        working_set_bytes: bytes,
        gb_per_s: bytes as f64 / triad_seconds / 1e9,
        nontemporal_gb_per_s: None,
        read_gb_per_s: Some(bytes as f64 / read_seconds / 1e9),
    })
}

impl Probe {
    /// Writes numbers between -1 and 1: memory moves some patterns faster than others.
    fn fill<const N: usize>(&self, arrays: [TensorId; N]) -> Result<(), DeviceError> {
        for id in arrays {
            let words = self.tensors.bytes_of(id) / 4;
            let mut state = 1_u32;
            let bytes: Vec<u8> = (0..words)
                .flat_map(|_| {
                    // Marsaglia's xorshift with his first triple.
                    state ^= state << 13;
                    state ^= state >> 17;
                    state ^= state << 5;
                    (f32::from_bits(0x3F80_0000 | (state >> 9)) - 1.5).to_le_bytes()
                })
                .collect();
            self.tensors.write(id, &bytes)?;
        }
        Ok(())
    }
}

/// The rate of multiply-adds that do nothing else, in 10^9 flops per second.
#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn multiply_gflops(
    loader: &Loader,
    dtype: DType,
    hears: &mut FirstRuns<'_>,
) -> Result<f64, DeviceError> {
    let facts = loader.driver().facts();
    let mut repeats = 1;
    loop {
        let mut table = TensorTable::default();
        let result = table.add(8, Role::Result);
        let plan = multiply(result, repeats, dtype, facts);
        let shape = plan.shape;
        let warps = u64::from(shape.grid[0]) * u64::from(shape.threads / facts.architecture.warp);
        let mut probe = Probe::new(loader, table, plan, hears)?;
        // As long as a sample by itself, so that its start and end do not matter.
        if probe.time(1, Clock::Device)? < SAMPLE && repeats < 1 << 20 {
            repeats *= 4;
            probe.end(hears);
            continue;
        }
        let seconds = probe.best(Clock::Device, hears)?;
        let found = decode(DType::F32, &probe.tensors.read(0, result)?);
        let per_turn = f64::from(found.first().copied().unwrap_or(0.0));
        // A kernel that has done nothing would be infinitely fast.
        if per_turn.is_nan() || per_turn < 1.0 {
            return Err(DeviceError::Unsupported(format!("{} left no result", probe.name())));
        }
        probe.end(hears);
        return Ok(2.0 * per_turn * repeats as f64 * warps as f64 / seconds / 1e9);
    }
}
