//! What kind of model a trace looks like.

use std::fmt;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::layers::{Layers, Marker};
use crate::classify::Class;
use crate::{Classes, NameId, Trace};

/// The kind of a model, by what its kernels do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Family {
    /// It has attention.
    pub attention: Option<FamilyEvidence>,
    /// It has experts, and a router chooses some of them.
    pub experts: Option<FamilyEvidence>,
    /// It has state-space scans.
    pub state_space: Option<FamilyEvidence>,
}

/// What shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FamilyEvidence {
    /// How many kernels, or recorded modules, show it.
    pub count: u64,
    /// The most frequent of them.
    pub example: String,
}

impl Family {
    /// The name in reports: `dense`, `mixture of experts`, `state space`, `hybrid`, `hybrid mixture
    /// of experts`, or `unknown` without attention, experts and scans.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match (self.attention.is_some(), self.state_space.is_some(), self.experts.is_some()) {
            (true, true, true) => "hybrid mixture of experts",
            (true, true, false) => "hybrid",
            (false, true, _) => "state space",
            (_, false, true) => "mixture of experts",
            (true, false, false) => "dense",
            (false, false, false) => "unknown",
        }
    }

    pub(super) fn of(trace: &Trace, classes: &Classes, layers: &Layers) -> Self {
        let (mut attention, mut experts, mut state_space) =
            (Seen::default(), Seen::default(), Seen::default());
        for (kernel, &name) in trace.kernels.name.iter().enumerate() {
            match classes.get(kernel).main {
                Class::Attn => attention.add(name),
                Class::Softmax
                    if layers.marker == Some(Marker::Softmax) && layers.layer(kernel).is_some() =>
                {
                    attention.add(name);
                }
                Class::MoeGemm | Class::MoeRouting | Class::MoeFinalize => experts.add(name),
                Class::Ssm => state_space.add(name),
                _ => {}
            }
        }
        // Models that run op by op have no kernels of their own for these, but modules.
        let mut modules = Seen::default();
        trace.frames.name.iter().for_each(|&name| modules.add(name));
        let evidence = |seen: Seen, parts: &[&str]| {
            let kernels = seen.counts.into_iter().map(|(id, count)| (trace.names.text(id), count));
            most(kernels).or_else(|| {
                let named = modules.counts.iter().filter_map(|(id, count)| {
                    let module = trace.names.text(*id).strip_prefix("nn.Module: ")?;
                    let is_one = parts.iter().any(|part| module.contains(part));
                    let end = |c: char| c.is_ascii_digit() || c == '_';
                    is_one.then(|| (module.trim_end_matches(end), *count))
                });
                most(named)
            })
        };
        Self {
            attention: evidence(attention, &["Attention"]),
            experts: evidence(experts, &["Moe", "MoE"]),
            state_space: evidence(state_space, &["Mamba"]),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How often each name was seen.
#[derive(Default)]
struct Seen {
    counts: FxHashMap<NameId, u64>,
}

impl Seen {
    fn add(&mut self, name: NameId) {
        *self.counts.entry(name).or_insert(0) += 1;
    }
}

/// The most frequent of some names, and the count of all.
fn most<'t>(seen: impl Iterator<Item = (&'t str, u64)>) -> Option<FamilyEvidence> {
    let mut counts: FxHashMap<&str, u64> = FxHashMap::default();
    seen.for_each(|(name, count)| *counts.entry(name).or_insert(0) += count);
    let count = counts.values().sum();
    // Of equals the first by name, so that the answer is always the same.
    let most = counts.into_iter().max_by_key(|(name, count)| (*count, std::cmp::Reverse(*name)));
    most.map(|(example, _)| FamilyEvidence { count, example: example.to_owned() })
}
