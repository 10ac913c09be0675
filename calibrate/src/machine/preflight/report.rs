//! The checks as text.

use std::fmt::Write as _;

use cli_support::say;
use fusion_cost_model::calibration::{Check, CheckStatus};

/// One line for each check that did not pass, each with its line end; empty when all is well. Nothing is
/// an error for a run that goes on in spite of it.
#[must_use]
pub fn report(checks: &[Check], force: bool) -> String {
    let mut report = String::new();
    for Check { name, status, found, advice } in checks {
        let word = match status {
            CheckStatus::Pass => continue,
            CheckStatus::Warn => "warning",
            CheckStatus::Fail if force => "warning",
            CheckStatus::Fail => "error",
        };
        // Writing to a string cannot fail.
        let _ = write!(report, "{word}: {name}: {found}");
        if let Some(advice) = advice {
            let _ = write!(report, "; {advice}");
        }
        report.push('\n');
    }
    report
}

/// Whether a check failed, so that measuring would be worth little.
#[must_use]
pub fn has_failed(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.status == CheckStatus::Fail)
}

/// Says on stderr what the checks found; whether the run goes on in spite of a failed one.
///
/// # Errors
///
/// When a check failed and the run is not forced.
pub fn go_on_with(checks: &[Check], force: bool) -> anyhow::Result<bool> {
    report(checks, force).lines().for_each(|line| say!("{line}"));
    let failed = has_failed(checks);
    if failed && !force {
        anyhow::bail!(
            "this machine is not fit to measure on (see above); pass --force to continue"
        );
    }
    Ok(failed)
}

#[cfg(test)]
mod tests {
    use super::super::outcome::{fail, pass, warn};
    use super::*;

    #[test]
    fn only_what_did_not_pass_is_reported() {
        let checks = [
            pass("turbo", "on"),
            warn("load", "35 % of the processors are used by cargo (12)", "close it, or wait"),
            fail("threads", "4 threads on 2 usable processors", "use `--threads 2`"),
            Check { advice: None, ..warn("swap", "12 pages were moved", "") },
        ];
        assert_eq!(
            report(&checks, false),
            "warning: load: 35 % of the processors are used by cargo (12); close it, or wait\n\
             error: threads: 4 threads on 2 usable processors; use `--threads 2`\n\
             warning: swap: 12 pages were moved\n"
        );
        assert!(report(&checks, true).contains("\nwarning: threads: 4 threads on 2 usable"));
        assert!(has_failed(&checks));
    }

    #[test]
    fn nothing_is_reported_when_all_is_well() {
        let checks = [pass("turbo", "on"), pass("battery", "not in use")];
        assert_eq!(report(&checks, false), "");
        assert!(!has_failed(&checks));
        assert!(!has_failed(&[warn("load", "", "")]));
    }
}
