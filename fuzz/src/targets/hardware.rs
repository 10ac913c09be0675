//! Data sheets.

use fusion_cost_model::DType;
use fusion_cost_model::hardware::HardwareSpec;

use super::text;
use crate::Target;

/// What is read is called by its own name and has rates that are rates.
pub(super) const HARDWARE: Target = Target {
    name: "hardware",
    seeds: || {
        [
            include_str!("../../../calibrate/profiles/hardware/i7-12700k.toml"),
            include_str!("../../../calibrate/profiles/hardware/h200.toml"),
            include_str!("../../../calibrate/profiles/hardware/mi300x.toml"),
        ]
        .map(Into::into)
        .to_vec()
    },
    run: |bytes| text(bytes, read),
};

fn read(text: &str) -> String {
    match HardwareSpec::from_toml(text) {
        Ok(spec) => {
            assert!(spec.is_called(&spec.id), "{:?}", spec.id);
            assert!(!spec.is_detected_as(""), "a machine without a name is none of them");
            let peaks = DType::ALL.into_iter().filter_map(|dtype| spec.peak_gflops(dtype));
            assert!(
                peaks.into_iter().all(|peak| peak.is_finite() && peak > 0.0),
                "{:?}",
                spec.peaks
            );
            String::new()
        }
        Err(error) => error.to_string(),
    }
}
