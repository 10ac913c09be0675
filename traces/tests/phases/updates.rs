//! How often weights are changed is a part of the work.

use kernel_traces::compare::{Answer, CompareOptions, Comparison, Headline, WorkAspect};

use super::program::Program;
use super::program::training::Checkpoint;
use super::{Loaded, VENDORS};

/// `steps` changes of the weights, each after so many passes.
fn trained(vendor: usize, steps: usize, passes: usize) -> Loaded {
    let mut program = Program::new(VENDORS[vendor]);
    match passes {
        1 => (0..steps).for_each(|_| program.train(Checkpoint::None)),
        _ => (0..steps).for_each(|_| program.accumulate(passes)),
    }
    Loaded::made(&program)
}

/// A pass of several before the optimizer has only a part of its time.
#[test]
fn gradients_that_are_added_up_make_other_work() {
    let options = CompareOptions::default();
    let compare = |[first, second]: [&Loaded; 2]| {
        Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap()
    };
    let phase = |found: &Comparison| {
        let mut questions = found.same_work.questions.iter();
        questions.find(|one| one.about == WorkAspect::Phase).unwrap().answer
    };
    let [each, second, long] = [trained(0, 3, 1), trained(1, 3, 2), trained(1, 5, 2)];
    for sides in [[&each, &second], [&second, &each]] {
        let found = compare(sides);
        assert_eq!(phase(&found), Answer::Different);
        assert_eq!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
        assert!(found.verdict().contains("once in 2 passes"), "{}", found.verdict());
    }
    // As often in a longer recording.
    for sides in [[&second, &long], [&long, &second]] {
        let found = compare(sides);
        assert_eq!(phase(&found), Answer::Same, "{}", found.verdict());
        assert_ne!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
    }
}

/// Marks of steps show it too.
#[test]
fn marked_steps_of_several_passes_are_other_work() {
    let [one, two] = [1, 2].map(|passes| {
        let mut program = Program::new(VENDORS[0]);
        (0..3).for_each(|number| program.marked_step(number, passes));
        Loaded::made(&program)
    });
    let options = CompareOptions::default();
    for [first, second] in [[&one, &two], [&two, &one]] {
        let found = Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap();
        assert_eq!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
        assert!(found.verdict().contains("in 2 passes a marked step"), "{}", found.verdict());
    }
    let found = Comparison::of(two.side("a.json"), two.side("b.json"), &options).unwrap();
    assert_ne!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
}

/// Without marks, operators that only optimizers call show them.
#[test]
fn gradients_that_are_added_up_without_marks() {
    let [each, second] = [1, 2].map(|passes| {
        let mut program = Program::new(VENDORS[0]);
        (0..4).for_each(|_| program.accumulate_with(passes, None));
        Loaded::made(&program)
    });
    let found = compare(&each, &second);
    assert_eq!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
    assert!(found.verdict().contains("once in 2 passes"), "{}", found.verdict());
    assert_ne!(compare(&second, &second).same_work.headline, Headline::Withheld);
}

#[test]
fn another_optimizer_is_other_work() {
    let [adam, sgd] = ["AdamW", "SGD"].map(|name| {
        let mut program = Program::new(VENDORS[0]);
        (0..4).for_each(|_| program.accumulate_with(1, Some(name)));
        Loaded::made(&program)
    });
    let found = compare(&adam, &sgd);
    assert_eq!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
    assert!(found.verdict().contains("with AdamW against"), "{}", found.verdict());
    assert_ne!(compare(&sgd, &sgd).same_work.headline, Headline::Withheld);
}

fn compare(first: &Loaded, second: &Loaded) -> Comparison {
    let options = CompareOptions::default();
    Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap()
}
