//! How many heads attention has. Two models may have the same weights and divide them into other
//! heads, whose queries and keys are then of another size.

use std::collections::{BTreeMap, BTreeSet};

use super::workload::Workload;
use crate::shapes::{Problem, Shape, base};

/// The heads of the attention of a side.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// By heads times the size of a query.
    of_widths: BTreeMap<u64, BTreeSet<u64>>,
    /// The scores of attention that is computed op by op: sequences, heads, queries, keys.
    scores: BTreeSet<[u64; 4]>,
    /// What may compute them: multiplications at once, rows, columns, and what is summed over.
    products: BTreeSet<[u64; 4]>,
}

impl Heads {
    pub(super) fn add(&mut self, op: &str, shape: &str, problem: Option<&Problem>) {
        match problem {
            Some(Problem::Attention { width, heads, .. }) => self.insert(*width, *heads),
            Some(Problem::Gemm { batch, m, n, k }) if *batch > 1 => {
                self.products.insert([*batch, *m, *n, *k]);
            }
            None if base(op) == "_softmax" => {
                if let Some(&[batch, heads, queries, keys]) = Shape::of(shape).known(0).as_deref() {
                    self.scores.insert([batch, heads, queries, keys]);
                }
            }
            _ => {}
        }
    }

    fn insert(&mut self, width: u64, heads: u64) {
        self.of_widths.entry(width).or_default().insert(heads);
    }

    /// Reads the heads of attention that is computed op by op.
    pub(super) fn read_scores(&mut self) {
        for [batch, heads, queries, keys] in std::mem::take(&mut self.scores) {
            let all = batch.saturating_mul(heads);
            let from = [all, queries, keys, 0];
            let products = self.products.range(from..=[all, queries, keys, u64::MAX]);
            let sizes: Vec<u64> = products.map(|[.., size]| *size).collect();
            sizes.into_iter().for_each(|size| self.insert(heads.saturating_mul(size), heads));
        }
    }
}

/// The heads of both sides, where attention is as wide and has other heads. Another width may be of
/// a part of the heads, as one device of several has, or of padded ones.
pub(super) fn difference([first, second]: &[Workload; 2]) -> Option<[String; 2]> {
    let both = first.heads.of_widths.iter();
    let mut both = both.filter_map(|(width, own)| {
        let other = second.heads.of_widths.get(width)?;
        own.is_disjoint(other).then(|| [own, other].map(|heads| in_words(heads, *width)))
    });
    both.next()
}

fn in_words(heads: &BTreeSet<u64>, width: u64) -> String {
    let one = |heads: &u64| format!("{heads} heads of {}", width / heads.max(&1));
    heads.iter().map(one).collect::<Vec<_>>().join(" or ")
}
