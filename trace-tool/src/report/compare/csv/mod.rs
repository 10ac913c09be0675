//! A comparison as tables of CSV.
//!
//! Columns under the names of older comparisons come first, with their units; the project's own
//! follow, in nanoseconds.

mod beside;

use clap::ValueEnum;
use cli_support::sheet::{Sheet, number};
use kernel_traces::compare::older::{self, Sums};
use kernel_traces::compare::{Amount, Comparison, Part, Slot, SlotKernel};
use kernel_traces::segment::Phase;

use super::CompareReport;

/// A table of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareTable {
    /// Classes of kernels, with sums over the recordings
    Operations,
    /// The layers of the model by number, with sums over the recordings
    Layers,
    /// The positions of the aligned layers, with times of a step
    Slots,
    /// What one side fuses and the other does not
    Fusion,
    /// Kernels that only one side runs, although it fuses no less
    Implementation,
    /// Kernels with the same name on both sides
    SameKernels,
    /// Whether both sides did the same work: the questions and their answers
    Work,
    /// The operators that both sides called with the same sizes
    Matched,
    /// The gap by cause, class, role and phase, with times of a step
    Gap,
    /// How fast kernels were, by class and dtype
    Rates,
    /// What the devices waited for, with times of a step
    Idle,
    /// The kernels of both sides by name
    Kernels,
}

/// A table, with its header also where there are no rows.
///
/// # Errors
///
/// When a value cannot be written as CSV, which none of these is.
pub fn trace_compare_csv(report: CompareReport<'_>, table: CompareTable) -> csv::Result<Vec<u8>> {
    let comparison = report.comparison;
    let sheet = match table {
        CompareTable::Operations => operations(comparison),
        CompareTable::Layers => layers(comparison),
        CompareTable::Slots => slots(comparison),
        CompareTable::Fusion => fusion(report),
        CompareTable::Implementation => implementation(comparison),
        CompareTable::SameKernels => same_kernels(comparison),
        CompareTable::Work => work(comparison),
        CompareTable::Matched => matched(comparison),
        CompareTable::Gap => gap(comparison),
        CompareTable::Rates => beside::rates(comparison),
        CompareTable::Idle => beside::idle(comparison),
        CompareTable::Kernels => kernels(comparison),
    };
    sheet.csv()
}

/// The times of a step, behind the columns of older tools.
const STEP: [&str; 3] = ["first_step_ns", "second_step_ns", "gap_step_ns"];

/// A part of both sides, in full.
const PART: [&str; 9] = [
    "first_count",
    "second_count",
    "first_total_ns",
    "second_total_ns",
    "first_own_ns",
    "second_own_ns",
    "first_ns",
    "second_ns",
    "gap_ns",
];

/// The names of columns, where `{}` is the prefix of a side, once for each.
fn header(comparison: &Comparison, names: &[&str], own: &[&str]) -> Vec<String> {
    let prefixes = older::prefixes(comparison);
    let kept = names.iter().flat_map(|name| match name.strip_prefix("{}") {
        Some(rest) => prefixes.iter().map(|prefix| format!("{prefix}{rest}")).collect(),
        None => vec![(*name).to_owned()],
    });
    kept.chain(own.iter().map(|name| (*name).to_owned())).collect()
}

fn step(part: &Part) -> [String; 3] {
    [part.first_ns, part.second_ns, part.gap_ns].map(number)
}

fn part(part: &Part) -> Vec<String> {
    let amounts = |of: fn(&Amount) -> u64| {
        [of(&part.first_amount).to_string(), of(&part.second_amount).to_string()]
    };
    let counts = amounts(|amount| amount.count);
    let totals = amounts(|amount| amount.total_ns);
    let owns = amounts(|amount| amount.own_ns);
    [&counts[..], &totals, &owns, &step(part)].concat()
}

