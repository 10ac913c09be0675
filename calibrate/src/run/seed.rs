//! Where the random numbers of a run come from.

/// The seed of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seed {
    /// The user named it.
    Given(u64),
    /// A new one for this run, unless an earlier part of the run has one.
    Drawn(u64),
}

impl Seed {
    /// A new one, short enough to be typed.
    ///
    /// # Errors
    ///
    /// When the system has no random numbers.
    pub fn draw() -> anyhow::Result<Self> {
        let drawn = getrandom::u32().map_err(|error| {
            anyhow::anyhow!("the system gives no random seed ({error}); name one with --seed")
        })?;
        Ok(Self::Drawn(drawn.into()))
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::Given(number) | Self::Drawn(number) => number,
        }
    }

    /// Whether a run with this seed can continue one that was begun with a number.
    #[must_use]
    pub const fn continues(self, begun_with: u64) -> bool {
        match self {
            Self::Given(number) => number == begun_with,
            Self::Drawn(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_have_two_seeds_and_a_file_holds_them() {
        let drawn: std::collections::HashSet<u64> =
            (0..4).map(|_| Seed::draw().unwrap().number()).collect();
        assert!(drawn.len() > 1, "{drawn:?}");
        assert!(drawn.iter().all(|&seed| i64::try_from(seed).is_ok()));
        assert!(Seed::Given(7).continues(7) && !Seed::Given(7).continues(8));
        assert!(Seed::Drawn(7).continues(8));
    }
}
