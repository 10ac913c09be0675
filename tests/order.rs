//! An answer does not depend on the order of the records of its file.

use crate::made::Numbers;
use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration};
use fusion_cost_model::{FusionCostModel, Problem, Target};

const FILE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/calibrate/profiles/calibrations/amd-epyc-2-threads.toml");

fn shuffle(records: &mut [FusionRecord], numbers: &mut Numbers) {
    for last in (1..records.len()).rev() {
        records.swap(last, numbers.below(last + 1));
    }
}

/// Problems beside those that were measured: other sizes, other chains, single ops.
fn questions(calibration: &HardwareCalibration) -> Vec<Problem> {
    let mut questions = Vec::new();
    for record in &calibration.records {
        let problem = record.problem;
        questions.push(problem);
        questions.extend(problem.slice(0..1));
        let text = problem.to_string();
        let (chain, rest) = text.split_once('/').unwrap();
        // Another number of rows, images or batches, and one op more.
        let (first, others) = rest.split_once('.').unwrap();
        questions.extend(format!("{chain}/{first}1.{others}").parse::<Problem>());
        questions.extend(format!("{}+tanh/{rest}", problem.chain()).parse::<Problem>());
    }
    questions
}

/// Of records that are alike but for their target, too, since what states differ by is that of all.
#[test]
fn records_of_several_targets_may_come_in_any_order() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/calibrate/profiles/calibrations/amd-epyc-zen5-2-threads.toml"
    );
    let mut original = HardwareCalibration::load(path).unwrap();
    let met_several = |record: &&FusionRecord| record.by_state.len() > 1;
    let template = original.records.iter().find(met_several).unwrap().clone();
    original.records.clear();
    for (threads, factor) in (1..).zip([1.01, 1.22, 1.039]) {
        let mut record = FusionRecord { threads, ..template.clone() };
        record.by_state[1].speedup_factor = factor * record.by_state[0].speedup_factor;
        original.records.push(record);
    }
    let mut reversed = original.clone();
    reversed.records.reverse();
    let question = template.problem.to_string().replacen(".n", "1.n", 1).parse().unwrap();
    let [expected, found] = [original, reversed].map(|calibration| {
        let model = FusionCostModel::new(calibration);
        let on = model.on(Target::cpu(2)).in_state(template.states[0]).unwrap();
        on.estimate(&question).speedup()
    });
    assert!(expected.is_some() && found == expected, "{expected:?} {found:?}");
}

/// The same to the last bit: rounding is no reason for another decision.
#[test]
fn shuffled_records_give_the_same_answers() {
    let original = HardwareCalibration::load(FILE).unwrap();
    let questions = questions(&original);
    let mut numbers = Numbers(3);
    let mut newer = original.clone();
    newer.records.retain(|_| numbers.below(4) == 0);
    let answers = |calibration: &HardwareCalibration, newer: &HardwareCalibration| {
        let model = FusionCostModel::new(calibration.clone());
        let with_prior =
            FusionCostModel::new(newer.clone()).with_prior(calibration.clone()).unwrap();
        let of = |model: &FusionCostModel| {
            let on = model.on(Target::cpu(2));
            let answer = |problem: &Problem| {
                let estimate = on.estimate(problem);
                let intervals = [estimate.fused_ms(), estimate.unfused_ms(), estimate.speedup()];
                format!("{problem}: {} {intervals:?}", estimate.evidence())
            };
            questions.iter().map(answer).collect::<Vec<_>>()
        };
        [of(&model), of(&with_prior)].concat()
    };
    let expected = answers(&original, &newer);
    for evidence in ["measured", "composed at size", "interpolated", "extrapolated", "prior"] {
        assert!(expected.iter().any(|answer| answer.contains(evidence)), "none is {evidence}");
    }
    for _ in 0..3 {
        let [mut shuffled, mut shuffled_newer] = [original.clone(), newer.clone()];
        shuffle(&mut shuffled.records, &mut numbers);
        shuffle(&mut shuffled_newer.records, &mut numbers);
        let found = answers(&shuffled, &shuffled_newer);
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected);
        }
    }
}
