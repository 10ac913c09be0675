//! Whether other processes use the processors.

use std::time::Duration;

use fusion_cost_model::calibration::Check;

use super::outcome::{NOT_REPORTED, fail, pass, warn};
use super::processes::Busy;
use crate::units::percent;

const NAME: &str = "load";

/// Processes that are named, the busiest ones.
const MOST_NAMED: usize = 3;

/// A process is worth closing if this many of it would have done all of the others' work.
const WORTH_NAMING: u64 = 10;

/// The share of the processors' time that other processes used: the work of all (`busy`, a share)
/// without this process's own milliseconds, which begin a little earlier.
pub(super) fn of_others(
    busy: Option<f64>,
    own_milliseconds: u64,
    processor_time: Option<Duration>,
) -> Option<f64> {
    let own = Duration::from_millis(own_milliseconds);
    let own_share = own.div_duration_f64(processor_time.filter(|time| !time.is_zero())?);
    Some((busy? - own_share).max(0.0))
}

/// Judges the share of the processors that others use. `busiest` is asked only when it matters.
pub(super) fn judge(others: Option<f64>, busiest: impl FnOnce() -> Vec<Busy>) -> Check {
    let Some(others) = others else {
        return pass(NAME, NOT_REPORTED);
    };
    let found = format!("{} of the processors are used by", percent(others));
    let [warn_above, fail_above] = Check::LOAD_ABOVE;
    if others <= warn_above {
        return pass(NAME, format!("{found} other processes"));
    }
    let names = names(&busiest());
    let (found, advice) = match names.as_slice() {
        // They may be in another container, or over already.
        [] => (format!("{found} other processes"), "wait until they are done"),
        [name] => (format!("{found} {name}"), "close it, or wait"),
        names => (format!("{found} {}", names.join(", ")), "close them, or wait"),
    };
    if others > fail_above { fail(NAME, found, advice) } else { warn(NAME, found, advice) }
}

/// The processes that did most of the work, each as `cargo (12)`.
fn names(busiest: &[Busy]) -> Vec<String> {
    let all: u64 = busiest.iter().map(|busy| busy.milliseconds).sum();
    busiest
        .iter()
        .take(MOST_NAMED)
        .filter(|busy| busy.milliseconds.saturating_mul(WORTH_NAMING) >= all)
        .map(|busy| format!("{} ({})", busy.name, busy.pid))
        .collect()
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::CheckStatus::{Fail, Pass, Warn};

    use super::*;

    fn busy(name: &str, pid: u32, milliseconds: u64) -> Busy {
        Busy { name: name.to_owned(), pid, milliseconds }
    }

    #[test]
    fn the_thresholds() {
        for (others, expected) in [
            (None, Pass),
            (Some(0.0), Pass),
            (Some(0.10), Pass),
            (Some(0.101), Warn),
            (Some(0.50), Warn),
            (Some(0.501), Fail),
            (Some(1.0), Fail),
        ] {
            assert_eq!(judge(others, Vec::new).status, expected, "{others:?}");
        }
    }

    #[test]
    fn the_busiest_are_named_and_the_rest_is_not() {
        let processes =
            vec![busy("cargo", 12, 150), busy("sh", 5, 40), busy("a", 6, 5), busy("b", 7, 5)];
        let check = judge(Some(0.35), || processes);
        assert_eq!(check.found, "35 % of the processors are used by cargo (12), sh (5)");
        assert_eq!(check.advice.as_deref(), Some("close them, or wait"));
        let check = judge(Some(0.35), || vec![busy("cargo", 12, 150)]);
        assert_eq!(check.found, "35 % of the processors are used by cargo (12)");
        assert_eq!(check.advice.as_deref(), Some("close it, or wait"));
        let check = judge(Some(0.35), Vec::new);
        assert_eq!(check.found, "35 % of the processors are used by other processes");
    }

    #[test]
    fn nobody_is_looked_for_when_all_is_well() {
        let check = judge(Some(0.02), || unreachable!());
        assert_eq!(check.found, "2 % of the processors are used by other processes");
        assert_eq!(judge(None, || unreachable!()).found, NOT_REPORTED);
    }

    #[test]
    fn the_own_work_is_not_that_of_others() {
        let time = Some(Duration::from_millis(400));
        let close = |share: Option<f64>, expected: f64| (share.unwrap() - expected).abs() < 1e-12;
        assert!(close(of_others(Some(0.75), 100, time), 0.5));
        // Both are counted in steps of 10 ms, so the own work can seem to be more than all.
        assert!(close(of_others(Some(0.2), 100, time), 0.0));
        assert_eq!(of_others(None, 100, time), None);
        assert_eq!(of_others(Some(0.5), 0, Some(Duration::ZERO)), None);
        assert_eq!(of_others(Some(0.5), 0, None), None);
    }
}
