//! The GEMMs of experts. Servers run them in operators whose inputs are tokens and routes, so the
//! sizes of their weights are not known. Operators beside them, such as the activation between
//! them, show the width of an expert and how many each token has.

use rustc_hash::FxHashMap;

use super::sizes::SAME_SIZES;
use super::workload::Workload;
use crate::classify::Class;
use crate::ratio::ratio;
use crate::shapes::{Problem, Shape, has_unknown_groups};

/// What a side shows of its experts.
#[derive(Debug, Default)]
pub(super) struct Experts {
    /// The durations of their GEMMs whose sizes are not known.
    pub(super) unsized_ns: u64,
    /// The calls of operators beside them, by name and the sizes of a row.
    beside: FxHashMap<String, FxHashMap<String, u64>>,
}

impl Experts {
    /// Whether kernels of a class show sizes of experts.
    pub(super) const fn are_shown_by(class: Class) -> bool {
        matches!(class, Class::Act | Class::MoeRouting | Class::MoeFinalize)
    }

    /// Whether the inputs of an operator that runs experts have their weights: a matrix for each.
    pub(super) fn are_sized(op: &str, problem: Option<&Problem>, shape: &str) -> bool {
        let inputs = Shape::of(shape).inputs;
        let tokens = inputs.first().and_then(|input| input.dims.first());
        let is_of_experts = |dims: &[Option<u64>]| dims.len() == 3 && dims.first() != tokens;
        problem.is_some()
            || has_unknown_groups(op, shape)
            || inputs.iter().any(|input| is_of_experts(&input.dims))
    }

    /// Adds the durations of GEMMs whose sizes are not known.
    pub(super) const fn add_unsized(&mut self, ns: u64) {
        self.unsized_ns = self.unsized_ns.saturating_add(ns);
    }

    /// Adds calls of an operator beside experts. Of its first matrix the rows are tokens.
    pub(super) fn add_beside(&mut self, op: &str, shape: &str, calls: u64) {
        let first = shape.split(';').next().unwrap_or_default();
        let sizes = first.split(' ').next().unwrap_or_default();
        if let Some((_, row)) = sizes.split_once('x') {
            let of_op = self.beside.entry(op.to_owned()).or_default();
            *of_op.entry(row.to_owned()).or_default() += calls;
        }
    }
}

/// What differs beside experts whose sizes are not known, and on what evidence.
pub(super) fn difference(works: &[Workload; 2]) -> Option<([String; 2], &'static str)> {
    if !works.iter().all(Workload::has_unsized) {
        return None;
    }
    let [first, second] = works.each_ref().map(|work| &work.experts.beside);
    let mut both: Vec<&String> = first.keys().filter(|op| second.contains_key(*op)).collect();
    both.sort_unstable();
    let other = both.into_iter().find(|op| {
        let shared = |own: &FxHashMap<String, u64>, other: &FxHashMap<String, u64>| {
            let alike = own.iter().filter(|(row, _)| other.contains_key(*row));
            ratio(alike.map(|(_, calls)| calls).sum(), own.values().sum())
        };
        shared(&first[*op], &second[*op]).min(shared(&second[*op], &first[*op])) < SAME_SIZES
    })?;
    let words = [&first[other], &second[other]].map(|rows| {
        // Of equals the first in the alphabet.
        let most = rows.iter().max_by(|a, b| a.1.cmp(b.1).then_with(|| b.0.cmp(a.0)));
        let row = most.map_or("", |(row, _)| row);
        format!("{row} a row of {}", other.rsplit("::").next().unwrap_or(other))
    });
    Some((words, "sizes of operators beside the GEMMs of experts"))
}
