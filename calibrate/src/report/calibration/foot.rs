//! What to know of the records, and of what has none.

use cli_support::plain::on_one_line;
use cli_support::width::Width;
use fusion_cost_model::calibration::{HardwareCalibration, RunEnd, Verdict};

use super::by_heading;
use crate::report::reasons::{self, Said};

/// Lines about problems without a record, so that the tables stay in sight.
const MOST_SKIPPED: usize = 10;

pub(super) fn foot(calibration: &HardwareCalibration, width: Width) -> String {
    let mut text = width.wrap("", &verdicts(calibration), 2);
    let note = |note: &str| width.wrap("- ", note, 2);
    for (code, found) in reasons::by_code(&calibration.records) {
        text.push_str(&reason(code, &found, calibration.records.len(), width));
    }
    for skipped in calibration.skipped.iter().take(MOST_SKIPPED) {
        text.push_str(&note(&format!("not measured: {}", on_one_line(&skipped.reason))));
    }
    if let Some(more @ 1..) = calibration.skipped.len().checked_sub(MOST_SKIPPED) {
        text.push_str(&note(&format!("not measured: {more} more; the file lists them all")));
    }
    match calibration.settings.end {
        RunEnd::Complete => {}
        RunEnd::Interrupted => {
            text.push_str(&note("the run was interrupted; run the same command again to continue"))
        }
        RunEnd::Disturbed => text.push_str(&note(
            "the run ended after its first pass, in which everything was disturbed; run the same \
             command again when the machine is quiet",
        )),
        RunEnd::TimeBudget => {
            text.push_str(&note("the time was up; run the same command again to continue"));
        }
    }
    text
}

fn verdicts(calibration: &HardwareCalibration) -> String {
    let counts = Verdict::ALL.iter().filter_map(|verdict| {
        let count = calibration.records.iter().filter(|record| record.verdict == *verdict).count();
        (count > 0).then(|| format!("{count} {verdict}"))
    });
    let counts: Vec<String> = counts.collect();
    let colon = if counts.is_empty() { "" } else { ": " };
    format!("{}{colon}{}", of_records(calibration.records.len()), counts.join(", "))
}

fn of_records(count: usize) -> String {
    let noun = if count == 1 { "record" } else { "records" };
    format!("{count} {noun}")
}

/// A reason once: its text, how many records have it, and which.
fn reason(code: &str, found: &[Said<'_>], records: usize, width: Width) -> String {
    let Some(Said { text, .. }) = found.first() else { return String::new() };
    let text = on_one_line(text);
    let of_first = reasons::of_first(found);
    let is_all = found.len() == records && records > 1;
    let all = if is_all { "all " } else { "" };
    let many = of_records(found.len());
    if width == Width::Unlimited && !is_all {
        let names: Vec<String> = found.iter().map(Said::name).collect();
        return format!("- {code}, {many} ({}){of_first}: {text}\n", names.join(", "));
    }
    let mut note = width.wrap("- ", &format!("{code}, {all}{many}{of_first}: {text}"), 2);
    if !is_all {
        for (heading, sizes) in
            by_heading(found.iter().map(|said| ((said.problem, said.cache_state), said)))
        {
            let sizes: Vec<String> = sizes.iter().map(|(sizes, said)| said.of(sizes)).collect();
            note += &width.wrap("    ", &format!("{heading}: {}", sizes.join(", ")), 6);
        }
    }
    note
}
