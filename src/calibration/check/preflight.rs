//! What the checks before the run found of the machine, which the rest of the file says too.
//!
//! Only what a check says in the words of the program is held against anything.

use super::contradiction::{Checked, fail};
use crate::calibration::{Check, CheckStatus, Fingerprint, HardwareCalibration};
use crate::error::Error;
use crate::hardware::OBSERVED;
use crate::place::{Place, Section};

/// What is found where the system does not report it.
pub(super) const NOT_REPORTED: &str = "not reported by this system";

pub(super) fn check(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    let HardwareCalibration { tool, fingerprint, .. } = calibration;
    check_system(calibration).map_err(|wrong| wrong.within(Section::only("tool"), text))?;
    for found in &calibration.checks {
        if found.name == "build" && is_build(&found.found) && found.found != tool.build {
            let wrong = fail(Place::of("build"), contradicts(&tool.build, found));
            wrong.map_err(|wrong| wrong.within(Section::only("tool"), text))?;
        }
        // Of several runs the worse result stays, and a later one may have found what is no more
        // in the fingerprint.
        if found.status == CheckStatus::Pass || calibration.is_of_one_run() {
            check_one(found, fingerprint)
                .map_err(|wrong| wrong.within(Section::only("fingerprint"), text))?;
        }
    }
    Ok(())
}

/// Whether a name of a system begins with that of another one than a program was built for. A system
/// without a name, or with one of its own, can be any.
fn is_other_system(built_for: &str, os: &str) -> bool {
    let named = [
        ("Linux", &["linux", "android"][..]),
        ("Darwin", &["macos"]),
        ("macOS", &["macos"]),
        ("Windows", &["windows"]),
    ];
    named.iter().any(|(name, systems)| os.starts_with(name) && !systems.contains(&built_for))
}

/// The program ran on the system, and on the instructions, that it was built for.
fn check_system(calibration: &HardwareCalibration) -> Checked {
    let HardwareCalibration { tool, fingerprint, hardware, .. } = calibration;
    let built_for = tool.build.rsplit(", ").next().filter(|_| is_build(&tool.build));
    let Some((architecture, system)) = built_for.and_then(|text| text.split_once('-')) else {
        return Ok(());
    };
    let of_other = |features: &[&str]| {
        fingerprint.features.iter().find(|feature| features.contains(&feature.as_str()))
    };
    let differs = match (architecture, system) {
        (_, built_for) if is_other_system(built_for, &fingerprint.os) => {
            Some(("os", &fingerprint.os))
        }
        ("x86_64", _) => {
            of_other(&["neon", "asimd", "sve", "sve2"]).map(|feature| ("features", feature))
        }
        ("aarch64", _) => {
            of_other(&["avx", "avx2", "avx512f", "fma"]).map(|feature| ("features", feature))
        }
        _ => None,
    };
    if let Some((key, found)) = differs {
        let why = format!("it is {:?}, and fingerprint.{key} has {found:?}", tool.build);
        return fail(Place::of("build"), why);
    }
    let is_observed = fingerprint.gpu.is_none() && hardware.cores.source == OBSERVED;
    if is_observed && hardware.architecture != architecture {
        let hardware = &hardware.architecture;
        let why = format!("it is {:?}, and hardware.architecture {hardware:?}", tool.build);
        return fail(Place::of("build"), why);
    }
    Ok(())
}

/// The threads of the run, where the check of them says how many there were.
pub(super) fn threads(calibration: &HardwareCalibration) -> Option<u32> {
    let found = calibration.checks.iter().find(|check| check.name == "threads")?;
    Some(Threads::read(&found.found)?.threads)
}

fn check_one(check: &Check, fingerprint: &Fingerprint) -> Checked {
    let passes = check.status == CheckStatus::Pass;
    match check.name.as_str() {
        // What takes time away without being seen is warned of as one.
        "virtual machine" if passes => {
            let said = switch(&check.found, ["no", "yes; "]);
            same("virtualized", said, fingerprint.virtualized, check)
        }
        "turbo" => {
            let said = switch(&check.found, ["off; ", "on; "]);
            same("turbo", said, fingerprint.turbo, check)
        }
        "governor" => {
            let found = check.found.split_once(" (").map_or(&*check.found, |(word, _)| word);
            same("governor", word(found), fingerprint.governor.as_deref(), check)
        }
        "huge pages" => {
            same("huge_pages", word(&check.found), fingerprint.huge_pages.as_deref(), check)
        }
        "threads" => check_threads(check, fingerprint),
        "memory" => check_available(check, fingerprint),
        "gpu in use" => check_memory_of_gpu(check, fingerprint),
        _ => Ok(()),
    }
}

