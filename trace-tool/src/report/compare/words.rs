//! The phrases of text and page.

use cli_support::units::{milliseconds, three_digits};
use kernel_traces::compare::{
    Basis, Comparison, Gap, IdleRow, LayerKind, Question, Ratio, Severity, SideRate, SideSummary,
    Slot, SlotStatus, Which,
};

use crate::report::{counted, percent};

/// Shares of a gap that is smaller than this share of a step would be shares of noise.
const LEAST_GAP: f64 = 0.01;

/// The length of a file's name in tables in characters, at most.
const MOST_OF_FILE: usize = 46;

/// A time in the unit that suits it.
pub(super) fn time(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "" };
    match ns.abs() {
        ns if ns < 0.5 => "0".to_owned(),
        ns => format!("{sign}{}", milliseconds(ns / 1e6)),
    }
}

/// A time of whole nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(super) fn total(ns: u64) -> String {
    time(ns as f64)
}

/// A difference, always with its sign.
pub(super) fn signed(ns: f64) -> String {
    let text = time(ns);
    if text == "0" || text.starts_with('-') { text } else { format!("+{text}") }
}

/// The share of a gap, where the gap is large enough to be shared out.
pub(super) fn share_of_gap(gap: &Gap, part_ns: f64) -> Option<String> {
    let least = LEAST_GAP * gap.first_ns.max(gap.second_ns);
    // Adding zero makes a zero that is not negative.
    let share = (100.0 * part_ns / gap.gap_ns).round() + 0.0;
    (gap.gap_ns.abs() > least).then(|| format!("{share:.0} %"))
}

/// A ratio with its interval of 95 %, if there is one.
pub(super) fn ratio(ratio: &Ratio) -> String {
    match ratio.interval {
        Some((low, high)) => format!("{:.2} [{low:.2}, {high:.2}]", ratio.value),
        None => format!("{:.2}", ratio.value),
    }
}

/// A kernel's name without the namespaces that most names begin with and that say nothing.
pub(super) fn kernel(name: &str) -> String {
    let name = name.strip_prefix("void ").unwrap_or(name);
    let empty = ["at::native::", "(anonymous namespace)::", "c10::"];
    empty.iter().fold(name.to_owned(), |name, prefix| name.replace(prefix, ""))
}

/// The end of a file's name, which distinguishes files.
pub(super) fn file(name: &str) -> String {
    let characters = name.chars().count();
    if characters <= MOST_OF_FILE {
        return name.to_owned();
    }
    let end: String = name.chars().skip(characters - MOST_OF_FILE + 1).collect();
    format!("…{end}")
}

/// The label of a side.
pub(super) fn label(comparison: &Comparison, which: Which) -> &str {
    &comparison.side(which).label
}

/// The device of a side.
pub(super) fn device(side: &SideSummary) -> String {
    let gpu = if side.gpu.is_empty() { "(without a name)" } else { &side.gpu };
    format!("{gpu} ({})", side.vendor)
}

/// How many steps a side has.
pub(super) fn steps(basis: Basis, side: &SideSummary) -> String {
    let steps = side.steps;
    // Within rounding of a whole number it is one.
    let number = if (steps - steps.round()).abs() < 0.005 {
        format!("{:.0}", steps.round())
    } else {
        format!("{steps:.2}")
    };
    match basis {
        Basis::Layers => format!("{number} through {}", counted(side.layers.into(), "layer")),
        Basis::MarkedSteps => format!("{number} marked"),
        Basis::Recording => "the whole recording".to_owned(),
    }
}

/// The layers of a side.
pub(super) fn layers(side: &SideSummary) -> String {
    match (side.layers, side.marker) {
        (0, _) => "none found".to_owned(),
        (layers, Some(marker)) => format!("{layers}, each begins at {marker}"),
        (layers, None) => layers.to_string(),
    }
}

/// How much of a side's time is explained.
pub(super) fn explained(side: &SideSummary) -> String {
    let by_class = match percent(side.by_class_share) {
        share if share == "0.0 %" => String::new(),
        share => format!(", {share} by class only"),
    };
    format!("{} of its time{by_class}", percent(side.covered_share))
}

