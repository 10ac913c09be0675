//! Which machine this is, and whether it is the one that was asked for.
//!
//! What is measured always describes the observed machine: a profile under a wrong name would
//! poison every decision based on it.

use fusion_cost_model::calibration::{Fingerprint, MeasuredCeilings};
use fusion_cost_model::hardware::{
    Cache, CacheKind, Cores, HARDWARE_SCHEMA_VERSION, HardwareKind, HardwareSpec, Memory, Peak,
    PeakUnit,
};

use crate::profiles;

/// The value of `--hardware` that asks for whatever is there.
pub const AUTO: &str = "auto";

/// Where the figures of an observed machine come from.
const OBSERVED: &str = "observed by calibrate";

/// The machine that kernels will run on.
#[derive(Debug, Clone)]
pub struct Machine {
    /// What was asked for.
    pub requested: String,
    /// Whether the observed machine is the requested one; `auto` is always met.
    pub matches: bool,
    /// What was observed.
    pub fingerprint: Fingerprint,
    /// The data sheet of the observed machine, if there is one.
    data_sheet: Option<HardwareSpec>,
}

impl Machine {
    /// Observes the machine and compares it with the requested one.
    ///
    /// # Errors
    ///
    /// When the request is neither a known machine nor a readable hardware file.
    pub fn identify(requested: &str, fingerprint: Fingerprint) -> anyhow::Result<Self> {
        let detect = |spec: &HardwareSpec| {
            spec.kind == HardwareKind::Cpu && spec.is_detected_as(&fingerprint.cpu_model)
        };
        let data_sheet = profiles::hardware()?.into_iter().find(detect);
        let (matches, data_sheet) = if requested == AUTO {
            (true, data_sheet)
        } else {
            let wanted = profiles::find_hardware(requested)?;
            if detect(&wanted) { (true, Some(wanted)) } else { (false, data_sheet) }
        };
        Ok(Self { requested: requested.to_owned(), matches, fingerprint, data_sheet })
    }

    /// The name of the observed machine.
    #[must_use]
    pub fn name(&self) -> &str {
        self.data_sheet.as_ref().map_or(&self.fingerprint.cpu_model, |spec| &spec.name)
    }

    /// The id of the observed machine.
    #[must_use]
    pub fn id(&self) -> String {
        self.data_sheet
            .as_ref()
            .map_or_else(|| slug(&self.fingerprint.cpu_model), |spec| spec.id.clone())
    }

    /// Whether a data sheet of the observed machine is known.
    #[must_use]
    pub fn has_data_sheet(&self) -> bool {
        self.data_sheet.is_some()
    }

    /// Says that the machine is not the requested one, if it is not.
    #[must_use]
    pub fn mismatch(&self) -> Option<String> {
        (!self.matches).then(|| {
            format!(
                "--hardware {} was asked for, but this machine is `{}`; everything that is \
                 measured and written describes this machine",
                self.requested, self.fingerprint.cpu_model
            )
        })
    }

    /// The data sheet, or a specification written from what was observed and measured.
    #[must_use]
    pub fn spec(&self, ceilings: &[MeasuredCeilings]) -> HardwareSpec {
        if let Some(spec) = &self.data_sheet {
            return spec.clone();
        }
        let Fingerprint { cpu_model, cpu_vendor, physical_cores, logical_cores, caches, .. } =
            &self.fingerprint;
        let in_memory = ceilings.iter().filter_map(|ceilings| ceilings.limits.bandwidth.last());
        let bandwidth = in_memory.map(|point| point.gb_per_s).fold(f64::MIN_POSITIVE, f64::max);
        HardwareSpec {
            schema_version: HARDWARE_SCHEMA_VERSION,
            id: self.id(),
            name: cpu_model.clone(),
            vendor: cpu_vendor.clone(),
            kind: HardwareKind::Cpu,
            architecture: std::env::consts::ARCH.to_owned(),
            aliases: Vec::new(),
            detect: vec![cpu_model.clone()],
            detect_except: Vec::new(),
            cores: Cores {
                count: physical_cores.unwrap_or(*logical_cores),
                threads: Some(*logical_cores),
                base_clock_mhz: None,
                boost_clock_mhz: None,
                note: None,
                source: OBSERVED.to_owned(),
            },
            memory: Memory {
                bandwidth_gb_per_s: bandwidth,
                capacity_gib: None,
                kind: "no data sheet; the bandwidth is the measured one".to_owned(),
                source: OBSERVED.to_owned(),
            },
            caches: caches
                .iter()
                .map(|cache| Cache {
                    level: cache.level,
                    kind: if cache.level == 1 { CacheKind::Data } else { CacheKind::Unified },
                    bytes: cache.bytes,
                    instances: (logical_cores / cache.shared_by).max(1),
                    note: None,
                    source: OBSERVED.to_owned(),
                })
                .collect(),
            peaks: ceilings
                .iter()
                .map(|ceilings| Peak {
                    dtype: ceilings.dtype,
                    gflops: ceilings.limits.peak_gflops,
                    unit: PeakUnit::Vector,
                    how: format!("no data sheet; measured on {} threads", ceilings.threads),
                    source: OBSERVED.to_owned(),
                })
                .collect(),
        }
    }
}

/// A name in lower-case letters, digits and single dashes.
fn slug(name: &str) -> String {
    let lower = name.to_lowercase().replace("(r)", " ").replace("(tm)", " ");
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-");
    if slug.is_empty() { "unknown".to_owned() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(cpu_model: &str) -> Fingerprint {
        Fingerprint {
            cpu_model: cpu_model.to_owned(),
            cpu_vendor: "GenuineIntel".to_owned(),
            physical_cores: Some(2),
            logical_cores: 4,
            features: Vec::new(),
            caches: Vec::new(),
            memory_bytes: 1 << 30,
            os: "test".to_owned(),
            kernel: None,
            virtualized: None,
            cpu_family_model_stepping: None,
            microcode: None,
            governor: None,
            turbo: None,
            huge_pages: None,
        }
    }

    #[test]
    fn the_requested_machine_has_its_data_sheet() {
        let observed = fingerprint("12th Gen Intel(R) Core(TM) i7-12700K");
        for requested in ["i7-12700K", "auto"] {
            let machine = Machine::identify(requested, observed.clone()).unwrap();
            assert!(machine.matches && machine.mismatch().is_none());
            assert_eq!(machine.id(), "i7-12700k");
            assert_eq!(machine.spec(&[]).cores.count, 12);
        }
    }

    #[test]
    fn another_machine_is_never_given_the_requested_name() {
        let observed = fingerprint("Intel(R) Xeon(R) Processor");
        let machine = Machine::identify("i7-12700K", observed).unwrap();
        assert!(!machine.matches);
        assert!(machine.mismatch().unwrap().contains("Intel(R) Xeon(R) Processor"));
        assert_eq!(machine.id(), "intel-xeon-processor");
        let spec = machine.spec(&[]);
        assert_eq!(spec.name, "Intel(R) Xeon(R) Processor");
        assert!(!spec.is_called("i7-12700k"));
        // A known machine that is not the requested one keeps its own data sheet.
        let observed = fingerprint("13th Gen Intel(R) Core(TM) i9-13900K");
        let machine = Machine::identify("i7-12700K", observed).unwrap();
        assert_eq!((machine.matches, machine.id().as_str()), (false, "i9-13900k"));
    }

    #[test]
    fn a_gpus_name_never_matches_a_cpu() {
        let machine = Machine::identify("h200", fingerprint("NVIDIA H200")).unwrap();
        assert!(!machine.matches);
    }
}
