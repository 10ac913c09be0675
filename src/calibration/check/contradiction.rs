//! Something that cannot be, and the arithmetic that shows it.

use std::fmt::{self, Display, Formatter};

use crate::calibration::HardwareCalibration;
use crate::error::Error;
use crate::file_kind::FileKind;
use crate::place::{Place, Section};
use crate::vocabulary::{Backend, Clock};

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

/// Without the place in a file.
impl Display for Contradiction {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place.name(), self.why)
    }
}

pub(in crate::calibration) fn invalid(reason: impl Display) -> Error {
    Error::invalid_file(FileKind::Calibration.name(), reason)
}

/// What has a range says the same of a figure outside it.
impl From<(Place, String)> for Contradiction {
    fn from((place, why): (Place, String)) -> Self {
        Self { place, why }
    }
}

/// Fails where there must be a word and is none.
pub(super) fn check_text(place: Place, text: &str) -> Checked {
    if text.trim().is_empty() { fail(place, "it is empty; write what it is") } else { Ok(()) }
}

/// What runs kernels must be on the machine, and its times be those of one of its clocks.
pub(super) fn check_target(
    calibration: &HardwareCalibration,
    backend: Backend,
    clock: Clock,
    threads: u32,
) -> Checked {
    let is_cpu = backend == Backend::Cpu;
    let why = match &calibration.fingerprint.gpu {
        None if is_cpu => None,
        None => Some(format!("it is {backend}, and the fingerprint has no GPU")),
        Some(gpu) if is_cpu => Some(format!("it is cpu, and the fingerprint has {:?}", gpu.name)),
        Some(gpu) => {
            let is_amd = gpu.architecture.starts_with(AMD);
            (is_amd != (backend == Backend::Hip))
                .then(|| format!("it is {backend}, and the fingerprint has {}", gpu.architecture))
        }
    };
    if let Some(why) = why {
        return fail(Place::of("backend"), why);
    }
    if is_cpu != clock.is_host() {
        return fail(Place::of("clock"), format!("there is no {clock} clock on {backend}"));
    }
    check_threads(calibration, backend, threads)
}

/// Threads beyond the processors take turns, which only a forced run does; a GPU is given its work
/// by one.
pub(super) fn check_threads(
    calibration: &HardwareCalibration,
    backend: Backend,
    threads: u32,
) -> Checked {
    let HardwareCalibration { settings, fingerprint, .. } = calibration;
    let (place, processors) = (Place::of("threads"), fingerprint.logical_cores);
    match backend {
        Backend::Cpu if threads == 0 => fail(place, "kernels of a CPU run on at least 1"),
        Backend::Cpu if threads > processors && !settings.forced => {
            let why = format!("it is {threads}, and the fingerprint has {processors} processors");
            fail(place, why)
        }
        Backend::Cuda | Backend::Hip if threads != 1 => {
            fail(place, format!("it is {threads}; a GPU is given its work by 1"))
        }
        Backend::Cpu | Backend::Cuda | Backend::Hip => Ok(()),
    }
}

/// What AMD's architectures begin with, such as `gfx942`.
const AMD: &str = "gfx";

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
