//! What must be true of what only a GPU reports.

use super::contradiction::{Checked, check_text, fail};
use super::limits::{
    BLOCKS, CLOCK_MHZ, ON_CHIP_BYTES, REGISTERS, RESIDENT_BLOCKS, THREADS_OF_BLOCK,
};
use super::reasons::Figures::{self, Allow, Ask, Deny};
use crate::calibration::{FailedCore, FusionRecord, GpuDetails, GpuKernel, ReasonCode};
use crate::place::Place;
use crate::vocabulary::{Backend, Core};

pub(super) fn check(record: &FusionRecord) -> Checked {
    let place = Place::of("backend");
    let backend = record.backend;
    match &record.gpu {
        None if backend == Backend::Cpu => Ok(()),
        None => fail(place, format!("it is {backend}, and there is no [fusion.gpu]")),
        Some(_) if backend == Backend::Cpu => fail(place, "it is cpu, and there is [fusion.gpu]"),
        Some(gpu) => {
            if record.placement.pinned {
                let why = "the thread that gives a GPU its work is not bound";
                return fail(Place::within("placement", "pinned"), why);
            }
            check_clocks(gpu)?;
            check_clock_changes(gpu, record)?;
            check_cores(&gpu.failed_cores, gpu.core, "gpu.failed_core")?;
            check_kernels("gpu.unfused_kernel", &gpu.unfused_kernels)?;
            check_kernels("gpu.fused_kernel", &gpu.fused_kernels)
        }
    }
}

/// A lowest and a highest clock, read around the samples and counted in them.
fn check_clocks(gpu: &GpuDetails) -> Checked {
    let (lowest, highest) = (gpu.lowest_clock_mhz, gpu.highest_clock_mhz);
    if lowest.is_some() != highest.is_some() {
        let why = "lowest_clock_mhz and highest_clock_mhz stand together";
        return fail(Place::within("gpu", "lowest_clock_mhz"), why);
    }
    let counted = gpu.device_clock_mhz.map(|ends| ("device_clock_mhz", ends));
    for (key, [lowest, highest]) in
        lowest.zip(highest).map(|(a, b)| ("lowest_clock_mhz", [a, b])).into_iter().chain(counted)
    {
        for clock in [lowest, highest] {
            CLOCK_MHZ.check(Place::within("gpu", key), f64::from(clock))?;
        }
        if lowest > highest {
            let why = format!("the lowest is {lowest}, and the highest {highest}");
            return fail(Place::within("gpu", key), why);
        }
    }
    Ok(())
}

fn check_clock_changes(gpu: &GpuDetails, record: &FusionRecord) -> Checked {
    let pairs = record.disturbed.clock_change;
    if gpu.clock_changes.is_some() != pairs.is_some() {
        let why = "clock_changes and disturbed.clock_change stand together";
        return fail(Place::within("gpu", "clock_changes"), why);
    }
    let pairs = pairs.unwrap_or(0);
    let changes = gpu.clock_changes.unwrap_or_default();
    if let Some(most) = changes.into_iter().find(|samples| *samples > pairs) {
        let why = format!("{most} samples met a change, and {pairs} pairs");
        return fail(Place::within("gpu", "clock_changes"), why);
    }
    Ok(())
}

/// Cores fail from the best on, down to the one that is left. `table` has those that failed.
pub(super) fn check_cores(
    failed_cores: &[FailedCore],
    core: Option<Core>,
    table: &'static str,
) -> Checked {
    let left = failed_cores.iter().map(|failed| failed.core).chain(core);
    let cores: Vec<Core> = left.collect();
    for (index, failed) in failed_cores.iter().enumerate() {
        let place = |key| Place::of_nth(table, index, key);
        check_text(place("reason"), &failed.reason)?;
        let next = cores.get(index + 1);
        if !next.is_some_and(|next| is_below(*next, failed.core)) {
            let next = next.map_or("nothing", |next| next.name());
            let why = format!("it is {}, and {next} is not below it", failed.core);
            return fail(place("core"), why);
        }
    }
    Ok(())
}

fn is_below(core: Core, other: Core) -> bool {
    std::iter::successors(other.next(), |core| core.next()).any(|below| below == core)
}

fn check_kernels(table: &'static str, kernels: &[GpuKernel]) -> Checked {
    for (index, kernel) in kernels.iter().enumerate() {
        let place = |key| Place::of_nth(table, index, key);
        check_text(place("name"), &kernel.name)?;
        #[expect(clippy::cast_precision_loss, reason = "far from the ends of the range")]
        BLOCKS.check(place("blocks"), kernel.blocks as f64)?;
        for (key, figure, range) in [
            ("threads", kernel.threads, THREADS_OF_BLOCK),
            ("registers", kernel.registers, REGISTERS),
            ("spilled_bytes", kernel.spilled_bytes, ON_CHIP_BYTES),
            ("shared_bytes", kernel.shared_bytes, ON_CHIP_BYTES),
            ("resident_blocks", kernel.resident_blocks, RESIDENT_BLOCKS),
        ] {
            range.check(place(key), f64::from(figure))?;
        }
    }
    Ok(())
}

/// Why the clock of a GPU of NVIDIA is not its highest one, where nothing holds it down: it is idle
/// between two samples, or somebody chose the clock.
const NO_COMPLAINT: [&str; 3] = ["idle", "application-clocks", "display-clocks"];

/// What the figures say of the reasons that only a GPU has.
pub(super) fn figures(code: ReasonCode, record: &FusionRecord) -> Figures {
    let Some(gpu) = &record.gpu else { return Deny("it ran on no GPU".to_owned()) };
    match code {
        ReasonCode::Throttled => throttled(gpu, record.backend),
        ReasonCode::ClockChanged => clock_changed(gpu, record.pairs),
        _ if gpu.failed_cores.is_empty() => Deny("its kernels failed on no core".to_owned()),
        _ => {
            let failed = gpu.failed_cores[0].core;
            let place = Place::of_nth("gpu.failed_core", 0, "core");
            Ask(place, format!("the kernels failed on {failed}"))
        }
    }
}

fn throttled(gpu: &GpuDetails, backend: Backend) -> Figures {
    let is_complaint =
        |word: &&String| backend != Backend::Cuda || !NO_COMPLAINT.contains(&word.as_str());
    match gpu.throttle_reasons.iter().flatten().find(is_complaint) {
        Some(word) => {
            Ask(Place::within("gpu", "throttle_reasons"), format!("{word} holds the clock down"))
        }
        None => Deny("no throttle_reasons hold the clock down".to_owned()),
    }
}

/// Whether it changed around most samples of a variant.
fn clock_changed(gpu: &GpuDetails, pairs: u32) -> Figures {
    let Some(samples) = gpu.clock_changes else { return Allow };
    let most = u64::from(samples[0].max(samples[1]));
    if 2 * most > u64::from(pairs) {
        let why = format!("it changed around {most} of {pairs} samples");
        return Ask(Place::within("gpu", "clock_changes"), why);
    }
    Deny(format!("clock_changes has {most} samples at most, of {pairs}"))
}
