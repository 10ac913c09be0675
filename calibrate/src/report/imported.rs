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
        &match machine.processors {
            None => format!("{}, {}", machine.name, machine.backend),
            Some(count) => format!("{}, {}, {count} processors", machine.name, machine.backend),
        },
    );
    text += &line(
        "source",
        &format!(
            "{} of {} ({}), {}, {}",
            source.file, source.project, source.licence, source.framework, source.measured_at
        ),
    );
    let rate = |reached: f64, stated: f64, share: f64, unit: &str| {
        let of = |rate: f64, digits: usize| {
            if rate > 0.0 { format!("{rate:.digits$}") } else { "?".to_owned() }
        };
        let digits = usize::from(unit == "GB/s");
        let share = if share > 0.0 { format!(" ({share:.3})") } else { String::new() };
        format!("{} of {} {unit}{share}", of(reached, digits), of(stated, digits))
    };
    text += &line(
        "rates",
        &format!(
            "{}, {}",
            rate(rates.best_gflops, rates.stated_peak_gflops, rates.efficiency, "GFLOP/s"),
            rate(
                rates.measured_gb_per_s,
                rates.stated_gb_per_s,
                rates.bandwidth_efficiency,
                "GB/s"
            )
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
