//! The aligned layers: one part to open for each kind, with a row for each place.

use cli_support::page::{bars, scrolling};
use kernel_traces::compare::{Comparison, LayerKind, Slot, SlotKernel, SlotStatus, Which};
use maud::{Markup, html};

use super::super::{CompareReport, words};
use super::names::Names;
use super::{left_out, look};
use crate::report::{capital, counted};

/// Rows of all kinds together, so that a page stays small.
const MOST_ROWS: usize = 400;

/// Rows of one kind: the places that take the most time.
const MOST_ROWS_OF_KIND: usize = 150;

pub(super) fn section(report: CompareReport<'_>, names: &Names) -> Markup {
    let CompareReport { comparison, top, .. } = report;
    let layers = &comparison.layers;
    let mut rows_left = MOST_ROWS;
    html! {
        section #layers {
            h2 { "Layers side by side" }
            @if let Some(why) = &layers.none_because {
                p { "Layers are not compared: " (names.text(why)) "." }
            }
            @if !layers.kinds.is_empty() {
                p.note {
                    (counted(layers.aligned.into(), "layer")) " of the model are aligned, of "
                    (counted(layers.kinds.len() as u64, "kind")) ". Bars are mean times of a \
                     kernel at its place, on one scale within a kind: "
                    (names.text(&comparison.first.label)) " above, "
                    (names.text(&comparison.second.label)) " below. Gaps are of a "
                    (comparison.basis.noun()) "."
                }
            }
            @for (at, kind) in layers.kinds.iter().take(top).enumerate() {
                @let shown = longest(kind, rows_left.min(MOST_ROWS_OF_KIND));
                ({ rows_left -= shown.len(); kind_of_layer(comparison, kind, &shown, at == 0, names) })
            }
            (left_out(layers.kinds.len(), top, "kind"))
        }
    }
}

/// The places that take the most time, in their order.
fn longest(kind: &LayerKind, most: usize) -> Vec<&Slot> {
    let time = |slot: &Slot| slot.part.first_ns.max(slot.part.second_ns);
    let mut slots: Vec<&Slot> = kind.slots.iter().collect();
    slots.sort_by(|a, b| time(b).total_cmp(&time(a)));
    slots.truncate(most);
    slots.sort_by_key(|slot| slot.slot);
    slots
}

fn kind_of_layer(
    comparison: &Comparison,
    kind: &LayerKind,
    shown: &[&Slot],
    is_open: bool,
    names: &Names,
) -> Markup {
    let [first, second] = names.sides(comparison);
    let means = shown.iter().flat_map(|slot| [&slot.first, &slot.second]).flatten();
    let most = means.map(|kernel| kernel.mean_ns).fold(1.0, f64::max);
    let title = words::layer_kind(kind);
    let table = html! {
        table.slots {
            thead {
                tr {
                    th scope="col" { "Role" }
                    th scope="col" { "What" }
                    th.bars scope="col" { "Mean time, up to " (words::time(most)) }
                    th.number scope="col" {
                        (bars::sample(look(Which::First))) " " (first) br;
                        (bars::sample(look(Which::Second))) " " (second)
                    }
                    th.number scope="col" { "Ratio" br; "95 %" }
                    th.number scope="col" { "Gap" }
                }
            }
            tbody {
                @for (at, slot) in shown.iter().enumerate() {
                    @let is_new = at == 0 || shown[at - 1].role != slot.role;
                    (row(comparison, slot, is_new, most, names))
                }
            }
        }
    };
    html! {
        details open[is_open] {
            summary {
                span.name { (capital(&names.text(&title))) } " "
                span.what {
                    (first) " " (words::time(kind.first_mean_ns)) ", " (second) " "
                    (words::time(kind.second_mean_ns)) " a " (words::one_such(kind)) "; "
                    (words::signed(kind.part.gap_ns)) " a " (comparison.basis.noun())
                }
            }
            (scrolling(&title, &table))
            @if shown.len() < kind.slots.len() {
                p.more {
                    "and " (counted((kind.slots.len() - shown.len()) as u64, "slot"))
                    " more, which take less time; csv with --table slots has all"
                }
            }
        }
    }
}

fn row(comparison: &Comparison, slot: &Slot, is_new: bool, most: f64, names: &Names) -> Markup {
    let labels = [&comparison.first.label, &comparison.second.label].map(|label| names.text(label));
    let kernels = [&slot.first, &slot.second];
    let times = kernels.map(|kernel| kernel.as_ref().map(|kernel| kernel.mean_ns));
    let time = |at: usize| times[at].map_or_else(|| "–".to_owned(), words::time);
    let class = names.label(&words::slot_class(slot));
    let absent = labels.clone().map(|label| format!("not in {label}"));
    let spoken = |at: usize| match times[at] {
        Some(ns) => format!("{} {}", labels[at], words::time(ns)),
        None => absent[at].clone(),
    };
    let name = format!("{class}: {}, {}", spoken(0), spoken(1));
    html! {
        tr.fused[slot.fusion.is_some()].starts[is_new] {
            th scope="row" { @if is_new { (slot.role.name().replace('_', " ")) } }
            td.what {
                b { (class) }
                (remark(comparison, slot, names))
                (kernel_names(kernels, names))
            }
            td.bars { (bars::two(times, most, [&absent[0], &absent[1]], &name)) }
            td.number { (time(0)) br; (time(1)) }
            td.number {
                @if let Some(ratio) = slot.ratio {
                    (format!("{:.2}", ratio.value))
                    @if let Some((low, high)) = ratio.interval {
                        br; span.what { (format!("{low:.2} to {high:.2}")) }
                    }
                }
            }
            td.number { (words::signed(slot.part.gap_ns)) }
        }
    }
}

fn remark(comparison: &Comparison, slot: &Slot, names: &Names) -> Markup {
    let status = match slot.status {
        SlotStatus::Aligned => None,
        SlotStatus::Moved => Some("moved".to_owned()),
        SlotStatus::FirstOnly => Some(format!("only {}", comparison.first.label)),
        SlotStatus::SecondOnly => Some(format!("only {}", comparison.second.label)),
    };
    html! {
        @if let Some(status) = status { " " span.tag { (names.text(&status)) } }
        @if let Some(index) = slot.fusion {
            " " a.tag.fusion href={ "#fusion-" (index + 1) } { "fusion " (index + 1) }
        }
        @if let Some(index) = slot.implementation {
            " " a.tag href="#implementation" { "difference " (index + 1) }
        }
    }
}

fn kernel_names(kernels: [&Option<SlotKernel>; 2], names: &Names) -> Markup {
    let [first, second] = kernels.map(|kernel| kernel.as_ref());
    let one = |kernel: &SlotKernel, dots: &[&str]| {
        html! {
            div.kernel {
                @for dot in dots { i.dot.(dot) {} }
                " " (names.kernel(&kernel.kernel))
                @if kernel.names > 1 { span { "and " (kernel.names - 1) " more" } }
            }
        }
    };
    html! {
        @match (first, second) {
            (Some(first), Some(second)) if first.kernel == second.kernel => {
                (one(first, &["first", "second"]))
            }
            _ => {
                @if let Some(first) = first { (one(first, &["first"])) }
                @if let Some(second) = second { (one(second, &["second"])) }
            }
        }
    }
}
