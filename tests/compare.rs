//! Comparisons of calibrations whose truth is known.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "made-up machines have more than this test needs")]

mod made;

use fusion_cost_model::calibration::{HardwareCalibration, ReasonCode, Verdict};
use fusion_cost_model::compare::{
    Choice, CompareOptions, Comparison, PairVerdict, Relation, Side, SideTarget, WhyNot,
};
use fusion_cost_model::{CacheState, DType, LinearSizes, Problem, Rewrite};
use made::{Known, Numbers};
use proptest::prelude::*;

/// Processes of every record.
const PROCESSES: u32 = 10;

/// The 97.5 % quantile of Student's t with nine degrees of freedom.
const T: f64 = 2.262_157;

/// What a record's interval never claims to resolve: 1 %.
const RESOLUTION: f64 = 0.009_950_33;

fn problem(index: u64) -> Problem {
    let chain = ["linear_bias", "linear_bias_relu", "linear_bias_gelu"][index as usize % 3];
    let sizes = LinearSizes { m: 64 + index, k: 256, n: 128 };
    Problem::linear(chain.parse().unwrap(), DType::F32, sizes).unwrap()
}

/// What is true of a record.
#[derive(Debug, Clone, Copy)]
struct Truth {
    problem: Problem,
    fused_ms: f64,
    speedup: f64,
    /// How far processes lie apart, in the logarithm.
    spread: f64,
}

fn truths(count: u64, numbers: &mut Numbers) -> Vec<Truth> {
    let truth = |index| Truth {
        problem: problem(index),
        fused_ms: 0.05 * (4.0 * numbers.share()).exp(),
        speedup: 0.9 + numbers.share(),
        spread: 0.004 * (2.5 * numbers.share()).exp(),
    };
    (0..count).map(truth).collect()
}

/// A run that measures each record in ten processes.
fn run(truths: &[Truth], resolution: f64, numbers: &mut Numbers) -> HardwareCalibration {
    let known = truths.iter().map(|truth| {
        let drawn: Vec<f64> = (0..PROCESSES).map(|_| truth.spread * numbers.normal()).collect();
        let count = f64::from(PROCESSES);
        let mean = drawn.iter().sum::<f64>() / count;
        let squares: f64 = drawn.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        Known {
            problem: truth.problem,
            fused_ms: truth.fused_ms * (0.5 * truth.spread * numbers.normal()).exp(),
            speedup: truth.speedup * mean.exp(),
            half_width: (T * error).hypot(resolution),
        }
    });
    let mut calibration = made::calibration(known.collect::<Vec<_>>());
    for record in &mut calibration.records {
        record.processes = PROCESSES;
        record.noise_floor = 0.01;
        record.reasons.clear();
        record.verdict = Verdict::by_interval(
            record.speedup_factor,
            [record.speedup_low, record.speedup_high],
            record.noise_floor,
        );
        for (timing, ms) in [
            (&mut record.unfused_timing, record.unfused_latency_ms),
            (&mut record.fused_timing, record.fused_latency_ms),
        ] {
            (timing.low_ms, timing.high_ms) = (Some(0.97 * ms), Some(1.03 * ms));
            timing.process_ms.clear();
        }
    }
    calibration
}

fn side(label: &str, calibration: &HardwareCalibration) -> Side {
    let (target, _) = SideTarget::all_of(calibration)[0];
    Side::of(label, format!("{label}.toml"), calibration, target)
}

fn compare(first: &HardwareCalibration, second: &HardwareCalibration) -> Comparison {
    Comparison::of(&side("A", first), &[side("B", second)], &CompareOptions::default())
}

fn alarms(comparison: &Comparison) -> usize {
    comparison.pairs.iter().filter(|pair| pair.verdict.differs()).count()
}

#[test]
fn an_unchanged_machine_raises_no_alarm_in_nineteen_of_twenty_runs() {
    for (resolution, most) in [(RESOLUTION, 10), (0.0, 20)] {
        let mut numbers = Numbers(7);
        let with_alarms = (0..200).filter(|_| {
            let truths = truths(85, &mut numbers);
            let [first, second] = [(); 2].map(|()| run(&truths, resolution, &mut numbers));
            alarms(&compare(&first, &second)) > 0
        });
        let count = with_alarms.count();
        println!("resolution {resolution}: false alarms in {count} of 200 comparisons");
        assert!(count <= most, "{count}");
    }
}

