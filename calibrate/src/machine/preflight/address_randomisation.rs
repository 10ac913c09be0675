//! Whether every process gets addresses of its own.

use fusion_cost_model::calibration::Check;

use super::outcome::{NOT_REPORTED, pass, warn};
use crate::machine::system_files::SystemFiles;

const NAME: &str = "address randomisation";

/// The flag of a process that debuggers and `setarch -R` start without randomisation.
const ADDR_NO_RANDOMIZE: u32 = 0x0004_0000;

/// Where it is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Randomisation {
    /// Nowhere.
    On,
    /// For every process.
    OffForAll,
    /// For this process.
    OffHere,
}

/// Reads whether addresses are random.
pub(super) fn observe(files: &SystemFiles) -> Option<Randomisation> {
    let of_system = files.number("proc/sys/kernel/randomize_va_space");
    let of_process = files.word("proc/self/personality");
    let of_process = of_process.and_then(|word| u32::from_str_radix(&word, 16).ok());
    if of_system == Some(0) {
        Some(Randomisation::OffForAll)
    } else if of_process.is_some_and(|flags| flags & ADDR_NO_RANDOMIZE != 0) {
        Some(Randomisation::OffHere)
    } else {
        of_system.map(|_| Randomisation::On)
    }
}

/// Judges it: chance is what makes the processes of a problem differ, so that their mean is not
/// that of one lucky or unlucky set of addresses.
pub(super) fn judge(randomisation: Option<Randomisation>) -> Check {
    match randomisation {
        None => pass(NAME, NOT_REPORTED),
        Some(Randomisation::On) => pass(NAME, "on"),
        Some(Randomisation::OffForAll) => {
            warn(NAME, "off", "run `echo 2 | sudo tee /proc/sys/kernel/randomize_va_space`")
        }
        Some(Randomisation::OffHere) => {
            warn(NAME, "off for this process", "start it without a debugger and without setarch")
        }
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::CheckStatus::{Pass, Warn};

    use super::*;
    use crate::machine::system_files::tests::made_up;

    #[test]
    fn the_settings_of_the_system_and_of_the_process() {
        for (of_system, of_process, expected, status) in [
            ("2\n", "00000000\n", Some(Randomisation::On), Pass),
            ("1\n", "garbage\n", Some(Randomisation::On), Pass),
            ("0\n", "00000000\n", Some(Randomisation::OffForAll), Warn),
            ("2\n", "00040000\n", Some(Randomisation::OffHere), Warn),
            ("2\n", "00c40008\n", Some(Randomisation::OffHere), Warn),
            ("garbage\n", "00000000\n", None, Pass),
        ] {
            let (_folder, files) = made_up(&[
                ("proc/sys/kernel/randomize_va_space", of_system),
                ("proc/self/personality", of_process),
            ]);
            let seen = observe(&files);
            assert_eq!((seen, judge(seen).status), (expected, status), "{of_system}{of_process}");
        }
        let (_folder, nothing) = made_up(&[]);
        assert_eq!(observe(&nothing), None);
    }
}
