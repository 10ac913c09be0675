//! The class of every kernel of a trace.

use rustc_hash::FxHashMap;

use crate::classify::{Classification, certain, classify_with};
use crate::{NameId, Trace};

/// The class of every kernel of a trace.
///
/// A trace has many kernels and few names, so each name is classified once for every operator
/// that launches it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Classes {
    known: Vec<Classification>,
    of_kernel: Vec<u32>,
}

impl Classes {
    /// Classifies the kernels of a trace, by their names and the operators that launched them.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let kernels = &trace.kernels;
        let mut classes = Self::default();
        let mut by_name: FxHashMap<NameId, Option<u32>> = FxHashMap::default();
        let mut has_certain_class = |name| {
            let known = || certain(trace.names.text(name)).map(|class| classes.add(class));
            *by_name.entry(name).or_insert_with(known)
        };
        let certain: Vec<Option<u32>> =
            kernels.name.iter().map(|&name| has_certain_class(name)).collect();
        let uncertain = certain.iter().zip(&kernels.external_id);
        let ops = launching_ops(
            trace,
            uncertain.filter(|(class, _)| class.is_none()).map(|(_, &external_id)| external_id),
        );
        let mut by_op: FxHashMap<(NameId, Option<NameId>), u32> = FxHashMap::default();
        for (class, (&name, external_id)) in
            certain.iter().zip(kernels.name.iter().zip(&kernels.external_id))
        {
            let id = class.unwrap_or_else(|| {
                let op = ops.get(external_id).copied().flatten();
                *by_op.entry((name, op)).or_insert_with(|| {
                    let op = op.map(|op| trace.names.text(op));
                    classes.add(classify_with(trace.names.text(name), op, None))
                })
            });
            classes.of_kernel.push(id);
        }
        classes
    }

    /// The id of a classification that is new.
    fn add(&mut self, classification: Classification) -> u32 {
        self.known.push(classification);
        u32::try_from(self.known.len() - 1).unwrap_or(u32::MAX)
    }

    /// The class of a row of [`Trace::kernels`].
    #[must_use]
    pub fn get(&self, kernel: usize) -> Classification {
        let id = self.of_kernel.get(kernel).copied();
        let known = id.and_then(|id| self.known.get(id as usize));
        known.copied().unwrap_or(Classification::UNCLASSIFIED)
    }
}

/// The operators with these ids; of several with one id the last. A table of all would take longer
/// than the rest of the classification.
fn launching_ops(
    trace: &Trace,
    external_ids: impl Iterator<Item = u64>,
) -> FxHashMap<u64, Option<NameId>> {
    let mut ops: FxHashMap<u64, Option<NameId>> =
        external_ids.filter(|&id| id != 0).map(|id| (id, None)).collect();
    if !ops.is_empty() {
        for (id, &name) in trace.ops.external_id.iter().zip(&trace.ops.name) {
            if let Some(op) = ops.get_mut(id) {
                *op = Some(name);
            }
        }
    }
    ops
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::synthetic::{self, Plan};

    /// What it must be the same as: every kernel on its own.
    fn one_by_one(trace: &Trace) -> Vec<Classification> {
        let kernels = trace.kernels.name.iter().zip(&trace.kernels.external_id);
        let class = |(&name, &id): (&NameId, &u64)| {
            let op = trace.ops.external_id.iter().rposition(|&of_op| id != 0 && of_op == id);
            let op = op.map(|op| trace.names.text(trace.ops.name[op]));
            classify_with(trace.names.text(name), op, None)
        };
        kernels.map(class).collect()
    }

    #[test]
    fn operators_decide_where_names_do_not() {
        let (text, _) = synthetic::text(&Plan::default()).unwrap();
        let mut trace = Trace::from_json(&text, &Options::default()).unwrap();
        let names = ["kernel_1", "triton_poi_fused_0", "_fwd_kernel", "ncclDevKernel_AllReduce"];
        let names = names.map(|name| trace.names.intern(name.as_bytes()));
        for (row, name) in trace.kernels.name.iter_mut().enumerate() {
            if row % 5 > 0 {
                *name = names[row % names.len()];
            }
        }
        trace.kernels.external_id[3] = 0;
        trace.kernels.external_id[6] = 999_999;
        trace.ops.external_id[9] = trace.ops.external_id[1];
        let classes = Classes::of(&trace);
        let all: Vec<_> = (0..trace.kernels.len()).map(|row| classes.get(row)).collect();
        assert_eq!(all, one_by_one(&trace));
        assert!(all.iter().any(|class| class.why == "op"));
        assert_eq!(classes.get(all.len()), Classification::UNCLASSIFIED);
    }
}
