//! The second stage: the proof that both variants compute the same thing, and the right one.

use fused_kernels::{BackendError, Expected, Prepared, Variant};
use fusion_cost_model::calibration::Verification;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A kernel that does not compute what its chain says. It is never timed.
// As text, since JSON has no infinity.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("wrong result: {0}")]
pub struct WrongResult(String);

/// Runs both variants on poisoned memory and compares them with the reference, and everywhere
/// with each other.
///
/// The inner result is [`WrongResult`] when an output is off by more than rounding explains.
///
/// # Errors
///
/// [`BackendError`] when the device fails.
pub fn prove(
    prepared: &mut dyn Prepared,
    expected: &Expected,
) -> Result<Result<Verification, WrongResult>, BackendError> {
    let mut output = |variant| {
        prepared.poison()?;
        prepared.run(variant, 1)?;
        prepared.output()
    };
    let (unfused, fused) = (output(Variant::Unfused)?, output(Variant::Fused)?);
    let tolerance = expected.tolerance();
    let verification = Verification {
        reference_rows: expected.rows() as u64,
        rows: expected.total_rows() as u64,
        unfused_error: expected.error(&unfused),
        fused_error: expected.error(&fused),
        tolerance,
    };
    // Both may be off in opposite directions, by the tolerance each.
    for (what, error, tolerance) in [
        ("the unfused variant", verification.unfused_error, tolerance),
        ("the fused variant", verification.fused_error, tolerance),
        ("one variant from the other", expected.difference(&unfused, &fused), 2.0 * tolerance),
    ] {
        if error > tolerance {
            return Ok(Err(WrongResult(format!(
                "{what} is off by {error:.1e}, and {tolerance:.1e} is the most for rounding"
            ))));
        }
    }
    Ok(Ok(verification))
}