fn sums(sums: &Sums) -> Vec<String> {
    let counts = sums.count.map(|count| count.to_string());
    [&counts[..], &sums.avg_us.map(number), &sums.total_ms.map(number)].concat()
}

fn operations(comparison: &Comparison) -> Sheet {
    let names = [
        "operation",
        "{}_count",
        "{}_avg_us",
        "{}_total_ms",
        "ratio",
        "gap_ms",
        "status",
        "{}_kernel",
        "{}_cpu_op",
    ];
    let row = |row: older::Operation<'_>| {
        let mut cells = vec![row.operation.to_owned()];
        cells.extend(sums(&Sums::of(row.part)));
        cells.extend([number(row.ratio), number(row.gap_ms), row.status.name().to_owned()]);
        let kernels = [row.trace1_kernel, row.trace2_kernel];
        cells.extend(kernels.map(|kernel| kernel.unwrap_or_default().to_owned()));
        // Which operators launched a class is not a part of a comparison.
        cells.extend([String::new(), String::new()]);
        cells.extend(step(row.part));
        cells
    };
    Sheet {
        header: header(comparison, &names, &STEP),
        rows: older::operations(comparison).into_iter().map(row).collect(),
    }
}

fn layers(comparison: &Comparison) -> Sheet {
    let names = ["layer", "{}_kernels", "{}_total_ms", "ratio", "gap_ms", "status", "in_both"];
    let own = [&["is_backward", "first_layers", "second_layers"][..], &STEP].concat();
    let row = |row: older::LayerTotal<'_>| {
        let number_of = row.number;
        let mut cells = vec![number_of.layer.to_string()];
        cells.extend([row.trace1_kernels, row.trace2_kernels].map(|count| count.to_string()));
        cells.extend([row.trace1_total_ms, row.trace2_total_ms].map(number));
        cells.extend([
            number(row.ratio),
            number(row.gap_ms),
            row.status.name().to_owned(),
            row.in_both.to_string(),
            number_of.is_backward.to_string(),
            number_of.first_layers.to_string(),
            number_of.second_layers.to_string(),
        ]);
        cells.extend(step(&number_of.part));
        cells
    };
    Sheet {
        header: header(comparison, &names, &own),
        rows: older::layer_totals(comparison).into_iter().map(row).collect(),
    }
}

fn slots(comparison: &Comparison) -> Sheet {
    let names = [
        "kind",
        "layers",
        "phase",
        "is_backward",
        "is_outside",
        "slot",
        "role",
        "status",
        "first_class",
        "second_class",
        "first_kernel",
        "second_kernel",
        "first_names",
        "second_names",
        "first_mean_ns",
        "second_mean_ns",
        "first_deviation_ns",
        "second_deviation_ns",
        "first_min_ns",
        "second_min_ns",
        "first_max_ns",
        "second_max_ns",
        "ratio",
        "ratio_low",
        "ratio_high",
        "fusion",
        "implementation",
    ];
    let mut rows = Vec::new();
    for kind in &comparison.layers.kinds {
        for slot in &kind.slots {
            let mut cells = vec![
                kind.kind.to_string(),
                kind.numbers.clone(),
                kind.phase.map_or_else(String::new, |phase| phase.name().to_owned()),
                kind.is_backward.to_string(),
                kind.is_outside.to_string(),
            ];
            cells.extend(slot_cells(slot));
            cells.extend(part(&slot.part));
            rows.push(cells);
        }
    }
    Sheet { header: header(comparison, &names, &PART), rows }
}

