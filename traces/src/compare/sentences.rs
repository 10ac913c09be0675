//! The sentences about a whole comparison and its fusions. Causes, differences and warnings carry
//! theirs with them.

use super::text::{capitalised, list, time};
use super::{
    Answer, Basis, CauseKind, Comparison, Fusion, FusionEvidence, Gap, Headline,
    ImplementationKind, Question, SideSummary, SlotStatus, Which, WorkAspect, WorkRate,
};

/// Ratios closer to one than this count as equal.
const NO_DIFFERENCE: std::ops::Range<f64> = 0.995..1.005;

impl Comparison {
    /// A side.
    #[must_use]
    pub const fn side(&self, which: Which) -> &SideSummary {
        match which {
            Which::First => &self.first,
            Which::Second => &self.second,
        }
    }

    /// Who is faster and by how much, in one sentence without a full stop. Where the sides did
    /// different work, that, and who is faster for a token or a TFLOP, if that is known.
    #[must_use]
    pub fn verdict(&self) -> String {
        match self.same_work.headline {
            Headline::OfAStep | Headline::Unconfirmed => self.verdict_of_a_step(),
            Headline::OfUsualSteps => {
                self.verdict_of_rates(&format!("usual {}", self.basis.noun()))
            }
            Headline::OfEachPhase if self.basis == Basis::Layers => self.verdict_of_rates("pass"),
            Headline::OfEachPhase => self.verdict_of_rates("step"),
            Headline::ForAToken => self.verdict_of_rates("token"),
            Headline::ForATflop => self.verdict_of_rates("TFLOP"),
            Headline::Withheld => {
                let Gap { first_ns, second_ns, .. } = self.gap;
                format!(
                    "{}; so their times, {} and {}, do not say which is faster",
                    self.differences(),
                    time(first_ns),
                    time(second_ns)
                )
            }
        }
    }

    fn verdict_of_rates(&self, unit: &str) -> String {
        let (first, second) = (&self.first.label, &self.second.label);
        let rates = self.same_work.rates.iter().map(|rate| {
            let WorkRate { phase, first_ns, second_ns, ratio, .. } = rate;
            let phase = phase.map_or_else(String::new, |phase| format!(" of {}", phase.name()));
            let faster = match ratio {
                ratio if NO_DIFFERENCE.contains(ratio) => "no difference to speak of".to_owned(),
                ratio if *ratio > 1.0 => format!("{second} is {ratio:.2} times as fast"),
                ratio => format!("{first} is {:.2} times as fast", 1.0 / ratio),
            };
            let times = [time(*first_ns), time(*second_ns)];
            format!(
                "for a {unit}{phase} {first} takes {} and {second} {}: {faster}",
                times[0], times[1]
            )
        });
        format!("{}; {}", self.differences(), rates.collect::<Vec<_>>().join("; "))
    }

    /// In what the work of the sides differs, or which first steps decide, in a sentence without a
    /// full stop.
    #[must_use]
    pub fn differences(&self) -> String {
        let (first, second) = (&self.first.label, &self.second.label);
        let questions = self.same_work.questions.iter();
        let mut differs = questions.filter(|one| one.answer == Answer::Different);
        if self.same_work.headline == Headline::OfUsualSteps {
            // Nothing else differs.
            let sides = differs.next().map(|one| [(first, &one.first), (second, &one.second)]);
            let sides = sides.into_iter().flatten();
            let sides =
                sides.filter_map(|(label, side)| Some(format!("{label} has {}", side.as_ref()?)));
            let sides = list(&sides.collect::<Vec<_>>());
            return format!("{sides} as others with the same work");
        }
        let differences: Vec<String> = differs.map(difference).collect();
        if differences.is_empty() {
            let of_phases = "how much of it is prefill and how much decode";
            let of_context = "how far attention looks back, which makes most of the difference";
            let is_unknown = [WorkAspect::Phase, WorkAspect::Context]
                .map(|about| self.answers(about, Answer::Unknown));
            let what = match is_unknown {
                [false, true] => of_context.to_owned(),
                [_, false] => of_phases.to_owned(),
                [true, true] => format!("{of_phases}, and how far attention looks back"),
            };
            return format!(
                "{first} and {second} may not have done the same work: the traces do not say {what}"
            );
        }
        format!("{first} and {second} did not do the same work: {}", differences.join(", "))
    }

    /// Whether a question has an answer, of any phase.
    fn answers(&self, about: WorkAspect, answer: Answer) -> bool {
        let mut questions = self.same_work.questions.iter();
        questions.any(|one| one.about == about && one.answer == answer)
    }

    /// Whether one side is called faster, or as fast, with a reservation: [`doubt`](Self::doubt).
    #[must_use]
    pub fn is_doubted(&self) -> bool {
        match self.same_work.headline {
            Headline::Unconfirmed => true,
            Headline::OfAStep | Headline::Withheld => false,
            _ => self.same_work.questions.iter().any(|one| one.answer == Answer::Unknown),
        }
    }

