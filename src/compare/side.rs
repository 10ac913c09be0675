//! A side of a comparison: a file, one of its targets, and what was measured there.

use serde::Serialize;

use super::figure::{Figure, LEAST_DEGREES};
use super::machine::Machine;
use super::target::SideTarget;
use crate::calibration::{
    FusionRecord, HardwareCalibration, MeasuredCeilings, ReasonCode, RunEnd, Timing, Verdict,
};
use crate::imported::{ImportedProfile, ImportedRecord};
use crate::vocabulary::{Backend, CacheState, Clock, DType, Implementation, Problem, Rewrite};

/// A side of a comparison.
#[derive(Debug, Clone)]
pub struct Side {
    pub(super) facts: SideFacts,
    pub(super) machine: Machine,
    pub(super) entries: Vec<Entry>,
    pub(super) rewrites: Vec<Rewritten>,
}

/// The facts about a side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideFacts {
    /// What it is called: `A`, `B`.
    pub label: String,
    /// The file.
    pub file: String,
    /// The name of the machine.
    pub machine: String,
    /// Which of the file's records are compared.
    pub target: SideTarget,
    /// How many these are.
    pub records: usize,
    /// Other targets of the file, whose records are not compared.
    pub other_targets: Vec<OtherTarget>,
    /// How it was measured, in words.
    pub run: String,
    /// The fewest and the most processes of a record; `None` where nobody knows.
    pub processes: Option<[u32; 2]>,
    /// The ceilings, in the state of the machine that most processes met.
    pub ceilings: Option<SideCeilings>,
    /// What a reader should know.
    pub warnings: Vec<String>,
}

/// Another target of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OtherTarget {
    /// The target.
    pub target: SideTarget,
    /// Its records.
    pub records: usize,
}

/// The ceilings of a side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SideCeilings {
    /// 10^9 flops per second.
    pub peak_gflops: f64,
    /// 10^9 bytes per second of the smallest working set.
    pub in_cache_gb_per_s: Option<f64>,
    /// The same of the largest one.
    pub in_memory_gb_per_s: Option<f64>,
    /// Microseconds of an empty launch.
    pub launch_us: Option<f64>,
}

impl SideCeilings {
    /// Flops per byte of memory from which on compute is what limits a kernel.
    #[must_use]
    pub fn balance(&self) -> Option<f64> {
        Some(self.peak_gflops / self.in_memory_gb_per_s?)
    }
}

/// What was measured of a problem on a side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// Unfused time over fused time.
    pub speedup: Figure,
    /// Fresh processes; `None` where nobody knows.
    pub processes: Option<u32>,
    /// What the file says of it; `None` of an imported record.
    pub verdict: Option<Verdict>,
    /// The speedup that the roofline allows.
    pub ceiling_speedup: Option<f64>,
    /// Time of the unfused variant, in milliseconds.
    pub unfused_ms: Figure,
    /// Time of the fused variant, in milliseconds.
    pub fused_ms: Figure,
}

/// A record of a rewrite, which gains by other means than fusion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rewritten {
    pub(super) problem: Problem,
    pub(super) cache_state: CacheState,
    pub(super) rewrite: Rewrite,
}

/// A record of a side.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) problem: Problem,
    pub(super) cache_state: CacheState,
    pub(super) measured: Measured,
    pub(super) noise_floor: f64,
    /// Why it must not be used.
    pub(super) invalid: Option<String>,
}

impl Entry {
    fn of(record: &FusionRecord) -> Self {
        let FusionRecord { speedup_factor, speedup_low, speedup_high, .. } = *record;
        let codes = || record.reasons.iter().map(|reason| reason.code);
        let invalidity = codes().find(|code| code.is_invalidity());
        let is_invalid = record.verdict == Verdict::Invalid;
        let measured = Measured {
            speedup: Figure::new(speedup_factor, speedup_low, speedup_high),
            processes: Some(record.processes),
            verdict: Some(record.verdict),
            ceiling_speedup: record.ceiling_speedup,
            unfused_ms: time(record.unfused_latency_ms, &record.unfused_timing),
            fused_ms: time(record.fused_latency_ms, &record.fused_timing),
        };
        Self {
            problem: record.problem,
            cache_state: record.cache_state,
            measured,
            noise_floor: record.noise_floor,
            invalid: is_invalid
                .then(|| invalidity.map_or_else(String::new, |code| code.to_string())),
        }
    }

