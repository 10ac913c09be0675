//! Whose kernels are faster: the fused times of all implementations beside each other.

use cli_support::ranked::{Column, RankedTable};
use cli_support::units::{milliseconds, ratio};
use cli_support::width::Width;
use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Timing, Verdict};
use fusion_cost_model::{CacheState, Implementation, Problem};

use super::by_heading;

/// The tables of a calibration that has records of runtimes and of something else; empty otherwise.
///
/// All others are held against the first, which is `native` where that was measured.
pub(super) fn peers(
    calibration: &HardwareCalibration,
    implementations: &[Implementation],
    width: Width,
) -> String {
    let [first, others @ ..] = implementations else { return String::new() };
    if calibration.runtimes.is_empty() || others.is_empty() {
        return String::new();
    }
    let mut columns = vec![Column::numbers("", 1); implementations.len()];
    columns.push(Column::numbers("", 0));
    let heads = implementations.iter().map(ToString::to_string);
    let last = format!("{first} / fastest other [95 %]");
    let table = RankedTable::new("time of the fused kernels", &columns);
    let mut table = table.with_heads(heads.chain([last]));
    let mut ratios = Vec::new();
    let mut rows: Vec<((Problem, CacheState), Vec<String>)> = Vec::new();
    for problem in problems(&calibration.records) {
        let of = |whose: &Implementation| usable(&calibration.records, problem, *whose);
        let mut cells: Vec<String> = implementations
            .iter()
            .map(|whose| of(whose).map_or_else(nothing, |one| milliseconds(one.fused_latency_ms)))
            .collect();
        let fastest = others.iter().filter_map(of);
        let fastest = fastest.min_by(|a, b| a.fused_latency_ms.total_cmp(&b.fused_latency_ms));
        cells.push(match of(first).zip(fastest) {
            Some((own, other)) => {
                ratios.push(own.fused_latency_ms / other.fused_latency_ms);
                times_as_long(own, other)
            }
            None => nothing(),
        });
        rows.push((problem, cells));
    }
    if width == Width::Unlimited {
        for ((problem, cache_state), cells) in rows {
            table.row(format!("{problem}{}", cache_state.mark()), cells);
        }
    } else {
        for (heading, rows) in by_heading(rows) {
            table.heading(heading);
            rows.into_iter().for_each(|(sizes, cells)| table.row(sizes, cells));
        }
    }
    format!("\n{}{}", table.render(width), summary(*first, ratios, width))
}

fn nothing() -> String {
    "-".to_owned()
}

/// The problems of the plain records, each once in each state of the caches.
fn problems(records: &[FusionRecord]) -> Vec<(Problem, CacheState)> {
    let mut problems = Vec::new();
    for record in records.iter().filter(|record| record.rewrite.is_none()) {
        let problem = (record.problem, record.cache_state);
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    problems
}

fn usable(
    records: &[FusionRecord],
    (problem, cache_state): (Problem, CacheState),
    whose: Implementation,
) -> Option<&FusionRecord> {
    records.iter().find(|record| {
        (record.problem, record.cache_state, record.implementation) == (problem, cache_state, whose)
            && record.rewrite.is_none()
            && record.verdict != Verdict::Invalid
    })
}

/// The ratio of two times, with an interval where both have one: their errors are independent, so
/// that their squares are added.
fn times_as_long(own: &FusionRecord, other: &FusionRecord) -> String {
    let value = own.fused_latency_ms / other.fused_latency_ms;
    let half = |timing: &Timing| Some((timing.high_ms? / timing.low_ms?).ln() / 2.0);
    match half(&own.fused_timing).zip(half(&other.fused_timing)) {
        Some((own, other)) => {
            let half = own.hypot(other).exp();
            ratio(value, value / half, value * half)
        }
        None => format!("{value:.3}"),
    }
}

/// All ratios in a sentence.
fn summary(first: Implementation, mut ratios: Vec<f64>, width: Width) -> String {
    ratios.sort_unstable_by(f64::total_cmp);
    let (Some(least), Some(most)) = (ratios.first(), ratios.last()) else { return String::new() };
    let median = (ratios[(ratios.len() - 1) / 2] * ratios[ratios.len() / 2]).sqrt();
    let text = format!(
        "{first} takes {median:.2} times as long as the fastest other in the median of {} problems, \
         {least:.2} to {most:.2} times",
        ratios.len()
    );
    width.wrap("", &text, 0)
}
