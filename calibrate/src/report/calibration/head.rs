//! What was measured, on what, and how.

use cli_support::units::{counted, ratio};
use cli_support::width::Width;
use fusion_cost_model::calibration::{
    EarlierState, HardwareCalibration, MeasuredCeilings, NoiseFloor, RuntimeUsed,
};
use fusion_cost_model::cost::BandwidthPoint;
use fusion_cost_model::{CacheState, Clock, Implementation};

use super::by;

/// The width of the labels.
const LABEL: usize = 12;

pub(super) fn head(calibration: &HardwareCalibration, width: Width) -> String {
    let ceilings = calibration.ceilings.iter().map(of_ceilings);
    let (singles, controls): (Vec<&NoiseFloor>, Vec<&NoiseFloor>) =
        calibration.noise.iter().partition(|noise| noise.problem.chain().is_single());
    let noise = controls.into_iter().map(|noise| {
        format!(
            "{} against itself{}: {}{}",
            noise.problem,
            by(noise.clock, noise.implementation),
            ratio(noise.ratio, noise.ratio_low, noise.ratio_high),
            if noise.disturbed { ", mostly disturbed" } else { "" }
        )
    });
    [
        ("machine", vec![machine(calibration)]),
        ("run", vec![run(calibration)]),
        ("runtimes", calibration.runtimes.iter().map(of_runtime).collect()),
        ("ceilings", ceilings.collect()),
        ("states", not_met(calibration).into_iter().collect()),
        ("noise", noise.chain(of_singles(&singles)).collect()),
    ]
    .into_iter()
    .flat_map(|(label, lines)| {
        let labels = std::iter::once(label).chain(std::iter::repeat(""));
        labels.zip(lines).map(|(label, line)| width.wrap(&format!("{label:<LABEL$}"), &line, LABEL))
    })
    .collect()
}

/// The A/A runs of single ops, which are many, in a line.
fn of_singles(noise: &[&NoiseFloor]) -> Option<String> {
    let ratios = || noise.iter().filter(|noise| !noise.disturbed).map(|noise| noise.ratio);
    let (least, most) = (ratios().reduce(f64::min)?, ratios().reduce(f64::max)?);
    let ops = if noise.len() == 1 { "op" } else { "ops" };
    Some(format!("{} single {ops} against a copy: {least:.3} to {most:.3}", noise.len()))
}

/// A runtime with its options.
fn of_runtime(runtime: &RuntimeUsed) -> String {
    let RuntimeUsed { name, version, device, options, .. } = runtime;
    let options = options.iter().map(|(key, value)| format!("; {key}: {value}"));
    format!("{name} {version} on {device}{}", options.collect::<String>())
}

/// The states of earlier runs that this one did not meet.
fn not_met(calibration: &HardwareCalibration) -> Option<String> {
    let states = calibration.earlier_states.iter().map(|state| {
        let EarlierState { seen_at, handoff_us, triad_gb_per_s, .. } = state;
        let handoff = handoff_us.map(|us| format!("{us:.2} us and ")).unwrap_or_default();
        format!("{handoff}{triad_gb_per_s:.0} GB/s on {}", seen_at.get(..10).unwrap_or(seen_at))
    });
    let states: Vec<String> = states.collect();
    (!states.is_empty()).then(|| {
        format!(
            "not met in this run, and so in no interval: {} (time of a hand-off, and triad)",
            states.join("; ")
        )
    })
}

fn machine(calibration: &HardwareCalibration) -> String {
    let HardwareCalibration { hardware, fingerprint, .. } = calibration;
    let mut text = hardware.name.clone();
    if let Some(gpu) = &fingerprint.gpu {
        text += &format!(" ({}, driver {}, {})", gpu.architecture, gpu.driver, gpu.compiler);
    } else if fingerprint.cpu_model != hardware.name {
        text += &format!(" ({})", fingerprint.cpu_model);
    }
    if fingerprint.virtualized == Some(true) {
        text += ", virtual machine";
    }
    text
}

fn run(calibration: &HardwareCalibration) -> String {
    let HardwareCalibration { settings, tool, records, .. } = calibration;
    let mut text = format!("sizes: {}; seed {}", settings.shapes, settings.seed);
    for (is_so, what) in [
        (settings.quick, ", quick procedure"),
        (records.iter().any(|one| one.cache_state == CacheState::Cold), ", cold caches"),
        (settings.forced, ", despite a failed check"),
    ] {
        text += if is_so { what } else { "" };
    }
    text + &format!("; {} {}, {}", tool.name, tool.version, tool.started_at)
}

fn of_ceilings(measured: &MeasuredCeilings) -> String {
    let MeasuredCeilings { backend, dtype, threads, clock, cache_state, ceilings, .. } = measured;
    let rate = |point: Option<&BandwidthPoint>| {
        point.map_or_else(|| "?".to_owned(), |point| format!("{:.0}", point.gb_per_s))
    };
    let mut by = match clock {
        Clock::Host => format!(" on {}", counted(*threads as usize, "thread")),
        clock => by(*clock, Implementation::Native),
    };
    if let (Some(core), Some(failed)) = (measured.core, measured.failed_cores.first()) {
        by += &format!(", {core} since {} failed", failed.core);
    }
    if *cache_state == CacheState::Cold {
        // What memory gives, which the ceilings of warm caches say too.
        return format!(
            "{backend} {dtype}{by}, cold caches: {} GB/s at any size",
            rate(ceilings.bandwidth.last())
        );
    }
    format!(
        "{backend} {dtype}{by}: {:.0} GFLOP/s, {} GB/s in cache, {} GB/s in memory, {:.2} us per \
         launch",
        ceilings.peak_gflops,
        rate(ceilings.bandwidth.first()),
        rate(ceilings.bandwidth.last()),
        ceilings.launch_us
    )
}
