//! From an estimate to a decision.

use fusion_cost_model as fcm;

use crate::constants::{
    FCM_REASON_FASTER, FCM_REASON_SLOWER, FCM_REASON_TOO_CLOSE, FCM_REASON_UNKNOWN, Reason,
    WHEN_UNKNOWN, WhenUnknown, meaning,
};
use crate::error::{Error, FCM_BUG};
use crate::estimate::Estimate;

/// How a caller wants to decide.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct Policy {
    /// The speedup from which fusing is worth it.
    pub threshold: f64,
    /// What to assume when nothing is known. There is no default.
    pub when_unknown: WhenUnknown,
}

impl Policy {
    pub(crate) fn meaning(self) -> Result<fcm::Policy, Error> {
        let assumed =
            meaning(WHEN_UNKNOWN, self.when_unknown, "policy.when_unknown", "FCM_WHEN_UNKNOWN")?;
        if self.threshold.is_nan() {
            return Err(Error::argument("policy.threshold is NaN; use a speedup, such as 1.0"));
        }
        Ok(fcm::Policy::new(assumed).with_threshold(self.threshold))
    }
}

/// Fuses what is expected to be faster: the threshold is 1.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_policy_new(when_unknown: WhenUnknown) -> Policy {
    Policy { threshold: fcm::Policy::THRESHOLD, when_unknown }
}

/// Whether to fuse, and what that rests on.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Decision {
    /// What to do.
    pub should_fuse: bool,
    /// Why.
    pub reason: Reason,
    /// What is known.
    pub estimate: Estimate,
}

impl Decision {
    pub(crate) fn of(decision: &fcm::Decision<'_>) -> Result<Self, Error> {
        let reason = match decision {
            fcm::Decision::Fuse(_) => FCM_REASON_FASTER,
            fcm::Decision::Keep(_) => FCM_REASON_SLOWER,
            fcm::Decision::TooClose { .. } => FCM_REASON_TOO_CLOSE,
            fcm::Decision::Unknown { .. } => FCM_REASON_UNKNOWN,
            other => return Err(Error::new(FCM_BUG, format!("{other:?} has no number"))),
        };
        let estimate = Estimate::of(&decision.estimate())?;
        Ok(Self { should_fuse: decision.should_fuse(), reason, estimate })
    }
}
