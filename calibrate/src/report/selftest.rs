//! The result of a self-test as tables.

use std::collections::BTreeMap;

use cli_support::ranked::{Column, RankedTable};
use cli_support::units::{counted, percent};
use cli_support::width::Width;
use fusion_cost_model::Implementation;

use crate::selftest::against_itself::{AgainstItself, Kind};
use crate::selftest::simulation::Simulated;
use crate::selftest::{
    Answer, LEAST_COVERAGE, LEAST_FOUND, MOST_FALSE_VERDICTS, SelfTest, WhyUndecided, share,
};

/// The whole report of a self-test.
#[must_use]
pub fn selftest(result: &SelfTest, width: Width) -> String {
    let mut text = String::new();
    if !result.simulation.is_empty() {
        let what = "scripted machines: how often the 95 % interval contained the true speedup";
        text += &width.wrap("", what, 2);
        text += &simulation(&result.simulation).render(width);
        text.push('\n');
    }
    for measured in &result.against_itself {
        let what = format!(
            "{} on {}{}: {}, whose true speedup is {}",
            result.fingerprint.cpu_model,
            counted(result.threads as usize, "thread"),
            whose(result.implementation),
            measured.kind.words(),
            truth(measured)
        );
        text += &width.wrap("", &what, 2);
        text += &cases(measured).render(width);
        text += &width.wrap("", &summary(measured), 2);
        for (code, count) in reasons(measured) {
            text += &width.wrap("- ", &format!("{code}: {count} runs"), 2);
        }
        text.push('\n');
    }
    text + &width.wrap("", conclusion(result), 2)
}

fn conclusion(result: &SelfTest) -> &'static str {
    match (result.result, WhyUndecided::of(&result.simulation, &result.against_itself)) {
        (Answer::Passed, _) => "passed",
        (Answer::Failed, _) => "FAILED",
        (_, WhyUndecided::NotFinished) => "UNDECIDED: not all runs were finished",
        (_, WhyUndecided::TooNoisy) => {
            "UNDECIDED: most runs were AMBIGUOUS or INVALID; test on a quieter machine"
        }
        (_, WhyUndecided::TooFewRuns) => "UNDECIDED: too few runs to tell; give more --runs",
    }
}

fn simulation(simulated: &[Simulated]) -> RankedTable {
    let columns = [
        Column::numbers("problems", 2),
        Column::numbers("contained", 0),
        Column::numbers("state changed", 2),
        Column::numbers("half-width", 0),
        Column::numbers("processes", 1),
        Column::numbers("dropped", 1),
    ];
    let mut table = RankedTable::new("disturbance", &columns);
    for result in simulated {
        let cells = [
            result.problems.to_string(),
            format!("{:.1} %", 100.0 * result.coverage()),
            percent(share(result.state_changed, result.calibrations)),
            format!("{:.2} %", 100.0 * result.half_width),
            format!("{:.1}", result.processes),
            percent(result.dropped),
        ];
        table.row(result.disturbance.name(), cells);
    }
    table
}

/// Whose kernels ran, where they are not the project's own.
fn whose(implementation: Implementation) -> String {
    if implementation.is_native() { String::new() } else { format!(", {implementation} kernels") }
}

/// The true ratio in words: `1`, or `1.02`.
fn truth(measured: &AgainstItself) -> String {
    let text = format!("{:.4}", measured.truth);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn cases(measured: &AgainstItself) -> RankedTable {
    let columns = [
        Column::numbers("runs", 1),
        Column::numbers("contained", 0),
        Column::numbers("undecided", 1),
        Column::numbers(measured.kind.right_verdict().name(), 2),
        Column::numbers("wrong", 0),
        Column::numbers("half-width", 0),
    ];
    let mut table = RankedTable::new("problem", &columns);
    for case in &measured.cases {
        let cells = [
            case.runs.to_string(),
            case.contained.to_string(),
            case.undecided.to_string(),
            case.found.to_string(),
            case.false_verdicts.to_string(),
            format!("{:.2} %", 100.0 * case.half_width),
        ];
        table.row(&case.problem, cells);
    }
    table
}

/// How often each reason was given over all cases.
fn reasons(measured: &AgainstItself) -> BTreeMap<&str, usize> {
    let mut reasons = BTreeMap::new();
    for (code, count) in measured.cases.iter().flat_map(|case| &case.reasons) {
        *reasons.entry(code.as_str()).or_default() += count;
    }
    reasons
}

fn summary(measured: &AgainstItself) -> String {
    let AgainstItself { runs, contained, undecided, right, false_verdicts, found, .. } = *measured;
    if runs == 0 {
        return "no run was finished".to_owned();
    }
    let interrupted = if measured.interrupted { "; interrupted before all were made" } else { "" };
    let wanted = match measured.kind {
        Kind::SharedTensors | Kind::OwnTensors => String::new(),
        Kind::Planted => format!(", at least {} are wanted", percent(LEAST_FOUND)),
    };
    format!(
        "{runs} runs: {contained} intervals contained {} ({}), {undecided} runs were AMBIGUOUS or \
         INVALID, {right} were right ({}, at least {} are wanted), {found} were {} ({}{wanted}), \
         {false_verdicts} had a false verdict ({}, at most {} are wanted); half-width {:.2} %, noise \
         floor {:.1} %{interrupted}",
        truth(measured),
        percent(share(contained, runs)),
        percent(share(right, runs)),
        percent(LEAST_COVERAGE),
        measured.kind.right_verdict().name(),
        percent(share(found, runs)),
        percent(share(false_verdicts, runs)),
        percent(MOST_FALSE_VERDICTS),
        100.0 * measured.half_width,
        100.0 * measured.noise_floor,
    )
}
