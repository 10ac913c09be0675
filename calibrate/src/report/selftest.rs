//! The result of a self-test as tables.

use std::collections::BTreeMap;

use cli_support::ranked::{Column, RankedTable};
use cli_support::units::percent;
use cli_support::width::Width;

use crate::selftest::against_itself::AgainstItself;
use crate::selftest::simulation::Simulated;
use crate::selftest::{LEAST_COVERAGE, MOST_FALSE_VERDICTS, SelfTest, share};

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
    if let Some(measured) = &result.against_itself {
        let what = format!(
            "{} on {} threads: kernels against themselves, whose true speedup is 1",
            result.fingerprint.cpu_model, result.threads
        );
        text += &width.wrap("", &what, 2);
        text += &cases(measured).render(width);
        text += &width.wrap("", &summary(measured), 2);
        for (code, count) in reasons(measured) {
            text += &width.wrap("- ", &format!("{code}: {count} runs"), 2);
        }
    }
    text + &width.wrap("", result.result.words(), 2)
}

fn simulation(simulated: &[Simulated]) -> RankedTable {
    let columns = [
        Column::numbers("calibrations", 2),
        Column::numbers("contained", 0),
        Column::numbers("half-width", 0),
        Column::numbers("processes", 1),
        Column::numbers("pairs dropped", 1),
    ];
    let mut table = RankedTable::new("disturbance", &columns);
    for result in simulated {
        let cells = [
            result.calibrations.to_string(),
            format!("{:.1} %", 100.0 * share(result.contained, result.calibrations)),
            format!("{:.2} %", 100.0 * result.half_width),
            format!("{:.1}", result.processes),
            percent(result.dropped),
        ];
        table.row(result.disturbance.name(), cells);
    }
    table
}

fn cases(measured: &AgainstItself) -> RankedTable {
    let columns = [
        Column::numbers("runs", 1),
        Column::numbers("contained", 0),
        Column::numbers("undecided", 1),
        Column::numbers("wrong", 0),
        Column::numbers("half-width", 0),
    ];
    let mut table = RankedTable::new("problem", &columns);
    for case in &measured.cases {
        let cells = [
            case.runs.to_string(),
            case.contained.to_string(),
            case.undecided.to_string(),
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
    let AgainstItself { runs, contained, undecided, right, false_verdicts, .. } = *measured;
    if runs == 0 {
        return "no run was finished".to_owned();
    }
    let interrupted = if measured.interrupted { "; interrupted before all were made" } else { "" };
    format!(
        "{runs} runs: {contained} intervals contained 1 ({}), {undecided} runs were AMBIGUOUS or \
         INVALID, {right} were right ({}, at least {} are wanted), {false_verdicts} were FASTER or \
         SLOWER ({}, at most {} are wanted); noise floor {:.1} %{interrupted}",
        percent(share(contained, runs)),
        percent(share(right, runs)),
        percent(LEAST_COVERAGE),
        percent(share(false_verdicts, runs)),
        percent(MOST_FALSE_VERDICTS),
        100.0 * measured.noise_floor,
    )
}
