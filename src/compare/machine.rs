//! Whether two calibrations are of the same machine, and what changed on it.

use serde::Serialize;

use crate::calibration::{Fingerprint, HardwareCalibration, Settings, Tool};
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

    /// Whether both are the same: processor, cores, caches, memory and GPU. What a user can change
    /// without a screwdriver may differ.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Observed(this), Self::Observed(other)) => is_same(&this.0, &other.0),
            (Self::Imported(this), Self::Imported(other)) => {
                let key = |one: &ImportedMachine| (one.id.clone(), one.backend, one.processors);
                key(this) == key(other)
            }
            _ => false,
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

fn is_same(this: &Fingerprint, other: &Fingerprint) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let memory = this.memory_bytes as f64 / other.memory_bytes as f64;
    let is_same_processor = this.cpu_model == other.cpu_model
        && this.cpu_vendor == other.cpu_vendor
        && this.cpu_family_model_stepping == other.cpu_family_model_stepping
        && (this.physical_cores, this.logical_cores) == (other.physical_cores, other.logical_cores)
        && this.features == other.features
        && this.caches == other.caches;
    let gpu = |one: &Fingerprint| {
        let gpu = one.gpu.as_ref()?;
        Some((gpu.name.clone(), gpu.architecture.clone(), gpu.processors, gpu.memory_bytes))
    };
    is_same_processor && (memory - 1.0).abs() <= MEMORY_SHARE && gpu(this) == gpu(other)
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
        assert!(machine().is(&machine()) && machine().changes(&machine()).is_empty());
        let newer = changed(|one| {
            one.microcode = Some("0x2".to_owned());
            one.memory_bytes += 1 << 20;
            one.governor = Some("performance".to_owned());
        });
        assert!(machine().is(&newer));
        assert_eq!(
            machine().changes(&newer),
            ["microcode 0x1 -> 0x2", "governor none -> performance"]
        );
        for other in [
            changed(|one| one.cpu_family_model_stepping = Some("6/1/1".to_owned())),
            changed(|one| one.logical_cores += 1),
            changed(|one| one.memory_bytes *= 2),
        ] {
            assert!(!machine().is(&other));
        }
    }
}
