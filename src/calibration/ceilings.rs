//! The measured ceilings of a backend.

use serde::{Deserialize, Serialize};

use super::FailedCore;
use crate::cost::{BandwidthPoint, Ceilings};
use crate::vocabulary::{Backend, CacheState, Clock, Core, DType};

/// The measured ceilings of a backend: a `[[ceilings]]` table of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "CeilingsTable", into = "CeilingsTable")]
pub struct MeasuredCeilings {
    /// Where they were measured.
    pub backend: Backend,
    /// For which dtype.
    pub dtype: DType,
    /// On how many threads.
    pub threads: u32,
    /// What the caches hold when a kernel begins. Ceilings of warm caches are measured; those of cold
    /// ones are what memory alone gives, see [`Ceilings::in_memory`].
    pub cache_state: CacheState,
    /// The clock they were measured by, which decides what a launch costs.
    pub clock: Clock,
    /// In which state of the machine, as [`MachineState::id`](super::MachineState::id); `None`
    /// where states are not looked for.
    pub state: Option<u32>,
    /// The best of the measurements in that state: nothing makes a loop faster than the machine.
    pub ceilings: Ceilings,
    /// How far the measurements lie apart; `None` for a single one.
    pub spread: Option<CeilingsSpread>,
    /// The core of a GPU whose peak it is; `None` on a CPU.
    pub core: Option<Core>,
    /// Better cores, whose probes failed, from the best on: the GPU may reach more than the peak.
    pub failed_cores: Vec<FailedCore>,
}

impl MeasuredCeilings {
    /// The ceilings of one kind that a measurement is held against: those of the states of the
    /// machine that it met, or of all states where it met none that has any.
    pub fn met<'a>(
        all: &'a [Self],
        is_of_kind: impl Fn(&Self) -> bool + Copy + 'a,
        states: &'a [u32],
    ) -> impl Iterator<Item = &'a Ceilings> {
        let of_kind = move || all.iter().filter(move |one| is_of_kind(one));
        let is_met = |one: &Self| one.state.is_some_and(|state| states.contains(&state));
        let any = of_kind().any(is_met);
        of_kind().filter(move |one| !any || is_met(one)).map(|one| &one.ceilings)
    }

    /// Those that bound the times of a measurement by this clock: no kernel is faster than they are.
    pub fn that_bound<'a>(
        all: &'a [Self],
        dtype: DType,
        clock: Clock,
        states: &'a [u32],
    ) -> impl Iterator<Item = &'a Ceilings> {
        // A kernel costs a full launch only where it is launched by itself. Behind another one it costs
        // what the device needs for it, which is thus the bound by either clock of a GPU.
        let bound_by = if clock.is_host() { Clock::Host } else { Clock::Device };
        // Whatever the caches hold: a kernel finds a part of its tensors where it put them itself.
        let kind = (dtype, CacheState::Warm, bound_by);
        let is_of_kind = move |one: &Self| (one.dtype, one.cache_state, one.clock) == kind;
        Self::met(all, is_of_kind, states)
    }
}

/// How far several measurements of the same ceilings lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CeilingsSpread {
    /// Measurements in this state.
    pub measurements: u32,
    /// The lowest peak, in 10^9 flops per second.
    pub lowest_peak_gflops: f64,
    /// The highest time of a launch, in microseconds.
    pub highest_launch_us: f64,
    /// The lowest bandwidth at the largest working set, in 10^9 bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest_memory_gb_per_s: Option<f64>,
}

/// [`MeasuredCeilings`] as a table without a table of rates in it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CeilingsTable {
    backend: Backend,
    dtype: DType,
    threads: u32,
    cache_state: CacheState,
    /// Absent for the host's.
    #[serde(default, skip_serializing_if = "Clock::is_host")]
    clock: Clock,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<u32>,
    /// Absent on a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    core: Option<Core>,
    peak_gflops: f64,
    launch_us: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spread: Option<CeilingsSpread>,
    #[serde(default, rename = "failed_core", skip_serializing_if = "Vec::is_empty")]
    failed_cores: Vec<FailedCore>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bandwidth: Vec<BandwidthPoint>,
}

impl From<CeilingsTable> for MeasuredCeilings {
    fn from(table: CeilingsTable) -> Self {
        let CeilingsTable { backend, dtype, threads, cache_state, clock, state, .. } = table;
        let CeilingsTable { peak_gflops, launch_us, bandwidth, .. } = table;
        let CeilingsTable { spread, core, failed_cores, .. } = table;
        let ceilings = Ceilings { peak_gflops, launch_us, bandwidth };
        Self {
            backend,
            dtype,
            threads,
            cache_state,
            clock,
            state,
            ceilings,
            spread,
            core,
            failed_cores,
        }
    }
}

impl From<MeasuredCeilings> for CeilingsTable {
    fn from(measured: MeasuredCeilings) -> Self {
        let MeasuredCeilings { backend, dtype, threads, cache_state, clock, .. } = measured;
        let MeasuredCeilings { state, ceilings, spread, core, failed_cores, .. } = measured;
        let Ceilings { peak_gflops, launch_us, bandwidth } = ceilings;
        Self {
            backend,
            dtype,
            threads,
            cache_state,
            clock,
            state,
            peak_gflops,
            launch_us,
            spread,
            core,
            failed_cores,
            bandwidth,
        }
    }
}
