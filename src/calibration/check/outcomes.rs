//! Whether the status of a check before the run is that of what it found.

use super::contradiction::{Checked, fail};
use super::preflight::{NOT_REPORTED, Threads, gibibytes, is_build};
use crate::calibration::{Check, CheckStatus};
use crate::place::Place;

/// Checks the status of a check, on a machine with a GPU or without. Only what is found in the words of
/// the program is held against anything, and no closer than the digits of its numbers tell.
pub(super) fn check(check: &Check, has_gpu: bool) -> Checked {
    if !has_gpu && OF_GPUS.contains(&&*check.name) {
        return fail(Place::of("name"), "the fingerprint has no GPU");
    }
    let Some([best, worst]) = outcomes(check) else { return Ok(()) };
    // Other programs on the processors are no reason not to measure a GPU.
    let most = if has_gpu && check.name == "load" { CheckStatus::Warn } else { CheckStatus::Fail };
    let [best, worst] = [best, worst].map(|status| status.min(most));
    if (best..=worst).contains(&check.status) {
        return Ok(());
    }
    let why = format!("it is {}, and {:?} is {worst}", check.status, check.found);
    fail(Place::of("status"), why)
}

/// Checks that are made of a GPU alone.
const OF_GPUS: [&str; 2] = ["gpu memory", "gpu in use"];

/// The best and the worst status that what a check found can have; `None` where it says it in other
/// words.
fn outcomes(check: &Check) -> Option<[CheckStatus; 2]> {
    let found = &*check.found;
    if found == NOT_REPORTED {
        return Some([CheckStatus::Pass; 2]);
    }
    let warned_of = |is_so: bool| if is_so { CheckStatus::Warn } else { CheckStatus::Pass };
    match &*check.name {
        "build" => {
            let level = is_build(found).then(|| found.split_once(", opt-level "))??.1;
            let is_optimised = level.starts_with("2,") || level.starts_with("3,");
            let is_slow = !is_optimised || found.contains(" with debug assertions");
            // Older programs did not say whether a debug build has assertions.
            let may_be_slow = is_slow || found.starts_with("debug,");
            Some([warned_of(is_slow), warned_of(may_be_slow)])
        }
        "load" => {
            let (percent, _) = found.split_once(" % of the processors are used by ")?;
            let of = |share: f64| of_two(Check::LOAD_ABOVE.map(|limit| share > limit));
            Some(whole(percent)?.map(|percent| of(0.01 * percent)))
        }
        "temperature" => {
            let of = |degrees: f64| of_two(Check::DEGREES_FROM.map(|limit| degrees >= limit));
            Some(whole(found.strip_suffix(" °C")?)?.map(of))
        }
        "memory" => {
            let (available, needed) = found.split_once(" available, ")?;
            let ([low, high], [least, most]) = (gibibytes(available)?, gibibytes(needed)?);
            // Half as much again leaves room for the system.
            let of = |available: f64, needed: f64| {
                of_two([available < 1.5 * needed, available < needed])
            };
            Some([of(high, least), of(low, most)])
        }
        "threads" => {
            // What has no cores that the system can tell apart is counted as 0 by some.
            let Threads { threads, cores, usable } =
                Threads::read(found).filter(|found| found.cores != Some(0))?;
            Some([of_two([cores.is_some_and(|cores| threads > cores), threads > usable]); 2])
        }
        "virtual machine" if found == "no" || found == "yes; steal time is watched" => {
            Some([CheckStatus::Pass; 2])
        }
        "virtual machine" if found.starts_with("yes; the hypervisor took ") => {
            Some([CheckStatus::Warn; 2])
        }
        "swap" if found == "none" => Some([CheckStatus::Pass; 2]),
        "address randomisation" if found == "on" => Some([CheckStatus::Pass; 2]),
        "address randomisation" if found.starts_with("off") => Some([CheckStatus::Warn; 2]),
        "huge pages" if !found.contains(char::is_whitespace) => {
            Some([warned_of(found == "never"); 2])
        }
        _ => None,
    }
}

