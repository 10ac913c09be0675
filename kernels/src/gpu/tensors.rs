//! The tensors of a prepared problem, before there is memory for them.

/// A tensor of a prepared problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TensorId(pub(crate) usize);

/// What a tensor is for, which decides who writes it and whether it is there once or per set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// An input: written before every round.
    Input,
    /// The output, an intermediate result of the unfused variant: poisoned before a proof.
    Result,
    /// What a fused kernel keeps for itself in memory. All sets share it.
    Scratch,
    /// Counters of a fused kernel's blocks, which must be zero before its first launch, and which
    /// nobody else may write afterwards: every launch goes on from where the last one left them.
    Counters,
}

/// A tensor's size and purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TensorSpec {
    /// Bytes.
    pub(crate) bytes: u64,
    /// Its purpose.
    pub(crate) role: Role,
}

/// All tensors of both variants.
#[derive(Debug, Clone, Default)]
pub(crate) struct TensorTable {
    /// In the order in which they were added.
    pub(crate) specs: Vec<TensorSpec>,
}

impl TensorTable {
    /// Adds a tensor.
    pub(crate) fn add(&mut self, bytes: u64, role: Role) -> TensorId {
        self.specs.push(TensorSpec { bytes, role });
        TensorId(self.specs.len() - 1)
    }

    /// Bytes of what kernels keep for themselves.
    pub(crate) fn scratch_bytes(&self) -> u64 {
        let is_scratch = |spec: &&TensorSpec| matches!(spec.role, Role::Scratch | Role::Counters);
        self.specs.iter().filter(is_scratch).map(|spec| spec.bytes).sum()
    }
}
