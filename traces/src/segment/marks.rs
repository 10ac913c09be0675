//! What the names of annotations say.

use serde::Serialize;

/// What a step of serving a model does, or what a part of a step of training does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It reads prompts.
    Prefill,
    /// It generates a token, or a few, for each sequence.
    Decode,
    /// It does both at once.
    Mixed,
    /// It refines an image, for example.
    Diffusion,
    /// The part of a step of training that computes the loss.
    Forward,
    /// The part that computes gradients.
    Backward,
    /// Layers that run once more in the backward pass, since their results were not kept.
    Recompute,
    /// The part that changes the weights.
    Optimizer,
}

impl Phase {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::Prefill,
        Self::Decode,
        Self::Mixed,
        Self::Diffusion,
        Self::Forward,
        Self::Backward,
        Self::Recompute,
        Self::Optimizer,
    ];

    /// The name in reports and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Mixed => "mixed",
            Self::Diffusion => "diffusion",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Recompute => "recompute",
            Self::Optimizer => "optimizer",
        }
    }

    /// Whether every step of training has it, where other phases are of whole steps.
    #[must_use]
    pub const fn is_part_of_step(self) -> bool {
        matches!(self, Self::Forward | Self::Backward | Self::Recompute | Self::Optimizer)
    }
}

/// Who writes an annotation of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// vLLM, and what follows its form: `execute_context_2(512)_generation_30(30)`.
    Execute,
    /// SGLang: `step[DECODE bs=32]`.
    Step,
    /// ATOM: `prefill[bs=1]`, `decode[bs=8]`.
    Bracket,
    /// The profiler's own: `ProfilerStep#6`.
    ProfilerStep,
}

/// What an annotation's name says, if it is that of a step.
pub(super) fn step_mark(name: &str) -> Option<(MarkKind, Option<Phase>)> {
    if let Some(number) = name.strip_prefix("ProfilerStep#") {
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        return is_number.then_some((MarkKind::ProfilerStep, None));
    }
    if let Some(rest) = name.strip_prefix("execute_") {
        return Some((MarkKind::Execute, execute_phase(rest)?));
    }
    if let Some(rest) = name.strip_prefix("step[") {
        let mode = rest.split([' ', ']']).next().unwrap_or_default();
        return Some((MarkKind::Step, forward_mode(mode)));
    }
    let (word, rest) = name.split_once('[')?;
    let phase = match word {
        "prefill" => Phase::Prefill,
        "decode" => Phase::Decode,
        "mixed" => Phase::Mixed,
        _ => return None,
    };
    rest.contains(']').then_some((MarkKind::Bracket, Some(phase)))
}

/// `context_N(..)_generation_M(..)` behind `execute_`, with or without a number between. N and M
/// count sequences.
#[expect(clippy::option_option, reason = "a step of no phase is not the same as no step")]
fn execute_phase(rest: &str) -> Option<Option<Phase>> {
    if rest.starts_with("diffusion") {
        return Some(Some(Phase::Diffusion));
    }
    let count_behind = |word: &str| {
        let (_, tail) = rest.split_once(word)?;
        let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        // A count too large for a number is not zero.
        (digits > 0).then(|| tail[..digits].bytes().any(|digit| digit != b'0'))
    };
    let has_context = count_behind("context_")?;
    let has_generation = count_behind("generation_")?;
    Some(Some(match (has_context, has_generation) {
        (true, false) => Phase::Prefill,
        (true, true) => Phase::Mixed,
        (false, _) => Phase::Decode,
    }))
}

/// How much work the mark of a step says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepSize {
    /// Sequences, with prompts and generating.
    pub sequences: Option<u64>,
    /// Tokens that the model reads, of prompts and one or a few for each sequence that generates.
    pub tokens: Option<u64>,
    /// Tokens that attention looks back at, over all sequences.
    pub context: Option<u64>,
}

