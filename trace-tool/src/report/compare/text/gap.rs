//! What the gap comes from: causes, classes, roles, phases, and what overlaps computation.

use cli_support::tables::right;
use comfy_table::Cell;
use kernel_traces::compare::{Comparison, Gap, OverlapPart, Part};

use super::super::{CompareReport, words};
use super::{at_most, heading, sized, write_sentences, write_table};
use crate::report::{counted, shortened};

pub(super) fn write(text: &mut String, report: CompareReport<'_>) {
    let CompareReport { comparison, top, .. } = report;
    let gap = &comparison.gap;
    heading(text, format!("Where the gap of {} comes from", words::signed(gap.gap_ns)));
    let shown = gap.causes.iter().take(top);
    let sentence = |(at, cause): (usize, &kernel_traces::compare::Cause)| {
        (format!("{}.", at + 1), cause.sentence.clone())
    };
    write_sentences(text, shown.enumerate().map(sentence));
    text.push('\n');
    causes(text, comparison, top);
    if !gap.classes.is_empty() {
        heading(text, "By class");
        classes(text, comparison, top);
    }
    if !gap.roles.is_empty() {
        heading(text, "By role in the layer");
        let rows = gap.roles.iter().map(|role| (role.role.name(), &role.part));
        parts(text, comparison, "role", rows);
    }
    if !gap.phases.is_empty() {
        heading(text, "By phase");
        phases(text, comparison);
    }
    beside(text, comparison);
}

/// The last columns of every part of the gap.
fn numbers(gap: &Gap, part: &Part) -> [Cell; 4] {
    [
        right(words::time(part.first_ns)),
        right(words::time(part.second_ns)),
        right(words::signed(part.gap_ns)),
        right(words::share_of_gap(gap, part.gap_ns).unwrap_or_else(|| "-".to_owned())),
    ]
}

fn causes(text: &mut String, comparison: &Comparison, top: usize) {
    let gap = &comparison.gap;
    let mut table = sized();
    let (first, second) = (&comparison.first.label, &comparison.second.label);
    table.set_header(["", "cause", "what", first, second, "gap", "of the gap"]);
    for (at, cause) in gap.causes.iter().take(top).enumerate() {
        let mut row =
            vec![right((at + 1).to_string()), Cell::new(&cause.name), Cell::new(cause.kind.name())];
        row.extend(numbers(gap, &cause.part));
        table.add_row(row);
    }
    let rest = gap.causes.get(top..).unwrap_or_default();
    if !rest.is_empty() {
        let sum = |of: fn(&Part) -> f64| rest.iter().map(|cause| of(&cause.part)).sum();
        let part = Part {
            first_ns: sum(|part| part.first_ns),
            second_ns: sum(|part| part.second_ns),
            gap_ns: sum(|part| part.gap_ns),
            ..Part::default()
        };
        let more = counted(rest.len() as u64, "cause");
        let mut row = vec![Cell::new(""), Cell::new(format!("{more} more")), Cell::new("")];
        row.extend(numbers(gap, &part));
        table.add_row(row);
    }
    let whole = Part {
        first_ns: gap.first_ns,
        second_ns: gap.second_ns,
        gap_ns: gap.gap_ns,
        ..Part::default()
    };
    let mut row = vec![Cell::new(""), Cell::new("together"), Cell::new("")];
    row.extend(numbers(gap, &whole));
    table.add_row(row);
    at_most(&mut table, 1, 50);
    write_table(text, &table, &words::left_out(gap.causes.len(), top, "cause"));
}

fn classes(text: &mut String, comparison: &Comparison, top: usize) {
    let gap = &comparison.gap;
    let (first, second) = (&comparison.first.label, &comparison.second.label);
    let mut table = sized();
    let kernels = |label: &str| format!("kernels {label}");
    table.set_header([
        "class",
        &kernels(first),
        &kernels(second),
        first,
        second,
        "gap",
        "of the gap",
        "ratio of means",
    ]);
    for class in gap.classes.iter().take(top) {
        let part = &class.part;
        let mut row = vec![
            Cell::new(&class.class),
            right(part.first_amount.count.to_string()),
            right(part.second_amount.count.to_string()),
        ];
        row.extend(numbers(gap, part));
        row.push(right(class.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))));
        table.add_row(row);
    }
    write_table(text, &table, &words::left_out(gap.classes.len(), top, "class"));
}

fn parts<'p>(
    text: &mut String,
    comparison: &Comparison,
    what: &str,
    parts: impl Iterator<Item = (&'p str, &'p Part)>,
) {
    let mut table = sized();
    let (first, second) = (&comparison.first.label, &comparison.second.label);
    table.set_header([what, first, second, "gap", "of the gap"]);
    for (name, part) in parts {
        let mut row = vec![Cell::new(shortened(name))];
        row.extend(numbers(&comparison.gap, part));
        table.add_row(row);
    }
    write_table(text, &table, "");
}

fn phases(text: &mut String, comparison: &Comparison) {
    let (first, second) = (&comparison.first.label, &comparison.second.label);
    let mut table = sized();
    let step = comparison.basis.noun();
    let of = |label: &str| format!("{} {label}", counted(2, step).trim_start_matches("2 "));
    table.set_header(["phase", &of(first), &of(second), first, second]);
    let time = |ns: Option<f64>| right(ns.map_or_else(|| "-".to_owned(), words::time));
    for phase in &comparison.gap.phases {
        table.add_row([
            Cell::new(phase.phase.name()),
            right(format!("{:.2}", phase.first_steps)),
            right(format!("{:.2}", phase.second_steps)),
            time(phase.first_ns),
            time(phase.second_ns),
        ]);
    }
    write_table(text, &table, "");
}

/// What runs alongside computation, if there is any.
fn beside(text: &mut String, comparison: &Comparison) {
    let gap = &comparison.gap;
    let all = [("communication", gap.communication), ("copies", gap.copies), ("fills", gap.fills)];
    let is_there = |part: &OverlapPart| *part != Default::default();
    if all.iter().all(|(_, part)| !is_there(part)) {
        return;
    }
    heading(text, "Beside computation");
    let sentence = |(what, part): &(&str, OverlapPart)| {
        let side = |label: &str, exposed: f64, overlapped: f64| {
            let (exposed, overlapped) = (words::time(exposed), words::time(overlapped));
            format!("{label} {exposed} exposed, {overlapped} hidden")
        };
        let first = side(&comparison.first.label, part.first_exposed_ns, part.first_overlapped_ns);
        let second =
            side(&comparison.second.label, part.second_exposed_ns, part.second_overlapped_ns);
        (format!("{what:<14}"), format!("{first}; {second}"))
    };
    write_sentences(text, all.iter().filter(|(_, part)| is_there(part)).map(sentence));
}
