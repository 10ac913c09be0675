//! A calibration as tables, one per family.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, TableComponent};
use fusion_cost_model::Family;
use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Verdict};

use super::units::{milliseconds, percent, ratio};

/// The whole report of a calibration.
#[must_use]
pub fn tables(calibration: &HardwareCalibration) -> String {
    let mut text = head(calibration);
    for family in Family::ALL {
        let records: Vec<&FusionRecord> = calibration
            .records
            .iter()
            .filter(|record| Family::of(record.problem.chain().form()) == family)
            .collect();
        if !records.is_empty() {
            let _ = write!(text, "\n{family}\n{}\n", table(&records));
        }
    }
    text.push_str(&foot(calibration));
    text
}

fn head(calibration: &HardwareCalibration) -> String {
    let HardwareCalibration { hardware, fingerprint, settings, tool, .. } = calibration;
    let mut text = hardware.name.clone();
    if fingerprint.cpu_model != hardware.name {
        let _ = write!(text, " ({})", fingerprint.cpu_model);
    }
    let virtual_machine =
        if fingerprint.virtualized == Some(true) { ", virtual machine" } else { "" };
    let _ = writeln!(
        text,
        "{virtual_machine}; sizes: {}{}; {} {}, {}",
        settings.shapes,
        if settings.quick { ", quick procedure" } else { "" },
        tool.name,
        tool.version,
        tool.started_at
    );
    for ceilings in &calibration.ceilings {
        let limits = &ceilings.limits;
        let curve = |index: Option<&fusion_cost_model::cost::BandwidthPoint>| {
            index.map_or_else(|| "?".to_owned(), |point| format!("{:.0}", point.gb_per_s))
        };
        let _ = writeln!(
            text,
            "ceilings of {} {} on {} threads: {:.0} GFLOP/s, {} GB/s in cache, {} GB/s in memory, \
             {:.2} us per launch",
            ceilings.backend,
            ceilings.dtype,
            ceilings.threads,
            limits.peak_gflops,
            curve(limits.bandwidth.first()),
            curve(limits.bandwidth.last()),
            limits.launch_us
        );
    }
    for noise in &calibration.noise {
        let _ = writeln!(
            text,
            "noise: {} against itself {}",
            noise.problem,
            ratio(noise.ratio, noise.ratio_low, noise.ratio_high)
        );
    }
    text
}

fn table(records: &[&FusionRecord]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(UTF8_HORIZONTAL_ONLY)
        .remove_style(TableComponent::HorizontalLines)
        .remove_style(TableComponent::MiddleIntersections)
        .set_content_arrangement(ContentArrangement::Dynamic);
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

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

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
    let _ = writeln!(text, "{records} records{colon}{}", counts.join(", "));

    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for record in &calibration.records {
        for reason in &record.reasons {
            reasons.entry(reason).or_default().push(record.problem.to_string());
        }
    }
    for (reason, problems) in reasons {
        let which = match problems.as_slice() {
            all if all.len() == records && records > 1 => "all".to_owned(),
            [one] => one.clone(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
            [] => continue,
        };
        let _ = writeln!(text, "- {which}: {reason}");
    }
    for skipped in &calibration.skipped {
        let _ = writeln!(text, "- not measured: {}", skipped.reason);
    }
    if calibration.settings.interrupted {
        text.push_str("- the run was interrupted; the same command goes on from here\n");
    }
    text
}
