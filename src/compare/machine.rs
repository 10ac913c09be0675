//! Whether two calibrations are of the same machine, and what changed on it.

use std::fmt::Display;

use serde::Serialize;

use crate::calibration::{
    Fingerprint, HardwareCalibration, ObservedCache, ObservedGpu, Settings, Tool,
};
use crate::imported::ImportedMachine;

/// What the machine of a side has to do with that of the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Another machine, or another target of the same one, as far as is known.
    Other,
    /// The same machine and the same target: a difference is a change.
    Same,
}

/// What is known about the machine of a side.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Machine {
    Observed(Box<(Fingerprint, Tool, Settings)>),
    Imported(ImportedMachine),
}

/// Memory that two readings of the same machine may differ by: what the system keeps for itself
/// changes with its version.
const MEMORY_SHARE: f64 = 0.05;

impl Machine {
    pub(super) fn of(calibration: &HardwareCalibration) -> Self {
        let HardwareCalibration { fingerprint, tool, settings, .. } = calibration;
        Self::Observed(Box::new((fingerprint.clone(), tool.clone(), settings.clone())))
    }

    pub(super) fn of_imported(machine: &ImportedMachine) -> Self {
        Self::Imported(machine.clone())
    }

    /// What makes them two machines, a phrase each: `logical cores 2 and 12`. That is processor, cores,
    /// caches, memory and GPU; what a user can change without a screwdriver may differ.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        match (self, other) {
            (Self::Observed(this), Self::Observed(other)) => hardware(&this.0, &other.0),
            (Self::Imported(this), Self::Imported(other)) => [
                differ("machine", &this.id, &other.id),
                differ("backend", this.backend, other.backend),
                // Nothing is known to differ from an unknown number.
                this.processors
                    .zip(other.processors)
                    .and_then(|(this, other)| differ("processors", this, other)),
            ]
            .into_iter()
            .flatten()
            .collect(),
            _ => vec!["only one of them is an imported profile".to_owned()],
        }
    }

    /// What changed from this one to the other, a phrase each: `microcode 0x1 -> 0x2`.
    pub(super) fn changes(&self, other: &Self) -> Vec<String> {
        let (Self::Observed(this), Self::Observed(other)) = (self, other) else {
            return Vec::new();
        };
        let (before, tool, settings) = &**this;
        let (after, other_tool, other_settings) = &**other;
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        let driver = |one: &Fingerprint| one.gpu.as_ref().map(|gpu| gpu.driver.clone());
        let compiler = |one: &Fingerprint| one.gpu.as_ref().map(|gpu| gpu.compiler.clone());
        let turbo =
            |one: &Fingerprint| one.turbo.map(|on| if on { "on" } else { "off" }.to_owned());
        let quick = |one: &Settings| if one.quick { "quick" } else { "standard" }.to_owned();
        let flags = |one: &Tool| Some(one.compiler_flags.clone()).filter(|flags| !flags.is_empty());
        let all = [
            ("microcode", or_none(&before.microcode), or_none(&after.microcode)),
            ("kernel", or_none(&before.kernel), or_none(&after.kernel)),
            ("system", before.os.clone(), after.os.clone()),
            ("governor", or_none(&before.governor), or_none(&after.governor)),
            ("turbo", or_none(&turbo(before)), or_none(&turbo(after))),
            ("huge pages", or_none(&before.huge_pages), or_none(&after.huge_pages)),
            ("driver", or_none(&driver(before)), or_none(&driver(after))),
            ("compiler of the GPU", or_none(&compiler(before)), or_none(&compiler(after))),
            (tool.name.as_str(), tool.version.clone(), other_tool.version.clone()),
            ("build", tool.build.clone(), other_tool.build.clone()),
            ("compiler", tool.compiler.clone(), other_tool.compiler.clone()),
            ("compiler flags", or_none(&flags(tool)), or_none(&flags(other_tool))),
            ("crates", tool.crates.join(", "), other_tool.crates.join(", ")),
            ("procedure", quick(settings), quick(other_settings)),
        ];
        all.into_iter()
            .filter(|(_, before, after)| before != after)
            .map(|(what, before, after)| format!("{what} {before} -> {after}"))
            .collect()
    }
}

/// A phrase about a fact that differs.
fn differ<T: PartialEq + Display>(what: &str, this: T, other: T) -> Option<String> {
    (this != other).then(|| format!("{what} {this} and {other}"))
}

