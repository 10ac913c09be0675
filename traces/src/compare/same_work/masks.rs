//! Whether the queries of both sides see as many keys. With a causal mask attention has half of the
//! arithmetic, whatever its sizes are.

use super::workload::Workload;
use super::{SAME_AMOUNT, SAME_CALLS};
use crate::ratio::ratio;
use crate::shapes::{Mask, Problem};

/// The durations of attention of several queries, by what hides keys.
#[derive(Debug, Default)]
pub(super) struct Masks {
    causal_ns: u64,
    full_ns: u64,
    unknown_ns: u64,
}

impl Masks {
    pub(super) fn add(&mut self, op: &str, shape: &str, problem: Option<&Problem>, ns: u64) {
        // A single query sees all keys.
        if let Some(Problem::Attention { queries: 1, .. }) = problem {
            return;
        }
        let sum = match Mask::of(op, shape) {
            Some(Mask::Causal) => &mut self.causal_ns,
            Some(Mask::None) => &mut self.full_ns,
            None => &mut self.unknown_ns,
        };
        *sum = sum.saturating_add(ns);
    }

    fn all_ns(&self) -> u64 {
        self.causal_ns.saturating_add(self.full_ns).saturating_add(self.unknown_ns)
    }

    /// The mask of nearly all attention, if it is known.
    fn most(&self) -> Option<Mask> {
        let is_most = |ns: u64| self.all_ns() > 0 && ratio(ns, self.all_ns()) >= 1.0 - SAME_CALLS;
        match self {
            _ if is_most(self.causal_ns) => Some(Mask::Causal),
            _ if is_most(self.full_ns) => Some(Mask::None),
            _ => None,
        }
    }
}

/// What the sides' attention sees, where one sees twice as much and that makes a difference.
pub(super) fn difference(works: &[Workload; 2]) -> Option<[&'static str; 2]> {
    let [Some(first), Some(second)] = works.each_ref().map(|work| work.masks.most()) else {
        return None;
    };
    let share = |work: &Workload| ratio(work.masks.all_ns(), work.all_ns);
    let most = works.iter().map(share).fold(0.0, f64::max);
    let words = |mask| match mask {
        Mask::Causal => "causal attention",
        Mask::None => "attention to all keys",
    };
    (first != second && most / 2.0 > SAME_AMOUNT).then(|| [first, second].map(words))
}
