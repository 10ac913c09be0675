//! Which records of two sides are compared, and what is said of the others and of all.

use fusion_cost_model::calibration::{ReasonCode, Verdict};
use fusion_cost_model::compare::{CompareOptions, Comparison, WhyNot};
use fusion_cost_model::{CacheState, DType, Problem, Rewrite};

use super::{RESOLUTION, compare, run, side, truths};
use crate::made::Numbers;

#[test]
fn what_is_not_compared_is_listed_with_the_reason() {
    let mut numbers = Numbers(10);
    let truths = truths(6, &mut numbers);
    let mut first = run(&truths[..5], RESOLUTION, &mut numbers);
    let second = run(&truths[1..], RESOLUTION, &mut numbers);
    first.records[1].verdict = Verdict::Invalid;
    first.records[1].reasons = vec![fusion_cost_model::calibration::Reason {
        code: ReasonCode::MostlyDisturbed,
        text: "made up".to_owned(),
    }];
    first.records[2].cache_state = CacheState::Cold;
    let single: Problem = "relu/f32/m64.n64".parse().unwrap();
    first.records[3].problem = single;
    let mut second = second;
    second.records[2].problem = single;
    let mut other = second.records[0].clone();
    other.threads = 7;
    second.records.push(other);
    let comparison = compare(&first, &second);

    let listed: Vec<(Problem, WhyNot)> =
        comparison.not_compared.iter().map(|one| (one.problem, one.why)).collect();
    let problem = |index: usize| truths[index].problem;
    assert_eq!(
        listed,
        [
            (problem(0), WhyNot::OnlyOnFirst),
            (problem(1), WhyNot::Invalid),
            (problem(2), WhyNot::OnlyOnFirst),
            (problem(2), WhyNot::OnlyOnSecond),
            (problem(5), WhyNot::OnlyOnSecond),
        ]
    );
    assert_eq!(comparison.not_compared[1].reason, "INVALID on A: mostly-disturbed");
    assert_eq!(comparison.not_compared[0].reason, "only in A");
    assert_eq!(comparison.single_ops.len(), 1);
    assert_eq!(comparison.pairs.len(), 1);
    let others = &comparison.sides[1].facts.other_targets;
    assert_eq!((others[0].target.threads, others[0].records), (Some(7), 1));
    assert_eq!(comparison.families[0].invalid, 1);
    let of_patterns: usize = comparison.patterns.iter().map(|group| group.invalid).sum();
    assert_eq!(of_patterns, 1);
}

#[test]
fn rewrites_are_listed_as_not_compared() {
    let mut numbers = Numbers(31);
    let truths = truths(3, &mut numbers);
    let [mut first, second] = [(); 2].map(|()| run(&truths, RESOLUTION, &mut numbers));
    first.records[1].rewrite = Some(Rewrite::BnFolded);
    let comparison = compare(&first, &second);
    let listed: Vec<(Problem, WhyNot, &str)> = comparison
        .not_compared
        .iter()
        .map(|one| (one.problem, one.why, one.reason.as_str()))
        .collect();
    let problem = truths[1].problem;
    assert_eq!(
        listed,
        [
            (problem, WhyNot::OnlyOnSecond, "only in B"),
            (problem, WhyNot::Rewrite, "rewritten on A: bn_folded"),
        ]
    );
}

#[test]
fn a_pattern_whose_problems_are_all_invalid_is_listed() {
    let mut numbers = Numbers(17);
    let truths = truths(6, &mut numbers);
    let [mut first, second] = [(); 2].map(|()| run(&truths, RESOLUTION, &mut numbers));
    let name = truths[3].problem.chain().name();
    let is_of_it = |problem: &Problem| problem.chain().name() == name;
    let mut invalid = 0;
    for record in first.records.iter_mut().filter(|record| is_of_it(&record.problem)) {
        record.verdict = Verdict::Invalid;
        invalid += 1;
    }
    let comparison = compare(&first, &second);

    assert!(!comparison.pairs.iter().any(|pair| is_of_it(&pair.problem)));
    let of_name: Vec<_> =
        comparison.patterns.iter().filter(|one| one.pattern.as_ref() == Some(&name)).collect();
    let [of_name] = of_name[..] else { panic!("{of_name:?}") };
    assert_eq!((of_name.pairs, of_name.invalid, of_name.speedups), (0, invalid, None));
    let form = truths[3].problem.chain().form();
    assert_eq!(of_name.family, fusion_cost_model::Family::of(form));
    let count = |groups: &[fusion_cost_model::compare::Group]| -> usize {
        groups.iter().map(|group| group.invalid).sum()
    };
    assert_eq!(count(&comparison.patterns), count(&comparison.families));
}

#[test]
fn dtypes_are_joined_only_if_asked_for() {
    let mut numbers = Numbers(12);
    let truths = truths(4, &mut numbers);
    let first = run(&truths, RESOLUTION, &mut numbers);
    let mut second = first.clone();
    for record in &mut second.records {
        record.dtype = DType::Bf16;
        let sizes = *record.problem.sizes();
        record.problem = Problem::new(*record.problem.chain(), DType::Bf16, sizes).unwrap();
    }
    assert!(compare(&first, &second).pairs.is_empty());
    let options = CompareOptions { across_dtypes: true, ..CompareOptions::default() };
    let comparison = Comparison::of(&side("A", &first), &[side("B", &second)], &options);
    assert_eq!((comparison.pairs.len(), comparison.not_compared.len()), (4, 0));
}

/// What nobody could see is no equality.
#[test]
fn gains_are_called_the_same_only_where_they_are() {
    let mut numbers = Numbers(11);
    let truths = truths(12, &mut numbers);
    let first = run(&truths, RESOLUTION, &mut numbers);
    let conclusion_with = |wide: usize| {
        let mut second = first.clone();
        second.fingerprint.cpu_model = "Another".to_owned();
        second.hardware.id = "another".to_owned();
        for (index, record) in second.records.iter_mut().enumerate() {
            let half_width = if index < wide { 0.4_f64 } else { 0.005 };
            record.speedup_low = record.speedup_factor * (-half_width).exp();
            record.speedup_high = record.speedup_factor * half_width.exp();
        }
        let mut exact = first.clone();
        for record in &mut exact.records {
            record.speedup_low = record.speedup_factor * (-0.005_f64).exp();
            record.speedup_high = record.speedup_factor * 0.005_f64.exp();
        }
        let comparison = compare(&exact, &second);
        comparison.families[0].conclusion.clone().unwrap()
    };
    assert!(conclusion_with(0).starts_with("fusing gains the same on both"));
    let some = conclusion_with(5);
    let expected = "fusing gains the same on both for 7 of 12 problems; 5 are undecided";
    assert!(some.starts_with(expected), "{some}");
    let none = conclusion_with(12);
    let expected = "these measurements do not tell on which fusing pays more; 12 are undecided";
    assert!(none.starts_with(expected), "{none}");
}
