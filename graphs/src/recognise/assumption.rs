//! What a problem takes for granted of the nodes that it stands for.

use std::fmt;

/// What a problem takes for granted of the nodes that it stands for, so that its cost is not quite
/// theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Assumption {
    /// Constant weights are laid out ahead of time, whatever order they have in the file.
    PrepackedWeights,
    /// Weights that are computed while the graph runs have the layout that the kernel reads.
    ComputedWeights,
    /// Heads are split and joined in place: transposes around attention cost nothing.
    HeadsInPlace,
    /// An operand that broadcasts is read as if it had the full shape.
    BroadcastOperand,
    /// Every head of queries has keys and values of its own, although one tensor of them is broadcast
    /// to several heads or batches.
    OwnKeysAndValues,
    /// The factors of a GEMM, alpha and beta, cost nothing where they cannot be multiplied into its
    /// weights ahead of time.
    FreeFactors,
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PrepackedWeights => "constant weights are laid out ahead of time",
            Self::ComputedWeights => {
                "weights computed while the graph runs have the layout that the kernel reads"
            }
            Self::HeadsInPlace => "transposes that split and join heads cost nothing",
            Self::BroadcastOperand => "an operand that broadcasts is read in full",
            Self::OwnKeysAndValues => "keys and values that broadcast are read for every head",
            Self::FreeFactors => "the factors of a GEMM (alpha, beta) cost nothing",
        })
    }
}
