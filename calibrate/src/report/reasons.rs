//! What is to be said about records, by the word of its code.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;

use fusion_cost_model::calibration::FusionRecord;
use fusion_cost_model::{CacheState, Implementation, Problem};

/// What is to be said about a record.
#[derive(Clone, Copy)]
pub(super) struct Said<'c> {
    /// The record's problem.
    pub(super) problem: Problem,
    /// What the caches held.
    pub(super) cache_state: CacheState,
    /// Whose kernels ran, where they are not the project's own.
    whose: Option<Implementation>,
    /// What is to be said.
    pub(super) text: &'c str,
}

impl Said<'_> {
    /// The record's whole name, with the state of the caches and whose kernels ran.
    pub(super) fn name(&self) -> String {
        self.of(format_args!("{}{}", self.problem, self.cache_state.mark()))
    }

    /// A name of the problem, with whose kernels ran.
    pub(super) fn of(&self, name: impl Display) -> String {
        self.whose.map_or_else(|| name.to_string(), |whose| format!("{name} ({whose})"))
    }
}

/// What is to be said, each code in the order of the records.
pub(super) fn by_code<'c>(
    records: impl IntoIterator<Item = &'c FusionRecord>,
) -> BTreeMap<&'c str, Vec<Said<'c>>> {
    let mut reasons: BTreeMap<&str, Vec<Said<'_>>> = BTreeMap::new();
    for record in records {
        for reason in &record.reasons {
            let found = reasons.entry(reason.code.name()).or_default();
            let whose = Some(record.implementation).filter(|one| one.runtime().is_some());
            let FusionRecord { problem, cache_state, .. } = *record;
            found.push(Said { problem, cache_state, whose, text: &reason.text });
        }
    }
    reasons
}

/// How the text of the first one is announced, where the others say something else.
pub(super) fn of_first(found: &[Said<'_>]) -> &'static str {
    let texts: HashSet<&str> = found.iter().map(|said| said.text).collect();
    if texts.len() > 1 { "; of the first" } else { "" }
}