fn contradicts(given: impl std::fmt::Debug, check: &Check) -> String {
    format!("it is {given:?}, and the check {:?} found {:?}", check.name, check.found)
}

/// Fails where a check says something else of a key, or of one that is not there.
fn same<T: PartialEq + std::fmt::Debug>(
    key: &'static str,
    said: Option<Option<T>>,
    given: Option<T>,
    check: &Check,
) -> Checked {
    match (said, given) {
        (None, _) => Ok(()),
        (Some(said), given) if said == given => Ok(()),
        (_, Some(given)) => fail(Place::of(key), contradicts(given, check)),
        (_, None) => {
            let why =
                format!("it is missing, and the check {:?} found {:?}", check.name, check.found);
            fail(Place::of(key), why)
        }
    }
}

/// What a check says of a switch that begins with one of two words; `None` where it says neither, and
/// nothing within for what is not reported.
fn switch(found: &str, [off, on]: [&str; 2]) -> Option<Option<bool>> {
    match found {
        NOT_REPORTED => Some(None),
        _ if found == off || (off.ends_with(' ') && found.starts_with(off)) => Some(Some(false)),
        _ if found.starts_with(on) => Some(Some(true)),
        _ => None,
    }
}

/// The same of a single word.
fn word(found: &str) -> Option<Option<&str>> {
    match found {
        NOT_REPORTED => Some(None),
        _ if found.contains(char::is_whitespace) => None,
        _ => Some(Some(found)),
    }
}

/// Whether a text has the form `release, opt-level 3, x86_64-linux`.
pub(super) fn is_build(found: &str) -> bool {
    found.contains(", opt-level ")
}

/// What the check of the threads found.
pub(super) struct Threads {
    pub(super) threads: u32,
    /// Where the check names them.
    pub(super) cores: Option<u32>,
    pub(super) usable: u32,
}

impl Threads {
    pub(super) fn read(found: &str) -> Option<Self> {
        let (threads, on) = found.split_once(" threads on ")?;
        let threads = threads.parse().ok()?;
        if let Some(usable) = on.strip_suffix(" usable processors") {
            return Some(Self { threads, cores: None, usable: usable.parse().ok()? });
        }
        let (cores, usable) = on.strip_suffix(" processors usable")?.split_once(" cores, ")?;
        Some(Self { threads, cores: Some(cores.parse().ok()?), usable: usable.parse().ok()? })
    }
}

fn check_threads(check: &Check, fingerprint: &Fingerprint) -> Checked {
    let Some(Threads { cores, usable, .. }) = Threads::read(&check.found) else { return Ok(()) };
    same("logical_cores", Some(Some(usable)), Some(fingerprint.logical_cores), check)?;
    // Of more threads than processors there are, it does not come to the cores.
    if check.status == CheckStatus::Fail {
        return Ok(());
    }
    // What has none that the system can tell apart is counted as 0 by some.
    let cores = cores.filter(|cores| *cores > 0);
    same("physical_cores", Some(cores), fingerprint.physical_cores, check)
}

/// Half of the last digit of an amount of memory.
const HALF_A_DIGIT: f64 = 0.050_001;

/// The least and the most bytes that a text such as `19.9 GiB available` can mean.
pub(super) fn gibibytes(found: &str) -> Option<[f64; 2]> {
    let (number, _) = found.split_once(" GiB")?;
    let gibibytes: f64 = number.parse().ok()?;
    Some([-HALF_A_DIGIT, HALF_A_DIGIT].map(|off| (gibibytes + off) * f64::from(1 << 30)))
}

/// What is available is a part of what there is.
fn check_available(check: &Check, fingerprint: &Fingerprint) -> Checked {
    #[expect(clippy::cast_precision_loss, reason = "an amount for people")]
    let memory_bytes = fingerprint.memory_bytes as f64;
    match gibibytes(&check.found) {
        Some([available, _])
            if check.found.contains(" GiB available") && available > memory_bytes =>
        {
            fail(Place::of("memory_bytes"), contradicts(fingerprint.memory_bytes, check))
        }
        _ => Ok(()),
    }
}

/// A GPU has in all what the fingerprint says.
fn check_memory_of_gpu(check: &Check, fingerprint: &Fingerprint) -> Checked {
    let all = check.found.split_once(" of ").and_then(|(_, all)| gibibytes(all));
    let (Some(gpu), Some([least, most])) = (&fingerprint.gpu, all) else { return Ok(()) };
    #[expect(clippy::cast_precision_loss, reason = "an amount for people")]
    let memory_bytes = gpu.memory_bytes as f64;
    if (least..=most).contains(&memory_bytes) {
        return Ok(());
    }
    fail(Place::within("gpu", "memory_bytes"), contradicts(gpu.memory_bytes, check))
}
