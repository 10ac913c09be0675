//! How well records estimate each other, for people.

use cli_support::ranked::{Column, RankedTable};
use cli_support::units::percent;
use cli_support::width::Width;
use fusion_cost_model::{Errors, Regret};

use super::{Group, Question, Validation};

/// The width of the labels.
const LABEL: usize = 12;

/// The regret stays to the last, with that of always fusing.
const COLUMNS: [Column; 8] = [
    Column::numbers("records", 1),
    Column::numbers("time off", 0),
    Column::numbers("speedup off", 0),
    Column::numbers("covered", 0),
    Column::numbers("regret", 0),
    Column::numbers("always", 0),
    Column::numbers("never", 1),
    Column::numbers("oracle", 2),
];

impl Validation {
    /// The groups as a table.
    #[must_use]
    pub fn text(&self, width: Width) -> String {
        let mut text = head(&self.question, width);
        let mut table = RankedTable::new("left out", &COLUMNS);
        table.row(self.all.name.clone(), cells(&self.all));
        for (heading, groups) in [
            ("by family", &self.by_family),
            ("by pattern", &self.by_pattern),
            ("by evidence", &self.by_evidence),
        ] {
            table.heading(heading);
            for group in groups {
                table.row(group.name.clone(), cells(group));
            }
        }
        text += &format!("\n{}\n", table.render(width));
        let notes = [
            "off: median / p90 of the errors, |ln(estimate / measured)|; covered: the share of \
             measured times / speedups in their 95 % intervals",
            "regret: what decisions lose against the faster variant; always, never: of fusing \
             always or never; oracle: of knowing every speedup",
        ];
        text.extend(notes.map(|note| width.wrap("- ", note, 2)));
        text
    }

    /// By how much the regret is above its limit.
    #[must_use]
    pub fn excess(&self) -> String {
        let regret = self.all.regret.map_or(0.0, |regret| regret.decided);
        let limit = self.question.max_regret.unwrap_or_default();
        // With as many digits as it takes to tell the two apart.
        let pairs = (2..).map(|digits| [regret, limit].map(|share| with_digits(share, digits)));
        let [regret, limit] = pairs.take(16).find(|[a, b]| a != b).unwrap_or_default();
        format!("the regret is {regret}, above the limit of {limit}")
    }
}

fn head(question: &Question, width: Width) -> String {
    let Question { file, target, leave_out, threshold, max_regret, .. } = question;
    let left_out = match *leave_out {
        "shape" => "all records of a size at a time",
        _ => "one record at a time",
    };
    let limit = max_regret.map_or_else(String::new, |limit| format!("; limit {}", finely(limit)));
    let lines = [
        ("file", file.clone()),
        ("target", target.clone()),
        ("left out", left_out.to_owned()),
        ("policy", format!("fuse from a speedup of {threshold} on{limit}")),
    ];
    let line =
        |(label, line): &(&str, String)| width.wrap(&format!("{label:<LABEL$}"), line, LABEL);
    lines.iter().map(line).collect()
}

fn cells(group: &Group) -> [String; COLUMNS.len()] {
    let nothing = || "-".to_owned();
    let off = |errors: Option<Errors>| {
        errors.map_or_else(nothing, |Errors { median, p90, .. }| {
            format!("{:.1} / {:.1} %", 100.0 * median, 100.0 * p90)
        })
    };
    let covered = match (group.time, group.speedup) {
        (Some(time), Some(speedup)) => {
            format!("{:.0} / {:.0} %", 100.0 * time.covered, 100.0 * speedup.covered)
        }
        (Some(time), None) => percent(time.covered),
        _ => nothing(),
    };
    let lost = |of: fn(&Regret) -> f64| {
        group.regret.as_ref().map_or_else(nothing, |regret| finely(of(regret)))
    };
    [
        group.records.to_string(),
        off(group.time),
        off(group.speedup),
        covered,
        lost(|regret| regret.decided),
        lost(|regret| regret.always),
        lost(|regret| regret.never),
        lost(|regret| regret.oracle),
    ]
}

/// A small share in per cent.
fn finely(share: f64) -> String {
    with_digits(share, 2)
}

fn with_digits(share: f64, digits: usize) -> String {
    format!("{:.digits$} %", 100.0 * share)
}
