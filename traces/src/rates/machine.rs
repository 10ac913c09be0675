//! What a machine can do by its data sheet.

use fusion_cost_model::DType;
use fusion_cost_model::hardware::HardwareSpec;
use serde::Serialize;

use crate::Trace;

/// The peaks of a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Machine {
    /// The id of its data sheet.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The bandwidth of its memory in 10^9 bytes per second.
    pub bandwidth_gb_per_s: f64,
    /// The peak rate of each dtype in 10^9 operations per second, without sparsity.
    pub peaks: Vec<(DType, f64)>,
}

impl Machine {
    /// The peaks of a data sheet.
    #[must_use]
    pub fn of(spec: &HardwareSpec) -> Self {
        let peak = |dtype: DType| Some((dtype, spec.peak_gflops(dtype)?));
        Self {
            id: spec.id.clone(),
            name: spec.name.clone(),
            bandwidth_gb_per_s: spec.memory.bandwidth_gb_per_s,
            peaks: DType::ALL.into_iter().filter_map(peak).collect(),
        }
    }

    /// The machine that a trace was recorded on, by the name of its device: the one data sheet
    /// that fits, if all devices that ran something have one name.
    #[must_use]
    pub fn detected<'s>(trace: &Trace, known: &'s [HardwareSpec]) -> Option<&'s HardwareSpec> {
        let names = trace.metadata.devices.iter().map(|device| device.name.as_str());
        let mut names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        names.dedup();
        let &[name] = names.as_slice() else { return None };
        let mut fitting = known.iter().filter(|spec| spec.is_detected_as(name));
        let first = fitting.next();
        if fitting.next().is_none() { first } else { None }
    }

    /// The peak rate of a dtype in 10^9 operations per second.
    #[must_use]
    pub fn peak_gflops(&self, dtype: DType) -> Option<f64> {
        self.peaks.iter().find(|(known, _)| *known == dtype).map(|(_, peak)| *peak)
    }
}
