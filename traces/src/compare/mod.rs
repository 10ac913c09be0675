//! Where the gap between two traces comes from.
//!
//! `result` is what a comparison says.

mod result;
mod roles;
mod warnings;
mod work;

pub use result::{
    Amount, Basis, Cause, CauseKind, ClassPart, Comparison, Fusion, FusionEvidence, Gap,
    ImplementationDifference, ImplementationKind, KernelRow, LayerComparison, LayerKind,
    LayerNumber, OverlapPart, Part, PhasePart, Ratio, RolePart, SameKernel, SideSummary, Slot,
    SlotKernel, SlotStatus, Which,
};
pub use roles::Role;
pub use warnings::{CompareWarning, Severity};