    fn of_imported(record: &ImportedRecord) -> Self {
        let measured = Measured {
            speedup: Figure::bare(record.speedup_factor),
            processes: None,
            verdict: None,
            ceiling_speedup: None,
            unfused_ms: Figure::bare(record.unfused_latency_ms),
            fused_ms: Figure::bare(record.fused_latency_ms),
        };
        Self {
            problem: record.problem,
            cache_state: CacheState::Warm,
            measured,
            noise_floor: 0.0,
            invalid: None,
        }
    }
}

fn time(ms: f64, timing: &Timing) -> Figure {
    let interval = timing.low_ms.zip(timing.high_ms).map(|(low, high)| [low, high]);
    Figure { value: ms, interval }
}

impl Side {
    /// The records of a calibration on a target. `file` is what the file is called.
    #[must_use]
    pub fn of(
        label: impl Into<String>,
        file: impl Into<String>,
        calibration: &HardwareCalibration,
        target: SideTarget,
    ) -> Self {
        let of_target = calibration.records.iter().filter(|one| SideTarget::of(one) == target);
        let (records, rewrites): (Vec<&FusionRecord>, Vec<_>) =
            of_target.partition(|record| record.rewrite.is_none());
        let processes = || records.iter().map(|record| record.processes);
        let other_targets = SideTarget::all_of(calibration)
            .into_iter()
            .filter(|(other, _)| *other != target)
            .map(|(target, records)| OtherTarget { target, records });
        let facts = SideFacts {
            label: label.into(),
            file: file.into(),
            machine: calibration.hardware.name.clone(),
            target,
            records: records.len(),
            other_targets: other_targets.collect(),
            run: run(calibration),
            processes: processes().min().zip(processes().max()).map(|(least, most)| [least, most]),
            ceilings: ceilings(calibration, target),
            warnings: warnings(calibration, &records, rewrites.len()),
        };
        let machine = Machine::of(calibration);
        let rewrites = rewrites.into_iter().filter_map(|record| {
            let FusionRecord { problem, cache_state, rewrite, .. } = *record;
            Some(Rewritten { problem, cache_state, rewrite: rewrite? })
        });
        Self {
            facts,
            machine,
            rewrites: rewrites.collect(),
            entries: records.into_iter().map(Entry::of).collect(),
        }
    }

    /// Leaves targets out of [`SideFacts::other_targets`] that are not left out of the comparison: they
    /// are sides of their own.
    #[must_use]
    pub fn beside(mut self, are_compared: impl Fn(&SideTarget) -> bool) -> Self {
        self.facts.other_targets.retain(|other| !are_compared(&other.target));
        self
    }

    /// Whether nothing tells that they were measured on two machines.
    #[must_use]
    pub fn is_of_same_machine(&self, other: &Self) -> bool {
        self.machine.differences(&other.machine).is_empty()
    }

    /// The records of an imported profile, which has one target. Its kernels are those of a
    /// framework, which counts as a vendor's library.
    #[must_use]
    pub fn of_imported(
        label: impl Into<String>,
        file: impl Into<String>,
        profile: &ImportedProfile,
    ) -> Self {
        let ImportedProfile { machine, source, rates, records, .. } = profile;
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        let (threads, clock) = match machine.backend {
            Backend::Cpu => (machine.processors, Clock::Host),
            Backend::Cuda | Backend::Hip => (Some(1), Clock::LaunchInclusive),
        };
        let dtype = records.first().map_or(DType::F32, |record| record.problem.dtype());
        let (backend, implementation) = (machine.backend, Implementation::Vendor);
        let target = SideTarget { backend, threads, clock, dtype, implementation };
        let facts = SideFacts {
            label: label.into(),
            file: file.into(),
            machine: machine.name.clone(),
            target,
            records: records.len(),
            other_targets: Vec::new(),
            run: format!(
                "imported from {} ({}), {}",
                source.project, source.framework, source.measured_at
            ),
            processes: None,
            ceilings: is_rate(rates.best_gflops).then_some(SideCeilings {
                peak_gflops: rates.best_gflops,
                in_cache_gb_per_s: None,
                in_memory_gb_per_s: Some(rates.measured_gb_per_s).filter(|rate| is_rate(*rate)),
                launch_us: None,
            }),
            warnings: vec![
                "imported: its times have no intervals, so that no difference can be judged; \
                 calibrate on that machine"
                    .to_owned(),
            ],
        };
        let machine = Machine::of_imported(machine);
        Self {
            facts,
            machine,
            entries: records.iter().map(Entry::of_imported).collect(),
            rewrites: Vec::new(),
        }
    }

    /// What there is to know about it.
    #[must_use]
    pub const fn facts(&self) -> &SideFacts {
        &self.facts
    }
}

