//! Whether both sides did the same work.

use serde::Serialize;

use crate::segment::Phase;

/// Whether both sides did the same work, and what may be said of their times.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SameWork {
    /// Which statement about the times of a step the traces allow.
    pub headline: Headline,
    /// What was asked, and what the traces say.
    pub questions: Vec<Question>,
    /// The times for a token or for a TFLOP where the steps are of different sizes, of a step of
    /// each phase where the recordings have different shares of them, or of a usual step where the
    /// first ones take longer.
    pub rates: Vec<WorkRate>,
    /// The operators that both sides called with the same sizes.
    pub matched: MatchedWork,
}

/// Which statement about the times of a step the traces allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Headline {
    /// Both sides did the same work: the times of a step are compared.
    OfAStep,
    /// The traces do not say enough to be sure: the times of a step are compared, with that
    /// reservation.
    Unconfirmed,
    /// The first steps take longer than others with the same work, and decide: the times of a step
    /// are compared as if they had taken as long.
    OfUsualSteps,
    /// The recordings have their phases in different shares: the times of a step of each phase are
    /// compared.
    OfEachPhase,
    /// The steps have different numbers of tokens: the times for a token are compared.
    ForAToken,
    /// The steps have different sizes: the times for a TFLOP are compared.
    ForATflop,
    /// The work is of another kind: no times are compared.
    Withheld,
}

impl Headline {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OfAStep => "of_a_step",
            Self::Unconfirmed => "unconfirmed",
            Self::OfUsualSteps => "of_usual_steps",
            Self::OfEachPhase => "of_each_phase",
            Self::ForAToken => "for_a_token",
            Self::ForATflop => "for_a_tflop",
            Self::Withheld => "withheld",
        }
    }

    /// Whether the times of a step may be compared.
    #[must_use]
    pub const fn is_of_a_step(self) -> bool {
        matches!(self, Self::OfAStep | Self::Unconfirmed)
    }

    /// The code of the warning that says why the times of a step are not compared.
    #[must_use]
    pub const fn warning(self) -> Option<&'static str> {
        match self {
            Self::OfAStep | Self::Unconfirmed => None,
            Self::OfUsualSteps => Some("slow-first-step"),
            Self::OfEachPhase | Self::ForAToken | Self::ForATflop | Self::Withheld => {
                Some("different-work")
            }
        }
    }
}

/// A question about the work of both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Question {
    /// What is asked.
    pub about: WorkAspect,
    /// The phase that it is about; all if none.
    pub phase: Option<Phase>,
    /// What the first trace says; none if nothing.
    pub first: Option<String>,
    /// What the second trace says.
    pub second: Option<String>,
    /// The answer.
    pub answer: Answer,
    /// Where the answer comes from.
    pub evidence: String,
}

/// What may differ between the work of two traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkAspect {
    /// The model.
    Model,
    /// The phase.
    Phase,
    /// Sequences or images at once.
    Batch,
    /// Tokens of a sequence.
    Sequence,
    /// Tokens that attention looks back at.
    Context,
    /// Tokens of a step.
    Tokens,
    /// The sizes of all operators.
    Sizes,
    /// How much of it a recording, or a step, has.
    Amount,
    /// The number type.
    Dtype,
}

impl WorkAspect {
    /// The name in sentences.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Phase => "phase",
            Self::Batch => "batch",
            Self::Sequence => "sequence",
            Self::Context => "context",
            Self::Tokens => "tokens",
            Self::Sizes => "sizes",
            Self::Amount => "amount",
            Self::Dtype => "dtype",
        }
    }
}

/// The answer to a question about the work of both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is the same.
    Same,
    /// It differs.
    Different,
    /// The traces do not say.
    Unknown,
}

impl Answer {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
            Self::Unknown => "unknown",
        }
    }
}

/// The times of a step for the work in it, or of a step of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkRate {
    /// The phase; all if none.
    pub phase: Option<Phase>,
    /// How many tokens, or TFLOP, a step of the first side has; one for the step itself.
    pub first_units: f64,
    /// The same on the second.
    pub second_units: f64,
    /// The time for one of them on the first side, in nanoseconds.
    pub first_ns: f64,
    /// The same on the second.
    pub second_ns: f64,
    /// The first time over the second.
    pub ratio: f64,
}

/// Operators that both sides called with the same sizes.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatchedWork {
    /// The share of the first side's durations in kernels of such operators.
    pub first_share: f64,
    /// The same on the second.
    pub second_share: f64,
    /// The time of the first side for them over that of the second, each operator as often on both
    /// sides; none without any, and where first steps that take longer decide.
    pub ratio: Option<f64>,
    /// The operators, the longest first.
    pub operators: Vec<MatchedOperator>,
}

/// An operator that both sides called with the same sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatchedOperator {
    /// Its name, without its library.
    pub operator: String,
    /// The sizes of its tensors.
    pub sizes: String,
    /// How many calls the first recording has.
    pub first_calls: u64,
    /// How many calls the second recording has.
    pub second_calls: u64,
    /// The mean over the first side's calls of the durations of a call's kernels, in nanoseconds.
    pub first_mean_ns: f64,
    /// The same on the second side.
    pub second_mean_ns: f64,
    /// The first mean over the second; none if the second takes no time.
    pub ratio: Option<f64>,
}
