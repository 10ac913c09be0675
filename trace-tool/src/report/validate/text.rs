//! Predicted against measured kernels, for people.

use std::fmt::Write;

use cli_support::plain;
use cli_support::tables::{right, styled};
use cli_support::units::milliseconds;
use comfy_table::{Cell, ColumnConstraint, Table, Width};
use kernel_traces::predicted::{
    Comparison, LimitVerdict, Row, ScenarioResult, Status, Totals, Validation, Worst,
};

use super::super::{counted, shortened};

/// At most this many operators of a type are named.
const MOST_OPERATORS: usize = 3;

/// Width of a list of operators, in characters.
const WIDTH_OF_OPERATORS: u16 = 50;

/// Every scenario with at most `top` types, and a summary if there are several.
#[must_use]
pub fn trace_validation(validation: &Validation, top: usize) -> String {
    let mut text = String::new();
    let is_one = validation.outcomes.len() == 1;
    for (index, outcome) in validation.outcomes.iter().enumerate() {
        // What is wrong with one that failed is on stderr.
        let Ok(result) = outcome else { continue };
        if index > 0 && !text.is_empty() {
            text.push('\n');
        }
        if !is_one {
            let _ = writeln!(text, "scenario {}\n", result.name);
        }
        scenario(&mut text, result, top);
    }
    if !is_one {
        let _ = writeln!(text, "\n{}", summary(validation));
    }
    text
}

fn scenario(text: &mut String, result: &ScenarioResult, top: usize) {
    let comparison = &result.comparison;
    let _ = writeln!(
        text,
        "predicted  {}, {}; {} at no cost",
        plain::on_one_line(&result.files.predicted.display().to_string()),
        plain::on_one_line(&comparison.process.to_string()),
        counted(comparison.zero_cost_events, "event")
    );
    let _ = writeln!(
        text,
        "measured   {}, {} of {}{}",
        plain::on_one_line(&result.files.measured.display().to_string()),
        counted(result.measured_rows, "row"),
        counted(comparison.passes, "pass"),
        skipped(comparison)
    );
    let shown = comparison.rows.get(..top).unwrap_or(&comparison.rows);
    let _ = writeln!(text, "\n{}", rows(shown));
    if let Some(more @ 1..) = comparison.rows.len().checked_sub(shown.len()) {
        let _ = writeln!(text, "and {more} types more; --top N lists more, --json all");
    }
    let Totals { predicted_us, measured_us, error_pct, .. } = comparison.totals;
    let _ = writeln!(
        text,
        "\ntotal  {} predicted, {} measured, for a pass; error {}",
        time(predicted_us),
        time(measured_us),
        percent(error_pct)
    );
    let _ = writeln!(text, "wMAPE  {}", wmape(result));
    let _ = writeln!(text, "types  {}", types(comparison));
    for (index, worst) in result.worst.iter().enumerate() {
        let _ = writeln!(text, "{}  {}", if index == 0 { "worst" } else { "     " }, named(worst));
    }
}

/// What was left out of the measured rows.
fn skipped(comparison: &Comparison) -> String {
    let skipped = &comparison.skipped;
    let parts = [
        (skipped.no_type, "without a type"),
        (skipped.aicpu, "of a collective's part on the processor"),
        (skipped.recorded_twice, "of collectives recorded twice"),
        (skipped.bad_duration, "without a duration"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if parts.is_empty() { String::new() } else { format!("; left out: {}", parts.join(", ")) }
}

fn rows(rows: &[Row]) -> Table {
    let mut table = styled();
    table.set_header([
        "kernel",
        "status",
        "predicted",
        "measured",
        "error",
        "in %",
        "of errors",
        "count",
        "measured count",
        "operators",
    ]);
    for row in rows {
        let is_modelled = row.status != Status::Unmodelled;
        let is_measured = row.measured_count > 0.0;
        let there = |is_there, text| if is_there { text } else { "-".to_owned() };
        table.add_row([
            Cell::new(shortened(&row.kernel_type)),
            Cell::new(row.status.name()),
            right(there(is_modelled, time(row.predicted_us))),
            right(there(is_measured, time(row.measured_us))),
            right(signed_time(row.error_us)),
            right(percent(row.error_pct)),
            right(format!("{:.1} %", row.error_share_pct)),
            right(there(is_modelled, row.predicted_count.to_string())),
            right(there(is_measured, count(row.measured_count))),
            Cell::new(operators(&row.operators)),
        ]);
    }
    if let Some(operators) = table.column_mut(9) {
        operators.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(WIDTH_OF_OPERATORS)));
    }
    table
}

