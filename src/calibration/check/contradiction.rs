//! Something that cannot be, and the arithmetic that shows it.

use std::fmt::Display;

use crate::calibration::HardwareCalibration;
use crate::error::Error;
use crate::file_kind::FileKind;
use crate::place::{Place, Section};
use crate::vocabulary::Backend;

/// Something that cannot be.
#[derive(Debug)]
pub(super) struct Contradiction {
    place: Place,
    why: String,
}

pub(super) type Checked = Result<(), Contradiction>;

pub(super) fn fail(place: Place, why: impl Into<String>) -> Checked {
    Err(Contradiction { place, why: why.into() })
}

impl Contradiction {
    /// The error for a file with this text, in which the contradiction is in a section.
    pub(super) fn within(self, section: Section, text: &str) -> Error {
        invalid(format!("{}: {}", section.describe(self.place, text), self.why))
    }
}

pub(in crate::calibration) fn invalid(reason: impl Display) -> Error {
    Error::invalid_file(FileKind::Calibration.name(), reason)
}

/// Threads beyond the processors take turns, which only a forced run does.
pub(super) fn check_threads(
    calibration: &HardwareCalibration,
    backend: Backend,
    threads: u32,
) -> Checked {
    let HardwareCalibration { settings, fingerprint, .. } = calibration;
    let processors = fingerprint.logical_cores;
    if backend == Backend::Cpu && threads == 0 {
        return fail(Place::of("threads"), "kernels of a CPU run on at least 1");
    }
    if backend == Backend::Cpu && threads > processors && !settings.forced {
        let why = format!("it is {threads}, and the fingerprint has {processors} processors");
        return fail(Place::of("threads"), why);
    }
    Ok(())
}

/// Numbers in a file have six digits, so that what follows from several of them is off by a few in
/// the last one.
pub(super) const DIGITS: f64 = 3e-5;

/// Whether a number is what follows from others. `scale` is the size of those that it is a
/// difference of.
pub(super) fn follows(number: f64, expected: f64, scale: f64) -> bool {
    (number - expected).abs() <= DIGITS * expected.abs().max(scale)
}

/// Whether an interval reaches as far upwards as downwards, as factors.
pub(super) fn is_mirrored(low: f64, centre: f64, high: f64) -> bool {
    (low * high / (centre * centre) - 1.0).abs() <= 4.0 * DIGITS
}

/// Whether a number is a rate or a time that can be.
pub(super) fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}
