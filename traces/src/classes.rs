//! The class of every kernel of a trace.

use rustc_hash::FxHashMap;

use crate::classify::{Classification, classify, classify_with};
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

/// Classifies kernels by their names alone: where the operators that launched them are not known,
/// as in the parts of a trace that is streamed. The parts of one trace share one.
#[derive(Debug, Clone, Default)]
pub struct NameClasses {
    known: Vec<Classification>,
    ids: FxHashMap<NameId, u32>,
}

impl NameClasses {
    /// The class of every kernel of a part.
    #[must_use]
    pub fn of(&mut self, part: &Trace) -> Classes {
        let id_of = |&name: &NameId| {
            *self.ids.entry(name).or_insert_with(|| {
                self.known.push(classify(part.names.text(name)));
                u32::try_from(self.known.len() - 1).unwrap_or(u32::MAX)
            })
        };
        let of_kernel = part.kernels.name.iter().map(id_of).collect();
        Classes { known: self.known.clone(), of_kernel }
    }
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
        let known = self.known.get(self.id(kernel) as usize);
        known.copied().unwrap_or(Classification::UNCLASSIFIED)
    }

    /// The number of that class: the same for all kernels of a name and a launching operator.
    pub(crate) fn id(&self, kernel: usize) -> u32 {
        self.of_kernel.get(kernel).copied().unwrap_or(u32::MAX)
    }
}
