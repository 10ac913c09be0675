//! Profiles of other calibrators, in their JSON and as they were imported.

use calibrate::import;
use fusion_cost_model::imported::ImportedProfile;

use super::text;
use crate::Target;

const IMPORTED_PROFILE: &str =
    include_str!("../../../calibrate/profiles/calibrations/i7-12700k-imported.toml");

/// What is read is written and read again as it was.
pub(super) const IMPORTED: Target = Target {
    name: "imported",
    seeds: || vec![IMPORTED_PROFILE.into()],
    run: |bytes| {
        text(bytes, |text| match ImportedProfile::from_toml(text) {
            Ok(profile) => {
                written(&profile, &profile.to_toml().expect("what is read can be written"));
                String::new()
            }
            Err(error) => error.to_string(),
        })
    },
};

/// What can be imported is written and read again as it was, or has a number that no file may have.
pub(super) const IMPORT_JSON: Target = Target {
    name: "import_json",
    seeds: || vec![PROFILE.into()],
    run: |bytes| {
        text(bytes, |text| match import::from_json(text, "a.json") {
            Ok(profile) => match profile.to_toml() {
                Ok(text) => {
                    written(&profile, &text);
                    profile.notes.concat()
                }
                Err(error) => error.to_string(),
            },
            Err(error) => format!("{error:#}"),
        })
    },
};

fn written(profile: &ImportedProfile, text: &str) {
    let again = ImportedProfile::from_toml(text).expect("what is written can be read");
    assert!(again == *profile, "another profile was written: {text}");
}

/// A profile with a record of each kind.
const PROFILE: &str = r#"{
  "metadata": {
    "hardware_name": "i7-12700K-test", "calibration_date": "2025-11-05T20:58:12",
    "calibration_tool_version": "1.0.0", "cpu_model": "x86_64", "cpu_count": 12,
    "total_memory_gb": 31.09, "pytorch_version": "2.7.1", "device_type": "cpu",
    "cpu_clock": {"current_freq_mhz": 800.0, "max_freq_mhz": 5000.0},
    "gpu_clock": {"sm_clock_mhz": 210.0, "max_sm_clock_mhz": 1980.0},
    "preflight": {"forced": true}
  },
  "theoretical_peak_gflops": 1280.0, "theoretical_bandwidth_gbps": 89.6,
  "best_measured_gflops": 772.4, "measured_bandwidth_gbps": 51.96,
  "bandwidth_efficiency": 1.039, "best_efficiency": 0.7724,
  "operation_profiles": {"matmul_1024": {"operation_type": "matmul"}},
  "fusion_profiles": {
    "Linear_Bias": {
      "fusion_pattern": "Linear_Bias", "operators": ["Linear", "Bias"],
      "unfused_latency_ms": 2.0, "unfused_gflops": 537.1330, "unfused_memory_bytes": 12587008,
      "fused_latency_ms": 1.6, "fused_gflops": 671.4163, "fused_memory_bytes": 8392704,
      "speedup_factor": 1.5, "input_shape": [512, 1024, 1024]
    },
    "QK_Softmax": {
      "fusion_pattern": "QK_Softmax", "operators": ["MatMul", "Softmax"],
      "unfused_latency_ms": 0.2, "unfused_gflops": 10.0, "unfused_memory_bytes": 1000,
      "fused_latency_ms": 0.1, "fused_memory_bytes": 500,
      "speedup_factor": 2.0, "input_shape": [4, 64, 64]
    },
    "Conv2d_ReLU": {
      "fusion_pattern": "Conv2d_ReLU", "operators": ["Conv2d", "ReLU"],
      "unfused_latency_ms": 0.11, "unfused_gflops": 305.0, "unfused_memory_bytes": 3670016,
      "fused_latency_ms": 0.10, "fused_memory_bytes": 1572864,
      "speedup_factor": 1.1, "input_shape": [1, 3, 16, 16]
    }
  }
}"#;
