//! Embedding bags: the rows of a table that belong to a sample, added up. Recommenders have many of
//! them; how many rows are read is work that no GEMM shows.

use std::collections::BTreeMap;

use super::super::text::number;
use super::SAME_AMOUNT;
use super::workload::Workload;
use crate::ratio::ratio;
use crate::shapes::{Shape, base, saturating_product};

/// The embedding bags of a side.
#[derive(Debug, Default)]
pub(super) struct Bags {
    /// The calls for each table, by its sizes.
    pub(super) calls: BTreeMap<[u64; 2], u64>,
    /// Rows that are read.
    rows: u64,
    /// The durations of their kernels, with those of their gradients.
    pub(super) total_ns: u64,
}

impl Bags {
    /// Adds calls of an operator, if it is one of embedding bags.
    pub(super) fn add(&mut self, op: &str, shape: &str, (calls, total_ns): (u64, u64)) {
        let base = base(op);
        if !base.contains("embedding_bag") {
            return;
        }
        self.total_ns = self.total_ns.saturating_add(total_ns);
        // The one that launches the kernel.
        if !matches!(base, "_embedding_bag" | "_embedding_bag_forward_only") {
            return;
        }
        let shape = Shape::of(shape);
        let sizes = |input: usize| -> Option<Vec<u64>> {
            shape.inputs.get(input)?.dims.iter().copied().collect()
        };
        if let (Some(table), Some(rows)) = (sizes(0), sizes(1))
            && let [length, width] = table[..]
        {
            *self.calls.entry([length, width]).or_default() += calls;
            let rows = saturating_product(rows.into_iter().chain([calls]));
            self.rows = self.rows.saturating_add(rows);
        }
    }
}

/// How many rows a call of each side reads, if they are not as many and that makes a difference.
pub(super) fn difference(works: &[Workload; 2]) -> Option<([String; 2], &'static str)> {
    let rows = works.each_ref().map(|work| ratio(work.bags.rows, work.bags.calls.values().sum()));
    if rows.contains(&0.0) {
        return None;
    }
    let off = 1.0 - rows[0].min(rows[1]) / rows[0].max(rows[1]);
    let share = works.iter().map(|work| ratio(work.bags.total_ns, work.all_ns)).fold(0.0, f64::max);
    let words = || rows.map(|rows| format!("{} rows of a bag", number(rows)));
    (off * share > SAME_AMOUNT).then(|| (words(), "rows that embedding bags read, mean of a call"))
}
