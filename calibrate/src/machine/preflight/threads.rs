//! Whether every thread has a core.

use fusion_cost_model::calibration::Check;

use super::outcome::{fail, pass, warn};

const NAME: &str = "threads";

/// Judges the number of threads against the hardware threads that the process may use and against
/// the physical cores, where the system reports them.
pub(super) fn judge(threads: usize, usable: usize, cores: Option<usize>) -> Check {
    if threads > usable {
        let found = format!("{threads} threads on {usable} usable processors");
        let advice = format!(
            "they would take turns, and the times would say little; use `--threads {usable}`"
        );
        return fail(NAME, found, advice);
    }
    let Some(cores) = cores else {
        return pass(NAME, format!("{threads} threads on {usable} usable processors"));
    };
    let found = format!("{threads} threads on {cores} cores, {usable} processors usable");
    if threads > cores {
        let advice = format!("two threads would share a core; use `--threads {cores}`");
        return warn(NAME, found, advice);
    }
    pass(NAME, found)
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::CheckStatus::{Fail, Pass, Warn};

    use super::*;

    #[test]
    fn the_thresholds() {
        for (threads, usable, cores, expected) in [
            (1, 16, Some(8), Pass),
            (8, 16, Some(8), Pass),
            (9, 16, Some(8), Warn),
            (16, 16, Some(8), Warn),
            (17, 16, Some(8), Fail),
            (16, 16, None, Pass),
            (17, 16, None, Fail),
            // A container that may use only a part of the machine.
            (2, 2, Some(64), Pass),
            (3, 2, Some(64), Fail),
        ] {
            let check = judge(threads, usable, cores);
            assert_eq!(check.status, expected, "{threads} {usable} {cores:?}");
        }
    }

    #[test]
    fn the_advice_names_a_number_that_passes() {
        assert!(judge(9, 16, Some(8)).advice.unwrap().contains("`--threads 8`"));
        assert!(judge(99, 2, Some(64)).advice.unwrap().contains("`--threads 2`"));
    }
}
