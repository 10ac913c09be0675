//! The marks that programs put around their steps.

use super::Phase;

/// A mark around a step, in the words of the program that puts it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Annotation {
    /// PyTorch's own: it marks steps, not phases.
    ProfilerStep,
    /// vLLM's: sequences and tokens of both kinds.
    Vllm,
    /// vLLM's with the lengths of queries and keys.
    VllmDetailed,
    /// SGLang's.
    Sglang,
    /// ATOM's, which knows no mixed steps and marks them as prefill.
    Atom,
    /// That of a diffusion model: it marks steps, not phases.
    Diffusion,
}

impl Annotation {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::ProfilerStep,
        Self::Vllm,
        Self::VllmDetailed,
        Self::Sglang,
        Self::Atom,
        Self::Diffusion,
    ];

    /// Whether it says that a step is for this phase.
    #[must_use]
    pub fn tells(self, phase: Phase) -> bool {
        match self {
            Self::ProfilerStep | Self::Diffusion => false,
            Self::Atom => phase != Phase::Mixed,
            Self::Vllm | Self::VllmDetailed | Self::Sglang => true,
        }
    }

    /// The mark of a step.
    pub(super) fn text(self, step: u64, phase: Phase) -> String {
        let (prompts, running) = match phase {
            Phase::Prefill => (2 + step % 3, 0),
            Phase::Decode => (0, 32),
            Phase::Mixed => (1 + step % 2, 31),
        };
        let tokens = prompts * 512;
        let (all, sequences) = (tokens + running, prompts + running);
        match self {
            Self::ProfilerStep => format!("ProfilerStep#{step}"),
            Self::Vllm => {
                format!("execute_context_{prompts}({tokens})_generation_{running}({running})")
            }
            Self::VllmDetailed => {
                let lengths = |queries: u64, keys: u64, square: u64| {
                    format!("sq{queries}sk{keys}sqsq{square}sqsk{}", queries * keys)
                };
                format!(
                    "execute_{all}_context_{prompts}({})_generation_{running}({})",
                    lengths(tokens, tokens, tokens * 512),
                    lengths(running, running * 1024, running),
                )
            }
            Self::Sglang => match phase {
                Phase::Prefill => format!("step[EXTEND bs={sequences} toks={all}]"),
                Phase::Decode => format!("step[DECODE bs={sequences}]"),
                Phase::Mixed => format!("step[MIXED bs={sequences} toks={all}]"),
            },
            Self::Atom => match phase {
                Phase::Prefill | Phase::Mixed => format!("prefill[bs={sequences}]"),
                Phase::Decode => format!("decode[bs={sequences}]"),
            },
            Self::Diffusion => format!("execute_diffusion_{step}"),
        }
    }
}
