//! What must be true of the runtimes: each is described once, and so are all that have records.

use super::contradiction::{Checked, fail};
use crate::calibration::{HardwareCalibration, RuntimeUsed};
use crate::error::Error;
use crate::place::{Place, Section};
use crate::vocabulary::Implementation;

pub(super) fn check(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    let HardwareCalibration { runtimes, noise, records, .. } = calibration;
    for (index, runtime) in runtimes.iter().enumerate() {
        check_one(runtime, runtimes.get(..index).unwrap_or_default())
            .map_err(|wrong| wrong.within(Section::nth("runtime", index), text))?;
    }
    let of_noise = noise.iter().map(|one| one.implementation);
    let of_records = records.iter().map(|one| one.implementation);
    let all = of_noise.enumerate().map(|(index, one)| (Section::nth("noise", index), one));
    let all =
        all.chain(of_records.enumerate().map(|(index, one)| (Section::nth("fusion", index), one)));
    for (section, implementation) in all {
        check_described(implementation, runtimes).map_err(|wrong| wrong.within(section, text))?;
    }
    Ok(())
}

fn check_one(runtime: &RuntimeUsed, earlier: &[RuntimeUsed]) -> Checked {
    let RuntimeUsed { implementation, name, version, .. } = runtime;
    let Some(id) = implementation.runtime() else {
        let why =
            format!("it is {implementation}; it must be the name and the version, name@version");
        return fail(Place::of("implementation"), why);
    };
    for (key, given, expected) in [("name", name, id.name()), ("version", version, id.version())] {
        if given != expected {
            return fail(Place::of(key), format!("it is {given}, and the implementation is {id}"));
        }
    }
    if earlier.iter().any(|one| one.implementation == *implementation) {
        return fail(Place::of("implementation"), format!("{id} is described twice"));
    }
    Ok(())
}

fn check_described(implementation: Implementation, runtimes: &[RuntimeUsed]) -> Checked {
    let is_it = |one: &RuntimeUsed| one.implementation == implementation;
    match implementation.runtime() {
        Some(id) if !runtimes.iter().any(is_it) => {
            fail(Place::of("implementation"), format!("no [[runtime]] describes {id}"))
        }
        _ => Ok(()),
    }
}
