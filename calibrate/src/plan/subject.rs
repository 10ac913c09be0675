//! What a run measures: problems, and the A/A runs that every run begins with.

use std::fmt;

use fused_kernels::{Setup, Variant};
use fusion_cost_model::{CacheState, Clock, Family, Implementation, Problem, Rewrite};
use serde::{Deserialize, Serialize};

/// What the noise floor of a CPU is measured on: for each family a problem of a few microseconds and
/// one of some hundred, or one that streams through memory.
const CPU_CONTROLS: [(Family, [&str; 2]); 4] = [
    (Family::Linear, ["linear_bias_relu/f32/m64.k64.n64", "linear_bias_relu/f32/m256.k256.n256"]),
    (
        Family::Conv,
        [
            "conv_bn_relu/f32/n1.c16.h8.w8.k16.r3.s3.pad1",
            "conv_bn_relu/f32/n1.c32.h28.w28.k32.r3.s3.pad1",
        ],
    ),
    (Family::Attention, ["attention_head/f32/b1.h2.q32.d32", "attention_head/f32/b1.h4.q128.d64"]),
    (Family::Elementwise, ["add_relu/f32/m64.n1024", "add_relu/f32/m4096.n1024"]),
];

/// What the noise floor of a GPU is measured on first: mostly its launches, yet large enough to be
/// rotated through the caches.
const SMALL_GPU_CONTROL: &str = "add_relu/f32/m512.n1024";

/// Which two things are measured against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Comparison {
    /// What the calibration is for.
    UnfusedFused,
    /// An A/A run: the truth is 1.
    UnfusedUnfused,
    /// The other A/A run.
    FusedFused,
    /// An A/A run whose second side is prepared by itself, with tensors and kernels of its own.
    UnfusedCopy,
    /// The same of the fused variant.
    FusedCopy,
}

impl Comparison {
    /// The two variants.
    #[must_use]
    pub const fn variants(self) -> [Variant; 2] {
        match self {
            Self::UnfusedFused => [Variant::Unfused, Variant::Fused],
            Self::UnfusedUnfused | Self::UnfusedCopy => [Variant::Unfused, Variant::Unfused],
            Self::FusedFused | Self::FusedCopy => [Variant::Fused, Variant::Fused],
        }
    }

    /// Whether the second side has tensors of its own, so that what their placement does to a time
    /// does not cancel.
    #[must_use]
    pub const fn has_copy(self) -> bool {
        matches!(self, Self::UnfusedCopy | Self::FusedCopy)
    }
}

/// One thing that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Subject {
    /// The problem.
    pub problem: Problem,
    /// Which variants.
    pub comparison: Comparison,
    /// What its times begin and end with.
    pub clock: Clock,
    /// Whose kernels run.
    pub implementation: Implementation,
    /// What the ops become before they are fused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Rewrite>,
    /// Tells several measurements of the same thing apart.
    pub repetition: u32,
}

impl Subject {
    /// A problem on a CPU; see [`Self::of`].
    #[must_use]
    pub const fn fusion(problem: Problem) -> Self {
        Self::of(problem, Clock::Host, Implementation::Native)
    }

    /// A problem's two variants; or, where both are the one kernel of a single op, that kernel and
    /// a copy of it.
    #[must_use]
    pub const fn of(problem: Problem, clock: Clock, implementation: Implementation) -> Self {
        let comparison = if problem.chain().is_single() {
            Comparison::UnfusedCopy
        } else {
            Comparison::UnfusedFused
        };
        Self { problem, comparison, clock, implementation, rewrite: None, repetition: 0 }
    }

    /// The same with the ops rewritten before they are fused.
    #[must_use]
    pub const fn rewritten(self, rewrite: Rewrite) -> Self {
        Self { rewrite: Some(rewrite), ..self }
    }

    /// The family of its chain.
    #[must_use]
    pub fn family(&self) -> Family {
        Family::of(self.problem.chain().form())
    }

    /// How a backend is to run it.
    #[must_use]
    pub const fn setup(&self, cache: CacheState) -> Setup {
        let Self { clock, implementation, rewrite, .. } = *self;
        Setup { cache, clock, implementation, rewrite }
    }
}

impl fmt::Display for Subject {
    /// The problem, with the clock and the implementation where they are not those of a CPU, and with
    /// the rewrite where there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clock, implementation, .. } = *self;
        let clock = (!clock.is_host()).then(|| clock.to_string());
        let whose = (!implementation.is_native()).then(|| implementation.to_string());
        let rewrite = self.rewrite.map(|rewrite| rewrite.to_string());
        let ways: Vec<String> = [clock, whose, rewrite].into_iter().flatten().collect();
        write!(f, "{}", self.problem)?;
        if ways.is_empty() { Ok(()) } else { write!(f, " ({})", ways.join(", ")) }
    }
}

