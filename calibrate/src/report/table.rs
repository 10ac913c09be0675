//! A calibration as tables, one per family.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use cli_support::tables::{right, styled};
use cli_support::units::{milliseconds, percent, ratio};
use comfy_table::{Cell, Table};
use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, RunEnd, Verdict};
use fusion_cost_model::{CacheState, Clock, Family, Implementation};

/// The whole report of a calibration.
#[must_use]
pub fn tables(calibration: &HardwareCalibration) -> String {
    let mut text = head(calibration);
    let kinds =
        Clock::ALL.into_iter().flat_map(|clock| Implementation::ALL.map(|one| (clock, one)));
    for ((clock, implementation), family) in
        kinds.flat_map(|kind| Family::ALL.map(|family| (kind, family)))
    {
        let is_of_it = |record: &&FusionRecord| {
            Family::of(record.problem.chain().form()) == family
                && (record.clock, record.implementation) == (clock, implementation)
        };
        let records: Vec<&FusionRecord> = calibration.records.iter().filter(is_of_it).collect();
        if !records.is_empty() {
            let what = by(clock, implementation);
            let _ = write!(text, "\n{family}{what}\n{}\n", table(&records));
        }
    }
    text.push_str(&foot(calibration));
    text
}

/// What times are by, where that is not a CPU and its kernels.
fn by(clock: Clock, implementation: Implementation) -> String {
    let clock = if clock.is_host() { String::new() } else { format!(", {clock} clock") };
    match implementation {
        Implementation::Native => clock,
        Implementation::Vendor => clock + ", kernels of the vendor's library",
    }
}

fn head(calibration: &HardwareCalibration) -> String {
    let HardwareCalibration { hardware, fingerprint, settings, tool, records, .. } = calibration;
    let mut text = hardware.name.clone();
    if let Some(gpu) = &fingerprint.gpu {
        let _ = write!(text, " ({}, driver {}, {})", gpu.architecture, gpu.driver, gpu.compiler);
    } else if fingerprint.cpu_model != hardware.name {
        let _ = write!(text, " ({})", fingerprint.cpu_model);
    }
    let virtual_machine =
        if fingerprint.virtualized == Some(true) { ", virtual machine" } else { "" };
    let _ = writeln!(
        text,
        "{virtual_machine}; sizes: {}{}; {} {}, {}",
        settings.shapes,
        [
            (settings.quick, ", quick procedure"),
            (records.iter().any(|one| one.cache_state == CacheState::Cold), ", cold caches"),
            (settings.forced, ", despite a failed check"),
        ]
        .into_iter()
        .filter_map(|(is_so, what)| is_so.then_some(what))
        .collect::<String>(),
        tool.name,
        tool.version,
        tool.started_at
    );
    for ceilings in &calibration.ceilings {
        let rates = &ceilings.ceilings;
        let curve = |index: Option<&fusion_cost_model::cost::BandwidthPoint>| {
            index.map_or_else(|| "?".to_owned(), |point| format!("{:.0}", point.gb_per_s))
        };
        let _ = writeln!(
            text,
            "ceilings of {} {}{}: {:.0} GFLOP/s, {} GB/s in cache, {} GB/s in memory, {:.2} us per \
             launch",
            ceilings.backend,
            ceilings.dtype,
            match ceilings.clock {
                Clock::Host => format!(" on {} threads", ceilings.threads),
                clock => by(clock, Implementation::Native),
            },
            rates.peak_gflops,
            curve(rates.bandwidth.first()),
            curve(rates.bandwidth.last()),
            rates.launch_us
        );
    }
    for noise in &calibration.noise {
        let _ = writeln!(
            text,
            "noise: {} against itself{} {}{}",
            noise.problem,
            by(noise.clock, Implementation::Native),
            ratio(noise.ratio, noise.ratio_low, noise.ratio_high),
            if noise.disturbed { ", mostly disturbed" } else { "" }
        );
    }
    text
}

fn table(records: &[&FusionRecord]) -> Table {
    let mut table = styled();
    table.set_header([
        "problem",
        "unfused",
        "fused",
        "GFLOP/s",
        "speedup [95 %]",
        "bytes saved",
        "ceiling",
        "verdict",
    ]);
    for record in records {
        table.add_row([
            Cell::new(record.problem),
            right(milliseconds(record.unfused_latency_ms)),
            right(milliseconds(record.fused_latency_ms)),
            right(format!("{:.1}", record.fused_gflops)),
            right(ratio(record.speedup_factor, record.speedup_low, record.speedup_high)),
            right(percent(record.memory_reduction)),
            right(
                record.ceiling_speedup.map_or_else(String::new, |ceiling| format!("{ceiling:.2}")),
            ),
            Cell::new(record.verdict),
        ]);
    }
    table
}

/// What is to be said about the records, by the word of its code: the problem and the text, in the
/// order of the records.
fn reasons(calibration: &HardwareCalibration) -> BTreeMap<&str, Vec<(String, &str)>> {
    let mut reasons: BTreeMap<&str, Vec<(String, &str)>> = BTreeMap::new();
    for record in &calibration.records {
        for reason in &record.reasons {
            let found = reasons.entry(reason.code.name()).or_default();
            found.push((record.problem.to_string(), &reason.text));
        }
    }
    reasons
}

/// Lines about problems without a record, so that the tables stay in sight.
const MOST_SKIPPED: usize = 10;

fn foot(calibration: &HardwareCalibration) -> String {
    let mut text = String::from("\n");
    let verdicts =
        [Verdict::Faster, Verdict::Slower, Verdict::Same, Verdict::Ambiguous, Verdict::Invalid];
    let counts = verdicts.iter().filter_map(|verdict| {
        let count = calibration.records.iter().filter(|record| record.verdict == *verdict).count();
        (count > 0).then(|| format!("{count} {verdict}"))
    });
    let records = calibration.records.len();
    let counts: Vec<String> = counts.collect();
    let colon = if counts.is_empty() { "" } else { ": " };
    let noun = if records == 1 { "record" } else { "records" };
    let _ = writeln!(text, "{records} {noun}{colon}{}", counts.join(", "));

    for (code, found) in reasons(calibration) {
        let Some((problem, text_of_first)) = found.first() else { continue };
        let which = match found.len() {
            all if all == records && records > 1 => "all".to_owned(),
            1 => problem.clone(),
            several => format!("{problem} and {} more", several - 1),
        };
        let texts: HashSet<&str> = found.iter().map(|(_, text)| *text).collect();
        let such_as = if texts.len() > 1 { " (the first)" } else { "" };
        let _ = writeln!(text, "- {code}{such_as}: {which}: {text_of_first}");
    }
    for skipped in calibration.skipped.iter().take(MOST_SKIPPED) {
        let _ = writeln!(text, "- not measured: {}", skipped.reason);
    }
    if let Some(more @ 1..) = calibration.skipped.len().checked_sub(MOST_SKIPPED) {
        let _ = writeln!(text, "- not measured: {more} more; the file lists them all");
    }
    match calibration.settings.end {
        RunEnd::Complete => {}
        RunEnd::Interrupted => {
            text.push_str("- the run was interrupted; run the same command again to continue\n");
        }
        RunEnd::Disturbed => {
            text.push_str(
                "- the run ended after its first pass, in which everything was disturbed; run the \
                 same command again when the machine is quiet\n",
            );
        }
        RunEnd::TimeBudget => {
            text.push_str("- the time was up; run the same command again to continue\n");
        }
    }
    text
}
