//! Rows under the field names of older comparisons of two traces, which CSV and JSON keep.
//!
//! Sums in them (`total_ms`, `gap_ms`) are of the whole recordings, as they were there. Whoever
//! compares recordings of different lengths looks at the times of a step beside them.

use kernel_traces::compare::{
    Comparison, Fusion, KernelRow, LayerNumber, Part, SideSummary, Which,
};

/// Operations differ if their sums differ by more than this, in milliseconds.
const OPERATION_GAP_MS: f64 = 5.0;

/// Layers differ if their sums differ by more than this, in milliseconds, and by the ratio too.
const LAYER_GAP_MS: f64 = 0.1;

/// And by more than this ratio.
const LAYER_RATIO: f64 = 1.2;

/// What `status` says.
pub(super) const SLOWER: &str = "slower";
pub(super) const FASTER: &str = "faster";
pub(super) const SIMILAR: &str = "similar";

/// What columns of the first and the second side begin with: `amd` and `nvidia` for these two
/// vendors, else `trace1` and `trace2`.
pub(super) fn prefixes(comparison: &Comparison) -> [&'static str; 2] {
    match (comparison.first.vendor, comparison.second.vendor) {
        ("AMD", "NVIDIA") => ["amd", "nvidia"],
        ("NVIDIA", "AMD") => ["nvidia", "amd"],
        _ => ["trace1", "trace2"],
    }
}

/// Who is meant in values: the vendor where it tells the sides apart.
pub(super) fn platform(comparison: &Comparison, which: Which) -> &'static str {
    let is_first = which == Which::First;
    match prefixes(comparison) {
        ["trace1", _] if is_first => "trace1",
        ["trace1", _] => "trace2",
        _ if is_first => comparison.first.vendor,
        _ => comparison.second.vendor,
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds with a fraction")]
pub(super) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The mean in microseconds; none of nothing.
#[expect(clippy::cast_precision_loss, reason = "microseconds with a fraction")]
pub(super) fn avg_us(count: u64, total_ns: u64) -> Option<f64> {
    (count > 0).then(|| total_ns as f64 / 1e3 / count as f64)
}

/// The sums over the recordings of both sides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    pub(super) count: [u64; 2],
    pub(super) avg_us: [Option<f64>; 2],
    pub(super) total_ms: [f64; 2],
    /// The first total less the second.
    pub(super) gap_ms: f64,
}

impl Sums {
    pub(super) fn of(part: &Part) -> Self {
        let (first, second) = (part.first_amount, part.second_amount);
        let total_ms = [ms(first.total_ns), ms(second.total_ns)];
        Self {
            count: [first.count, second.count],
            avg_us: [avg_us(first.count, first.total_ns), avg_us(second.count, second.total_ns)],
            total_ms,
            gap_ms: total_ms[0] - total_ms[1],
        }
    }

    /// The first mean over the second.
    pub(super) fn ratio_of_means(&self) -> Option<f64> {
        let [first, second] = self.avg_us;
        second.filter(|second| *second > 0.0).and_then(|second| Some(first? / second))
    }
}

/// A class of kernels, the widest gap first.
#[derive(Debug, Clone)]
pub(super) struct Operation<'c> {
    pub(super) operation: &'c str,
    pub(super) part: &'c Part,
    pub(super) sums: Sums,
    pub(super) ratio: Option<f64>,
    pub(super) status: &'static str,
    /// The longest kernel of the class on each side.
    pub(super) kernel: [Option<&'c KernelRow>; 2],
}

pub(super) fn operations(comparison: &Comparison) -> Vec<Operation<'_>> {
    let longest = |class: &str, side: Which| {
        comparison.kernels.iter().find(|row| row.side == side && row.class == class)
    };
    let is_work = |part: &Part| part.first_amount.count + part.second_amount.count > 0;
    let classes = comparison.gap.classes.iter().filter(|class| is_work(&class.part));
    let mut operations: Vec<Operation<'_>> = classes
        .map(|class| {
            let sums = Sums::of(&class.part);
            Operation {
                operation: &class.class,
                part: &class.part,
                sums,
                ratio: sums.ratio_of_means(),
                status: match sums.gap_ms {
                    gap if gap > OPERATION_GAP_MS => SLOWER,
                    gap if gap < -OPERATION_GAP_MS => FASTER,
                    _ => SIMILAR,
                },
                kernel: [Which::First, Which::Second].map(|side| longest(&class.class, side)),
            }
        })
        .collect();
    operations.sort_by(|a, b| b.sums.gap_ms.abs().total_cmp(&a.sums.gap_ms.abs()));
    operations
}

/// A layer of the model, by its number.
#[derive(Debug, Clone)]
pub(super) struct LayerRow<'c> {
    pub(super) number: &'c LayerNumber,
    pub(super) sums: Sums,
    /// The first total over the second; none where one side lacks the layer.
    pub(super) ratio: Option<f64>,
    pub(super) status: &'static str,
    pub(super) in_both: bool,
}

pub(super) fn layers<'c>(comparison: &'c Comparison) -> Vec<LayerRow<'c>> {
    let of = |number: &'c LayerNumber| {
        let LayerNumber { first_layers, second_layers, part, .. } = number;
        let sums = Sums::of(part);
        let in_both = *first_layers > 0 && *second_layers > 0;
        let [first, second] = sums.total_ms;
        let ratio = (in_both && second > 0.0).then(|| first / second);
        let status = match ratio {
            _ if *first_layers == 0 => "trace2_only",
            _ if *second_layers == 0 => "trace1_only",
            Some(ratio) if sums.gap_ms > LAYER_GAP_MS && ratio > LAYER_RATIO => SLOWER,
            Some(ratio) if sums.gap_ms < -LAYER_GAP_MS && ratio < 1.0 / LAYER_RATIO => FASTER,
            _ => SIMILAR,
        };
        LayerRow { number, sums, ratio, status, in_both }
    };
    comparison.layers.numbers.iter().map(of).collect()
}

/// Which layers a fusion is in, as `0-22`; `all` outside of aligned layers.
pub(super) fn layers_of_fusion(comparison: &Comparison, index: usize) -> String {
    let has = |slots: &[kernel_traces::compare::Slot]| {
        slots.iter().any(|slot| slot.fusion == Some(index))
    };
    let mut numbers: Vec<&str> = Vec::new();
    for kind in comparison.layers.kinds.iter().filter(|kind| has(&kind.slots)) {
        if !kind.is_outside && !numbers.contains(&kind.numbers.as_str()) {
            numbers.push(&kind.numbers);
        }
    }
    if numbers.is_empty() { "all".to_owned() } else { numbers.join(",") }
}

/// What stands for a fusion on the other side, as one text.
pub(super) fn unfused(fusion: &Fusion) -> String {
    fusion.separate.join("+")
}

/// Both sides.
pub(super) const fn sides(comparison: &Comparison) -> [&SideSummary; 2] {
    [&comparison.first, &comparison.second]
}
