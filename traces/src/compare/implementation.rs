//! What only one side runs, and that is not a fusion: how a library computes something.

use super::places::Place;
use super::result::ImplementationKind;
use crate::classify::Class;

/// What the kernel at a place is, if only this side has it and it is of the implementation.
pub(super) fn kind(places: &[Place<'_>], at: usize, side: usize) -> Option<ImplementationKind> {
    let place = &places[at];
    let work = place.works[side].filter(|_| place.is_only_of(side))?;
    let other_has = |class: Class, same_role: bool| {
        places.iter().any(|other| {
            other.works[1 - side].is_some_and(|work| work.main == class)
                && (!same_role || other.role == place.role)
        })
    };
    match work.main {
        Class::GemmEpilogue => Some(ImplementationKind::SplitGemm),
        Class::Attn if other_has(Class::Attn, false) => Some(ImplementationKind::SplitAttention),
        Class::Gemm if other_has(Class::Gemm, true) => Some(ImplementationKind::SeparateGemms),
        Class::Fill => Some(ImplementationKind::Fill),
        Class::Quant => Some(ImplementationKind::Quantisation),
        Class::Copy => Some(ImplementationKind::Copy),
        Class::Comm => Some(ImplementationKind::Collective),
        _ => None,
    }
}
