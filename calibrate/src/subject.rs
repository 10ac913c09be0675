//! What a run measures: problems, and the A/A runs that every run begins with.

use std::fmt;

use fused_kernels::Setup;
use fusion_cost_model::{Backend, CacheState, Clock, Implementation, Problem};
use serde::{Deserialize, Serialize};

use crate::launch::Comparison;

/// What the noise floor of a CPU is measured on: a problem of a few microseconds and one that
/// streams through memory.
const CPU_CONTROLS: [&str; 2] = ["add_relu/f32/m64.n1024", "add_relu/f32/m4096.n1024"];

/// The same for a GPU: one that is mostly its launches, yet large enough to be rotated through the
/// caches, and one of three tensors of 64 MiB.
const GPU_CONTROLS: [&str; 2] = ["add_relu/f32/m512.n1024", "add_relu/f32/m4096.n4096"];

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

/// The A/A runs that every run begins with: two for each clock.
///
/// # Errors
///
/// Never, since the texts are fixed; they are parsed like any other.
pub fn controls(backend: Backend, clocks: &[Clock]) -> anyhow::Result<Vec<Subject>> {
    let texts = if backend == Backend::Cpu { CPU_CONTROLS } else { GPU_CONTROLS };
    let control = |clock: Clock, text: &str| -> anyhow::Result<Subject> {
        let subject = Subject::of(text.parse()?, clock, Implementation::Native);
        Ok(Subject { comparison: Comparison::UnfusedUnfused, ..subject })
    };
    clocks.iter().flat_map(|&clock| texts.map(|text| control(clock, text))).collect()
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
        let cpu = controls(Backend::Cpu, &[Clock::Host]).unwrap();
        assert_eq!(cpu.len(), 2);
        let clocks = [Clock::Device, Clock::LaunchInclusive];
        let gpu = controls(Backend::Cuda, &clocks).unwrap();
        assert_eq!(gpu.len(), 4);
        assert_eq!(clocks_of(&gpu), clocks);
        assert!(gpu.iter().all(|control| control.comparison == Comparison::UnfusedUnfused));
        assert_ne!(gpu[0].problem, cpu[0].problem);
    }

    #[test]
    fn only_what_is_not_plain_is_told() {
        let problem = "add_relu/f32/m1.n1".parse().unwrap();
        assert_eq!(Subject::fusion(problem).to_string(), "add_relu/f32/m1.n1");
        let vendor = Subject::of(problem, Clock::Device, Implementation::Vendor);
        assert_eq!(vendor.to_string(), "add_relu/f32/m1.n1 (device, vendor)");
        let native = Subject::of(problem, Clock::LaunchInclusive, Implementation::Native);
        assert_eq!(native.to_string(), "add_relu/f32/m1.n1 (launch-inclusive)");
    }
}
