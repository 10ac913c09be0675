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
        vec![whole.into(), with_few_records(whole).into_bytes()]
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
            assert!(error.is_invalid_file() || error.is_wrong_file(), "{error}");
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

/// The example with one record, which is read several times as fast.
fn with_few_records(whole: &str) -> String {
    let mut parts = whole.split("[[fusion]]");
    let (head, record) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let head = head.replace("num_records = 3", "num_records = 1");
    format!("{head}[[fusion]]{record}")
}
