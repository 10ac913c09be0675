//! Shares and means of whole numbers.

/// A part of a whole; 0 where there is no whole.
#[expect(clippy::cast_precision_loss, reason = "a ratio")]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
