//! A first step that takes longer than others with the same work does not decide who is faster.

use kernel_traces::compare::{CompareOptions, Comparison, Headline};

use super::made;
use super::program::{Mark, Plan, STEP, Sizes, Step};

/// A recording of this many steps; the first takes this percentage of the time of another.
fn plan(first_percent: u64, steps: usize) -> Plan {
    several(&[first_percent], steps)
}

/// The same, of several first steps.
fn several(first_percents: &[u64], steps: usize) -> Plan {
    let first_percents = first_percents.to_vec();
    Plan { first_percents, steps: vec![STEP; steps], ..Plan::transformer() }
}

/// Compares in both orders, which must give the same answers.
fn pair(first: &Plan, second: &Plan) -> Comparison {
    let (first, second) = (made(first), made(second));
    let [first, second] = [first.side("a.json"), second.side("b.json")];
    let options = CompareOptions::default();
    let [there, back] = [[first, second], [second, first]]
        .map(|[first, second]| Comparison::of(first, second, &options).unwrap());
    assert_eq!(there.same_work.headline, back.same_work.headline);
    for (one, other) in there.same_work.rates.iter().zip(&back.same_work.rates) {
        assert!((one.ratio * other.ratio - 1.0).abs() < 1e-9);
    }
    let codes = |found: &Comparison| -> Vec<&str> {
        found.warnings.iter().map(|warning| warning.code).collect()
    };
    assert_eq!(codes(&there).contains(&"slow-first-step"), is_of_usual_steps(&there));
    assert_eq!(codes(&back).contains(&"slow-first-step"), is_of_usual_steps(&back));
    there
}

fn is_of_usual_steps(found: &Comparison) -> bool {
    found.same_work.headline == Headline::OfUsualSteps
}

/// The usual steps take as long, or this many times as long.
#[track_caller]
fn decides_nothing(first: &Plan, second: &Plan, ratio: f64) {
    let found = pair(first, second);
    assert!(is_of_usual_steps(&found), "{}", found.verdict());
    let rates = &found.same_work.rates;
    assert_eq!(rates.len(), 1);
    assert!((rates[0].ratio / ratio - 1.0).abs() < 0.01, "{}", rates[0].ratio);
    assert_eq!((found.gap.ratio, found.same_work.matched.ratio), (None, None));
    assert_eq!(found.warnings[0].code, "slow-first-step");
    let verdict = found.verdict();
    let words = if ratio == 1.0 { "no difference" } else { "times as fast" };
    let is_said = verdict.contains("has a first step") || verdict.contains(" first steps up to ");
    assert!(is_said && verdict.contains(words), "{verdict}");
}

#[test]
fn recordings_of_other_lengths() {
    decides_nothing(&plan(2000, 3), &plan(2000, 12), 1.0);
    decides_nothing(&plan(300, 2), &plan(300, 10), 1.0);
    decides_nothing(&plan(120, 3), &plan(120, 12), 1.0);
    let slower = Plan { pace: [60, 60], ..plan(2000, 12) };
    decides_nothing(&plan(2000, 3), &slower, 2.0 / 3.0);
}

#[test]
fn several_first_steps() {
    let twice = [2000, 1000];
    for steps in [3, 4, 5, 6] {
        decides_nothing(&several(&twice, steps), &several(&twice, 12), 1.0);
        decides_nothing(&several(&twice, steps), &plan(100, 12), 1.0);
        decides_nothing(&several(&twice, steps), &plan(2000, 12), 1.0);
    }
    let falling = [300, 300, 200, 150];
    decides_nothing(&several(&falling, 10), &several(&falling, 20), 1.0);
    let slower = Plan { pace: [60, 60], ..several(&twice, 12) };
    decides_nothing(&several(&twice, 5), &slower, 2.0 / 3.0);
}

/// What is usual is not what few of the last steps take.
#[test]
fn most_steps_are_no_first_ones() {
    for first in [vec![130; 4], vec![200; 4], vec![120, 120]] {
        let found = pair(&several(&first, first.len() + 1), &plan(100, 12));
        assert!(!is_of_usual_steps(&found), "{first:?}: {}", found.verdict());
    }
}

#[test]
fn one_side_is_slow_to_begin() {
    decides_nothing(&plan(500, 5), &plan(100, 5), 1.0);
}

#[test]
fn steps_with_marks_and_without_sizes() {
    let marked = |plan: Plan| {
        let steps = vec![Step { mark: Mark::Vllm, ..STEP }; plan.steps.len()];
        Plan { steps, ..plan }
    };
    decides_nothing(&marked(plan(2000, 3)), &marked(plan(2000, 12)), 1.0);
    let bare = |plan: Plan| Plan { sizes: Sizes::None, ..plan };
    decides_nothing(&bare(plan(2000, 3)), &bare(plan(2000, 12)), 1.0);
    let images = |first_percent, steps| Plan {
        first_percents: vec![first_percent],
        steps: vec![Step { batch: 8, ..STEP }; steps],
        ..Plan::of_images(20, 8)
    };
    // Without steps nothing tells which the first one is.
    let found = pair(&images(2000, 3), &images(2000, 3));
    assert_eq!(found.same_work.headline, Headline::OfAStep, "{}", found.verdict());
}

#[test]
fn first_steps_that_decide_nothing() {
    // As many steps, and as slow to begin.
    let slower = Plan { pace: [60, 60], ..plan(2000, 3) };
    for (first, second) in [(plan(2000, 3), slower), (plan(100, 3), plan(100, 12))] {
        let found = pair(&first, &second);
        assert_eq!(found.same_work.headline, Headline::OfAStep, "{}", found.verdict());
    }
    // A first step of other work is one of the steps.
    let longer = |count: usize| {
        let steps = [vec![Step { sequence: 256, ..STEP }], vec![STEP; count]].concat();
        Plan { steps, ..Plan::transformer() }
    };
    let found = pair(&longer(3), &longer(3));
    assert_eq!(found.same_work.headline, Headline::OfAStep, "{}", found.verdict());
    assert!(!is_of_usual_steps(&pair(&longer(3), &longer(12))));
    assert!(!is_of_usual_steps(&pair(&longer(3), &plan(100, 4))));
}
