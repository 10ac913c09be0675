//! Which changes are regressions, and which are chance or the machine.

use fusion_cost_model::Problem;
use fusion_cost_model::compare::{CompareOptions, Comparison, PairVerdict, Relation};

use super::{RESOLUTION, alarms, compare, run, side, truths};
use crate::made::Numbers;

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
