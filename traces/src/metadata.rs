//! What a trace says about its run, apart from the events.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::number::scaled;
use crate::repair::repaired;

/// What a trace says about its run. Every part may be missing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Metadata {
    /// The devices of the machine, also those that the run did not use.
    pub devices: Vec<Device>,
    /// The version of AMD's tracer.
    pub roctracer_version: Option<String>,
    /// The version of NVIDIA's tracer.
    pub cupti_version: Option<String>,
    /// The version of the CUDA runtime.
    pub cuda_runtime_version: Option<String>,
    /// The version of the HIP runtime.
    pub hip_runtime_version: Option<String>,
    /// The place in a run over several processes.
    pub distributed: Option<Distributed>,
    /// The zero of the trace's times, in nanoseconds since 1970.
    pub base_time_ns: Option<i64>,
    /// The name of the file when it was recorded.
    pub trace_name: Option<String>,
    /// The profiler's id of the recording.
    pub trace_id: Option<String>,
    /// Who makes the profiler that recorded it, if its format shows that.
    pub profiler: Option<Vendor>,
    /// Whether Python calls were recorded.
    pub with_stack: bool,
    /// Whether the shapes of inputs were recorded.
    pub record_shapes: bool,
}

/// A device, as the runtime describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Device {
    /// Its number.
    pub id: i64,
    /// Its name, which may be empty.
    pub name: String,
    /// Its memory.
    pub memory_bytes: Option<u64>,
    /// Streaming multiprocessors or compute units.
    pub multiprocessors: Option<u64>,
    /// Threads that run in step: 32 or 64.
    pub warp_size: Option<u64>,
    /// The version of its instruction set.
    pub compute_capability: Option<(u64, u64)>,
}

/// The place in a run over several processes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Distributed {
    /// The library for collectives.
    pub backend: Option<String>,
    /// The number of the process.
    pub rank: Option<u64>,
    /// How many there are.
    pub world_size: Option<u64>,
}

/// Who made the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Vendor {
    /// AMD.
    #[serde(rename = "AMD")]
    Amd,
    /// NVIDIA.
    #[serde(rename = "NVIDIA")]
    Nvidia,
    /// Nothing in the trace shows it.
    #[serde(rename = "unknown")]
    Unknown,
}

impl Vendor {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amd => "AMD",
            Self::Nvidia => "NVIDIA",
            Self::Unknown => "unknown",
        }
    }
}

impl Metadata {
    /// Who made the devices. A profiler of one vendor records its own; AMD's tracer and warps of 64
    /// are certain signs. A warp of 32 shows NVIDIA only without any sign of AMD, whose smaller
    /// devices have it as well.
    #[must_use]
    pub fn vendor(&self) -> Vendor {
        if let Some(vendor) = self.profiler {
            return vendor;
        }
        let warp = |size| self.devices.iter().any(|device| device.warp_size == Some(size));
        let named = |part: &str| self.devices.iter().any(|device| device.name.contains(part));
        if self.roctracer_version.is_some()
            || self.hip_runtime_version.is_some()
            || warp(64)
            || named("AMD")
        {
            Vendor::Amd
        } else if self.cupti_version.is_some()
            || self.cuda_runtime_version.is_some()
            || named("NVIDIA")
            || warp(32)
        {
            Vendor::Nvidia
        } else {
            Vendor::Unknown
        }
    }

    /// Takes in a value of the top level of a trace; whether it could be read.
    pub(crate) fn set(&mut self, key: &str, text: &[u8]) -> bool {
        let known = [
            "deviceProperties",
            "roctracer_version",
            "cupti_version",
            "cuda_runtime_version",
            "hip_runtime_version",
            "distributedInfo",
            "baseTimeNanoseconds",
            "traceName",
            "trace_id",
            "with_stack",
            "record_shapes",
        ];
        if !known.contains(&key) {
            return true;
        }
        // Not by way of a value: it has room for 64 bits only.
        if key == "baseTimeNanoseconds" {
            let digits = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
            let time = scaled(digits.unwrap_or(text), 0);
            self.base_time_ns = time.and_then(|time| time.try_into().ok());
            return self.base_time_ns.is_some() || text == b"null";
        }
        let value = match serde_json::from_slice(text) {
            Ok(value) => value,
            Err(_) => match serde_json::from_str(&repaired(text)) {
                Ok(value) => value,
                Err(_) => return false,
            },
        };
        match key {
            "deviceProperties" => {
                let Value::Array(devices) = &value else { return value.is_null() };
                self.devices = devices.iter().filter_map(device).collect();
                return self.devices.len() == devices.len();
            }
            "roctracer_version" => self.roctracer_version = text_of(&value),
            "cupti_version" => self.cupti_version = text_of(&value),
            "cuda_runtime_version" => self.cuda_runtime_version = text_of(&value),
            "hip_runtime_version" => self.hip_runtime_version = text_of(&value),
            "distributedInfo" => {
                let has_any = value.as_object().is_some_and(|object| !object.is_empty());
                self.distributed = has_any.then(|| Distributed {
                    backend: text_of(&value["backend"]),
                    rank: value["rank"].as_u64(),
                    world_size: value["world_size"].as_u64(),
                });
            }
            "traceName" => self.trace_name = text_of(&value),
            "trace_id" => self.trace_id = text_of(&value),
            "with_stack" => self.with_stack = is_set(&value),
            _ => self.record_shapes = is_set(&value),
        }
        true
    }
}

fn device(value: &Value) -> Option<Device> {
    let object = value.as_object()?;
    let number = |key| object.get(key).and_then(Value::as_u64);
    Some(Device {
        id: object.get("id").and_then(Value::as_i64).unwrap_or(-1),
        name: object.get("name").and_then(text_of).unwrap_or_default(),
        memory_bytes: number("totalGlobalMem"),
        multiprocessors: number("numSms"),
        warp_size: number("warpSize"),
        compute_capability: number("computeMajor").zip(number("computeMinor")),
    })
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn is_set(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| value.as_f64().is_some_and(|number| number != 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors() {
        let mut metadata = Metadata::default();
        assert_eq!(metadata.vendor(), Vendor::Unknown);
        assert!(metadata.set("deviceProperties", br#"[{"id": 0, "name": "", "warpSize": 32}]"#));
        assert_eq!(metadata.vendor(), Vendor::Nvidia);
        assert!(metadata.set("roctracer_version", b"4.1"));
        assert_eq!(metadata.vendor(), Vendor::Amd);
        assert_eq!(metadata.roctracer_version.as_deref(), Some("4.1"));
    }

    #[test]
    fn odd_metadata() {
        let mut metadata = Metadata::default();
        assert!(metadata.set("deviceProperties", b"[]"));
        assert!(!metadata.set("deviceProperties", b"[3]"));
        assert!(!metadata.set("distributedInfo", b"{\"rank\": }"));
        assert!(metadata.set("distributedInfo", b"{}"));
        assert_eq!(metadata.distributed, None);
        assert!(metadata.set("traceName", b"\"a\xff\tb\""));
        assert_eq!(metadata.trace_name.as_deref(), Some("a\u{fffd}\tb"));
        assert!(metadata.set("baseTimeNanoseconds", b"1751410836000000000"));
        assert_eq!(metadata.base_time_ns, Some(1_751_410_836_000_000_000));
        assert!(!metadata.set("baseTimeNanoseconds", b"99999999999999999999"));
        assert!(metadata.set("unknown", b"whatever"));
    }
}
