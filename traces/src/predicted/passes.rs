//! How many forward passes were measured.

use std::path::Path;

use serde_json::Value;

use super::{PredictedError, Rules, file};

/// How many forward passes were measured: measured times and counts are divided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passes(u64);

impl Passes {
    /// One pass.
    pub const ONE: Self = Self(1);

    /// So many. None at all makes every measured figure zero, as the original script has it; see
    /// [`Passes::is_usable`].
    #[must_use]
    pub const fn new(passes: u64) -> Self {
        Self(passes)
    }

    /// How many.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether figures for a pass can be computed from it under these rules.
    #[must_use]
    pub fn is_usable(self, rules: Rules) -> bool {
        self.0 > 0 || rules == Rules::Original
    }

    /// Reads the `n_forward_passes` of a JSON object; one if it is absent.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or its number is not whole, or is zero under the project's
    /// own rules.
    pub fn load(path: impl AsRef<Path>, rules: Rules) -> Result<Self, PredictedError> {
        let path = path.as_ref();
        let failure = |reason| PredictedError::Passes { path: path.to_owned(), reason };
        let value: Value = serde_json::from_slice(&file::read(path)?)
            .map_err(|error| failure(format!("it is not JSON: {error}")))?;
        let Some(object) = value.as_object() else {
            return Err(failure("it is not a JSON object".to_owned()));
        };
        let Some(number) = object.get("n_forward_passes") else { return Ok(Self::ONE) };
        let Some(passes) = whole(number) else {
            let reason = format!("n_forward_passes is {number}; it must be a whole number");
            return Err(failure(reason));
        };
        let passes = Self(passes);
        if !passes.is_usable(rules) {
            return Err(failure("n_forward_passes is 0; it must be 1 or more".to_owned()));
        }
        Ok(passes)
    }

    /// A sum over all passes, for one.
    pub(super) fn share_of(self, sum: f64) -> f64 {
        if self.0 == 0 { 0.0 } else { sum / self.0 as f64 }
    }
}

/// A whole number, also if it is written with a point.
fn whole(number: &Value) -> Option<u64> {
    number.as_u64().or_else(|| {
        let number = number.as_f64()?;
        // Exact up to there.
        let is_whole = number.fract() == 0.0 && (0.0..=9e15).contains(&number);
        is_whole.then_some(number as u64)
    })
}
