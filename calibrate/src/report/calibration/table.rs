//! The records of a family.

use cli_support::ranked::{Column, RankedTable};
use cli_support::units::{milliseconds, percent, ratio};
use cli_support::width::Width;
use fusion_cost_model::calibration::FusionRecord;

use super::by_heading;

/// The speedup and its verdict stay to the last.
const COLUMNS: [Column; 7] = [
    Column::numbers("unfused", 1),
    Column::numbers("fused", 1),
    Column::numbers("GFLOP/s", 2),
    Column::numbers("speedup [95 %]", 0),
    Column::numbers("bytes saved", 3),
    Column::numbers("ceiling", 4),
    Column::words("verdict", 0),
];

pub(super) fn table(title: &str, records: &[&FusionRecord], width: Width) -> String {
    let mut table = RankedTable::new(title, &COLUMNS);
    if width == Width::Unlimited {
        for record in records {
            let rewrite = record.rewrite.map(|one| format!(" {one}")).unwrap_or_default();
            let mark = record.cache_state.mark();
            table.row(format!("{}{mark}{rewrite}", record.problem), cells(record));
        }
        return table.render(width);
    }
    let of = |record: &FusionRecord| (record.problem, record.cache_state);
    for (heading, rows) in by_heading(records.iter().map(|record| (of(record), record))) {
        table.heading(heading);
        for (sizes, record) in rows {
            table.row(sizes, cells(record));
        }
    }
    table.render(width)
}

fn cells(record: &FusionRecord) -> [String; COLUMNS.len()] {
    let nothing = || "-".to_owned();
    if record.problem.chain().is_single() {
        // One kernel, whatever became of its measurement.
        return [
            milliseconds(record.unfused_latency_ms),
            nothing(),
            format!("{:.1}", record.unfused_gflops),
            nothing(),
            nothing(),
            nothing(),
            record.verdict.to_string(),
        ];
    }
    [
        milliseconds(record.unfused_latency_ms),
        milliseconds(record.fused_latency_ms),
        format!("{:.1}", record.fused_gflops),
        ratio(record.speedup_factor, record.speedup_low, record.speedup_high),
        percent(record.memory_reduction),
        record.ceiling_speedup.map_or_else(nothing, |ceiling| format!("{ceiling:.2}")),
        record.verdict.to_string(),
    ]
}
