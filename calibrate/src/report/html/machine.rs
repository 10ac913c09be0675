//! The machine, its ceilings, its noise, what was checked, and how it was measured.

use cli_support::page;
use cli_support::ranked::{Column, RankedTable};
use cli_support::units::{gibibytes, mebibytes, ratio, three_digits};
use fusion_cost_model::CacheState;
use fusion_cost_model::calibration::{
    Check, CheckStatus, Fingerprint, FusionRecord, HardwareCalibration, MachineState,
    MeasuredCeilings, ObservedCache, ReasonCode, Settings,
};
use maud::{Markup, html};

use super::Part;

/// Lines about problems without a record.
const MOST_SKIPPED: usize = 20;

pub(super) fn section(part: &Part<'_>, of: &str) -> Markup {
    let HardwareCalibration { fingerprint, settings, checks, skipped, .. } = part.calibration();
    let facts = part.facts();
    let ceilings = ceilings(part);
    let noise = noise(part);
    let lower = on_lower_cores(part);
    html! {
        section id=(part.id("machine")) {
            h2 { (of) "Machine and run" }
            @if !facts.warnings.is_empty() {
                ul.warnings { @for warning in &facts.warnings { li.serious { b { "warning" } ": " (warning) } } }
            }
            div.columns {
                div { h3 { "Machine" } (machine(&facts.machine, fingerprint)) }
                div { h3 { "Run" } (run(part, settings)) }
            }
            @if !ceilings.is_empty() { h3 { "Ceilings" } (page::table(&ceilings)) }
            @if !noise.is_empty() { h3 { "Noise" } (page::table(&noise)) }
            h3 { "Checks before the run" }
            (of_checks(checks))
            @if !lower.is_empty() {
                h3 { "Measured on a lower core" }
                p { "The kernels failed on better cores of this GPU." }
                ul.warnings { @for (problem, how) in &lower { li { code { (problem) } ": " (how) } } }
            }
            @if !skipped.is_empty() {
                h3 { "Not measured" }
                ul.warnings {
                    @for one in skipped.iter().take(MOST_SKIPPED) { li { (one.reason) } }
                    @if let Some(more @ 1..) = skipped.len().checked_sub(MOST_SKIPPED) {
                        li { (more) " more; the file lists them all" }
                    }
                }
            }
        }
    }
}

/// The problems that were measured on a lower core than the best, with what they were measured on and
/// what failed.
fn on_lower_cores(part: &Part<'_>) -> Vec<(String, String)> {
    let reason = |record: &FusionRecord| {
        let mut reasons = record.reasons.iter();
        let found = reasons.find(|reason| reason.code == ReasonCode::LowerCore)?;
        Some((format!("{}{}", record.problem, record.cache_state.mark()), found.text.clone()))
    };
    part.records().iter().filter_map(|record| reason(record)).collect()
}

fn fact(name: &str, value: impl AsRef<str>) -> Markup {
    html! { dt { (name) } dd { (value.as_ref()) } }
}

fn machine(name: &str, fingerprint: &Fingerprint) -> Markup {
    let Fingerprint { cpu_model, cpu_family_model_stepping, microcode, .. } = fingerprint;
    let cores = match fingerprint.physical_cores {
        Some(cores) => format!("{cores}, {} threads", fingerprint.logical_cores),
        None => format!("{} threads", fingerprint.logical_cores),
    };
    let caches: Vec<String> = fingerprint.caches.iter().map(cache).collect();
    let on = |is_on: bool| if is_on { "on" } else { "off" };
    html! {
        dl {
            (fact("Machine", name))
            @if name != cpu_model { (fact("Processor", cpu_model)) }
            @if let Some(stepping) = cpu_family_model_stepping { (fact("Family, model, stepping", stepping)) }
            @if let Some(microcode) = microcode { (fact("Microcode", microcode)) }
            (fact("Cores", cores))
            (fact("Caches", caches.join(", ")))
            (fact("Memory", gibibytes(fingerprint.memory_bytes)))
            (fact("Instructions", fingerprint.features.join(", ")))
            @if let Some(gpu) = &fingerprint.gpu {
                (fact("GPU", format!("{} ({}), {} processors", gpu.name, gpu.architecture, gpu.processors)))
                (fact("Driver", format!("{}; {}", gpu.driver, gpu.compiler)))
            }
            (fact("System", &fingerprint.os))
            @if let Some(kernel) = &fingerprint.kernel { (fact("Kernel", kernel)) }
            @if fingerprint.virtualized == Some(true) { (fact("Virtual machine", "yes")) }
            @if let Some(governor) = &fingerprint.governor { (fact("Governor", governor)) }
            @if let Some(turbo) = fingerprint.turbo { (fact("Turbo", on(turbo))) }
            @if let Some(pages) = &fingerprint.huge_pages { (fact("Huge pages", pages)) }
        }
    }
}

/// `L2 2.00 MiB for each thread`.
fn cache(cache: &ObservedCache) -> String {
    let ObservedCache { level, bytes, shared_by } = *cache;
    let size = if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { mebibytes(bytes) };
    match shared_by {
        1 => format!("L{level} {size} for each thread"),
        threads => format!("L{level} {size} for {threads} threads"),
    }
}

