//! What the user asks to have measured.

use fusion_cost_model::{DType, Problem};

/// Which problems are asked for, by name and one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Families, patterns and chains; with none, all that the set of sizes lists.
    pub fusion: Vec<String>,
    /// A set of sizes or a file of them; `None` for the one that suits the device.
    pub shapes: Option<String>,
    /// Problems that were named one by one, or found in what `source` names.
    pub problems: Vec<Problem>,
    /// Where the problems were found; `None` where each was named.
    pub source: Option<String>,
    /// The dtypes of the problems that come from a set of sizes.
    pub dtypes: Vec<DType>,
    /// Whether few sizes are enough.
    pub quick: bool,
    /// Whether the device is a GPU.
    pub is_gpu: bool,
}
