//! The JSON of branes-ai/graphs, as far as it is used. What else is there is named.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;

use super::distinct::DistinctKeys;

/// A calibration profile.
#[derive(Debug, Deserialize)]
pub(super) struct Profile {
    pub(super) metadata: Metadata,
    pub(super) theoretical_peak_gflops: f64,
    pub(super) theoretical_bandwidth_gbps: f64,
    #[serde(default)]
    pub(super) best_measured_gflops: f64,
    #[serde(default)]
    pub(super) measured_bandwidth_gbps: f64,
    pub(super) best_efficiency: Option<f64>,
    pub(super) bandwidth_efficiency: Option<f64>,
    #[serde(default)]
    pub(super) operation_profiles: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) fusion_profiles: BTreeMap<String, Fusion>,
    /// Whatever else is there.
    #[serde(flatten)]
    pub(super) others: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    pub(super) hardware_name: String,
    pub(super) calibration_date: Option<String>,
    pub(super) calibration_tool_version: Option<String>,
    pub(super) cpu_model: Option<String>,
    pub(super) cpu_count: Option<u32>,
    pub(super) total_memory_gb: Option<f64>,
    pub(super) pytorch_version: Option<String>,
    pub(super) device_type: Option<String>,
    pub(super) cpu_clock: Option<CpuClock>,
    pub(super) gpu_clock: Option<GpuClock>,
    pub(super) preflight: Option<Preflight>,
    /// Whatever else is there.
    #[serde(flatten)]
    pub(super) others: BTreeMap<String, Value>,
}

impl Metadata {
    /// Processors of the host; 0 is how the oldest profiles say that nobody knows.
    pub(super) fn processors(&self) -> Option<u32> {
        self.cpu_count.filter(|count| *count > 0)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct CpuClock {
    pub(super) current_freq_mhz: Option<f64>,
    pub(super) max_freq_mhz: Option<f64>,
    #[serde(flatten)]
    pub(super) others: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct GpuClock {
    pub(super) sm_clock_mhz: Option<f64>,
    pub(super) max_sm_clock_mhz: Option<f64>,
    #[serde(flatten)]
    pub(super) others: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Preflight {
    #[serde(default)]
    pub(super) forced: bool,
    #[serde(flatten)]
    pub(super) others: BTreeMap<String, Value>,
}

/// A pattern that was measured fused and unfused.
#[derive(Debug, Deserialize)]
pub(super) struct Fusion {
    pub(super) fusion_pattern: String,
    #[serde(default)]
    pub(super) operators: Vec<String>,
    pub(super) num_operators: Option<u64>,
    pub(super) unfused_latency_ms: f64,
    pub(super) unfused_gflops: f64,
    pub(super) unfused_memory_bytes: u64,
    pub(super) fused_latency_ms: f64,
    pub(super) fused_gflops: Option<f64>,
    pub(super) fused_memory_bytes: u64,
    pub(super) speedup_factor: f64,
    pub(super) memory_reduction: Option<f64>,
    pub(super) gflops_improvement: Option<f64>,
    pub(super) input_shape: Vec<u64>,
    /// Whatever else is there.
    #[serde(flatten)]
    pub(super) others: BTreeMap<String, Value>,
}

impl Fusion {
    /// The flops that its unfused rate was made with.
    pub(super) fn flops(&self) -> f64 {
        self.unfused_gflops * self.unfused_latency_ms * 1e6
    }

    /// The flops that its fused rate was made with.
    pub(super) fn fused_flops(&self) -> Option<f64> {
        Some(self.fused_gflops? * self.fused_latency_ms * 1e6)
    }
}

/// Reads a profile, and says what a file is not.
pub(super) fn read(text: &str) -> anyhow::Result<Profile> {
    const WHAT: &str = "not a calibration profile of branes-ai/graphs";
    let value: Value = serde_json::from_str(text).with_context(|| format!("{WHAT}: no JSON"))?;
    let Some(object) = value.as_object() else { bail!("{WHAT}: it is not an object") };
    if !object.contains_key("metadata") {
        let keys: Vec<&str> = object.keys().take(6).map(String::as_str).collect();
        bail!("{WHAT}: it has no `metadata` at its top level, only {}", keys.join(", "));
    }
    // From the text once more, since only its errors have a line.
    let in_words = |error: serde_json::Error| anyhow::anyhow!("{WHAT}: {error}");
    let _: DistinctKeys = serde_json::from_str(text).map_err(in_words)?;
    serde_json::from_str(text).map_err(in_words)
}
