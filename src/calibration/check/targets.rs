//! What must be true of where the runs of a file were made: each of them has one backend and one number
//! of threads.

use std::collections::HashSet;

use super::contradiction::{Checked, fail};
use super::preflight;
use crate::calibration::HardwareCalibration;
use crate::error::Error;
use crate::place::{Place, Section};
use crate::vocabulary::Backend;

pub(super) fn check(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    let runs = 1 + calibration.additions.len();
    let planned = preflight::threads(calibration).filter(|_| calibration.is_of_one_run());
    let mut known = HashSet::new();
    let mut first = None;
    for (section, backend, threads) in all(calibration) {
        if known.insert((backend, threads)) {
            let first = *first.get_or_insert(threads);
            check_planned(backend, threads, planned)
                .and_then(|()| check_number(threads, first, known.len(), runs))
                .map_err(|wrong| wrong.within(section, text))?;
        }
    }
    Ok(())
}

/// What was measured on which backend and how many threads.
fn all(calibration: &HardwareCalibration) -> impl Iterator<Item = (Section, Backend, u32)> {
    let HardwareCalibration { ceilings, noise, records, .. } = calibration;
    let ceilings = ceilings.iter().map(|one| ("ceilings", one.backend, one.threads)).enumerate();
    let noise = noise.iter().map(|one| ("noise", one.backend, one.threads)).enumerate();
    let records = records.iter().map(|one| ("fusion", one.backend, one.threads)).enumerate();
    let all = ceilings.chain(noise).chain(records);
    all.map(|(nth, (name, backend, threads))| (Section::nth(name, nth), backend, threads))
}

/// The threads of the only run are those that the check before it found.
fn check_planned(backend: Backend, threads: u32, planned: Option<u32>) -> Checked {
    match planned.filter(|planned| backend == Backend::Cpu && *planned != threads) {
        None => Ok(()),
        Some(planned) => {
            let why = format!("it is {threads}, and the check \"threads\" found {planned} threads");
            fail(Place::of("threads"), why)
        }
    }
}

/// There are no more numbers of threads than runs.
fn check_number(threads: u32, first: u32, numbers: usize, runs: usize) -> Checked {
    if numbers <= runs {
        return Ok(());
    }
    let why = format!(
        "it is {threads}, and {first} elsewhere; a run has one number of threads, and there {}",
        if runs == 1 { "was one run".to_owned() } else { format!("were {runs} runs") }
    );
    fail(Place::of("threads"), why)
}
