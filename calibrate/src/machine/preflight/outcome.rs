//! How a check ends.

use fusion_cost_model::calibration::{Check, CheckStatus};

/// What was found where the system reports nothing. That is no reason to warn: most virtual
/// machines and containers hide most of it.
pub(super) const NOT_REPORTED: &str = "not reported by this system";

/// All is well.
pub(super) fn pass(name: &str, found: impl Into<String>) -> Check {
    Check { name: name.to_owned(), status: CheckStatus::Pass, found: found.into(), advice: None }
}

/// Measurements may suffer.
pub(super) fn warn(name: &str, found: impl Into<String>, advice: impl Into<String>) -> Check {
    Check { status: CheckStatus::Warn, advice: Some(advice.into()), ..pass(name, found) }
}

/// Measurements would be worth little.
pub(super) fn fail(name: &str, found: impl Into<String>, advice: impl Into<String>) -> Check {
    Check { status: CheckStatus::Fail, ..warn(name, found, advice) }
}
