//! The result of a self-test as tables.

use std::collections::BTreeMap;
use std::fmt::Write;

use cli_support::tables::{right, styled};
use cli_support::units::percent;
use comfy_table::{Cell, Table};

use crate::selftest::against_itself::{AgainstItself, Kind};
use crate::selftest::simulation::Simulated;
use crate::selftest::{LEAST_COVERAGE, LEAST_FOUND, MOST_FALSE_VERDICTS, SelfTest, share};

/// The whole report of a self-test.
#[must_use]
pub fn selftest(result: &SelfTest) -> String {
    let mut text = String::new();
    if !result.simulation.is_empty() {
        let _ = writeln!(
            text,
            "scripted machines: how often the 95 % interval contained the true speedup\n{}\n",
            simulation(&result.simulation)
        );
    }
    for measured in &result.against_itself {
        let _ = writeln!(
            text,
            "{} on {} threads: {}, whose true speedup is {}\n{}\n{}",
            result.fingerprint.cpu_model,
            result.threads,
            measured.kind.words(),
            truth(measured),
            cases(measured),
            summary(measured)
        );
        for (code, count) in reasons(measured) {
            let _ = writeln!(text, "- {code}: {count} runs");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{}", result.result.words());
    text
}

fn simulation(simulated: &[Simulated]) -> Table {
    let mut table = styled();
    table.set_header([
        "disturbance",
        "problems",
        "contained",
        "state changed",
        "half-width",
        "processes",
        "dropped",
    ]);
    for result in simulated {
        table.add_row([
            Cell::new(result.disturbance.name()),
            right(result.problems.to_string()),
            right(format!("{:.1} %", 100.0 * result.coverage())),
            right(percent(share(result.state_changed, result.calibrations))),
            right(format!("{:.2} %", 100.0 * result.half_width)),
            right(format!("{:.1}", result.processes)),
            right(percent(result.dropped)),
        ]);
    }
    table
}

/// The true ratio in words: `1`, or `1.02`.
fn truth(measured: &AgainstItself) -> String {
    let text = format!("{:.4}", measured.truth);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn cases(measured: &AgainstItself) -> Table {
    let mut table = styled();
    let contained = format!("contained {}", truth(measured));
    let verdict = measured.kind.right_verdict().name();
    table.set_header([
        "problem",
        "runs",
        contained.as_str(),
        "undecided",
        verdict,
        "false verdicts",
        "half-width",
    ]);
    for case in &measured.cases {
        table.add_row([
            Cell::new(&case.problem),
            right(case.runs.to_string()),
            right(case.contained.to_string()),
            right(case.undecided.to_string()),
            right(case.found.to_string()),
            right(case.false_verdicts.to_string()),
            right(format!("{:.2} %", 100.0 * case.half_width)),
        ]);
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
        return "no run was finished\n".to_owned();
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
         floor {:.1} %{interrupted}\n",
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
