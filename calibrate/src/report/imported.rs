//! An imported profile as a page: what came over, and what did not.

use cli_support::ranked::{Column, RankedTable};
use cli_support::units::{milliseconds, percent};
use cli_support::width::Width;
use fusion_cost_model::imported::ImportedProfile;

/// The width of the labels.
const LABEL: usize = 12;

/// The whole page.
#[must_use]
pub fn imported(profile: &ImportedProfile, width: Width) -> String {
    let ImportedProfile { source, machine, rates, records, left_out, notes, .. } = profile;
    let line = |label: &str, text: &str| width.wrap(&format!("{label:<LABEL$}"), text, LABEL);
    let mut text = line(
        "machine",
        &format!("{}, {}, {} processors", machine.name, machine.backend, machine.processors),
    );
    text += &line(
        "source",
        &format!(
            "{} of {} ({}), {}, {}",
            source.file, source.project, source.licence, source.framework, source.measured_at
        ),
    );
    text += &line(
        "rates",
        &format!(
            "{:.0} of {:.0} GFLOP/s ({:.3}), {:.1} of {:.1} GB/s ({:.3})",
            rates.best_gflops,
            rates.stated_peak_gflops,
            rates.efficiency,
            rates.measured_gb_per_s,
            rates.stated_gb_per_s,
            rates.bandwidth_efficiency
        ),
    );
    text.push('\n');
    let columns = [
        Column::numbers("unfused", 1),
        Column::numbers("fused", 1),
        Column::numbers("speedup", 0),
        Column::numbers("bytes saved", 2),
    ];
    let mut table = RankedTable::new("imported, without intervals", &columns);
    for record in records {
        table.row(
            record.problem.to_string(),
            [
                milliseconds(record.unfused_latency_ms),
                milliseconds(record.fused_latency_ms),
                format!("{:.3}", record.speedup_factor),
                percent(record.memory_reduction),
            ],
        );
    }
    text += &table.render(width);
    text.push('\n');
    for note in notes {
        text += &width.wrap("- ", note, 2);
    }
    for one in left_out {
        text += &width.wrap("- ", &format!("left out: {}: {}", one.name, one.reason), 2);
    }
    text
}