/// Which sides have a slot, and what it is a part of. Fusions and differences are numbered from 1,
/// as in their lists.
pub(super) fn slot(comparison: &Comparison, slot: &Slot) -> String {
    let mut parts = Vec::new();
    match slot.status {
        SlotStatus::Aligned => {}
        SlotStatus::Moved => parts.push("moved".to_owned()),
        SlotStatus::FirstOnly => parts.push(format!("only {}", comparison.first.label)),
        SlotStatus::SecondOnly => parts.push(format!("only {}", comparison.second.label)),
    }
    parts.extend(slot.fusion.map(|index| format!("fusion {}", index + 1)));
    parts.extend(slot.implementation.map(|index| format!("diff. {}", index + 1)));
    parts.join(", ")
}

/// The class of a slot, with both where they differ.
pub(super) fn slot_class(slot: &Slot) -> String {
    let class = |kernel: &Option<kernel_traces::compare::SlotKernel>| {
        kernel.as_ref().map(|kernel| kernel.class.clone())
    };
    match (class(&slot.first), class(&slot.second)) {
        (Some(first), Some(second)) if first != second => format!("{first} / {second}"),
        (Some(class), _) | (None, Some(class)) => class,
        (None, None) => String::new(),
    }
}

/// A kind of layer, by its number and what is special about it.
pub(super) fn layer_kind(kind: &LayerKind) -> String {
    let mut text = format!("kind {}", kind.kind);
    if kind.is_outside {
        text.push_str(": between passes");
    } else if !kind.numbers.is_empty() {
        let noun = if kind.numbers.parse::<u32>().is_ok() { "layer" } else { "layers" };
        text.push_str(&format!(": {noun} {}", kind.numbers));
    }
    if let Some(phase) = kind.phase {
        text.push_str(&format!(", {}", phase.name()));
    }
    if kind.is_backward {
        text.push_str(", backward");
    }
    text
}

/// What a kind is a kind of.
pub(super) const fn one_such(kind: &LayerKind) -> &'static str {
    if kind.is_outside { "stretch" } else { "layer" }
}

/// What must be known before any number: what the traces leave open, and the serious warnings.
pub(super) fn caveats(comparison: &Comparison) -> Vec<String> {
    let doubt = comparison.is_doubted().then(|| format!("Note: {}", comparison.doubt()));
    let serious = comparison.warnings.iter().filter(|warning| {
        // The verdict says so.
        let of_headline = comparison.same_work.headline.warning();
        warning.severity == Severity::Warning && Some(warning.code) != of_headline
    });
    let serious = serious.map(|warning| {
        let file =
            warning.file.as_ref().map_or_else(String::new, |name| format!(" ({})", file(name)));
        format!("Warning: {}{file}", warning.message)
    });
    doubt.into_iter().chain(serious).collect()
}

/// What was asked about the work of both sides.
pub(super) fn question(question: &Question) -> String {
    let about = question.about.name();
    question.phase.map_or_else(|| about.to_owned(), |phase| format!("{about}, {}", phase.name()))
}

/// What both sides did with operators of the same sizes, where not everything is alike.
pub(super) fn matched(comparison: &Comparison) -> Option<String> {
    let matched = &comparison.same_work.matched;
    let ratio = matched.ratio.filter(|_| !comparison.same_work.headline.is_of_a_step())?;
    let (first, second) = (&comparison.first.label, &comparison.second.label);
    let longer = if ratio >= 1.0 { first } else { second };
    Some(format!(
        "Operators with the same sizes on both sides have {} of the time of {first} and {} of that \
         of {second}; called as often, {longer} takes {:.2} times as long for them",
        percent(matched.first_share),
        percent(matched.second_share),
        ratio.max(1.0 / ratio)
    ))
}

/// At most this many classes are shown with their rates: the longest.
pub(super) const SHOWN_RATES: usize = 5;

/// The data sheets that rates are set against, and how much of the work is known.
pub(super) fn machines(comparison: &Comparison) -> String {
    let rates = &comparison.rates;
    let known = format!(
        "The work of {} of the time of {} is known, and of {} of that of {}",
        percent(rates.first_known_share),
        comparison.first.label,
        percent(rates.second_known_share),
        comparison.second.label
    );
    let sheets = [&rates.first_machine, &rates.second_machine];
    let mut sheets: Vec<&str> = sheets.into_iter().flatten().map(String::as_str).collect();
    sheets.dedup();
    match sheets.as_slice() {
        [] => format!("{known}. No data sheets: rates without rooflines."),
        sheets => format!("{known}. Rooflines by the data sheets of {}.", sheets.join(" and ")),
    }
}

