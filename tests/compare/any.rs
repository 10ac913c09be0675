//! What holds of any two calibrations.

use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::compare::{Choice, PairVerdict, WhyNot};
use proptest::prelude::*;

use super::{alarms, compare, problem};
use crate::made::{self, Known};

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