fn run(part: &Part<'_>, settings: &Settings) -> Markup {
    let HardwareCalibration { tool, additions, .. } = part.calibration();
    let facts = part.facts();
    let planned = match [settings.processes, settings.most_processes] {
        [planned, most] if planned == most => format!("{planned} planned"),
        [planned, most] => format!("{planned} to {most} planned"),
    };
    let processes = match facts.processes {
        Some([least, most]) if least == most => format!("{least} of a problem; {planned}"),
        Some([least, most]) => format!("{least} to {most} of a problem; {planned}"),
        None => planned,
    };
    let rounds = format!("{} a process, each with a fresh memory layout", settings.rounds);
    html! {
        dl {
            dt { "File" } dd { code { (facts.file) } }
            (fact("Target", part.target().to_string()))
            (fact("Records", format!("{}, {} of them of chains", facts.records, part.chains().len())))
            @if part.has_others() { (fact("Others", "the file has other targets, which are on this page too")) }
            (fact("Sizes", &settings.shapes))
            (fact("Begun", &tool.started_at))
            (fact("Processes", processes))
            (fact("Rounds", rounds))
            (fact("Spread", format!("{} s at least", settings.spread_s)))
            @for state in &part.calibration().earlier_states {
                (fact("State not met", format!(
                    "{}{} GB/s, seen on {}",
                    state.handoff_us.map(|us| format!("hand-off {us:.2} us, ")).unwrap_or_default(),
                    three_digits(state.triad_gb_per_s),
                    state.seen_at
                )))
            }
            @if settings.quick { (fact("Procedure", "quick")) }
            @if settings.forced { (fact("Forced", "it went on in spite of a failed check")) }
            (fact("Seed", settings.seed.to_string()))
            @for addition in additions {
                (fact("Added", format!(
                    "{} records, {}, {}", addition.records, addition.shapes, addition.started_at
                )))
            }
            (fact("Program", format!("{} {}, {}", tool.name, tool.version, tool.build)))
            (fact("Compiler", &tool.compiler))
            (fact("Kernels by", tool.crates.join(", ")))
        }
    }
}

fn ceilings(part: &Part<'_>) -> RankedTable {
    const COLUMNS: [Column; 6] = [
        Column::numbers("processes", 0),
        Column::numbers("triad, GB/s", 0),
        Column::numbers("peak, GFLOP/s", 0),
        Column::numbers("in cache, GB/s", 0),
        Column::numbers("in memory, GB/s", 0),
        Column::numbers("launch, us", 0),
    ];
    let calibration = part.calibration();
    let target = part.target();
    let is_of_target = |one: &&MeasuredCeilings| {
        (one.backend, Some(one.threads), one.clock, one.dtype)
            == (target.backend, target.threads, target.clock, target.dtype)
            && one.cache_state == CacheState::Warm
    };
    let mut table = RankedTable::new("state of the machine", &COLUMNS);
    for measured in calibration.ceilings.iter().filter(is_of_target) {
        let state = calibration.states.iter().find(|state| Some(state.id) == measured.state);
        let nothing = || "-".to_owned();
        let of_state = |value: &dyn Fn(&MachineState) -> String| state.map_or_else(nothing, value);
        let rates = &measured.ceilings.bandwidth;
        let rate = |point: Option<&fusion_cost_model::cost::BandwidthPoint>| {
            point.map_or_else(nothing, |point| three_digits(point.gb_per_s))
        };
        table.row(
            measured.state.map_or_else(|| "any".to_owned(), |id| id.to_string()),
            [
                of_state(&|state| state.processes.to_string()),
                of_state(&|state| {
                    let [low, high] = state.triad_range.map(three_digits);
                    format!("{} ({low} to {high})", three_digits(state.triad_gb_per_s))
                }),
                three_digits(measured.ceilings.peak_gflops),
                rate(rates.first()),
                rate(rates.last()),
                three_digits(measured.ceilings.launch_us),
            ],
        );
    }
    table
}

/// Kernels against themselves, but for those of single ops, which are many.
fn noise(part: &Part<'_>) -> RankedTable {
    let target = part.target();
    let columns = [Column::numbers("against itself [95 %]", 0), Column::words("tensors", 0)];
    let mut table = RankedTable::new("kernel", &columns);
    let noise = part.calibration().noise.iter().filter(|one| {
        (one.backend, Some(one.threads), one.clock)
            == (target.backend, target.threads, target.clock)
            && one.problem.dtype() == target.dtype
            && !one.problem.chain().is_single()
    });
    for one in noise {
        let tensors = if one.own_tensors { "of its own" } else { "the same" };
        let disturbed = if one.disturbed { ", mostly disturbed" } else { "" };
        table.row(
            one.problem.to_string(),
            [ratio(one.ratio, one.ratio_low, one.ratio_high), format!("{tensors}{disturbed}")],
        );
    }
    table
}

fn of_checks(checks: &[Check]) -> Markup {
    let columns =
        [Column::words("result", 0), Column::words("found", 0), Column::words("advice", 0)];
    let mut table = RankedTable::new("check", &columns);
    for Check { name, status, found, advice } in checks {
        let advice = advice.clone().unwrap_or_default();
        table.row(name.clone(), [status.to_string(), found.clone(), advice]);
    }
    let failed = checks.iter().filter(|check| check.status != CheckStatus::Pass).count();
    html! {
        @if checks.is_empty() {
            p { "None is in the file." }
        } @else {
            details open[failed > 0] {
                summary {
                    (checks.len() - failed) " of " (checks.len()) " passed"
                }
                (page::table(&table))
            }
        }
    }
}
