//! Decision 0165 by brute force: what first steps and bytes say, computed from the records of the
//! committed calibrations alone.

use std::collections::HashMap;

use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Verdict};
use fusion_cost_model::{
    Estimate, Evidence, FusionCostModel, LeaveOut, Policy, Problem, Target, Trial, WhenUnknown,
};

const TARGET: Target = Target::cpu(2);

const FILES: [&str; 3] = ["amd-epyc-2-threads", "amd-epyc-zen5-2-threads", "intel-xeon-2-threads"];

fn calibration(file: &str) -> HardwareCalibration {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/calibrate/profiles/calibrations");
    HardwareCalibration::load(format!("{folder}/{file}.toml")).unwrap()
}

fn valid(calibration: &HardwareCalibration) -> impl Iterator<Item = &FusionRecord> {
    calibration.records.iter().filter(|record| record.verdict != Verdict::Invalid)
}

/// The first op of a longer chain by itself.
fn first_op(record: &FusionRecord) -> Option<Problem> {
    let is_longer = record.operators.len() > 1;
    record.problem.slice(0..1).filter(|_| is_longer)
}

/// Of each first op of a longer chain, the record whose first step is the most certain.
fn most_certain(calibration: &HardwareCalibration) -> HashMap<Problem, &FusionRecord> {
    let width =
        |record: &FusionRecord| record.steps[0].high_ms.unwrap() / record.steps[0].low_ms.unwrap();
    let mut found: HashMap<Problem, &FusionRecord> = HashMap::new();
    for record in valid(calibration) {
        let Some(first) = first_op(record) else { continue };
        assert_eq!(record.steps.len(), record.operators.len(), "{first}");
        let best = found.entry(first).or_insert(record);
        if width(record) < width(best) {
            *best = record;
        }
    }
    found
}

#[test]
fn a_first_op_takes_what_its_most_certain_step_does() {
    for file in FILES {
        let whole = calibration(file);
        let steps = most_certain(&whole);
        assert!(steps.len() >= 30, "{file}: {}", steps.len());
        let mut without = whole.clone();
        without.records.retain(|record| !steps.contains_key(&record.problem));
        let [model, without] = [whole.clone(), without].map(FusionCostModel::new);
        for (problem, record) in &steps {
            let estimate = without.on(TARGET).estimate(problem);
            assert_eq!(estimate.evidence(), Evidence::ComposedAtSize, "{file}: {problem}");
            let time = estimate.fused_ms().unwrap();
            assert!((time.value / record.steps[0].ms - 1.0).abs() < 1e-12, "{problem}: {time:?}");
            assert!(time.low < time.value && time.value < time.high, "{problem}: {time:?}");
            let speedup = estimate.speedup().unwrap();
            assert_eq!([speedup.low, speedup.value, speedup.high], [1.0; 3], "{problem}");
            let named: Vec<&Problem> = estimate.nearest().map(|it| &it.problem).collect();
            assert_eq!(named, [&record.problem], "{file}: {problem}");
        }
        for record in valid(&whole).filter(|record| steps.contains_key(&record.problem)) {
            let measured = model.on(TARGET).estimate(&record.problem).record().unwrap();
            assert_eq!(measured, record, "{file}");
        }
    }
}

fn trials(model: &FusionCostModel, leave_out: LeaveOut) -> Vec<Trial<'_>> {
    let policy = Policy::new(WhenUnknown::Roofline);
    model.on(TARGET).validate(leave_out, &policy).unwrap()
}

/// What a record says at some sizes: of its chain, or of its first op.
fn is_at_sizes(record: &FusionRecord, sizes: &Problem) -> bool {
    let is_there =
        |problem: &Problem| (problem.sizes(), problem.dtype()) == (sizes.sizes(), sizes.dtype());
    is_there(&record.problem) || first_op(record).is_some_and(|first| is_there(&first))
}

#[test]
fn nothing_at_a_size_that_was_left_out_answers() {
    for file in FILES {
        let model = FusionCostModel::new(calibration(file));
        for Trial { record, estimate, .. } in trials(&model, LeaveOut::Shape) {
            let problem = &record.problem;
            assert_ne!(estimate.evidence(), Evidence::ComposedAtSize, "{file}: {problem}");
            let of_it = estimate.nearest().find(|nearest| is_at_sizes(nearest, problem));
            assert_eq!(of_it.map(|it| it.problem), None, "{file}: {problem}");
        }
    }
}

fn numbers(estimate: &Estimate<'_>) -> [f64; 2] {
    [estimate.fused_ms(), estimate.speedup()].map(|interval| interval.unwrap().value)
}

#[test]
fn pointwise_ops_of_the_same_bytes_are_the_same() {
    for file in FILES {
        let model = FusionCostModel::new(calibration(file));
        let on = model.on(TARGET);
        for chain in ["relu", "add", "mul", "add_relu", "mul_add_relu", "sigmoid_mul"] {
            for [(m, n), (other_m, other_n)] in
                [[(96, 4096), (4096, 96)], [(64, 9216), (768, 768)], [(2000, 1000), (1000, 2000)]]
            {
                let [one, other] = [(m, n), (other_m, other_n)].map(|(m, n)| {
                    let estimate = on.estimate(&format!("{chain}/f32/m{m}.n{n}").parse().unwrap());
                    assert_eq!(estimate.evidence(), Evidence::Interpolated, "{chain} {m} {n}");
                    numbers(&estimate)
                });
                assert_eq!(one, other, "{file}: {chain}: {m} x {n}");
            }
        }
        // Rows are read one by one by a layer norm, however many bytes there are.
        let [wide, high] = ["m96.n4096", "m4096.n96"].map(|sizes| {
            numbers(&on.estimate(&format!("add_layernorm/f32/{sizes}").parse().unwrap()))
        });
        assert_ne!(wide, high, "{file}");
    }
}
