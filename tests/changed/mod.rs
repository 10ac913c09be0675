//! A calibration that a test has changed, as a reader sees it.

use fusion_cost_model::calibration::{Addition, HardwareCalibration};

/// What a test does to a calibration.
pub(crate) type Change<'a> = &'a dyn Fn(&mut HardwareCalibration);

/// Reads a calibration after a change; the message of the error.
pub(crate) fn read(calibration: &HardwareCalibration, change: Change<'_>) -> Result<(), String> {
    let mut changed = calibration.clone();
    change(&mut changed);
    assert_ne!(&changed, calibration, "nothing was changed");
    let text = changed.to_toml().unwrap();
    HardwareCalibration::from_toml(&text).map(drop).map_err(|error| error.to_string())
}

/// A calibration with another run behind it, which added nothing.
pub(crate) fn grown(mut calibration: HardwareCalibration) -> HardwareCalibration {
    calibration.additions.push(Addition {
        started_at: "2026-11-25T00:00:00Z".to_owned(),
        shapes: "standard".to_owned(),
        seed: 1,
        quick: false,
        forced: false,
        records: 0,
    });
    calibration
}
