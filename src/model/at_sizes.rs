//! What was measured at the same sizes.

use super::observation::Observation;
use crate::vocabulary::Problem;

/// What was measured at the same sizes: so little that one lookup finds the record of a problem, what
/// longer chains say of it, and what it can be composed from.
#[derive(Debug, Default)]
pub(super) struct AtSizes {
    /// Problems with their records, by index.
    pub(super) records: Vec<(Problem, usize)>,
    /// What [`super::shorter`] says of others: of several observations the most certain.
    shorter: Vec<Observation>,
}

/// Where nothing was measured.
pub(super) static NOTHING: AtSizes = AtSizes { records: Vec::new(), shorter: Vec::new() };

impl AtSizes {
    /// Of several records of a problem, the last one counts.
    pub(super) fn measured(&mut self, problem: Problem, index: usize) {
        self.records.retain(|(other, _)| *other != problem);
        self.records.push((problem, index));
    }

    /// Of several observations, the most certain one counts, and of equally certain ones the first.
    pub(super) fn observed(&mut self, one: Observation) {
        match self.shorter.iter_mut().find(|other| is_alike(&other.problem, &one.problem)) {
            Some(other) if one.sd() < other.sd() => *other = one,
            Some(_) => {}
            None => self.shorter.push(one),
        }
    }

    /// The record of a problem.
    #[inline]
    pub(super) fn record(&self, problem: &Problem) -> Option<usize> {
        self.records.iter().find(|(other, _)| is_alike(other, problem)).map(|(_, index)| *index)
    }

    /// What longer chains say of a problem.
    pub(super) fn shorter(&self, problem: &Problem) -> Option<&Observation> {
        self.shorter.iter().find(|one| is_alike(&one.problem, problem))
    }
}

/// Whether problems of the same sizes are the same.
fn is_alike(one: &Problem, other: &Problem) -> bool {
    one.chain() == other.chain() && one.dtype() == other.dtype()
}