/// The status by two limits: beyond the first a warning, beyond the second a failure.
fn of_two(exceeded: [bool; 2]) -> CheckStatus {
    match exceeded {
        [_, true] => CheckStatus::Fail,
        [true, false] => CheckStatus::Warn,
        [false, false] => CheckStatus::Pass,
    }
}

/// The least and the most that a number without digits behind the point can be.
fn whole(number: &str) -> Option<[f64; 2]> {
    let number: f64 = number.parse().ok()?;
    Some([number - 0.5, number + 0.5])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_sound(name: &str, status: CheckStatus, found: &str) -> bool {
        let [name, found] = [name, found].map(str::to_owned);
        check(&Check { name, status, found, advice: None }, false).is_ok()
    }

    #[test]
    fn the_status_is_that_of_what_was_found() {
        use CheckStatus::{Fail, Pass, Warn};
        let load = |percent: u32| format!("{percent} % of the processors are used by cargo (12)");
        let memory =
            |gib: &str| format!("{gib} GiB available, 2.0 GiB needed by the largest problem");
        for (name, found, expected) in [
            ("build", "release, opt-level 3, x86_64-linux".to_owned(), &[Pass][..]),
            ("build", "release, opt-level 1, x86_64-linux".to_owned(), &[Warn]),
            ("build", "debug, opt-level 1, x86_64-linux".to_owned(), &[Warn]),
            ("build", "debug, opt-level 3, x86_64-linux".to_owned(), &[Pass, Warn]),
            (
                "build",
                "release with debug assertions, opt-level 3, x86_64-linux".to_owned(),
                &[Warn],
            ),
            ("load", load(9), &[Pass]),
            ("load", load(10), &[Pass, Warn]),
            ("load", load(11), &[Warn]),
            ("load", load(50), &[Warn, Fail]),
            ("load", load(93), &[Fail]),
            ("load", "much".to_owned(), &[Pass, Warn, Fail]),
            ("load", NOT_REPORTED.to_owned(), &[Pass]),
            ("temperature", "84 °C".to_owned(), &[Pass]),
            ("temperature", "85 °C".to_owned(), &[Pass, Warn]),
            ("temperature", "97 °C".to_owned(), &[Fail]),
            ("memory", memory("3.3"), &[Pass]),
            ("memory", memory("2.5"), &[Warn]),
            ("memory", memory("1.7"), &[Fail]),
            ("threads", "2 threads on 2 cores, 4 processors usable".to_owned(), &[Pass]),
            ("threads", "3 threads on 2 cores, 4 processors usable".to_owned(), &[Warn]),
            ("threads", "5 threads on 4 usable processors".to_owned(), &[Fail]),
            (
                "threads",
                "2 threads on 0 cores, 2 processors usable".to_owned(),
                &[Pass, Warn, Fail],
            ),
            ("virtual machine", "yes; steal time is watched".to_owned(), &[Pass]),
            (
                "virtual machine",
                "yes; the hypervisor took 9 % of the time away".to_owned(),
                &[Warn],
            ),
            ("swap", "none".to_owned(), &[Pass]),
            ("address randomisation", "on".to_owned(), &[Pass]),
            ("address randomisation", "off for this process".to_owned(), &[Warn]),
            ("huge pages", "never".to_owned(), &[Warn]),
            ("huge pages", "madvise".to_owned(), &[Pass]),
            ("gpu memory", "all".to_owned(), &[]),
        ] {
            for status in [Pass, Warn, Fail] {
                let is_expected = expected.contains(&status);
                assert_eq!(is_sound(name, status, &found), is_expected, "{name}: {status} {found}");
            }
        }
    }

    #[test]
    fn a_busy_processor_does_not_stop_a_gpu() {
        let of = |status| Check {
            name: "load".to_owned(),
            status,
            found: "93 % of the processors are used by other processes".to_owned(),
            advice: None,
        };
        assert!(check(&of(CheckStatus::Warn), true).is_ok());
        assert!(check(&of(CheckStatus::Fail), true).is_err());
    }
}
