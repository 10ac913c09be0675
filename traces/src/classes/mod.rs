//! The class of every kernel of a trace: by its name, and where the name says too little by what
//! stands around it.
//!
//! `hints` finds the operator and the python frame that launched a kernel, with the help of
//! `enclosing`, which finds what was open on a thread at a time. `neighbours` settles what is still
//! unknown, or a guess, and always stands at the same place of a layer. None of it is looked at for
//! kernels whose name is enough.

mod hints;
mod neighbours;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use crate::classify::{Classification, certain, classify, classify_with};
use crate::{NameId, Trace};
use hints::Hint;

/// The class of every kernel of a trace.
///
/// A trace has many kernels and few names, so each name is classified once for every operator
/// and python frame that launches it.
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
    /// Classifies the kernels of a trace: by their names, the operators and python frames that
    /// launched them, and their neighbours. [`Classification::why`] says which.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let mut classes = Self::default();
        let mut uncertain = classes.classify_names(trace);
        if uncertain.is_empty() {
            return classes;
        }
        let mut by_hint: FxHashMap<(NameId, Hint), u32> = FxHashMap::default();
        for (&kernel, hint) in uncertain.iter().zip(hints::hints(trace, &uncertain)) {
            let name = trace.kernels.name[kernel];
            let text = |id: NameId| trace.names.text(id);
            let id = *by_hint.entry((name, hint)).or_insert_with(|| {
                classes.add(classify_with(text(name), hint.op.map(text), hint.frame.map(text)))
            });
            classes.of_kernel[kernel] = id;
        }
        uncertain.retain(|&kernel| neighbours::may_settle(classes.get(kernel)));
        for (class, kernels) in neighbours::settled(trace, &classes, &uncertain) {
            let id = classes.add(class);
            for kernel in kernels {
                classes.of_kernel[kernel] = id;
            }
        }
        classes
    }

    /// Classifies by name alone. Returns the kernels whose name is not enough, in ascending order.
    fn classify_names(&mut self, trace: &Trace) -> Vec<usize> {
        let mut by_name: FxHashMap<NameId, Option<u32>> = FxHashMap::default();
        let mut uncertain = Vec::new();
        let unclassified = self.add(Classification::UNCLASSIFIED);
        for (kernel, &name) in trace.kernels.name.iter().enumerate() {
            let known = || certain(trace.names.text(name)).map(|class| self.add(class));
            let id = *by_name.entry(name).or_insert_with(known);
            if id.is_none() {
                uncertain.push(kernel);
            }
            self.of_kernel.push(id.unwrap_or(unclassified));
        }
        uncertain
    }

    /// The id of a classification that is new.
    fn add(&mut self, classification: Classification) -> u32 {
        self.known.push(classification);
        u32::try_from(self.known.len() - 1).unwrap_or(u32::MAX)
    }

    /// The class of a row of [`Trace::kernels`].
    #[must_use]
    pub fn get(&self, kernel: usize) -> Classification {
        let known = self.known.get(self.id(kernel) as usize);
        known.copied().unwrap_or(Classification::UNCLASSIFIED)
    }

    /// The classes of some kernels.
    pub(crate) fn select(&self, kernels: &[usize]) -> Self {
        let of_kernel = kernels.iter().map(|kernel| self.id(*kernel)).collect();
        Self { known: self.known.clone(), of_kernel }
    }

    /// The classes by their numbers.
    pub(crate) fn known(&self) -> &[Classification] {
        &self.known
    }

    /// The number of that class. Kernels of one number have the same class.
    pub(crate) fn id(&self, kernel: usize) -> u32 {
        self.of_kernel.get(kernel).copied().unwrap_or(u32::MAX)
    }
}