fn slot_cells(slot: &Slot) -> Vec<String> {
    let of = |cell: &dyn Fn(&SlotKernel) -> String| {
        [&slot.first, &slot.second].map(|kernel| kernel.as_ref().map(cell).unwrap_or_default())
    };
    let index = |index: Option<usize>| index.map_or_else(String::new, |index| index.to_string());
    let (low, high) = slot.ratio.and_then(|ratio| ratio.interval).unzip();
    let mut cells =
        vec![slot.slot.to_string(), slot.role.name().to_owned(), slot.status.name().to_owned()];
    cells.extend(of(&|kernel| kernel.class.clone()));
    cells.extend(of(&|kernel| kernel.kernel.clone()));
    cells.extend(of(&|kernel| kernel.names.to_string()));
    cells.extend(of(&|kernel| number(kernel.mean_ns)));
    cells.extend(of(&|kernel| number(kernel.deviation_ns)));
    cells.extend(of(&|kernel| kernel.min_ns.to_string()));
    cells.extend(of(&|kernel| kernel.max_ns.to_string()));
    cells.extend([number(slot.ratio.map(|ratio| ratio.value)), number(low), number(high)]);
    cells.extend([index(slot.fusion), index(slot.implementation)]);
    cells
}

fn fusion(report: CompareReport<'_>) -> Sheet {
    let comparison = report.comparison;
    let names = [
        "kernel_type",
        "layer",
        "fused_by",
        "fused_kernel",
        "unfused_kernels",
        "count",
        "evidence",
        "fused_side",
        "role",
        "separate_kernels",
        "per_step",
        "confidence",
        "evidence_kind",
    ];
    let own = [&PART[..], &["records"]].concat();
    let mut rows = Vec::new();
    for (index, fusion) in comparison.fusions.iter().enumerate() {
        let records: Vec<String> =
            report.records_of(index).flat_map(|records| records.sentences()).collect();
        let mut cells = vec![
            fusion.operation.clone(),
            older::layers_of_fusion(comparison, index),
            older::platform(comparison, fusion.fused_by).to_owned(),
            fusion.fused_kernel.clone(),
            fusion.separate.join("+"),
            fusion.count.to_string(),
            fusion.evidence.clone(),
            fusion.fused_by.name().to_owned(),
            fusion.role.name().to_owned(),
            fusion.separate_kernels.join("\n"),
            number(fusion.per_step),
            number(fusion.confidence),
            fusion.by.name().to_owned(),
        ];
        cells.extend(part(&fusion.part));
        cells.push(records.join("\n"));
        rows.push(cells);
    }
    Sheet { header: header(comparison, &names, &own), rows }
}

fn implementation(comparison: &Comparison) -> Sheet {
    let names = ["kind", "run_by", "side", "class", "role", "kernel", "per_step"];
    let own = [&PART[..], &["sentence"]].concat();
    let rows = comparison.implementation.iter().map(|one| {
        let mut cells = vec![
            one.kind.name().replace(' ', "_"),
            older::platform(comparison, one.run_by).to_owned(),
            one.run_by.name().to_owned(),
            one.class.clone(),
            one.role.name().to_owned(),
            one.kernel.clone(),
            number(one.per_step),
        ];
        cells.extend(part(&one.part));
        cells.push(one.sentence.clone());
        cells
    });
    Sheet { header: header(comparison, &names, &own), rows: rows.collect() }
}

fn same_kernels(comparison: &Comparison) -> Sheet {
    let names = ["kernel", "operation", "{}_count", "{}_avg_us", "{}_total_ms", "ratio", "gap_us"];
    let own = [&["ratio_low", "ratio_high"][..], &STEP].concat();
    let rows = comparison.same_kernels.iter().map(|same| {
        let (low, high) = same.ratio.interval.unzip();
        let mut cells = vec![same.kernel.clone(), same.class.clone()];
        cells.extend(sums(&Sums::of(&same.part)));
        cells.extend([
            number(same.ratio.value),
            number((same.first_mean_ns - same.second_mean_ns) / 1e3),
            number(low),
            number(high),
        ]);
        cells.extend(step(&same.part));
        cells
    });
    Sheet { header: header(comparison, &names, &own), rows: rows.collect() }
}

