//! The aligned layers.

use std::fmt::Write;

use cli_support::tables::right;
use comfy_table::Cell;
use kernel_traces::compare::{Comparison, LayerKind, SlotKernel};

use super::super::{CompareReport, words};
use super::{at_most, heading, sized, write_sentence, write_table};
use crate::report::counted;

/// So many kinds of layers are shown slot by slot: the longest are what a model is made of.
const SHOWN_KINDS: usize = 2;

/// At most this many slots of a kind are shown: the longest, in their order.
const SHOWN_SLOTS: usize = 40;

pub(super) fn write(text: &mut String, report: CompareReport<'_>) {
    let CompareReport { comparison, top, .. } = report;
    let layers = &comparison.layers;
    heading(text, "Layers");
    if let Some(why) = &layers.none_because {
        write_sentence(text, format!("Layers are not compared: {why}."));
    }
    if layers.kinds.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "{} of the model are aligned, of {}.",
        counted(layers.aligned.into(), "layer"),
        counted(layers.kinds.len() as u64, "kind")
    );
    kinds(text, comparison, top);
    for kind in layers.kinds.iter().take(SHOWN_KINDS) {
        slots(text, comparison, kind);
    }
    if layers.kinds.len() > SHOWN_KINDS {
        let _ = writeln!(
            text,
            "\nThe other kinds slot by slot: --format html, or --format csv --table slots"
        );
    }
}

fn kinds(text: &mut String, comparison: &Comparison, top: usize) {
    let kinds = &comparison.layers.kinds;
    let (first, second) = (&comparison.first.label, &comparison.second.label);
    let mut table = sized();
    let (ran_first, ran_second) = (format!("ran {first}"), format!("ran {second}"));
    table.set_header([
        "layers",
        &ran_first,
        &ran_second,
        "slots",
        first,
        second,
        "gap of all",
        "of the gap",
    ]);
    for kind in kinds.iter().take(top) {
        let share = words::share_of_gap(&comparison.gap, kind.part.gap_ns);
        table.add_row([
            Cell::new(words::layer_kind(kind)),
            right(kind.first_layers.to_string()),
            right(kind.second_layers.to_string()),
            right(kind.slots.len().to_string()),
            right(words::time(kind.first_mean_ns)),
            right(words::time(kind.second_mean_ns)),
            right(words::signed(kind.part.gap_ns)),
            right(share.unwrap_or_else(|| "-".to_owned())),
        ]);
    }
    at_most(&mut table, 0, 44);
    write_table(text, &table, &words::left_out(kinds.len(), top, "kind"));
}

fn slots(text: &mut String, comparison: &Comparison, kind: &LayerKind) {
    let (first, second) = (&comparison.first.label, &comparison.second.label);
    let step = comparison.basis.noun();
    let title = format!(
        "{}: {} {}, {} {} (means of one such {}; gaps of a {step})",
        words::layer_kind(kind),
        first,
        words::time(kind.first_mean_ns),
        second,
        words::time(kind.second_mean_ns),
        words::one_such(kind),
    );
    text.push('\n');
    write_sentence(text, title);
    let mut table = sized();
    table.set_header(["slot", "role", "class", first, second, "ratio [95 %]", "gap", "remark"]);
    let shown = longest(kind);
    let mut role_before = None;
    for slot in kind.slots.iter().filter(|slot| shown.contains(&slot.slot)) {
        let mean = |kernel: &Option<SlotKernel>| {
            right(
                kernel
                    .as_ref()
                    .map_or_else(|| "-".to_owned(), |kernel| words::time(kernel.mean_ns)),
            )
        };
        let is_same_role = role_before.replace(slot.role) == Some(slot.role);
        table.add_row([
            right(slot.slot.to_string()),
            Cell::new(if is_same_role { "" } else { slot.role.name() }),
            Cell::new(words::slot_class(slot)),
            mean(&slot.first),
            mean(&slot.second),
            right(slot.ratio.map_or_else(String::new, |ratio| words::ratio(&ratio))),
            right(words::signed(slot.part.gap_ns)),
            Cell::new(words::slot(comparison, slot)),
        ]);
    }
    let left_out = match kind.slots.len().saturating_sub(shown.len()) {
        0 => String::new(),
        more => format!(
            "and {} more, which take the least time; --format csv --table slots has all",
            counted(more as u64, "slot")
        ),
    };
    write_table(text, &table, &left_out);
}

/// The slots that take the most time.
fn longest(kind: &LayerKind) -> Vec<usize> {
    let mut slots: Vec<_> = kind.slots.iter().collect();
    let time = |slot: &kernel_traces::compare::Slot| slot.part.first_ns.max(slot.part.second_ns);
    slots.sort_by(|a, b| time(b).total_cmp(&time(a)));
    slots.into_iter().take(SHOWN_SLOTS).map(|slot| slot.slot).collect()
}