#[test]
fn a_tenth_that_one_record_of_85_lost_is_found() {
    let mut numbers = Numbers(8);
    let mut found = 0;
    for changed in 0..50 {
        let mut truths = truths(85, &mut numbers);
        // Processes of a standard record lie about this far apart.
        truths[changed].spread = 0.02;
        let before = run(&truths, RESOLUTION, &mut numbers);
        truths[changed].speedup *= 0.9;
        let after = run(&truths, RESOLUTION, &mut numbers);
        let comparison = compare(&before, &after);
        let problems: Vec<Problem> =
            comparison.regressions(0.05).map(|pair| pair.problem).collect();
        found += usize::from(problems == [truths[changed].problem]);
        assert_eq!(comparison.regressions(0.2).count(), 0);
    }
    println!("found alone in {found} of 50");
    assert!(found >= 48, "{found}");
}

#[test]
fn a_machine_that_became_slower_is_no_regression_of_fusion() {
    let mut numbers = Numbers(9);
    let mut truths = truths(40, &mut numbers);
    let before = run(&truths, RESOLUTION, &mut numbers);
    for truth in &mut truths {
        truth.fused_ms *= 1.3;
    }
    let mut after = run(&truths, RESOLUTION, &mut numbers);
    // And one record by itself, in both variants.
    let own = &mut after.records[3];
    own.unfused_latency_ms *= 1.5;
    own.fused_latency_ms *= 1.5;
    for (timing, ms) in [
        (&mut own.unfused_timing, own.unfused_latency_ms),
        (&mut own.fused_timing, own.fused_latency_ms),
    ] {
        (timing.low_ms, timing.high_ms) = (Some(0.97 * ms), Some(1.03 * ms));
    }
    let comparison = compare(&before, &after);
    assert_eq!(alarms(&comparison), 0);
    let [common] = comparison.common[..] else { panic!("one other side") };
    assert!((common.ratio / 1.3 - 1.0).abs() < 0.01, "{common:?}");
    let moved: Vec<usize> =
        (0..40).filter(|index| comparison.pairs[*index].moved.is_some()).collect();
    assert_eq!(moved, [3]);
}

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
fn as_much_as_was_asked_for_is_a_regression() {
    let mut numbers = Numbers(23);
    let truths = truths(1, &mut numbers);
    let [mut first, mut second] = [(); 2].map(|()| run(&truths, RESOLUTION, &mut numbers));
    let mut is_found = |before: f64, after: f64| {
        for (run, speedup) in [(&mut first, before), (&mut second, after)] {
            let record = &mut run.records[0];
            record.speedup_factor = speedup;
            (record.speedup_low, record.speedup_high) = (0.999 * speedup, 1.001 * speedup);
        }
        compare(&first, &second).regressions(0.05).next().is_some()
    };
    for hundredths in 80..400_u32 {
        let decimal = |of: u32, digits: usize| -> f64 {
            let text = of.to_string();
            let (whole, rest) = text.split_at(text.len() - digits);
            format!("0{whole}.{rest}").parse().unwrap()
        };
        let before = decimal(hundredths, 2);
        assert!(is_found(before, decimal(95 * hundredths, 4)), "5 % less than {before}");
        assert!(!is_found(before, 0.951 * before), "4.9 % less than {before}");
    }
}

