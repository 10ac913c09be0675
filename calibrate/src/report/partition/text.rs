//! A split for people.

use cli_support::ranked::{Column, RankedTable};
use cli_support::units::{mebibytes, milliseconds, percent, ratio};
use cli_support::width::Width;
use fusion_cost_model::{Evidence, Problem};

use super::super::estimated::{Range, short};
use super::{Kernel, Known, Question, Split, SplitModel};

/// The width of the labels.
const LABEL: usize = 12;

/// What decides stays to the last.
const KERNELS: [Column; 7] = [
    Column::numbers("unfused", 0),
    Column::numbers("fused", 0),
    Column::words("evidence", 0),
    Column::words("decision", 0),
    Column::numbers("speedup [95 %]", 1),
    Column::numbers("saved [95 %]", 2),
    Column::numbers("one op more", 3),
];

const SPLITS: [Column; 5] = [
    Column::numbers("time", 0),
    Column::numbers("[95 %]", 2),
    Column::numbers("slower [95 %]", 0),
    Column::numbers("kernels", 0),
    Column::numbers("memory", 1),
];

const EVIDENCE: [Column; 3] = [
    Column::numbers("possible kernels", 0),
    Column::numbers("chosen", 0),
    Column::numbers("of the time", 0),
];

impl SplitModel {
    /// The split as tables.
    #[must_use]
    pub fn text(&self, width: Width) -> String {
        let mut text = head(&self.question, width);
        text += &format!("\n{}", kernels("best split", &self.kernels, width));
        if !self.apart.is_empty() {
            text += &format!("\n{}", kernels("better apart", &self.apart, width));
        }
        text += &format!("\n{}", self.splits(width));
        text += &format!("\n{}", known(&self.evidence, width));
        text + &self.foot(width)
    }

    fn splits(&self, width: Width) -> String {
        let mut table = RankedTable::new("split", &SPLITS);
        let splits = &self.splits;
        let second = splits.second.as_ref();
        for (name, split) in [
            ("best", Some(&splits.best)),
            ("second best", second),
            ("always fused", Some(&splits.always)),
            ("never fused", Some(&splits.never)),
        ] {
            if let Some(split) = split {
                table.row(name, cells_of_split(split, name == "best"));
            }
        }
        table.render(width)
    }

    fn foot(&self, width: Width) -> String {
        let mut text = String::new();
        let mut note = |lead: &str, line: &str| {
            text += &width.wrap(&format!("{lead:<LABEL$}"), line, LABEL);
        };
        let is_unknown = |known: &Known| known.evidence == Evidence::Unknown && known.possible > 0;
        if self.evidence.iter().any(is_unknown) {
            note("unknown", "`always fused` keeps ops apart where nothing is known of one kernel");
        }
        for (index, opaque) in self.opaque.iter().enumerate() {
            let lead = if index == 0 { "opaque" } else { "" };
            note(lead, &format!("{} x {}: {}", opaque.nodes, opaque.op, opaque.reason));
        }
        if !self.opaque.is_empty() {
            note("", "their time is in none of the splits");
        }
        for (index, (what, count)) in self.assumed.iter().enumerate() {
            let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
            note(if index == 0 { "assumed" } else { "" }, &format!("{times}: {what}"));
        }
        if text.is_empty() { text } else { format!("\n{text}") }
    }
}

fn head(question: &Question, width: Width) -> String {
    let Question { model, dims, profile, target, threshold, ops, segments, .. } = question;
    let dims: String = dims.iter().map(|(name, size)| format!(", {name}={size}")).collect();
    let counted = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    };
    let unused = match question.unused {
        0 => String::new(),
        count => format!("; {} that no output needs", counted(count, "node")),
    };
    let lines = [
        (
            "model",
            format!(
                "{model}{dims}: {} in {}; {} and {} at no cost{unused}",
                counted(*ops, "op"),
                counted(*segments, "segment"),
                counted(question.views, "view"),
                counted(question.computed_ahead, "node")
            ),
        ),
        ("profile", profile.clone()),
        ("target", target.to_string()),
        ("policy", format!("fuse from a speedup of {threshold} on")),
    ];
    let line =
        |(label, line): &(&str, String)| width.wrap(&format!("{label:<LABEL$}"), line, LABEL);
    lines.iter().map(line).collect()
}

/// The sizes, the kernel, and in how many places it is.
type Row<'a> = (String, &'a Kernel, usize);

/// Kernels by chain, equal ones once.
fn kernels(title: &str, kernels: &[Kernel], width: Width) -> String {
    let mut table = RankedTable::new(title, &KERNELS);
    let mut groups: Vec<(String, Vec<Row<'_>>)> = Vec::new();
    for kernel in kernels {
        let (heading, sizes) = named(kernel);
        let at = groups.iter().position(|(known, _)| *known == heading).unwrap_or_else(|| {
            groups.push((heading, Vec::new()));
            groups.len() - 1
        });
        let rows = &mut groups[at].1;
        match rows.iter_mut().find(|(known, ..)| *known == sizes) {
            Some((.., places)) => *places += 1,
            None => rows.push((sizes, kernel, 1)),
        }
    }
    for (heading, rows) in groups {
        if width != Width::Unlimited {
            table.heading(heading.clone());
        }
        for (sizes, kernel, places) in rows {
            let name = match width {
                Width::Unlimited => format!("{heading}/{sizes}"),
                Width::Columns(_) => sizes,
            };
            let places = if places > 1 { format!(" x{places}") } else { String::new() };
            table.row(name + &places, cells(kernel));
        }
    }
    table.render(width)
}

/// The chain with its dtype, and the sizes.
fn named(kernel: &Kernel) -> (String, String) {
    let name = kernel.problem.as_ref().map(Problem::to_string);
    let Some(name) = name else { return ("no problem".to_owned(), kernel.nodes.join(" ")) };
    let (heading, sizes) = name.rsplit_once('/').unwrap_or(("", &name));
    (heading.to_owned(), sizes.to_owned())
}

fn cells(kernel: &Kernel) -> [String; KERNELS.len()] {
    let nothing = || "-".to_owned();
    let time = |time: Option<Range>| time.map_or_else(nothing, |time| milliseconds(time.value));
    // A single op has one time.
    let fused = kernel.fused_ms.filter(|_| kernel.speedup.is_some());
    [
        time(kernel.unfused_ms),
        time(fused),
        short(kernel.evidence).to_owned(),
        kernel.decision.map_or_else(nothing, |decision| decision.replace('_', " ")),
        kernel.speedup.map_or_else(nothing, |Range { value, low, high }| ratio(value, low, high)),
        kernel.saved_ms.map_or_else(nothing, Range::time),
        kernel.saved_by_next_ms.map_or_else(nothing, Range::time),
    ]
}

fn cells_of_split(split: &Split, is_best: bool) -> [String; SPLITS.len()] {
    let nothing = || "-".to_owned();
    [
        split.total_ms.map_or_else(nothing, |total| milliseconds(total.value)),
        split.total_ms.map_or_else(nothing, Range::ends),
        if is_best { nothing() } else { split.slower_by_ms.time() },
        split.kernels.to_string(),
        mebibytes(split.peak_bytes),
    ]
}

/// What is known, where there is something.
fn known(evidence: &[Known], width: Width) -> String {
    let mut table = RankedTable::new("evidence", &EVIDENCE);
    for known in evidence.iter().filter(|known| known.possible + known.chosen > 0) {
        let share = known.share.map_or_else(|| "-".to_owned(), percent);
        let cells = [known.possible.to_string(), known.chosen.to_string(), share];
        table.row(known.evidence.name(), cells);
    }
    table.render(width)
}