impl StepSize {
    /// Reads the name of a step.
    #[must_use]
    pub fn of(name: &str) -> Self {
        if let Some(rest) = name.strip_prefix("execute_") {
            return Self::of_execute(rest).unwrap_or_default();
        }
        let Some((word, rest)) = name.split_once('[') else { return Self::default() };
        let value = |key: &str| {
            let words = rest.trim_end_matches(']').split(' ');
            words.filter_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok()).next()
        };
        let sequences = value("bs");
        // Who generates reads a token for each sequence.
        let one_each = sequences.filter(|_| word == "decode" || rest.starts_with("DECODE"));
        Self { sequences, tokens: value("toks").or(one_each), context: None }
    }

    /// `context_2(900)_generation_30(30)`, or with `sq900sk900sqsq..sqsk..` in the brackets.
    fn of_execute(rest: &str) -> Option<Self> {
        let mut sums = Self { sequences: Some(0), tokens: Some(0), context: Some(0) };
        let add = |sum: &mut Option<u64>, value: Option<u64>| {
            *sum = sum.zip(value).and_then(|(sum, value)| sum.checked_add(value));
        };
        for word in ["context_", "generation_"] {
            let (_, tail) = rest.split_once(word)?;
            let (count, tail) = tail.split_once('(')?;
            let (inside, _) = tail.split_once(')')?;
            add(&mut sums.sequences, count.parse().ok());
            if inside.starts_with("sq") {
                let length = |key: &str| leading_number(inside.split_once(key)?.1);
                add(&mut sums.tokens, length("sq"));
                add(&mut sums.context, length("sk"));
            } else {
                add(&mut sums.tokens, inside.parse().ok());
                sums.context = None;
            }
        }
        Some(sums)
    }
}

fn leading_number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

/// SGLang's modes of a forward pass. Verifying what a smaller model drafted generates tokens; an
/// idle pass, or an unknown mode, is of no phase.
fn forward_mode(mode: &str) -> Option<Phase> {
    match mode {
        "EXTEND" | "PREFILL" | "SPLIT_PREFILL" => Some(Phase::Prefill),
        "DECODE" | "TARGET_VERIFY" | "DRAFT_EXTEND" | "DRAFT_EXTEND_V2" => Some(Phase::Decode),
        "MIXED" => Some(Phase::Mixed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_steps() {
        let cases = [
            ("execute_context_1(2048)_generation_0(0)", [Some(1), Some(2048), None]),
            ("execute_context_2(100)_generation_30(30)", [Some(32), Some(130), None]),
            (
                "execute_8192_context_9(sq8155sk8430sqsq1sqsk2)_generation_37(sq37sk34489sqsq1sqsk9)",
                [Some(46), Some(8192), Some(42_919)],
            ),
            ("step[EXTEND bs=2 toks=900]", [Some(2), Some(900), None]),
            ("step[DECODE bs=32]", [Some(32), Some(32), None]),
            ("prefill[bs=1]", [Some(1), None, None]),
            ("decode[bs=8]", [Some(8), Some(8), None]),
            ("execute_diffusion_3", [None, None, None]),
            ("ProfilerStep#12", [None, None, None]),
            ("execute_context_99999999999999999999(1)_generation_1(1)", [None, Some(2), None]),
        ];
        for (name, [sequences, tokens, context]) in cases {
            assert_eq!(StepSize::of(name), StepSize { sequences, tokens, context }, "{name}");
        }
    }

    #[test]
    fn names_of_steps() {
        use MarkKind::{Bracket, Execute, ProfilerStep, Step};
        use Phase::{Decode, Diffusion, Mixed, Prefill};
        let cases = [
            ("execute_context_1(2048)_generation_0(0)", Some((Execute, Some(Prefill)))),
            ("execute_context_0(0)_generation_8(8)", Some((Execute, Some(Decode)))),
            ("execute_context_2(100)_generation_30(30)", Some((Execute, Some(Mixed)))),
            ("execute_context_0(0)_generation_0(0)", Some((Execute, Some(Decode)))),
            (
                "execute_8192_context_9(sq8155sk8430)_generation_37(sq37sk34489)",
                Some((Execute, Some(Mixed))),
            ),
            (
                "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785)",
                Some((Execute, Some(Decode))),
            ),
            (
                "execute_context_99999999999999999999(1)_generation_0(0)",
                Some((Execute, Some(Prefill))),
            ),
            ("execute_diffusion_3", Some((Execute, Some(Diffusion)))),
            ("execute_model", None),
            ("execute_context_x(1)_generation_0(0)", None),
            ("step[EXTEND bs=2 toks=900]", Some((Step, Some(Prefill)))),
            ("step[DECODE bs=32]", Some((Step, Some(Decode)))),
            ("step[MIXED bs=3 toks=80]", Some((Step, Some(Mixed)))),
            ("step[IDLE]", Some((Step, None))),
            ("prefill[bs=1]", Some((Bracket, Some(Prefill)))),
            ("decode[bs=8]", Some((Bracket, Some(Decode)))),
            ("decode", None),
            ("decoder[3]", None),
            ("ProfilerStep#12", Some((ProfilerStep, None))),
            ("ProfilerStep#", None),
            ("ProfilerStep*", None),
            ("## forward ##", None),
            ("", None),
        ];
        for (name, expected) in cases {
            assert_eq!(step_mark(name), expected, "{name}");
        }
    }
}
