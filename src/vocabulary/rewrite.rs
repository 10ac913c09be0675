//! Rewrites: another computation with the same result.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::chain::Chain;
use super::op::Op;
use super::pointwise::Pointwise;
use super::problem::Problem;
use crate::error::Error;

/// Another computation with the same result, which a compiler may choose apart from fusing.
///
/// Fusion runs the ops of a chain in one kernel and changes nothing else. A rewrite changes the ops,
/// so what it gains is in a record of its own: the unfused kernels of the chain as it is written
/// against the one kernel of what it becomes.
///
/// ```
/// use fusion_cost_model::{Problem, Rewrite};
///
/// let problem: Problem = "conv_bn_relu/f32/n1.c64.h56.w56.k64.r3.s3.pad1".parse()?;
/// let folded = Rewrite::BnFolded.apply(&problem).ok_or("a batch norm")?;
/// assert_eq!(folded.to_string(), "conv2d+bias+relu/f32/n1.c64.h56.w56.k64.r3.s3.pad1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Rewrite {
    /// A batch norm that follows a convolution is folded into its filter ahead of time, and what is
    /// left of it is a bias.
    #[serde(rename = "bn_folded")]
    BnFolded,
}

impl Rewrite {
    /// Every rewrite.
    pub const ALL: [Self; 1] = [Self::BnFolded];

    /// The name on the command line and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BnFolded => "bn_folded",
        }
    }

    /// Whether the ops of a chain can be rewritten so.
    #[must_use]
    pub fn applies_to(self, chain: &Chain) -> bool {
        match self {
            Self::BnFolded => {
                matches!(chain.ops(), [Op::Conv2d, Op::Pointwise(Pointwise::BatchNorm), ..])
            }
        }
    }

    /// What a problem becomes; `None` where the rewrite does not apply to it.
    #[must_use]
    pub fn apply(self, problem: &Problem) -> Option<Problem> {
        if !self.applies_to(problem.chain()) {
            return None;
        }
        let mut ops = problem.chain().to_vec();
        match self {
            Self::BnFolded => ops[1] = Op::Pointwise(Pointwise::Bias),
        }
        Problem::new(Chain::new(&ops).ok()?, problem.dtype(), *problem.sizes()).ok()
    }
}

impl fmt::Display for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Rewrite {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = text.to_ascii_lowercase();
        let found = Self::ALL.into_iter().find(|rewrite| rewrite.name() == wanted);
        let names = || Self::ALL.into_iter().map(Self::name);
        found.ok_or_else(|| Error::unknown_name("rewrite", text, names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_batch_norm_right_after_the_convolution_is_folded() {
        let sizes = "n1.c4.h8.w8.k4.r3.s3";
        for (chain, expected) in [
            ("conv_bn", Some("conv_bias")),
            ("conv2d+batch_norm+add+relu", Some("conv2d+bias+add+relu")),
            ("conv_bn_relu_maxpool", Some("conv2d+bias+relu+max_pool")),
            ("conv_relu", None),
            ("conv2d+relu+batch_norm", None),
        ] {
            let problem: Problem = format!("{chain}/f32/{sizes}").parse().unwrap();
            let folded = Rewrite::BnFolded.apply(&problem).map(|folded| folded.chain().name());
            assert_eq!(folded.as_deref(), expected, "{chain}");
            assert_eq!(Rewrite::BnFolded.applies_to(problem.chain()), expected.is_some());
        }
    }

    #[test]
    fn names_parse_back_and_wrong_ones_suggest_the_nearest() {
        for rewrite in Rewrite::ALL {
            assert_eq!(rewrite.to_string().parse::<Rewrite>().unwrap(), rewrite);
            assert_eq!(serde_json::to_string(&rewrite).unwrap(), format!("\"{rewrite}\""));
        }
        let message = "bn_fold".parse::<Rewrite>().unwrap_err().to_string();
        assert!(message.contains("did you mean `bn_folded`"), "{message}");
    }
}
