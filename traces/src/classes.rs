//! The class of every kernel of a trace.

use rustc_hash::FxHashMap;

use crate::classify::{Classification, classify_with};
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
        let ops: FxHashMap<u64, NameId> =
            trace.ops.external_id.iter().copied().zip(trace.ops.name.iter().copied()).collect();
        let mut ids: FxHashMap<(NameId, Option<NameId>), u32> = FxHashMap::default();
        let mut classes = Self::default();
        let kernels = &trace.kernels;
        for (&name, &external_id) in kernels.name.iter().zip(&kernels.external_id) {
            let op = (external_id != 0).then(|| ops.get(&external_id).copied()).flatten();
            let id = *ids.entry((name, op)).or_insert_with(|| {
                let op = op.map(|op| trace.names.text(op));
                classes.known.push(classify_with(trace.names.text(name), op, None));
                u32::try_from(classes.known.len() - 1).unwrap_or(u32::MAX)
            });
            classes.of_kernel.push(id);
        }
        classes
    }

    /// The class of a row of [`Trace::kernels`].
    #[must_use]
    pub fn get(&self, kernel: usize) -> Classification {
        let id = self.of_kernel.get(kernel).copied();
        let known = id.and_then(|id| self.known.get(id as usize));
        known.copied().unwrap_or(Classification::UNCLASSIFIED)
    }
}