fn operators(operators: &[String]) -> String {
    let first: Vec<&str> = operators.iter().take(MOST_OPERATORS).map(String::as_str).collect();
    let mut text = first.join(", ");
    if let Some(more @ 1..) = operators.len().checked_sub(MOST_OPERATORS) {
        let _ = write!(text, " and {more} more");
    }
    text
}

fn wmape(result: &ScenarioResult) -> String {
    let totals = &result.comparison.totals;
    let part = |part: Option<f64>| format!("{:.1} %", part.unwrap_or_default());
    let mut text = match totals.wmape_pct {
        None => "none, as nothing was measured".to_owned(),
        Some(wmape) => format!(
            "{wmape:.1} %: {} in types with both times, {} unmodelled, {} that only the model has",
            part(totals.wmape_matched_pct),
            part(totals.wmape_unmodelled_pct),
            part(totals.wmape_model_only_pct)
        ),
    };
    if let (Some(limit), Some(verdict)) = (result.max_wmape_pct, result.verdict) {
        let _ = write!(text, "; limit {limit} %: {}", verdict.name());
    }
    text
}

/// By how much the wMAPE of a scenario is above its limit, and which type adds most to it.
#[must_use]
pub fn excess(result: &ScenarioResult) -> String {
    let wmape = result.comparison.totals.wmape_pct.unwrap_or_default();
    let limit = result.max_wmape_pct.unwrap_or_default();
    let mut text = format!(
        "the wMAPE is {wmape:.2} %, {:.2} points above the limit of {limit} %",
        wmape - limit
    );
    if let Some(worst) = result.worst.first() {
        text.push_str("; the worst is ");
        text.push_str(&named(worst));
    }
    text
}

fn named(worst: &Worst) -> String {
    format!(
        "{}, {} ({:.1} % of all errors)",
        shortened(&worst.kernel_type),
        signed_time(worst.error_us),
        worst.error_share_pct
    )
}

fn types(comparison: &Comparison) -> String {
    let counts = &comparison.counts;
    let of = |status| match status {
        Status::Hit => counts.hit,
        Status::Miss => counts.miss,
        Status::Partial => counts.partial,
        Status::Unmodelled => counts.unmodelled,
    };
    let parts = Status::ALL.map(|status| format!("{} {}", of(status), status.name()));
    format!("{}: {}; {} that only the model has", counts.rows, parts.join(", "), counts.model_only)
}

/// A line for each scenario.
fn summary(validation: &Validation) -> Table {
    let mut table = styled();
    table.set_header([
        "scenario",
        "predicted",
        "measured",
        "error",
        "wMAPE",
        "limit",
        "result",
        "worst",
    ]);
    for outcome in &validation.outcomes {
        let result = match outcome {
            Ok(result) => result,
            Err(failed) => {
                table.add_row([failed.name.as_str(), "", "", "", "", "", "failed"]);
                continue;
            }
        };
        let totals = &result.comparison.totals;
        let worst = result.worst.first();
        let worst = worst.map(|worst| {
            format!("{} {}", shortened(&worst.kernel_type), signed_time(worst.error_us))
        });
        let of = |value: Option<f64>| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1} %"))
        };
        table.add_row([
            Cell::new(&result.name),
            right(time(totals.predicted_us)),
            right(time(totals.measured_us)),
            right(percent(totals.error_pct)),
            right(of(totals.wmape_pct)),
            right(of(result.max_wmape_pct)),
            Cell::new(result.verdict.map_or("-", LimitVerdict::name)),
            Cell::new(worst.unwrap_or_default()),
        ]);
    }
    table
}

fn time(us: f64) -> String {
    if us == 0.0 { "0 us".to_owned() } else { milliseconds(us / 1e3) }
}

/// A time with its sign.
fn signed_time(us: f64) -> String {
    if us == 0.0 {
        return time(us);
    }
    format!("{}{}", if us < 0.0 { '-' } else { '+' }, time(us.abs()))
}

fn percent(percent: Option<f64>) -> String {
    percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:+.1} %"))
}

/// A count for a pass, which may be a fraction.
fn count(count: f64) -> String {
    if count.fract() == 0.0 { format!("{count:.0}") } else { format!("{count:.2}") }
}