/// What kernels computed, or else moved, in a second.
pub(super) fn rate(side: Option<&SideRate>) -> String {
    let Some(side) = side else { return "-".to_owned() };
    match (side.tflop_per_s, side.gb_per_s) {
        (Some(rate), _) => format!("{} TFLOP/s", three_digits(rate)),
        (None, Some(rate)) => format!("{} GB/s", three_digits(rate)),
        (None, None) => "-".to_owned(),
    }
}

/// What of its roofline was reached, and what limits it.
pub(super) fn of_roofline(side: Option<&SideRate>) -> String {
    let known = side.and_then(|side| side.of_roofline.zip(side.bound));
    known
        .map_or_else(|| "-".to_owned(), |(of, bound)| format!("{} ({})", percent(of), bound.name()))
}

/// What the hosts did for most of a cause of idle time.
pub(super) fn doing(comparison: &Comparison, row: &IdleRow) -> String {
    match (&row.first_doing, &row.second_doing) {
        (None, None) => "-".to_owned(),
        (Some(first), Some(second)) if first == second => first.clone(),
        (first, second) => {
            let of = |label: &str, doing: &Option<String>| {
                doing.as_ref().map(|doing| format!("{label}: {doing}"))
            };
            let both = [of(&comparison.first.label, first), of(&comparison.second.label, second)];
            both.into_iter().flatten().collect::<Vec<_>>().join("; ")
        }
    }
}

/// What a short list leaves out, of which there is no more in text and page; empty if nothing.
pub(super) fn left_out_of_all(all: usize, shown: usize, noun: &str) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        more => format!("and {} more; csv and json have all", counted(more as u64, noun)),
    }
}

/// What a limited list leaves out; empty if nothing.
pub(super) fn left_out(all: usize, shown: usize, noun: &str) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        more => {
            format!("and {} more; --top N shows more, csv and json all", counted(more as u64, noun))
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel_traces::compare::OverlapPart;

    use super::*;

    #[test]
    fn times_have_a_sign_where_they_are_differences() {
        assert_eq!(signed(1_234_000.0), "+1.23 ms");
        assert_eq!(signed(-1_234.0), "-1.23 us");
        assert_eq!(signed(-0.2), "0");
        assert_eq!(time(0.0), "0");
        assert_eq!(time(-2e9), "-2.00 s");
    }

    #[test]
    fn names_keep_what_tells_them_apart() {
        let name = "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous \
                    namespace)::silu_kernel(c10::BFloat16)>";
        assert_eq!(kernel(name), "vectorized_elementwise_kernel<4, silu_kernel(BFloat16)>");
        assert_eq!(file("a.json"), "a.json");
        let long = format!("{}/rank0.json", "folder/".repeat(20));
        assert!(file(&long).ends_with("/rank0.json") && file(&long).chars().count() == 46);
    }

    #[test]
    fn shares_of_a_small_gap_are_not_told() {
        let gap = |first_ns, second_ns| Gap {
            first_ns,
            second_ns,
            gap_ns: first_ns - second_ns,
            ratio: None,
            causes: Vec::new(),
            classes: Vec::new(),
            roles: Vec::new(),
            phases: Vec::new(),
            communication: OverlapPart::default(),
            copies: OverlapPart::default(),
            fills: OverlapPart::default(),
            rounding_ns: 0.0,
        };
        let share = |gap: Gap, part_ns| share_of_gap(&gap, part_ns);
        assert_eq!(share(gap(100.0, 50.0), -60.0), Some("-120 %".to_owned()));
        assert_eq!(share(gap(100.0, 50.0), -0.1), Some("0 %".to_owned()));
        assert_eq!(share(gap(1000.0, 995.0), 3.0), None);
        assert_eq!(share(gap(0.0, 0.0), 0.0), None);
    }

    #[test]
    fn what_is_left_out_is_counted() {
        assert_eq!(left_out(5, 5, "cause"), "");
        assert!(left_out(6, 5, "cause").starts_with("and 1 cause more;"));
    }
}
