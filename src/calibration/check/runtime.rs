//! What must be true of the runtimes: each is described once, and so are all that have records.

use std::collections::HashSet;

use super::contradiction::{Checked, fail};
use crate::calibration::{HardwareCalibration, RuntimeUsed};
use crate::error::Error;
use crate::place::{Place, Section};
use crate::vocabulary::Implementation;

pub(super) fn check(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    let HardwareCalibration { runtimes, noise, records, .. } = calibration;
    let mut described = HashSet::new();
    for (index, runtime) in runtimes.iter().enumerate() {
        check_one(runtime, described.insert(runtime.implementation))
            .map_err(|wrong| wrong.within(Section::nth("runtime", index), text))?;
    }
    let of_noise = noise.iter().map(|one| one.implementation);
    let of_records = records.iter().map(|one| one.implementation);
    let all = of_noise.enumerate().map(|(index, one)| (Section::nth("noise", index), one));
    let all =
        all.chain(of_records.enumerate().map(|(index, one)| (Section::nth("fusion", index), one)));
    for (section, implementation) in all {
        check_described(implementation, &described).map_err(|wrong| wrong.within(section, text))?;
    }
    Ok(())
}

fn check_one(runtime: &RuntimeUsed, is_new: bool) -> Checked {
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
    if !is_new {
        return fail(Place::of("implementation"), format!("{id} is described twice"));
    }
    Ok(())
}

fn check_described(implementation: Implementation, described: &HashSet<Implementation>) -> Checked {
    match implementation.runtime() {
        Some(id) if !described.contains(&implementation) => {
            fail(Place::of("implementation"), format!("no [[runtime]] describes {id}"))
        }
        _ => Ok(()),
    }
}
