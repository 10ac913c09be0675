//! Rounds of measurements for a model: what was measured makes its neighbours more certain, or turns out
//! to be unlike them, so that after a round other problems may be missing.

use std::time::{Duration, Instant};

use fusion_cost_model::Problem;

/// The rounds of a run that began when this was made.
pub(super) struct Rounds {
    /// How many problems may be measured, and how long that may take.
    most: Option<usize>,
    budget: Option<Duration>,
    began: Instant,
    asked: Vec<Problem>,
}

impl Rounds {
    /// No round yet, and no end of them but that nothing is missing, unless a number of problems or a
    /// time is given.
    pub(super) fn new(most: Option<usize>, budget: Option<Duration>) -> Self {
        Self { most, budget, began: Instant::now(), asked: Vec::new() }
    }

    /// What the next round measures of what is missing; nothing ends them. No problem is measured in two
    /// rounds: if it is missing still, another time would show what this one does.
    pub(super) fn next(&mut self, missing: impl IntoIterator<Item = Problem>) -> Vec<Problem> {
        if self.time_left().is_some_and(|left| left.is_zero()) {
            return Vec::new();
        }
        let most = self.most.map_or(usize::MAX, |most| most - self.asked.len());
        let points: Vec<Problem> = self.left(missing).take(most).collect();
        self.asked.extend(&points);
        points
    }

    /// What is missing and in no round yet.
    pub(super) fn left(
        &self,
        missing: impl IntoIterator<Item = Problem>,
    ) -> impl Iterator<Item = Problem> {
        missing.into_iter().filter(|problem| !self.asked.contains(problem))
    }

    /// The time since they began.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The time that is left; `None` where it has no end.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.budget.map(|budget| budget.saturating_sub(self.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(names: &str) -> Vec<Problem> {
        names.split_whitespace().map(|op| format!("{op}/f32/m4.n8").parse().unwrap()).collect()
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_round_measures_what_is_missing_and_was_in_none_before() {
        let mut rounds = Rounds::new(None, None);
        assert_eq!(rounds.next(problems("relu gelu")), problems("relu gelu"));
        // A relu is missing still, and a tanh only now.
        assert_eq!(rounds.left(problems("relu tanh")).collect::<Vec<_>>(), problems("tanh"));
        assert_eq!(rounds.next(problems("relu tanh")), problems("tanh"));
        assert_eq!(rounds.next(problems("relu tanh")), []);
        assert_eq!(rounds.next([]), []);
        assert_eq!(rounds.time_left(), None);
    }

    #[test]
    fn all_rounds_together_measure_no_more_than_was_asked_for() {
        let mut rounds = Rounds::new(Some(3), Some(HOUR));
        assert_eq!(rounds.next(problems("relu gelu")), problems("relu gelu"));
        assert_eq!(rounds.next(problems("tanh silu")), problems("tanh"));
        assert_eq!(rounds.next(problems("silu")), []);
        assert_eq!(rounds.left(problems("silu")).collect::<Vec<_>>(), problems("silu"));
        assert_eq!(Rounds::new(Some(0), None).next(problems("relu")), []);
    }

    #[test]
    fn no_round_begins_when_the_time_is_over() {
        assert_eq!(Rounds::new(None, Some(Duration::ZERO)).next(problems("relu")), []);
        let began = Instant::now().checked_sub(HOUR).unwrap();
        let mut rounds = Rounds { began, ..Rounds::new(None, Some(2 * HOUR)) };
        let left = rounds.time_left().unwrap();
        assert!(left <= HOUR && left > HOUR / 2, "{left:?}");
        assert!(rounds.elapsed() >= HOUR);
        assert_eq!(rounds.next(problems("relu")), problems("relu"));
        let mut over = Rounds { budget: Some(HOUR), ..rounds };
        assert_eq!(over.next(problems("gelu")), []);
    }
}
