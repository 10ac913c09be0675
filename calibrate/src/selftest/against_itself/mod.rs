//! Kernels of this machine measured against themselves: the truth is known.

mod planted;
mod series;

use fusion_cost_model::Implementation;

use crate::plan::{Comparison, Subject};
use crate::run::{Measured, Observer, Outcome, RunSettings, Session};
use crate::stop::Stop;
use crate::worker::Workers;

pub use planted::{Planted, measure_planted};
pub use series::{AgainstItself, Case, Kind};

/// From a microsecond to some milliseconds, bound by launches, caches, memory and arithmetic.
const CASES: [&str; 12] = [
    "add_relu/f32/m16.n256",
    "linear_bias_relu/f32/m128.k128.n128",
    "add_layernorm/f32/m512.n1024",
    "conv_bn_relu/f32/n1.c64.h28.w28.k64.r3.s3.pad1",
    "attention_head/f32/b1.h4.q128.d64",
    "mul_add_relu/f32/m1024.n1024",
    "linear_bias_gelu/f32/m4096.k64.n256",
    "mlp/f32/m32.k256.n1024.o256",
    "sigmoid_mul/f32/m256.n1024",
    "linear_bias_relu/f32/m512.k512.n512",
    "conv_bias/f32/n1.c192.h28.w28.k192.r3.s3.pad1.groups192",
    "add_relu/f32/m4096.n1024",
];

/// The kinds of A/A runs whose truth is 1.
const KINDS: [Kind; 2] = [Kind::SharedTensors, Kind::OwnTensors];

/// What is measured in `runs` runs: the cases in turn, each variant against itself in turn.
///
/// # Errors
///
/// Never, since the texts are fixed; they are parsed like any other.
fn subjects(cases: &[&str], kind: Kind, runs: u32) -> anyhow::Result<Vec<Subject>> {
    let comparisons = match kind {
        Kind::SharedTensors => [Comparison::UnfusedUnfused, Comparison::FusedFused],
        Kind::OwnTensors | Kind::Planted => [Comparison::UnfusedCopy, Comparison::FusedCopy],
    };
    let numbers = 0..runs as usize;
    let subject = |run: usize| {
        let repetition = run / cases.len();
        let comparison = comparisons[repetition % comparisons.len()];
        let problem = cases[run % cases.len()].parse()?;
        // The run's own controls have the number 0.
        let repetition = u32::try_from(repetition + 1)?;
        Ok(Subject { comparison, repetition, ..Subject::fusion(problem) })
    };
    numbers.map(subject).collect()
}

/// Makes A/A runs of either kind, `runs` of each, with these kernels.
///
/// # Errors
///
/// When no worker can be started, or one fails.
pub fn measure(
    workers: &mut dyn Workers,
    settings: RunSettings,
    implementation: Implementation,
    runs: u32,
    stop: &Stop,
    observer: Box<dyn Observer>,
) -> anyhow::Result<Vec<AgainstItself>> {
    let mut all = Vec::new();
    for kind in KINDS {
        all.extend(subjects(&CASES, kind, runs)?);
    }
    all.iter_mut().for_each(|subject| subject.implementation = implementation);
    let outcome = run(workers, settings, &all, stop, observer)?;
    let of = |kind| AgainstItself::of(kind, 1.0, &CASES, &settings, &outcome);
    Ok(KINDS.into_iter().map(of).collect())
}

/// Makes a run in which nothing may fail.
fn run(
    workers: &mut dyn Workers,
    settings: RunSettings,
    subjects: &[Subject],
    stop: &Stop,
    observer: Box<dyn Observer>,
) -> anyhow::Result<Outcome> {
    let outcome = Session::new(workers, settings, subjects, stop)?.observed_by(observer).run()?;
    for Measured { subject, state, .. } in &outcome.measured {
        if let Some((_, reason)) = state.failure() {
            anyhow::bail!("{}: {reason}", subject.problem);
        }
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_run_is_of_its_own_and_both_variants_have_their_turn() {
        let mut all = HashSet::new();
        for kind in KINDS {
            let subjects = subjects(&CASES, kind, 60).unwrap();
            assert_eq!(subjects.len(), 60);
            let is_fused =
                |one: &&Subject| one.comparison.variants() == [fused_kernels::Variant::Fused; 2];
            assert_eq!(subjects.iter().filter(is_fused).count(), 24);
            let has_copy = kind == Kind::OwnTensors;
            assert!(subjects.iter().all(|one| one.comparison.has_copy() == has_copy));
            all.extend(subjects);
        }
        assert_eq!(all.len(), 120);
        for case in CASES {
            assert_eq!(case.parse::<fusion_cost_model::Problem>().unwrap().to_string(), case);
        }
    }
}