/// The first row is what may be said of the times.
fn work(comparison: &Comparison) -> Sheet {
    let work = &comparison.same_work;
    let words = |side: &Option<String>| side.clone().unwrap_or_default();
    let phase = |phase: Option<Phase>| phase.map_or_else(String::new, |one| one.name().to_owned());
    let row = |cells: [&str; 6]| cells.map(ToOwned::to_owned).to_vec();
    let mut rows = vec![row(["verdict", "", "", "", work.headline.name(), &comparison.verdict()])];
    for one in &work.questions {
        let (first, second) = (words(&one.first), words(&one.second));
        let (about, answer) = (one.about.name(), one.answer.name());
        rows.push(row([about, &phase(one.phase), &first, &second, answer, &one.evidence]));
    }
    for rate in &work.rates {
        let [first, second] = [rate.first_ns, rate.second_ns].map(number);
        let ratio = format!("ratio {:.4}", rate.ratio);
        rows.push(row([work.headline.name(), &phase(rate.phase), &first, &second, "", &ratio]));
    }
    Sheet {
        header: header(
            comparison,
            &["about", "phase", "first", "second", "answer", "evidence"],
            &[],
        ),
        rows,
    }
}

fn matched(comparison: &Comparison) -> Sheet {
    let names = [
        "operator",
        "sizes",
        "first_calls",
        "second_calls",
        "first_mean_ns",
        "second_mean_ns",
        "ratio",
    ];
    let rows = comparison.same_work.matched.operators.iter().map(|one| {
        vec![
            one.operator.clone(),
            one.sizes.clone(),
            one.first_calls.to_string(),
            one.second_calls.to_string(),
            number(one.first_mean_ns),
            number(one.second_mean_ns),
            number(one.ratio),
        ]
    });
    Sheet { header: header(comparison, &names, &[]), rows: rows.collect() }
}

/// Each way of splitting the gap adds up to the row `gap` on its own.
fn gap(comparison: &Comparison) -> Sheet {
    let gap = &comparison.gap;
    let nothing = vec![String::new(); PART.len() - STEP.len()];
    let row = |by: &str, name: &str, what: &str, cells: Vec<String>, sentence: &str| {
        let head = [by, name, what].map(ToOwned::to_owned);
        let mut row = [&head[..], &cells].concat();
        row.push(sentence.to_owned());
        row
    };
    let whole = [gap.first_ns, gap.second_ns, gap.gap_ns].map(number);
    let whole = [&nothing[..], &whole].concat();
    let mut rows = vec![row("gap", "gap", "", whole, &comparison.verdict())];
    for cause in &gap.causes {
        let kind = cause.kind.name();
        rows.push(row("cause", &cause.name, kind, part(&cause.part), &cause.sentence));
    }
    for class in &gap.classes {
        rows.push(row("class", &class.class, "", part(&class.part), ""));
    }
    for role in &gap.roles {
        rows.push(row("role", role.role.name(), "", part(&role.part), ""));
    }
    for phase in &gap.phases {
        let difference = phase.first_ns.zip(phase.second_ns).map(|(first, second)| first - second);
        let times = [phase.first_ns, phase.second_ns, difference].map(number);
        let cells = [&nothing[..], &times].concat();
        rows.push(row("phase", phase.phase.name(), "", cells, ""));
    }
    Sheet {
        header: header(comparison, &["by", "name", "kind"], &[&PART[..], &["sentence"]].concat()),
        rows,
    }
}

fn kernels(comparison: &Comparison) -> Sheet {
    let names =
        ["side", "platform", "kernel", "class", "count", "total_ns", "own_ns", "step_ns", "share"];
    let rows = comparison.kernels.iter().map(|row| {
        vec![
            row.side.name().to_owned(),
            older::platform(comparison, row.side).to_owned(),
            row.kernel.clone(),
            row.class.clone(),
            row.amount.count.to_string(),
            row.amount.total_ns.to_string(),
            row.amount.own_ns.to_string(),
            number(row.step_ns),
            number(row.share),
        ]
    });
    Sheet { header: header(comparison, &names, &[]), rows: rows.collect() }
}
