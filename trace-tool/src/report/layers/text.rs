//! What traces are made of, for people.

use std::fmt::Write;

use cli_support::tables::{right, styled};
use cli_support::units::milliseconds;
use comfy_table::{Cell, ColumnConstraint, Table, Width};
use kernel_traces::results::{LayersFound, PassTime, RankLayers, RanksLayers};
use kernel_traces::segment::{Assignments, FamilyEvidence, PhaseFinding};
use kernel_traces::{PatternTime, StepTime};

use super::super::{counted, percent, phases, ranks, shortened, time};

/// Which patterns are shown kernel by kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownPatterns {
    /// This one only.
    pub only: Option<usize>,
    /// Otherwise the first ones, up to this number.
    pub top: usize,
}

/// What each trace is made of.
#[must_use]
pub fn trace_layers(result: &RanksLayers, shown: ShownPatterns) -> String {
    let mut text = String::new();
    for (index, rank) in result.ranks.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        if result.ranks.len() > 1 {
            let number = ranks::number(rank.rank);
            let _ = writeln!(text, "rank {number}: {}\n", rank.file);
        }
        write_rank(&mut text, rank, shown);
    }
    text
}

fn write_rank(text: &mut String, rank: &RankLayers, shown: ShownPatterns) {
    let _ = writeln!(text, "model   {}", family(rank));
    let _ = writeln!(text, "steps   {}", steps(&rank.steps, &rank.assignments));
    let _ = writeln!(text, "layers  {}", layers(&rank.layers));
    if !rank.layers.passes.is_empty() {
        let _ = writeln!(text, "passes  {}", passes(&rank.layers));
    }
    if !rank.phase_evidence.is_empty() {
        let _ = writeln!(text, "phases  {}", phases(&rank.phase_evidence));
    }
    if !rank.phases.is_empty() {
        let _ = writeln!(text, "\n{}", phases::table(&rank.phases));
    }
    if rank.patterns.is_empty() {
        return;
    }
    let listed = rank.patterns.get(..MOST_PATTERNS).unwrap_or(&rank.patterns);
    let _ = writeln!(text, "\n{}", patterns(listed));
    if let Some(more @ 1..) = rank.patterns.len().checked_sub(listed.len()) {
        let _ = writeln!(text, "and {more} patterns more; --json lists all");
    }
    let is_shown = |pattern: &PatternTime| match shown.only {
        Some(only) => pattern.pattern == only,
        None => pattern.pattern < shown.top,
    };
    for pattern in rank.patterns.iter().filter(|pattern| is_shown(pattern)) {
        let _ = writeln!(
            text,
            "\npattern {}: {}, {} each{}\n{}",
            pattern.pattern,
            counted(pattern.layers as u64, "layer"),
            milliseconds(pattern.mean_ns / 1e6),
            if pattern.ends_pass { ", at the end of a pass" } else { "" },
            positions(pattern)
        );
    }
}

/// At most this many patterns are listed: the frequent ones are what a model is made of.
const MOST_PATTERNS: usize = 10;

/// Width of a list of classes, in characters.
const WIDTH_OF_CLASSES: u16 = 60;

fn family(rank: &RankLayers) -> String {
    let evidence = &rank.family.evidence;
    let parts = [
        ("attention", &evidence.attention),
        ("experts", &evidence.experts),
        ("state space", &evidence.state_space),
    ];
    let shows = |(what, seen): (&str, &Option<FamilyEvidence>)| {
        let FamilyEvidence { count, example } = seen.as_ref()?;
        Some(format!("{what} ({}, as {})", counted(*count, "time"), shortened(example)))
    };
    let shown: Vec<String> = parts.into_iter().filter_map(shows).collect();
    if shown.is_empty() {
        return format!("{}: no attention, no experts, no state-space scans", rank.family.name);
    }
    format!("{}: {}", rank.family.name, shown.join(", "))
}

fn steps(steps: &[StepTime], assignments: &Assignments) -> String {
    let Some(first) = steps.first() else {
        return "none: the program marked none that is known".to_owned();
    };
    let ways = [
        (assignments.launch, "by launch"),
        (assignments.operator, "by operator"),
        (assignments.device_mark, "by the mark on their stream"),
        (assignments.stream_order, "by neighbours on their stream"),
        (assignments.outside, "outside of all marks"),
        (assignments.unknown, "without anything that tells"),
    ];
    let mut text = format!("{}, the first is {}", steps.len(), first.name);
    for (index, (count, way)) in ways.iter().filter(|(count, _)| *count > 0).enumerate() {
        let _ = match index {
            0 => write!(text, "; {} {way}", counted(*count, "kernel")),
            _ => write!(text, ", {count} {way}"),
        };
    }
    text
}

