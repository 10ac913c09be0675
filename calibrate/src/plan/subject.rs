//! What a run measures: problems, and the A/A runs that every run begins with.

use std::fmt;

use fused_kernels::{Setup, Variant};
use fusion_cost_model::{CacheState, Clock, Implementation, Problem};
use serde::{Deserialize, Serialize};

/// What the noise floor of a CPU is measured on: a problem of a few microseconds and one that
/// streams through memory.
const CPU_CONTROLS: [&str; 2] = ["add_relu/f32/m64.n1024", "add_relu/f32/m4096.n1024"];

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
    /// Tells several measurements of the same thing apart.
    pub repetition: u32,
}

impl Subject {
    /// A problem's two variants on a CPU.
    #[must_use]
    pub const fn fusion(problem: Problem) -> Self {
        Self::of(problem, Clock::Host, Implementation::Native)
    }

    /// A problem's two variants.
    #[must_use]
    pub const fn of(problem: Problem, clock: Clock, implementation: Implementation) -> Self {
        let comparison = Comparison::UnfusedFused;
        Self { problem, comparison, clock, implementation, repetition: 0 }
    }

    /// How a backend is to run it.
    #[must_use]
    pub const fn setup(&self, cache: CacheState) -> Setup {
        Setup { cache, clock: self.clock, implementation: self.implementation }
    }
}

impl fmt::Display for Subject {
    /// The problem, with the clock and the implementation where they are not those of a CPU.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.problem)?;
        match (self.clock, self.implementation) {
            (Clock::Host, Implementation::Native) => Ok(()),
            (clock, Implementation::Native) => write!(f, " ({clock})"),
            (clock, implementation) => write!(f, " ({clock}, {implementation})"),
        }
    }
}

/// The A/A runs that every run begins with: two for each clock. Those of a GPU depend on its
/// second-level cache.
///
/// # Errors
///
/// Never, since the texts are fixed; they are parsed like any other.
pub fn controls(clocks: &[Clock], l2_bytes: Option<u64>) -> anyhow::Result<Vec<Subject>> {
    let texts = match l2_bytes {
        None => CPU_CONTROLS.map(str::to_owned),
        Some(l2_bytes) => [SMALL_GPU_CONTROL.to_owned(), large_gpu_control(l2_bytes)],
    };
    let control = |clock: Clock, text: &str| -> anyhow::Result<Subject> {
        let subject = Subject::of(text.parse()?, clock, Implementation::Native);
        Ok(Subject { comparison: Comparison::UnfusedUnfused, ..subject })
    };
    let of_clock = |&clock: &Clock| texts.each_ref().map(|text| control(clock, text));
    clocks.iter().flat_map(of_clock).collect()
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

    #[test]
    fn every_clock_has_two_controls_of_its_own() {
        let cpu = controls(&[Clock::Host], None).unwrap();
        assert_eq!(cpu.len(), 2);
        let clocks = [Clock::Device, Clock::LaunchInclusive];
        let gpu = controls(&clocks, Some(50 << 20)).unwrap();
        assert_eq!(gpu.len(), 4);
        assert_eq!(clocks_of(&gpu), clocks);
        assert!(gpu.iter().all(|control| control.comparison == Comparison::UnfusedUnfused));
        assert_ne!(gpu[0].problem, cpu[0].problem);
        assert_eq!(gpu[1].problem.to_string(), "add_relu/f32/m4288.n4096");
        for l2_bytes in [0, u64::MAX] {
            assert!(controls(&clocks, Some(l2_bytes)).is_ok());
        }
    }

    #[test]
    fn only_what_is_not_plain_is_observed_by_clock() {
        let problem = "add_relu/f32/m1.n1".parse().unwrap();
        assert_eq!(Subject::fusion(problem).to_string(), "add_relu/f32/m1.n1");
        let vendor = Subject::of(problem, Clock::Device, Implementation::Vendor);
        assert_eq!(vendor.to_string(), "add_relu/f32/m1.n1 (device, vendor)");
        let native = Subject::of(problem, Clock::LaunchInclusive, Implementation::Native);
        assert_eq!(native.to_string(), "add_relu/f32/m1.n1 (launch-inclusive)");
    }
}
