//! Comparisons as the script of msmodeling prints and writes them.

use std::fmt::Write;

use kernel_traces::predicted::{FailedScenario, ScenarioResult, Validation, original};

/// At most this many rows are printed.
const MOST_ROWS: usize = 15;

const WIDTH: usize = 115;

/// What the script prints of every scenario, those that it skips included.
#[must_use]
pub fn trace_validation_original(validation: &Validation) -> String {
    let mut text = String::new();
    for outcome in &validation.outcomes {
        match outcome {
            Ok(result) => table(&mut text, result),
            Err(FailedScenario { name, errors, .. }) => {
                let _ = writeln!(text, "SKIP {name}: {}", errors.join("; "));
            }
        }
    }
    text
}

fn table(text: &mut String, result: &ScenarioResult) {
    let rows = original::rows(&result.comparison);
    // The sum of nothing would be a negative zero.
    let predicted = 0.0 + rows.iter().map(|row| original::value(&row.tc_total_us)).sum::<f64>();
    let measured = 0.0 + rows.iter().map(|row| original::value(&row.prof_per_fwd_us)).sum::<f64>();
    let (double, single) = ("=".repeat(WIDTH), "-".repeat(WIDTH));
    let _ = writeln!(text, "\n{double}\n{} — TC vs Profiling per-forward\n{double}", result.name);
    let _ = writeln!(
        text,
        "{:<35} {:>12} {:>7} {:>12} {:>8} {:>9} {:>9} {:>8} {:<6}\n{single}",
        "kernel_type",
        "TC(μs)",
        "TC次数",
        "Prof(μs)",
        "Prof次数",
        "延迟误差",
        "次数误差",
        "Prof占比",
        "状态"
    );
    for row in rows.iter().take(MOST_ROWS) {
        let row_measured = original::value(&row.prof_per_fwd_us);
        let share = if measured > 0.0 { row_measured / measured * 100.0 } else { 0.0 };
        let _ = writeln!(
            text,
            "{:<35} {:>12.1} {:>7} {row_measured:>12.1} {:>8} {:>8.1}% {:>8.1}% {share:>7.1}% {:<6}",
            row.kernel_type,
            original::value(&row.tc_total_us),
            row.tc_count,
            row.prof_count,
            original::value(&row.error_pct),
            original::value(&row.count_error_pct),
            row.status
        );
    }
    let _ = writeln!(text, "{:<35} {predicted:>12.1} {:>7} {measured:>12.1}", "TOTAL", "");
}