fn run(calibration: &HardwareCalibration) -> String {
    let HardwareCalibration { settings, tool, .. } = calibration;
    let quick = if settings.quick { ", quick procedure" } else { "" };
    let forced = if settings.forced { ", despite a failed check" } else { "" };
    format!(
        "sizes: {}{quick}{forced}; {} {}, {}",
        settings.shapes, tool.name, tool.version, tool.started_at
    )
}

/// What the machine did to records, and may not have done on the other side.
const BESIDE_THE_VARIANTS: [(ReasonCode, &str); 4] = [
    (ReasonCode::Neighbour, "were measured while other programs kept processors busy"),
    (ReasonCode::Throttled, "were measured at a clock that was held down"),
    (ReasonCode::ClockChanged, "were measured while the clock changed"),
    (ReasonCode::LowerCore, "were not measured on the best core of the GPU"),
];

fn warnings(
    calibration: &HardwareCalibration,
    records: &[&FusionRecord],
    rewrites: usize,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if rewrites > 0 {
        let records =
            if rewrites == 1 { "record of a rewrite is" } else { "records of rewrites are" };
        warnings.push(format!("{rewrites} {records} not compared"));
    }
    let few = records.iter().filter(|one| one.processes <= LEAST_DEGREES).count();
    if few > 0 {
        warnings.push(format!(
            "within-process: {few} of {} records have fewer than {} processes; their intervals \
             leave out what differs between processes, so they are not judged",
            records.len(),
            LEAST_DEGREES + 1
        ));
    }
    let in_several = records.iter().filter(|one| !one.by_state.is_empty()).count();
    if in_several > 0 {
        warnings.push(format!(
            "state-changed: {in_several} of {} records differ between states of the machine; their \
             intervals hold all states, and are wide",
            records.len()
        ));
    }
    for (code, what) in BESIDE_THE_VARIANTS {
        let has = |record: &&&FusionRecord| record.reasons.iter().any(|one| one.code == code);
        let count = records.iter().filter(has).count();
        if count > 0 {
            let of = if count == records.len() { "all".to_owned() } else { format!("{count} of") };
            warnings.push(format!("{code}: {of} {} records {what}", records.len()));
        }
    }
    if calibration.settings.end != RunEnd::Complete {
        warnings.push("the run ended before everything was measured".to_owned());
    }
    if !calibration.settings.hardware_matches {
        warnings.push(format!(
            "it is not of the machine that was asked for, {}",
            calibration.settings.requested_hardware
        ));
    }
    warnings
}

/// The ceilings of a target, by warm caches if they were measured so, in the state that most
/// processes met.
fn ceilings(calibration: &HardwareCalibration, target: SideTarget) -> Option<SideCeilings> {
    let is_of_target = |one: &&MeasuredCeilings| {
        (one.backend, Some(one.threads), one.clock, one.dtype)
            == (target.backend, target.threads, target.clock, target.dtype)
    };
    let rank = |one: &&MeasuredCeilings| {
        let state = calibration.states.iter().find(|state| Some(state.id) == one.state);
        (one.cache_state == CacheState::Warm, state.map_or(0, |state| state.processes))
    };
    let measured = calibration.ceilings.iter().filter(is_of_target).max_by_key(rank)?;
    let ceilings = &measured.ceilings;
    Some(SideCeilings {
        peak_gflops: ceilings.peak_gflops,
        in_cache_gb_per_s: ceilings.bandwidth.first().map(|point| point.gb_per_s),
        in_memory_gb_per_s: ceilings.bandwidth.last().map(|point| point.gb_per_s),
        launch_us: Some(ceilings.launch_us),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::Reason;

    #[test]
    fn what_the_machine_did_to_records_is_a_warning() {
        let text = include_str!("../../tests/data/example.toml");
        let mut calibration = HardwareCalibration::from_toml(text).unwrap();
        let target = SideTarget::of(&calibration.records[0]);
        let warnings = |calibration: &HardwareCalibration| {
            Side::of("A", "a.toml", calibration, target).facts.warnings
        };
        assert!(warnings(&calibration).is_empty());
        let neighbour = Reason { code: ReasonCode::Neighbour, text: "made up".to_owned() };
        calibration.records[0].reasons.push(neighbour.clone());
        let what = "records were measured while other programs kept processors busy";
        assert_eq!(warnings(&calibration), [format!("neighbour: 1 of 3 {what}")]);
        for record in &mut calibration.records[1..] {
            record.reasons.push(neighbour.clone());
        }
        assert_eq!(warnings(&calibration), [format!("neighbour: all 3 {what}")]);
    }
}