    /// What the traces do not say about the work of the sides, in a sentence without a full stop.
    #[must_use]
    pub fn doubt(&self) -> String {
        let is_known = |about| {
            [Answer::Same, Answer::Different].into_iter().any(|one| self.answers(about, one))
        };
        let is_asked = |about| is_known(about) || self.answers(about, Answer::Unknown);
        let has_sizes = is_known(WorkAspect::Sizes);
        // Not asked where the sizes of attention say it.
        let is_context_unknown = self.answers(WorkAspect::Context, Answer::Unknown);
        let is_unknown = |about: &WorkAspect| match about {
            WorkAspect::Context => is_context_unknown,
            WorkAspect::Sequence => self.answers(*about, Answer::Unknown),
            // As many rows in all GEMMs are as many tokens.
            WorkAspect::Tokens if has_sizes && !is_asked(*about) => false,
            WorkAspect::Batch if has_sizes && !is_asked(*about) && !is_context_unknown => false,
            _ => !is_known(*about) || self.answers(*about, Answer::Unknown),
        };
        let aspects = [
            WorkAspect::Model,
            WorkAspect::Phase,
            WorkAspect::Batch,
            WorkAspect::Tokens,
            WorkAspect::Context,
            WorkAspect::Sequence,
            WorkAspect::Sizes,
            WorkAspect::Dtype,
        ];
        let unknown = aspects.into_iter().filter(is_unknown);
        let unknown: Vec<String> = unknown.map(|about| about.name().to_owned()).collect();
        let both = match unknown[..] {
            [_] => "is",
            _ => "are",
        };
        let mut doubt = format!(
            "the traces do not say whether {} {both} the same on both sides",
            list(&unknown)
        );
        if is_context_unknown {
            doubt.push_str("; context is how far attention looks back");
        }
        doubt
    }

    fn verdict_of_a_step(&self) -> String {
        let Gap { first_ns, second_ns, ratio, .. } = self.gap;
        let (first, second) = (&self.first.label, &self.second.label);
        let phase = self.phase.map_or_else(String::new, |phase| format!("{} ", phase.name()));
        let per = match self.basis {
            Basis::Layers => format!("a {phase}pass"),
            Basis::MarkedSteps => format!("a {phase}step"),
            Basis::Recording if phase.is_empty() => "in all".to_owned(),
            Basis::Recording => format!("in all {phase}steps"),
        };
        let layer = self.layer.map_or_else(String::new, |layer| format!("In layer {layer}, "));
        let times =
            format!("{layer}{first} takes {} {per}, {second} {}", time(first_ns), time(second_ns));
        let faster = |name: &str, times: f64| format!("{name} is {times:.2} times as fast");
        let conclusion = match ratio {
            Some(ratio) if NO_DIFFERENCE.contains(&ratio) => "no difference to speak of".to_owned(),
            Some(ratio) if ratio > 1.0 => faster(second, ratio),
            Some(ratio) if ratio > 0.0 => faster(first, 1.0 / ratio),
            _ => "there is nothing to compare".to_owned(),
        };
        capitalised(format!("{times}: {conclusion}"))
    }

    /// What a step is, in a sentence.
    #[must_use]
    pub fn basis_sentence(&self) -> String {
        let what = match self.basis {
            Basis::Layers => "a pass through all layers",
            Basis::MarkedSteps => "a marked step",
            Basis::Recording if self.phase.is_some() => {
                "the whole recording, as neither layers nor marked steps of the phase are in both"
            }
            Basis::Recording => {
                "the whole recording, as neither layers nor marked steps are in both"
            }
        };
        let phase = self.phase.map_or_else(String::new, |phase| {
            format!("; only what was launched in steps of phase {}", phase.name())
        });
        let layer = self
            .layer
            .map_or_else(String::new, |layer| format!("; only layer {layer} of the model"));
        format!("Times are of {what}{phase}{layer}.")
    }

    /// Who fuses what, and what the other side runs instead.
    #[must_use]
    pub fn fusion_sentence(&self, fusion: &Fusion) -> String {
        format!(
            "{} fuses {}; {} runs {}",
            self.side(fusion.fused_by).label,
            fusion.operation,
            self.side(fusion.fused_by.other()).label,
            fusion.separate.join(", then ")
        )
    }
}

/// What differs, with both sides.
fn difference(question: &Question) -> String {
    let phase = question.phase.map_or_else(String::new, |phase| format!("{} ", phase.name()));
    let about = question.about.name();
    match (&question.first, &question.second) {
        (Some(first), Some(second)) if first != second => {
            format!("{phase}{about} {first} against {second}")
        }
        _ => format!("{phase}{about} ({})", question.evidence),
    }
}

impl Which {
    /// The other side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
        }
    }
}

impl SlotStatus {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aligned => "aligned",
            Self::Moved => "moved",
            Self::FirstOnly => "first_only",
            Self::SecondOnly => "second_only",
        }
    }
}

impl CauseKind {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fusion => "fusion",
            Self::Implementation => "implementation",
            Self::OneSided => "one side only",
            Self::Communication => "communication",
            Self::Copies => "copies",
            Self::Fills => "fills",
            Self::Class => "same class",
            Self::OutsideSteps => "outside of steps",
            Self::Idle => "idle",
            Self::PhaseMix => "mix of phases",
        }
    }
}

impl ImplementationKind {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SplitGemm => "split GEMM",
            Self::SplitAttention => "split attention",
            Self::SeparateGemms => "separate GEMMs",
            Self::Fill => "fill",
            Self::Quantisation => "quantisation",
            Self::Copy => "copy",
            Self::Collective => "collective",
        }
    }
}

impl FusionEvidence {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Definition => "definition",
            Self::Absence => "absence",
        }
    }
}
