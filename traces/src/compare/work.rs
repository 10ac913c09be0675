//! What a kernel does, as far as an alignment looks at it.

use crate::classify::{Class, ClassSet, Classification};

/// What a kernel does: its class, and what is fused into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Work {
    pub(super) main: Class,
    pub(super) also: ClassSet,
}

impl Work {
    pub(super) fn of(classification: Classification) -> Self {
        Self { main: classification.main, also: classification.also }
    }

    /// Every class, the main one too.
    pub(super) fn parts(self) -> ClassSet {
        self.also.with(self.main)
    }

    /// Whether it does all that another one does, and more.
    pub(super) fn is_more_than(self, other: Self) -> bool {
        let (own, others) = (self.parts(), other.parts());
        own != others && others.iter().all(|class| own.contains(class))
    }

    /// `NORM`, or `ADD+NORM` of a fused kernel.
    pub(super) fn label(self) -> String {
        self.classification().label()
    }

    /// Whether it is an activation that multiplies by a gate.
    pub(super) fn is_gated(self) -> bool {
        self.classification().is_gated()
    }

    const fn classification(self) -> Classification {
        Classification { main: self.main, also: self.also, ..Classification::UNCLASSIFIED }
    }

    /// Whether it is attention, or a scan that stands in its place.
    pub(super) fn is_core(self) -> bool {
        matches!(self.main, Class::Attn | Class::Ssm)
    }

    /// Whether it is the norm of a block, or a part of one that is computed op by op.
    pub(super) fn is_norm(self) -> bool {
        self.parts().contains(Class::Norm) || self.main == Class::Reduce
    }

    /// Whether it is a GEMM that experts do not share, with its tail.
    pub(super) fn is_gemm(self) -> bool {
        self.main == Class::Gemm
    }
}
