//! Estimates from the committed calibrations, as they were before they were made faster: whoever makes
//! them faster again must not change them. A calibration that is measured anew has other ones.

use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::{FusionCostModel, Interval, Problem, Target};

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// The file, the problem, the evidence, and the lower ends, values and upper ends of the fused time
/// in milliseconds and of the speedup.
const RECORDED: &str = include_str!("data/estimates.tsv");

/// Machines have different logarithms in their last bits, and estimates have six digits.
const DIGITS: f64 = 1e-6;

#[test]
fn the_committed_calibrations_answer_as_before() {
    for file in ["amd-epyc-2-threads", "intel-xeon-2-threads"] {
        let path = format!("{FOLDER}/calibrate/profiles/calibrations/{file}.toml");
        let model = FusionCostModel::new(HardwareCalibration::load(path).unwrap());
        let on = model.on(Target::cpu(2));
        let lines = RECORDED.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let mut asked = 0;
        for line in lines.filter(|line| line[0] == file) {
            let problem: Problem = line[1].parse().unwrap();
            let estimate = on.estimate(&problem);
            assert_eq!(estimate.evidence().name(), line[2], "{file}: {problem}");
            let intervals = [estimate.fused_ms(), estimate.speedup()].map(Option::unwrap);
            let found = intervals.iter().flat_map(|it: &Interval| [it.low, it.value, it.high]);
            for (found, recorded) in found.zip(&line[3..]) {
                let recorded: f64 = recorded.parse().unwrap();
                let is_it = (found / recorded - 1.0).abs() < DIGITS;
                assert!(is_it, "{file}: {problem}: {found}, not {recorded}");
            }
            asked += 1;
        }
        assert!(asked > 100, "{file}: {asked}");
    }
}