/// The A/A runs of a run, for each implementation that has its own: on a CPU two for each family that
/// is measured, each against a copy with tensors of its own, which is as hard as comparing two
/// variants; on a GPU two for each clock, which depend on its second-level cache.
///
/// # Errors
///
/// Never, since the texts are fixed; they are parsed like any other.
pub fn controls(subjects: &[Subject], l2_bytes: Option<u64>) -> anyhow::Result<Vec<Subject>> {
    let mut controls = Vec::new();
    let control = |(clock, implementation), text: &str, comparison| -> anyhow::Result<Subject> {
        let subject = Subject::of(text.parse()?, clock, implementation);
        Ok(Subject { comparison, ..subject })
    };
    let yardstick = |one: &Subject| one.implementation.yardstick();
    let mut yardsticks: Vec<Implementation> = subjects.iter().map(yardstick).collect();
    yardsticks.sort_unstable();
    yardsticks.dedup();
    let clocks = clocks_of(subjects).into_iter();
    let kinds = clocks.flat_map(|clock| yardsticks.iter().map(move |&one| (clock, one)));
    for kind in kinds {
        let Some(l2_bytes) = l2_bytes else {
            let is_measured =
                |family: Family| subjects.iter().any(|subject| subject.family() == family);
            for (_, texts) in CPU_CONTROLS.iter().filter(|(family, _)| is_measured(*family)) {
                for text in texts {
                    controls.push(control(kind, text, Comparison::UnfusedCopy)?);
                }
            }
            continue;
        };
        for text in [SMALL_GPU_CONTROL.to_owned(), large_gpu_control(l2_bytes)] {
            controls.push(control(kind, &text, Comparison::UnfusedUnfused)?);
        }
    }
    Ok(controls)
}

/// The same problem with tensors that are four times the cache together: it streams through memory.
fn large_gpu_control(l2_bytes: u64) -> String {
    const COLS: u64 = 4096;
    /// An addition has two inputs and an output, of four bytes each.
    const BYTES_OF_ROW: u64 = 3 * 4 * COLS;
    let rows = l2_bytes.saturating_mul(4).div_ceil(BYTES_OF_ROW).clamp(256, 16384);
    format!("add_relu/f32/m{}.n{COLS}", rows.next_multiple_of(64))
}

/// The clocks that occur among subjects, each once, in the order of [`Clock::ALL`].
#[must_use]
pub fn clocks_of(subjects: &[Subject]) -> Vec<Clock> {
    let occurs = |clock: &Clock| subjects.iter().any(|subject| subject.clock == *clock);
    Clock::ALL.into_iter().filter(occurs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(text: &str, clock: Clock) -> Subject {
        Subject::of(text.parse().unwrap(), clock, Implementation::Native)
    }

    #[test]
    fn every_family_has_two_controls_of_its_own_on_a_cpu() {
        let subjects = [
            subject("mlp/f32/m3.k4.n5.o6", Clock::Host),
            subject("mul_add/f32/m3.n4", Clock::Host),
        ];
        let cpu = controls(&subjects, None).unwrap();
        let families: Vec<Family> = cpu.iter().map(Subject::family).collect();
        assert_eq!(&families[..2], [Family::Linear; 2]);
        assert_eq!(&families[2..], [Family::Elementwise; 2]);
        assert!(cpu.iter().all(|control| control.comparison.has_copy()));
        for (family, texts) in CPU_CONTROLS {
            for text in texts {
                assert_eq!(subject(text, Clock::Host).family(), family);
            }
        }
    }

    #[test]
    fn every_clock_of_a_gpu_has_two_controls() {
        let clocks = [Clock::Device, Clock::LaunchInclusive];
        let subjects = clocks.map(|clock| subject("add_relu/f32/m1.n1", clock));
        let gpu = controls(&subjects, Some(50 << 20)).unwrap();
        assert_eq!(gpu.len(), 4);
        assert_eq!(clocks_of(&gpu), clocks);
        assert!(gpu.iter().all(|control| control.comparison == Comparison::UnfusedUnfused));
        assert_eq!(gpu[1].problem.to_string(), "add_relu/f32/m4288.n4096");
        for l2_bytes in [0, u64::MAX] {
            assert!(controls(&subjects, Some(l2_bytes)).is_ok());
        }
    }

    #[test]
    fn a_runtime_has_controls_of_its_own() {
        let problem = "mul_add/f32/m3.n4".parse().unwrap();
        let runtime: Implementation = "pytorch@2.9.1".parse().unwrap();
        let of = |whose| Subject::of(problem, Clock::Host, whose);
        let both = controls(&[of(runtime), of(Implementation::Native)], None).unwrap();
        let whose: Vec<_> = both.iter().map(|control| control.implementation).collect();
        assert_eq!(whose, [Implementation::Native, Implementation::Native, runtime, runtime]);
        let vendor = controls(&[of(Implementation::Vendor)], None).unwrap();
        assert!(vendor.iter().all(|control| control.implementation.is_native()));
    }

    #[test]
    fn a_single_op_is_measured_against_a_copy() {
        for clock in Clock::ALL {
            let comparison = |text| subject(text, clock).comparison;
            assert_eq!(comparison("relu/f32/m3.n4"), Comparison::UnfusedCopy);
            assert_eq!(comparison("add_relu/f32/m3.n4"), Comparison::UnfusedFused);
        }
    }

    #[test]
    fn only_what_is_not_plain_is_named() {
        let problem = "add_relu/f32/m1.n1".parse().unwrap();
        assert_eq!(Subject::fusion(problem).to_string(), "add_relu/f32/m1.n1");
        let vendor = Subject::of(problem, Clock::Device, Implementation::Vendor);
        assert_eq!(vendor.to_string(), "add_relu/f32/m1.n1 (device, vendor)");
        let native = Subject::of(problem, Clock::LaunchInclusive, Implementation::Native);
        assert_eq!(native.to_string(), "add_relu/f32/m1.n1 (launch-inclusive)");
        let folded = Subject::fusion(problem).rewritten(Rewrite::BnFolded);
        assert_eq!(folded.to_string(), "add_relu/f32/m1.n1 (bn_folded)");
    }
}
