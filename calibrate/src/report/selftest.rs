//! The result of a self-test as tables.

use std::collections::BTreeMap;
use std::fmt::Write;

use cli_support::tables::{right, styled};
use cli_support::units::percent;
use comfy_table::{Cell, Table};

use crate::selftest::against_itself::AgainstItself;
use crate::selftest::simulation::Simulated;
use crate::selftest::{LEAST_COVERAGE, MOST_FALSE_VERDICTS, SelfTest, share};

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
    if let Some(measured) = &result.against_itself {
        let _ = writeln!(
            text,
            "{} on {} threads: kernels against themselves, whose true speedup is 1\n{}\n{}",
            result.fingerprint.cpu_model,
            result.threads,
            cases(measured),
            summary(measured)
        );
        for (code, count) in reasons(measured) {
            let _ = writeln!(text, "- {code}: {count} runs");
        }
    }
    let _ = writeln!(text, "{}", result.result.words());
    text
}

fn simulation(simulated: &[Simulated]) -> Table {
    let mut table = styled();
    table.set_header([
        "disturbance",
        "calibrations",
        "contained",
        "half-width",
        "processes",
        "pairs dropped",
    ]);
    for result in simulated {
        table.add_row([
            Cell::new(result.disturbance.name()),
            right(result.calibrations.to_string()),
            right(format!("{:.1} %", 100.0 * share(result.contained, result.calibrations))),
            right(format!("{:.2} %", 100.0 * result.half_width)),
            right(format!("{:.1}", result.processes)),
            right(percent(result.dropped)),
        ]);
    }
    table
}

fn cases(measured: &AgainstItself) -> Table {
    let mut table = styled();
    table.set_header([
        "problem",
        "runs",
        "contained 1",
        "undecided",
        "FASTER or SLOWER",
        "half-width",
    ]);
    for case in &measured.cases {
        table.add_row([
            Cell::new(&case.problem),
            right(case.runs.to_string()),
            right(case.contained.to_string()),
            right(case.undecided.to_string()),
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
    let AgainstItself { runs, contained, undecided, right, false_verdicts, .. } = *measured;
    if runs == 0 {
        return "no run was finished\n".to_owned();
    }
    let interrupted = if measured.interrupted { "; interrupted before all were made" } else { "" };
    format!(
        "{runs} runs: {contained} intervals contained 1 ({}), {undecided} runs were AMBIGUOUS or \
         INVALID, {right} were right ({}, at least {} are wanted), {false_verdicts} were FASTER or \
         SLOWER ({}, at most {} are wanted); noise floor {:.1} %{interrupted}\n",
        percent(share(contained, runs)),
        percent(share(right, runs)),
        percent(LEAST_COVERAGE),
        percent(share(false_verdicts, runs)),
        percent(MOST_FALSE_VERDICTS),
        100.0 * measured.noise_floor,
    )
}