#[test]
fn another_thread_count_is_another_target_and_no_regression() {
    let mut numbers = Numbers(11);
    let mut truths = truths(20, &mut numbers);
    let first = run(&truths, RESOLUTION, &mut numbers);
    for truth in &mut truths {
        truth.speedup *= 0.7;
    }
    let mut second = run(&truths, RESOLUTION, &mut numbers);
    assert_eq!(compare(&first, &second).sides[1].relation, Relation::Same);
    for record in &mut second.records {
        record.threads += 1;
    }
    let comparison = compare(&first, &second);
    assert_eq!(comparison.sides[1].relation, Relation::Other);
    assert!(comparison.count(1, PairVerdict::MoreOnFirst) >= 15);
    assert_eq!(comparison.regressions(0.05).count(), 0);
    assert!(comparison.common.is_empty());
    let [family] = &comparison.families[..] else { panic!("one family") };
    let conclusion = family.conclusion.as_ref().unwrap();
    assert!(conclusion.starts_with("fusing pays more on A for"), "{conclusion}");
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

#[test]
fn several_sides_share_one_family_of_tests() {
    let mut numbers = Numbers(13);
    let truths = truths(10, &mut numbers);
    let [a, b, c] = [(); 3].map(|()| run(&truths, RESOLUTION, &mut numbers));
    let sides = [side("B", &b), side("C", &c)];
    let all = Comparison::of(&side("A", &a), &sides, &CompareOptions::default());
    let two = compare(&a, &b);
    assert_eq!(all.pairs.len(), 20);
    for (both, one) in all.pairs.iter().zip(&two.pairs) {
        assert_eq!((both.problem, both.ratio), (one.problem, one.ratio));
        assert!(both.adjusted_p >= one.adjusted_p);
    }
    assert!(all.ratio(2).is_some() && all.ratio(3).is_none());
}

prop_compose! {
    /// A record: its number, the speedup, half of its interval, and how many processes it has.
    fn any_record()(
        index in 0_u64..40,
        speedup in 0.5_f64..3.0,
        half in 0.001_f64..0.2,
        processes in 1_u32..20,
    ) -> (u64, f64, f64, u32) {
        (index, speedup, half, processes)
    }
}

/// A calibration with each number once.
fn any_run() -> impl Strategy<Value = HardwareCalibration> {
    proptest::collection::vec(any_record(), 1..40).prop_map(|mut records| {
        records.sort_by_key(|record| record.0);
        records.dedup_by_key(|record| record.0);
        let known = |record: &(u64, f64, f64, u32)| Known {
            problem: problem(record.0),
            fused_ms: 1.0 + record.1,
            speedup: record.1,
            half_width: record.2,
        };
        let mut calibration = made::calibration(records.iter().map(known));
        for (record, (.., processes)) in calibration.records.iter_mut().zip(&records) {
            record.processes = *processes;
        }
        calibration
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Exchanged sides say the opposite with the same certainty.
    #[test]
    fn sides_can_be_exchanged(a in any_run(), b in any_run()) {
        let [forth, back] = [compare(&a, &b), compare(&b, &a)];
        prop_assert_eq!(forth.pairs.len(), back.pairs.len());
        for pair in &forth.pairs {
            let other = back.pairs.iter().find(|one| one.problem == pair.problem).unwrap();
            prop_assert!((pair.ratio.value * other.ratio.value - 1.0).abs() < 1e-12);
            let [low, high] = pair.ratio.interval.unwrap();
            let [other_low, other_high] = other.ratio.interval.unwrap();
            prop_assert!((low * other_high - 1.0).abs() < 1e-9);
            prop_assert!((high * other_low - 1.0).abs() < 1e-9);
            prop_assert_eq!(pair.p.is_some(), other.p.is_some());
            if let (Some(p), Some(its)) = (pair.p, other.p) {
                prop_assert!((p - its).abs() < 1e-9);
            }
            let opposite = match pair.verdict {
                PairVerdict::MoreOnFirst => PairVerdict::MoreOnSecond,
                PairVerdict::MoreOnSecond => PairVerdict::MoreOnFirst,
                verdict => verdict,
            };
            prop_assert_eq!(other.verdict, opposite);
            prop_assert_eq!(pair.flips(), other.flips());
        }
    }

    /// Every record of either side is in the comparison, once.
    #[test]
    fn nothing_is_lost(a in any_run(), b in any_run()) {
        let comparison = compare(&a, &b);
        let count = |why| comparison.not_compared.iter().filter(|one| one.why == why).count();
        let pairs = comparison.pairs.len();
        prop_assert_eq!(pairs + count(WhyNot::OnlyOnFirst), a.records.len());
        prop_assert_eq!(pairs + count(WhyNot::OnlyOnSecond), b.records.len());
        let counted: usize = PairVerdict::ALL.map(|one| comparison.count(1, one)).iter().sum();
        prop_assert_eq!(counted, pairs);
        let in_families: usize = comparison.families.iter().map(|group| group.pairs).sum();
        let in_patterns: usize = comparison.patterns.iter().map(|group| group.pairs).sum();
        prop_assert_eq!((in_families, in_patterns), (pairs, pairs));
    }

    /// A verdict never says more than the interval, and one process never gives one.
    #[test]
    fn verdicts_follow_from_intervals(a in any_run(), b in any_run()) {
        for pair in &compare(&a, &b).pairs {
            let [low, high] = pair.ratio.interval.unwrap();
            let value = pair.ratio.value;
            prop_assert!(low <= value && value <= high);
            match pair.verdict {
                PairVerdict::MoreOnFirst => prop_assert!(high < 1.0),
                PairVerdict::MoreOnSecond => prop_assert!(low > 1.0),
                PairVerdict::Same => prop_assert!(low > 0.95 && high < 1.06),
                PairVerdict::Undecided => prop_assert!(pair.could_hide.unwrap() > 0.0),
            }
            let processes = [pair.first, pair.second].map(|one| one.processes.unwrap());
            prop_assert_eq!(pair.p.is_some(), processes.iter().all(|count| *count >= 3));
            prop_assert!(pair.adjusted_p >= pair.p);
            prop_assert!(pair.choices.iter().all(|choice| *choice != Choice::Unknown));
        }
    }

    /// A file against itself differs in nothing.
    #[test]
    fn a_file_is_the_same_as_itself(a in any_run()) {
        let comparison = compare(&a, &a);
        prop_assert_eq!(alarms(&comparison), 0);
        prop_assert!(comparison.pairs.iter().all(|pair| pair.ratio.value == 1.0 && !pair.flips()));
        prop_assert!(comparison.not_compared.is_empty());
        prop_assert_eq!(comparison.common[0].ratio, 1.0);
    }
}