/// What shows the phases where no mark tells them.
fn phases(found: &[PhaseFinding]) -> String {
    let one = |found: &PhaseFinding| {
        let times = counted(found.runs as u64, "time");
        format!("{} {times}, by {}", found.phase.name(), found.by.describe())
    };
    found.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn layers(layers: &LayersFound) -> String {
    if let Some(why) = &layers.none_because {
        return format!("no layers were found, because {why}");
    }
    let mut text = layers.count.to_string();
    if let Some(marker) = layers.marker {
        let _ = write!(text, "; each begins at {marker}");
    }
    if let (Some(module), Some(modules)) = (&layers.module, layers.modules) {
        let _ = write!(text, "; the recording has {modules} modules {module}");
    }
    text
}

fn passes(layers: &LayersFound) -> String {
    let count =
        |is_one: fn(&PassTime) -> bool| layers.passes.iter().filter(|pass| is_one(pass)).count();
    let (whole, cut) = (count(|pass| !pass.is_cut), count(|pass| pass.is_cut));
    let mut text = format!("{whole} whole");
    if cut > 0 {
        let _ = write!(text, ", {cut} cut by the beginning or the end of the recording");
    }
    let backward = count(|pass| pass.is_backward);
    if backward > 0 {
        let _ = write!(text, "; {backward} of them backward");
    }
    let lengths = || layers.passes.iter().filter(|pass| !pass.is_cut).map(|pass| pass.layers);
    if let (Some(least), Some(most)) = (lengths().min(), lengths().max())
        && least < most
    {
        let _ = write!(text, "; of {least} to {most} layers");
    }
    for other in &layers.others {
        let _ = write!(
            text,
            "; and {} of another model, of {}, which {} at {}",
            counted(other.passes as u64, "pass"),
            counted(other.layers as u64, "layer"),
            if other.layers == 1 { "begins" } else { "begin" },
            shortened(&other.marker)
        );
    }
    text
}

fn patterns(patterns: &[PatternTime]) -> Table {
    let mut table = styled();
    table.set_header(["pattern", "layers", "kernels", "mean", "total", "share", "classes"]);
    for pattern in patterns {
        let mut classes = sequence(&pattern.classes);
        if pattern.ends_pass {
            classes.push_str(" (ends a pass)");
        }
        table.add_row([
            right(pattern.pattern.to_string()),
            right(pattern.layers.to_string()),
            right(pattern.kernels.to_string()),
            right(milliseconds(pattern.mean_ns / 1e6)),
            right(time(pattern.total_ns)),
            right(percent(pattern.share)),
            Cell::new(classes),
        ]);
    }
    if let Some(classes) = table.column_mut(6) {
        classes.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(WIDTH_OF_CLASSES)));
    }
    table
}

/// Classes in their order; the same ones after each other once, with their number.
fn sequence(classes: &[&str]) -> String {
    let runs = classes.chunk_by(|a, b| a == b).map(|run| match run {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first, ..] => format!("{}x{first}", run.len()),
    });
    runs.collect::<Vec<_>>().join(" ")
}

fn positions(pattern: &PatternTime) -> Table {
    let mut table = styled();
    table.set_header(["position", "class", "kernel", "mean", "median", "p95", "of layer"]);
    for at in &pattern.positions {
        let mut kernel = shortened(&at.kernel);
        if at.names > 1 {
            let others = at.names - 1;
            let _ = write!(kernel, " (and {others} other{})", if others == 1 { "" } else { "s" });
        }
        table.add_row([
            right(at.position.to_string()),
            Cell::new(&at.class),
            Cell::new(kernel),
            right(milliseconds(at.mean_ns / 1e6)),
            right(time(at.times.median_ns)),
            right(time(at.times.p95_ns)),
            right(percent(at.share)),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_class_are_counted() {
        assert_eq!(sequence(&["ATTN", "GEMM", "GEMM", "NORM", "GEMM"]), "ATTN 2xGEMM NORM GEMM");
        assert_eq!(sequence(&[]), "");
    }
}