/// The same of a list, with what only one of both has.
fn lists_differ(what: &str, this: &[String], other: &[String]) -> Option<String> {
    let [these, others] = [(this, other), (other, this)].map(|(one, other)| {
        let only = one.iter().filter(|item| !other.contains(item)).map(String::as_str);
        only.collect::<Vec<_>>().join(", ")
    });
    match (these.as_str(), others.as_str()) {
        ("", "") => None,
        (only, "") => Some(format!("{what} {only} on the first only")),
        ("", only) => Some(format!("{what} {only} on the second only")),
        (these, others) => Some(format!("{what} {these} and {others}")),
    }
}

/// What is equal on one machine and differs here.
fn hardware(this: &Fingerprint, other: &Fingerprint) -> Vec<String> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
    let cores = |one: &Fingerprint| or_none(one.physical_cores.map(|count| count.to_string()));
    let family = |one: &Fingerprint| or_none(one.cpu_family_model_stepping.clone());
    let cache = |one: &ObservedCache| {
        let ObservedCache { level, bytes, shared_by } = *one;
        let of = if shared_by == 1 { "a core".to_owned() } else { format!("{shared_by} cores") };
        let size = match bytes % (1 << 20) {
            0 => format!("{} MiB", bytes >> 20),
            _ => format!("{} KiB", bytes >> 10),
        };
        format!("L{level} of {size} for {of}")
    };
    let caches = |one: &Fingerprint| one.caches.iter().map(cache).collect::<Vec<_>>();
    let gpu = |one: &Fingerprint| {
        let gpu = one.gpu.as_ref();
        or_none(gpu.map(|gpu| {
            let ObservedGpu { name, architecture, processors, memory_bytes, .. } = gpu;
            format!("{name} ({architecture}, {processors} processors, {memory_bytes} bytes)")
        }))
    };
    #[expect(clippy::cast_precision_loss, reason = "a share, and GiB with one decimal")]
    let [gib, other_gib] = [this, other].map(|one| one.memory_bytes as f64 / (1_u64 << 30) as f64);
    let has_other_memory = (gib / other_gib - 1.0).abs() > MEMORY_SHARE;
    [
        differ("processor", &this.cpu_model, &other.cpu_model),
        differ("vendor", &this.cpu_vendor, &other.cpu_vendor),
        differ("family, model and stepping", family(this), family(other)),
        differ("physical cores", cores(this), cores(other)),
        differ("logical cores", this.logical_cores, other.logical_cores),
        lists_differ("features", &this.features, &other.features),
        lists_differ("caches", &caches(this), &caches(other)),
        differ("GPU", gpu(this), gpu(other)),
        has_other_memory.then(|| format!("memory {gib:.1} GiB and {other_gib:.1} GiB")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        let text = include_str!("../../tests/data/example.toml");
        Machine::of(&HardwareCalibration::from_toml(text).unwrap())
    }

    fn changed(change: fn(&mut Fingerprint)) -> Machine {
        let mut machine = machine();
        if let Machine::Observed(observed) = &mut machine {
            change(&mut observed.0);
        }
        machine
    }

    #[test]
    fn software_may_change_and_the_processor_may_not() {
        assert!(machine().differences(&machine()).is_empty());
        assert!(machine().changes(&machine()).is_empty());
        let newer = changed(|one| {
            one.microcode = Some("0x2".to_owned());
            one.memory_bytes += 1 << 20;
            one.governor = Some("performance".to_owned());
        });
        assert!(machine().differences(&newer).is_empty());
        assert_eq!(
            machine().changes(&newer),
            ["microcode 0x1 -> 0x2", "governor none -> performance"]
        );
        for (other, expected) in [
            (
                changed(|one| one.cpu_family_model_stepping = Some("6/1/1".to_owned())),
                "family, model and stepping 6/167/8 and 6/1/1",
            ),
            (changed(|one| one.logical_cores += 1), "logical cores 2 and 3"),
            (changed(|one| one.memory_bytes *= 2), "memory 23.5 GiB and 47.1 GiB"),
            (
                changed(|one| {
                    one.features.retain(|feature| feature != "fma");
                    one.features.push("avx10".to_owned());
                }),
                "features fma and avx10",
            ),
            (
                changed(|one| one.features.push("avx10".to_owned())),
                "features avx10 on the second only",
            ),
            (
                changed(|one| one.caches[0].bytes = 32 << 10),
                "caches L1 of 48 KiB for a core and L1 of 32 KiB for a core",
            ),
        ] {
            assert_eq!(machine().differences(&other), [expected]);
        }
    }
}
