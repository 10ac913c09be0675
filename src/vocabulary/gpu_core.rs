//! The matrix instructions that kernels of a GPU are written with.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::backend::by_name;
use crate::error::Error;

/// The matrix instructions that the kernels of a GPU are written with.
///
/// Both variants of a problem run on the same one. Where its kernels fail, both go on with the
/// [next](Self::next).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Core {
    /// `wgmma` with TMA, of sm_90a.
    Wgmma,
    /// `mma.sync`, of NVIDIA from sm_80 on.
    Mma,
    /// `v_mfma`, of AMD's gfx9.
    Mfma,
    /// `v_wmma`, of AMD's gfx11 and gfx12.
    Wmma,
    /// None: fused multiply-adds of each thread.
    Plain,
}

impl Core {
    /// Every core.
    pub const ALL: [Self; 5] = [Self::Wgmma, Self::Mma, Self::Mfma, Self::Wmma, Self::Plain];

    /// The name on the command line and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wgmma => "wgmma",
            Self::Mma => "mma",
            Self::Mfma => "mfma",
            Self::Wmma => "wmma",
            Self::Plain => "plain",
        }
    }

    /// What the same GPU has besides, one rung further down; `None` below plain multiply-adds.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self {
            Self::Wgmma => Some(Self::Mma),
            Self::Mma | Self::Mfma | Self::Wmma => Some(Self::Plain),
            Self::Plain => None,
        }
    }
}

impl FromStr for Core {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        by_name("core", text, Self::ALL, Self::name)
    }
}

impl fmt::Display for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ladder_ends_at_plain() {
        for core in Core::ALL {
            assert_eq!(core.name().parse::<Core>().unwrap(), core);
            let mut rungs = std::iter::successors(Some(core), |core| core.next());
            assert_eq!(rungs.by_ref().last(), Some(Core::Plain), "{core}");
        }
        assert!("wgma".parse::<Core>().unwrap_err().to_string().contains("wgmma"));
    }
}
