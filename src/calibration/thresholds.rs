//! From what on a check before the run warns or fails.

use super::Check;

impl Check {
    /// Shares of all processors, used by other programs, above which it is warned of, and above which
    /// the check fails.
    pub const LOAD_ABOVE: [f64; 2] = [0.10, 0.50];

    /// Degrees Celsius from which it is warned of, and from which the check fails. Processors lower
    /// their clock at 90 to 105.
    pub const DEGREES_FROM: [f64; 2] = [85.0, 95.0];
}
