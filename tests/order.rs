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
