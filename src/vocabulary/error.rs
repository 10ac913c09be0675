//! What can be wrong with a name, a chain or a problem, said so that a user can mend it.

use std::fmt;

use thiserror::Error;

use super::chain::MAX_OPS;

/// What sort of thing a name was meant to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameKind {
    /// An op, or a framework's name of one.
    Op,
    /// A pattern, a family, or a chain.
    Fusion,
    /// A number format.
    DType,
    /// A backend.
    Backend,
    /// A clock.
    Clock,
    /// Whose kernels run.
    Implementation,
    /// A size of a problem.
    Size,
    /// A machine under `calibrate/profiles/hardware/`.
    Hardware,
    /// A set of sizes under `calibrate/profiles/shapes/`.
    Shapes,
}

impl fmt::Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Op => "op",
            Self::Fusion => "fusion pattern",
            Self::DType => "dtype",
            Self::Backend => "backend",
            Self::Clock => "clock",
            Self::Implementation => "implementation",
            Self::Size => "size",
            Self::Hardware => "hardware",
            Self::Shapes => "shape set",
        })
    }
}

/// A name, chain or problem that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VocabularyError {
    /// A name that nothing has.
    #[error("unknown {kind} `{name}`{}", Suggestions(.suggestions))]
    UnknownName {
        /// What the name was meant to be.
        kind: NameKind,
        /// The name as it was given.
        name: String,
        /// The nearest known names, nearest first.
        suggestions: Vec<String>,
    },
    /// A chain whose ops cannot follow each other.
    #[error("`{chain}` cannot be one kernel: {reason}")]
    BadChain {
        /// The chain as it was given.
        chain: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A chain with more ops than a kernel can have here.
    #[error("a chain of {0} ops is too long: at most {MAX_OPS} can be one kernel")]
    ChainTooLong(usize),
    /// Sizes that do not belong to the chain, or that no tensor can have.
    #[error("sizes `{sizes}`: {reason}")]
    BadSizes {
        /// The sizes as they were given.
        sizes: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A problem's text that does not have three parts.
    #[error(
        "problem `{0}`: expected chain/dtype/sizes, such as linear_bias_relu/f32/m512.k512.n512"
    )]
    BadProblem(String),
}

struct Suggestions<'a>(&'a [String]);

impl fmt::Display for Suggestions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            [one] => write!(f, "; did you mean `{one}`?"),
            [first @ .., last] => {
                f.write_str("; did you mean ")?;
                for (index, name) in first.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}`{name}`")?;
                }
                write!(f, " or `{last}`?")
            }
        }
    }
}

impl VocabularyError {
    /// An unknown name, with those of `known` that are nearest to it.
    pub fn unknown<'a>(
        kind: NameKind,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Self::UnknownName { kind, name: name.to_owned(), suggestions: nearest(name, known) }
    }
}

/// At most this many names are suggested: more would not be read.
const MAX_SUGGESTIONS: usize = 3;

/// Below this Jaro-Winkler similarity two names have nothing to do with each other.
const MIN_SIMILARITY: f64 = 0.72;

/// The known names most like `name`, best first.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let wanted = name.to_ascii_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .map(|candidate| {
            let contained = wanted.len() >= 3 && candidate.contains(&wanted);
            let similarity = strsim::jaro_winkler(&wanted, &candidate.to_ascii_lowercase());
            (if contained { similarity.max(0.9) } else { similarity }, candidate)
        })
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.truncate(MAX_SUGGESTIONS);
    scored.into_iter().map(|(_, candidate)| candidate.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_suggested() {
        let names = ["linear_bias_relu", "conv_bn_relu", "add_relu"];
        let error = VocabularyError::unknown(NameKind::Fusion, "linear_bais_relu", names);
        assert_eq!(
            error.to_string(),
            "unknown fusion pattern `linear_bais_relu`; did you mean `linear_bias_relu`?"
        );
        let error = VocabularyError::unknown(NameKind::Fusion, "zzz", names);
        assert_eq!(error.to_string(), "unknown fusion pattern `zzz`");
    }
}
