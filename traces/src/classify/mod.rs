//! What a kernel does, from its name, and where the name is not enough from the operator that
//! launched it.
//!
//! `name` takes the name apart, the first of `rules` that fits decides, `fused` adds what
//! else the name proves. Nothing else is looked at: a name has the same class in every trace,
//! unless its rule says that the name is only a guess; then `context` is asked first. For a whole
//! trace [`Classes`](crate::Classes) finds the context, and asks the neighbours of a kernel last.

mod activations;
mod class;
mod context;
mod fused;
mod legacy;
mod name;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) use activations::Activations;
pub use class::{AttnPhase, Class, ClassSet, Classification};
pub use legacy::legacy_name;

use name::Parts;
use rules::RULES;

/// The class of a kernel by its name.
#[must_use]
pub fn classify(name: &str) -> Classification {
    by_name(name).map_or(Classification::UNCLASSIFIED, |(found, _)| found)
}

/// The class of a kernel by its name; by the operator or the python frame that launched it if the
/// name says nothing, or too little.
#[must_use]
pub fn classify_with(name: &str, op: Option<&str>, frame: Option<&str>) -> Classification {
    let named = by_name(name);
    if let Some((found, false)) = named {
        return found;
    }
    op.and_then(context::of_op)
        .or_else(|| frame.and_then(context::of_frame))
        .or(named.map(|(found, _)| found))
        .unwrap_or(Classification::UNCLASSIFIED)
}

/// The class of a kernel by its name, if the name says enough: then [`classify_with`] gives the
/// same with any operator and any frame.
pub(crate) fn certain(name: &str) -> Option<Classification> {
    by_name(name).and_then(|(found, is_guess)| (!is_guess).then_some(found))
}

/// What an operator says of a kernel that it launches.
pub(crate) fn class_of_op(op: &str) -> Option<Classification> {
    context::of_op(op)
}

/// What an operator proves of a kernel that it launches, besides what its name says.
pub(crate) fn proven_by_op(op: &str) -> ClassSet {
    context::proven(op)
}

/// What the words of a name say that is done with the result of a GEMM.
pub(crate) fn proven_by_words(words: &str) -> ClassSet {
    fused::epilogues(words)
}

/// What a python frame says of a kernel that is launched in it.
pub(crate) fn class_of_frame(frame: &str) -> Option<Classification> {
    context::of_frame(frame)
}

/// The class by the rules, and whether it is only a guess.
fn by_name(name: &str) -> Option<(Classification, bool)> {
    let parts = Parts::of(name);
    let rule = RULES.iter().find(|rule| rule.when.iter().all(|test| test.holds(&parts)))?;
    let found = Classification {
        main: rule.class,
        also: fused::others(&parts, rule.class),
        phase: rule.phase,
        why: rule.id,
    };
    Some((found, rule.weak))
}

/// The words of a kernel's name, in lower case, for what looks into names beyond their classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words {
    /// Those of the base name, `_` between and around them.
    pub(crate) base: String,
    /// Those of the template arguments, a space between and around them.
    pub(crate) arguments: String,
}

impl Words {
    /// Takes a name apart.
    pub(crate) fn of(name: &str) -> Self {
        let Parts { words, args, .. } = Parts::of(name);
        Self { base: words, arguments: args }
    }
}

/// The families of kernels that are known: the rule, its class and an example, in the order in
/// which they are tried.
pub fn families() -> impl Iterator<Item = (&'static str, Class, &'static str)> {
    RULES.iter().map(|rule| (rule.id, rule.class, rule.example))
}
