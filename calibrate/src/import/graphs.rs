//! The JSON of branes-ai/graphs, as far as it is used. What else is there is named.

use std::collections::BTreeMap;
use std::fmt::{self, Formatter};
use std::marker::PhantomData;

use anyhow::{Context, bail};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

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
    #[serde(default, deserialize_with = "distinct")]
    pub(super) operation_profiles: BTreeMap<String, Value>,
    #[serde(default, deserialize_with = "distinct")]
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
    pub(super) cpu_count: u32,
    pub(super) total_memory_gb: Option<f64>,
    pub(super) pytorch_version: Option<String>,
    pub(super) device_type: Option<String>,
    pub(super) cpu_clock: Option<CpuClock>,
    pub(super) gpu_clock: Option<GpuClock>,
    pub(super) preflight: Option<Preflight>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CpuClock {
    pub(super) current_freq_mhz: Option<f64>,
    pub(super) max_freq_mhz: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct GpuClock {
    pub(super) sm_clock_mhz: Option<f64>,
    pub(super) max_sm_clock_mhz: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Preflight {
    #[serde(default)]
    pub(super) forced: bool,
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
    /// The flops that its rate was made with.
    pub(super) fn flops(&self) -> f64 {
        self.unfused_gflops * self.unfused_latency_ms * 1e6
    }
}

/// A map in which no key is there twice: the second entry would take the place of the first.
fn distinct<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Entries<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
        type Value = BTreeMap<String, T>;
        fn expecting(&self, out: &mut Formatter<'_>) -> fmt::Result {
            out.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = BTreeMap::new();
            while let Some((key, value)) = map.next_entry::<String, T>()? {
                if entries.contains_key(&key) {
                    return Err(A::Error::custom(format!("{key} is there twice; keep one")));
                }
                entries.insert(key, value);
            }
            Ok(entries)
        }
    }
    deserializer.deserialize_map(Entries(PhantomData))
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
    serde_json::from_str(text).map_err(|error| anyhow::anyhow!("{WHAT}: {error}"))
}
