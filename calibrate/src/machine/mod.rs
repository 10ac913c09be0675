//! Which machine this is, and whether it is the one that was asked for.
//!
//! What is measured always describes the observed machine: a profile under a wrong name would
//! poison every decision based on it.

pub mod fingerprint;
mod known_states;
mod lock;
pub mod preflight;
mod system_files;

use cli_support::say;
use fusion_cost_model::calibration::{Fingerprint, MeasuredCeilings, ObservedGpu};
use fusion_cost_model::hardware::{
    Cache, CacheKind, Cores, HARDWARE_SCHEMA_VERSION, HardwareSpec, Memory, OBSERVED, Peak,
    Processor,
};

use fusion_cost_model::{CacheState, Clock, FileKind};

use crate::exit::UsageError;
use crate::profiles;

pub use known_states::KnownStates;
pub use lock::MachineLock;

/// The value of `--hardware` that asks for whatever is there.
pub const AUTO: &str = "auto";

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
        let (kind, name) = observed(&fingerprint);
        let detect = |spec: &HardwareSpec| spec.processor == kind && spec.is_detected_as(name);
        let can_be = |spec: &HardwareSpec| spec.processor == kind && spec.can_be(name);
        let data_sheet = profiles::hardware()?.into_iter().find(detect);
        let (matches, data_sheet) = if requested == AUTO {
            (true, data_sheet)
        } else {
            let wanted = profiles::find_hardware(requested)?;
            if can_be(&wanted) { (true, Some(wanted)) } else { (false, data_sheet) }
        };
        Ok(Self { requested: requested.to_owned(), matches, fingerprint, data_sheet })
    }

    /// The name of the observed machine.
    #[must_use]
    pub fn name(&self) -> &str {
        self.data_sheet.as_ref().map_or(observed(&self.fingerprint).1, |spec| &spec.name)
    }

    /// The id of the observed machine.
    #[must_use]
    pub fn id(&self) -> String {
        self.data_sheet
            .as_ref()
            .map_or_else(|| slug(observed(&self.fingerprint).1), |spec| spec.id.clone())
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
                "--hardware names {}, but this machine is `{}`; everything that is measured and \
                 written describes this machine",
                self.requested,
                observed(&self.fingerprint).1
            )
        })
    }

    /// Warns on stderr when the machine is not the requested one.
    ///
    /// # Errors
    ///
    /// [`UsageError`] instead, where the requested machine is required.
    pub fn warn_of_mismatch(&self, is_required: bool) -> Result<(), UsageError> {
        match self.mismatch() {
            Some(mismatch) if is_required => {
                Err(UsageError(format!("{mismatch}; --require-hardware refuses that")))
            }
            Some(mismatch) => {
                say!("warning: {mismatch}");
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The data sheet, or a specification written from what was observed and measured.
    #[must_use]
    pub fn spec(&self, ceilings: &[MeasuredCeilings]) -> HardwareSpec {
        if let Some(spec) = &self.data_sheet {
            return spec.clone();
        }
        if let Some(gpu) = &self.fingerprint.gpu {
            return self.gpu_spec(gpu, ceilings);
        }
        let Fingerprint { cpu_model, cpu_vendor, physical_cores, logical_cores, caches, .. } =
            &self.fingerprint;
        HardwareSpec {
            kind: FileKind::Hardware,
            schema_version: HARDWARE_SCHEMA_VERSION,
            id: self.id(),
            name: cpu_model.clone(),
            vendor: cpu_vendor.clone(),
            processor: Processor::Cpu,
            architecture: std::env::consts::ARCH.to_owned(),
            aliases: Vec::new(),
            detect: vec![cpu_model.clone()],
            detect_except: Vec::new(),
            detect_if_named: Vec::new(),
            cores: Cores {
                // Of all cores, a process may be allowed to use a few.
                count: physical_cores.unwrap_or(*logical_cores).min(*logical_cores),
                threads: Some(*logical_cores),
                base_clock_mhz: None,
                boost_clock_mhz: None,
                note: None,
                source: OBSERVED.to_owned(),
            },
            memory: memory(ceilings, None),
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
                .filter(|ceilings| ceilings.cache_state == CacheState::Warm)
                .map(|ceilings| Peak {
                    dtype: ceilings.dtype,
                    gflops: ceilings.ceilings.peak_gflops,
                    unit: self.fingerprint.peak_unit(ceilings.dtype),
                    how: format!("no data sheet; measured on {} threads", ceilings.threads),
                    source: OBSERVED.to_owned(),
                })
                .collect(),
        }
    }
}

impl Machine {
    fn gpu_spec(&self, gpu: &ObservedGpu, ceilings: &[MeasuredCeilings]) -> HardwareSpec {
        let (_, name) = observed(&self.fingerprint);
        #[expect(clippy::cast_precision_loss, reason = "a size for people")]
        let capacity_gib = gpu.memory_bytes as f64 / f64::from(1 << 30);
        let cache = Cache {
            level: 2,
            kind: CacheKind::Unified,
            bytes: gpu.l2_bytes,
            instances: 1,
            note: None,
            source: OBSERVED.to_owned(),
        };
        let of_device = ceilings.iter().filter(|ceilings| {
            (ceilings.clock, ceilings.cache_state) == (Clock::Device, CacheState::Warm)
        });
        HardwareSpec {
            kind: FileKind::Hardware,
            schema_version: HARDWARE_SCHEMA_VERSION,
            id: self.id(),
            name: name.to_owned(),
            vendor: if gpu.architecture.starts_with("gfx") { "AMD" } else { "NVIDIA" }.to_owned(),
            processor: Processor::Gpu,
            architecture: gpu.architecture.clone(),
            aliases: Vec::new(),
            detect: vec![name.to_owned()],
            detect_except: Vec::new(),
            detect_if_named: Vec::new(),
            cores: Cores {
                count: gpu.processors,
                threads: None,
                base_clock_mhz: None,
                boost_clock_mhz: (gpu.clock_mhz > 0).then_some(gpu.clock_mhz),
                note: None,
                source: OBSERVED.to_owned(),
            },
            memory: memory(ceilings, Some(capacity_gib)),
            // A driver that does not know it says 0.
            caches: Some(cache).filter(|cache| cache.bytes > 0).into_iter().collect(),
            peaks: of_device
                .map(|ceilings| Peak {
                    dtype: ceilings.dtype,
                    gflops: ceilings.ceilings.peak_gflops,
                    unit: self.fingerprint.peak_unit(ceilings.dtype),
                    how: "no data sheet; measured with a GEMM".to_owned(),
                    source: OBSERVED.to_owned(),
                })
                .collect(),
        }
    }
}

/// The processor that kernels run on: what it is, and the name that it reports. A GPU without a
/// name goes by its architecture.
fn observed(fingerprint: &Fingerprint) -> (Processor, &str) {
    match &fingerprint.gpu {
        None => (Processor::Cpu, &fingerprint.cpu_model),
        Some(gpu) if gpu.name.is_empty() => (Processor::Gpu, &gpu.architecture),
        Some(gpu) => (Processor::Gpu, &gpu.name),
    }
}

/// The memory by the highest bandwidth that was measured at the largest working set.
fn memory(ceilings: &[MeasuredCeilings], capacity_gib: Option<f64>) -> Memory {
    let in_memory = ceilings.iter().filter_map(|ceilings| ceilings.ceilings.bandwidth.last());
    let bandwidth = in_memory.map(|point| point.gb_per_s).reduce(f64::max);
    let kind = match bandwidth {
        Some(_) => "no data sheet; the bandwidth is the measured one",
        None => "no data sheet, and the bandwidth could not be measured",
    };
    Memory {
        bandwidth_gb_per_s: bandwidth.unwrap_or(0.0),
        capacity_gib,
        kind: kind.to_owned(),
        source: OBSERVED.to_owned(),
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
            gpu: None,
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
    fn a_user_names_what_the_system_calls_like_others() {
        for (reported, id) in [
            ("Neoverse-V2", "grace"),
            ("Neoverse-N1", "ampere-altra-max"),
            ("Apple M4 Max", "m4-max"),
        ] {
            let observed = fingerprint(reported);
            let alone = Machine::identify("auto", observed.clone()).unwrap();
            assert!(!alone.has_data_sheet(), "{reported}");
            let named = Machine::identify(id, observed).unwrap();
            assert_eq!((named.matches, named.id().as_str()), (true, id));
            assert!(named.spec(&[]).can_be(reported));
        }
        let other = Machine::identify("grace", fingerprint("Neoverse-N1")).unwrap();
        assert!(!other.matches && !other.has_data_sheet());
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

    fn with_gpu(name: &str) -> Fingerprint {
        let gpu = ObservedGpu {
            name: name.to_owned(),
            architecture: "sm_90a".to_owned(),
            processors: 132,
            memory_bytes: 141 << 30,
            l2_bytes: 60 << 20,
            clock_mhz: 1980,
            bus_id: "0000:3b:00.0".to_owned(),
            driver: "1".to_owned(),
            runtime: "2".to_owned(),
            compiler: "3".to_owned(),
            libraries: Vec::new(),
        };
        Fingerprint { gpu: Some(gpu), ..fingerprint("12th Gen Intel(R) Core(TM) i7-12700K") }
    }

    #[test]
    fn a_gpu_is_known_by_its_own_name_and_not_by_its_hosts() {
        for (name, id) in [
            ("NVIDIA H200", "h200"),
            ("NVIDIA H100 80GB HBM3", "h100-sxm"),
            ("AMD Instinct MI300X", "mi300x"),
            ("NVIDIA H200 NVL", "nvidia-h200-nvl"),
            ("Some GPU", "some-gpu"),
            ("", "sm-90a"),
        ] {
            assert_eq!(Machine::identify("auto", with_gpu(name)).unwrap().id(), id, "{name}");
        }
        assert!(Machine::identify("h200", with_gpu("NVIDIA H200")).unwrap().matches);
        let other = Machine::identify("h200", with_gpu("Some GPU")).unwrap();
        assert!(!other.matches && other.mismatch().unwrap().contains("`Some GPU`"));
        let host = Machine::identify("i7-12700k", with_gpu("NVIDIA H200")).unwrap();
        assert_eq!((host.matches, host.id().as_str()), (false, "h200"));
    }

    #[test]
    fn a_gpu_without_a_data_sheet_is_described_as_observed() {
        let mut spec = Machine::identify("auto", with_gpu("Some GPU")).unwrap().spec(&[]);
        assert!(spec.memory.kind.ends_with("could not be measured"), "{spec:?}");
        spec.memory.bandwidth_gb_per_s = 4000.0;
        assert_eq!((spec.processor, spec.cores.count), (Processor::Gpu, 132));
        assert_eq!((spec.caches[0].bytes, spec.memory.capacity_gib), (60 << 20, Some(141.0)));
        let text = toml::to_string(&spec).unwrap();
        assert_eq!(HardwareSpec::from_toml(&text).unwrap(), spec);
    }

    #[test]
    fn a_gpus_name_never_matches_a_cpu() {
        let machine = Machine::identify("h200", fingerprint("NVIDIA H200")).unwrap();
        assert!(!machine.matches);
    }
}
