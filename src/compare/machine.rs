//! Whether two calibrations are of the same machine, and what changed on it.

use serde::Serialize;

use crate::calibration::{
    Fingerprint, HardwareCalibration, ObservedCache, ObservedGpu, Settings, Tool,
};
use crate::imported::ImportedMachine;

/// What the machine of a side has to do with that of the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Another machine, or another target of the same one.
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
        let all = match (self, other) {
            (Self::Observed(this), Self::Observed(other)) => hardware(&this.0, &other.0),
            (Self::Imported(this), Self::Imported(other)) => vec![
                ("machine", this.id.clone(), other.id.clone()),
                ("backend", this.backend.to_string(), other.backend.to_string()),
                ("processors", this.processors.to_string(), other.processors.to_string()),
            ],
            _ => return vec!["only one of them is an imported profile".to_owned()],
        };
        all.into_iter()
            .filter(|(_, this, other)| this != other)
            .map(|(what, this, other)| format!("{what} {this} and {other}"))
            .collect()
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

/// The facts of both machines that are equal on one machine, each with its name.
fn hardware(this: &Fingerprint, other: &Fingerprint) -> Vec<(&'static str, String, String)> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
    let cores = |one: &Fingerprint| or_none(one.physical_cores.map(|count| count.to_string()));
    let caches = |one: &Fingerprint| {
        let cache = |one: &ObservedCache| {
            format!("L{} {} bytes by {}", one.level, one.bytes, one.shared_by)
        };
        one.caches.iter().map(cache).collect::<Vec<_>>().join(", ")
    };
    let gpu = |one: &Fingerprint| {
        let gpu = one.gpu.as_ref();
        or_none(gpu.map(|gpu| {
            let ObservedGpu { name, architecture, processors, memory_bytes, .. } = gpu;
            format!("{name} ({architecture}, {processors} processors, {memory_bytes} bytes)")
        }))
    };
    let family = |one: &Fingerprint| or_none(one.cpu_family_model_stepping.clone());
    let mut facts = vec![
        ("processor", this.cpu_model.clone(), other.cpu_model.clone()),
        ("vendor", this.cpu_vendor.clone(), other.cpu_vendor.clone()),
        ("family, model and stepping", family(this), family(other)),
        ("physical cores", cores(this), cores(other)),
        ("logical cores", this.logical_cores.to_string(), other.logical_cores.to_string()),
        ("features", this.features.join(" "), other.features.join(" ")),
        ("caches", caches(this), caches(other)),
        ("GPU", gpu(this), gpu(other)),
    ];
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let memory = this.memory_bytes as f64 / other.memory_bytes as f64;
    if (memory - 1.0).abs() > MEMORY_SHARE {
        let bytes = |one: &Fingerprint| format!("{} bytes", one.memory_bytes);
        facts.push(("memory", bytes(this), bytes(other)));
    }
    facts
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
            (
                changed(|one| one.memory_bytes *= 2),
                "memory 25276502016 bytes and 50553004032 bytes",
            ),
        ] {
            assert_eq!(machine().differences(&other), [expected]);
        }
    }
}
