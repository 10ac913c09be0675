//! Calibration files.

use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::{FusionCostModel, Problem};

use super::text;
use crate::Target;

/// What is read is written and read again as it was, and can be asked about anything.
pub(super) const CALIBRATION: Target = Target {
    name: "calibration",
    seeds: || {
        let whole = include_str!("../../../tests/data/example.toml");
        let whole = HardwareCalibration::from_toml(whole).unwrap();
        let seeds = [with_one_record(whole.clone()), without_ceilings(whole)];
        seeds.map(|seed| seed.to_toml().unwrap().into_bytes()).to_vec()
    },
    run: |bytes| text(bytes, read),
};

/// A measured problem, one of its chain, and one that a file may know nothing about.
const PROBLEMS: [&str; 3] = [
    "linear_bias_relu/f32/m64.k64.n64",
    "add_relu/f32/m4096.n1024",
    "attention_head/f32/b1.h2.q32.d32",
];

fn read(text: &str) -> String {
    let calibration = match HardwareCalibration::from_toml(text) {
        Ok(calibration) => calibration,
        Err(error) => {
            let is_expected = error.is_invalid_file() || error.is_wrong_file();
            assert!(is_expected || error.is_other_version(), "{error}");
            return error.to_string();
        }
    };
    let written = calibration.to_toml().expect("what is read can be written");
    let again = HardwareCalibration::from_toml(&written).expect("what is written can be read");
    assert!(again == calibration, "another calibration was written");
    let model = FusionCostModel::new(calibration);
    for &target in model.targets() {
        for problem in PROBLEMS {
            let problem: Problem = problem.parse().unwrap();
            let estimate = model.on(target).estimate(&problem);
            for interval in [estimate.speedup(), estimate.unfused_ms(), estimate.fused_ms()] {
                let Some(found) = interval else { continue };
                assert!(
                    found.low <= found.value && found.value <= found.high,
                    "{target}: {problem}: {found:?}"
                );
            }
        }
    }
    String::new()
}

/// One record with the ceilings that its own follow from, and no more of the rest than an entry of each
/// kind: it is read several times as fast.
fn with_one_record(mut calibration: HardwareCalibration) -> HardwareCalibration {
    calibration.records.truncate(1);
    calibration.num_records = 1;
    calibration.checks.truncate(1);
    calibration.noise.truncate(1);
    calibration.tool.crates.truncate(1);
    calibration
}

/// Two records without ceilings, which are most of the lines of a file.
fn without_ceilings(mut calibration: HardwareCalibration) -> HardwareCalibration {
    calibration.records.drain(..1);
    calibration.num_records = calibration.records.len() as u64;
    calibration.checks.clear();
    calibration.ceilings.clear();
    for record in &mut calibration.records {
        record.ceiling_speedup = None;
        (record.bottleneck_unfused, record.bottleneck_fused) = (None, None);
    }
    calibration
}
