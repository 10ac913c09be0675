//! The second stage: the proof that both variants compute the same thing, and the right one.

use std::cell::OnceCell;

use fused_kernels::{
    BackendError, Expected, Inputs, OutputDigest, OutputErrors, Prepared, Variant,
};
use fusion_cost_model::DType;
use fusion_cost_model::calibration::Verification;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::plan::Subject;

/// A kernel that does not compute what its chain says. It is never timed.
// As text, since JSON has no infinity.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("wrong result: {0}")]
pub struct WrongResult(String);

/// Why a problem with a reference that cannot prove anything is not measured.
#[must_use]
pub fn nothing_to_prove(dtype: DType) -> String {
    format!(
        "rounding to {dtype} may change most of its results as much as a mistake would, so that a \
         wrong kernel could not be told from a right one; a wider dtype can be measured"
    )
}

/// What was proved: both outputs of a problem on some inputs, and how far they are off.
///
/// A later process that runs the problem on the same inputs and gets the same outputs bit for bit
/// has proved the same, without a reference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// The outputs of the two sides.
    pub outputs: [OutputDigest; 2],
    /// Their errors.
    pub verification: Verification,
}

impl Proof {
    /// The same proof with the larger errors of two.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let (before, after) = (self.verification, other.verification);
        let verification = Verification {
            unfused_error: before.unfused_error.max(after.unfused_error),
            fused_error: before.fused_error.max(after.fused_error),
            ..before
        };
        Self { verification, ..self }
    }
}

/// Proves a subject on some inputs.
pub struct Prover<'a> {
    subject: &'a Subject,
    inputs: &'a Inputs,
    budget: u64,
    /// The reference, once it was needed.
    expected: OnceCell<Expected<'a>>,
}

impl<'a> Prover<'a> {
    /// A prover whose reference may cost `budget` multiply-adds.
    #[must_use]
    pub const fn new(subject: &'a Subject, inputs: &'a Inputs, budget: u64) -> Self {
        Self { subject, inputs, budget, expected: OnceCell::new() }
    }

    /// Whether a proof says something: see [`Expected::can_prove`]. Computes the reference.
    #[must_use]
    pub fn can_prove(&self) -> bool {
        self.expected().can_prove()
    }

    fn expected(&self) -> &Expected<'a> {
        let compute = || Expected::compute(&self.subject.problem, self.inputs, self.budget);
        self.expected.get_or_init(compute)
    }

    /// Runs both sides on poisoned memory, `runs` times each: a side may compute something else when it
    /// is asked for several runs at once, as a sample asks. Their outputs are right when they are those
    /// of a `known` proof bit for bit; else they are held against what is expected in every row, and
    /// against each other.
    ///
    /// The inner result is [`WrongResult`] when an output is off by more than rounding explains.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when the device fails.
    pub fn prove(
        &self,
        prepared: &mut dyn Prepared,
        known: Option<Proof>,
        runs: [u32; 2],
    ) -> Result<Result<Proof, WrongResult>, BackendError> {
        let known_output = |index: usize| known.map(|proof| proof.outputs[index]);
        let first = new_output(prepared, (Variant::Unfused, runs[0]), known_output(0))?;
        let second = new_output(prepared, (Variant::Fused, runs[1]), known_output(1))?;
        let (first, second) = match (first, second, known) {
            (None, None, Some(proof)) => return Ok(Ok(proof)),
            (first, second, _) => (first, second),
        };
        // One that is known was not kept.
        let mut or_again = |output: Option<Vec<f32>>, side: Runs| match output {
            Some(output) => Ok(output),
            None => run_on_poison(prepared, side).and_then(|()| prepared.output()),
        };
        let outputs = [
            or_again(first, (Variant::Unfused, runs[0]))?,
            or_again(second, (Variant::Fused, runs[1]))?,
        ];
        Ok(self.verify(&outputs).map(|verification| {
            let outputs = outputs.each_ref().map(|output| OutputDigest::of(output));
            Proof { outputs, verification }
        }))
    }

    fn verify(&self, [first, second]: &[Vec<f32>; 2]) -> Result<Verification, WrongResult> {
        let expected = self.expected();
        let tolerance = expected.tolerance();
        let OutputErrors { each: [unfused_error, fused_error], between } =
            expected.errors([first, second]);
        let verification = Verification {
            reference_rows: expected.rows() as u64,
            rows: expected.total_rows() as u64,
            unfused_error,
            fused_error,
            tolerance,
        };
        let [first_side, second_side, both] = if self.subject.comparison.has_copy() {
            ["the first copy", "the second copy", "one copy from the other"]
        } else {
            ["the unfused variant", "the fused variant", "one variant from the other"]
        };
        // Both may be off in opposite directions, by the tolerance each.
        for (what, error, tolerance) in [
            (first_side, verification.unfused_error, tolerance),
            (second_side, verification.fused_error, tolerance),
            (both, between, 2.0 * tolerance),
        ] {
            if error > tolerance {
                return Err(WrongResult(format!(
                    "{what} is off by {error:.1e}, and {tolerance:.1e} is the most for rounding"
                )));
            }
        }
        Ok(verification)
    }
}

/// A side, and how often it runs.
type Runs = (Variant, u32);

/// The output of one side on poisoned memory; `None` when it is the known one.
fn new_output(
    prepared: &mut dyn Prepared,
    side: Runs,
    known: Option<OutputDigest>,
) -> Result<Option<Vec<f32>>, BackendError> {
    run_on_poison(prepared, side)?;
    match known {
        Some(known) if prepared.output_digest()? == known => Ok(None),
        _ => prepared.output().map(Some),
    }
}

fn run_on_poison(prepared: &mut dyn Prepared, (side, runs): Runs) -> Result<(), BackendError> {
    prepared.poison()?;
    prepared.run(side, runs)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fused_kernels::cpu::Cpu;
    use fused_kernels::{Backend, Inputs};
    use fusion_cost_model::{CacheState, Problem};

    use super::*;
    use crate::plan::Comparison;

    /// What is prepared, but some sides do something to the output after some of their runs.
    struct Spoiled<'p, F> {
        prepared: Box<dyn Prepared + 'p>,
        sides: &'p [Variant],
        flaw: F,
        good_runs: u32,
        ran: Variant,
    }

    impl<F: Fn(&mut [f32])> Prepared for Spoiled<'_, F> {
        fn kernels(&self, variant: Variant) -> Vec<String> {
            self.prepared.kernels(variant)
        }
        fn new_layout(&mut self, seed: u64) -> Result<(), BackendError> {
            self.prepared.new_layout(seed)
        }
        fn poison(&mut self) -> Result<(), BackendError> {
            self.prepared.poison()
        }
        fn run(&mut self, side: Variant, iterations: u32) -> Result<Duration, BackendError> {
            self.ran = side;
            self.prepared.run(side, iterations)
        }
        fn output(&mut self) -> Result<Vec<f32>, BackendError> {
            let mut output = self.prepared.output()?;
            if self.sides.contains(&self.ran) {
                if self.good_runs == 0 {
                    (self.flaw)(&mut output);
                }
                self.good_runs = self.good_runs.saturating_sub(1);
            }
            Ok(output)
        }
    }

    /// What the proofs before and after say when a side is off by a number after some runs.
    fn proofs(
        comparison: Comparison,
        side: Variant,
        by: f32,
        good_runs: u32,
    ) -> Vec<Result<Proof, String>> {
        let problem: Problem = "linear_bias_relu/f32/m17.k33.n21".parse().unwrap();
        let subject = Subject { comparison, ..Subject::fusion(problem) };
        let inputs = Inputs::random(&problem, 3);
        let prover = Prover::new(&subject, &inputs, u64::MAX);
        let mut cpu = Cpu::new(2).unwrap();
        let setup = CacheState::Warm.into();
        let prepared = if comparison.has_copy() {
            cpu.prepare_copies(&problem, &inputs, setup, comparison.variants()[0])
        } else {
            cpu.prepare(&problem, &inputs, setup)
        };
        let prepared = prepared.unwrap().unwrap();
        let flaw = |output: &mut [f32]| output[7] += by;
        let mut spoiled = Spoiled { prepared, sides: &[side], flaw, good_runs, ran: side };
        let proof = match prover.prove(&mut spoiled, None, [1; 2]).unwrap() {
            Ok(proof) => proof,
            Err(wrong) => return vec![Err(wrong.to_string())],
        };
        spoiled.new_layout(9).unwrap();
        let again = prover.prove(&mut spoiled, Some(proof), [1; 2]).unwrap();
        vec![Ok(proof), again.map_err(|wrong| wrong.to_string())]
    }

    #[test]
    fn what_is_right_twice_is_one_proof_without_a_reference() {
        for comparison in [Comparison::UnfusedFused, Comparison::UnfusedCopy, Comparison::FusedCopy]
        {
            let found = proofs(comparison, Variant::Fused, 0.0, 0);
            let [Ok(before), Ok(after)] = found[..] else { panic!("{found:?}") };
            assert_eq!(before, after);
            assert!(before.verification.fused_error <= before.verification.tolerance);

            let subject =
                Subject { comparison, ..Subject::fusion("add_relu/f32/m3.n5".parse().unwrap()) };
            let inputs = Inputs::random(&subject.problem, 3);
            let mut cpu = Cpu::new(1).unwrap();
            let setup = CacheState::Warm.into();
            let mut prepared = cpu.prepare(&subject.problem, &inputs, setup).unwrap().unwrap();
            let first = Prover::new(&subject, &inputs, u64::MAX);
            let proof = first.prove(&mut *prepared, None, [1; 2]).unwrap().unwrap();
            let later = Prover::new(&subject, &inputs, u64::MAX);
            assert_eq!(later.prove(&mut *prepared, Some(proof), [1; 2]).unwrap(), Ok(proof));
            assert!(first.expected.get().is_some() && later.expected.get().is_none());
        }
    }

    #[test]
    fn a_wrong_side_is_found_before_and_after_and_called_by_its_name() {
        for (comparison, side, name) in [
            (Comparison::UnfusedFused, Variant::Unfused, "the unfused variant"),
            (Comparison::UnfusedFused, Variant::Fused, "the fused variant"),
            (Comparison::UnfusedCopy, Variant::Unfused, "the first copy"),
            (Comparison::UnfusedCopy, Variant::Fused, "the second copy"),
            (Comparison::FusedCopy, Variant::Fused, "the second copy"),
        ] {
            for good_runs in [0, 1] {
                let found = proofs(comparison, side, 0.5, good_runs);
                assert_eq!(found.len(), good_runs as usize + 1);
                let wrong = found[good_runs as usize].as_ref().unwrap_err();
                assert!(wrong.contains(&format!("{name} is off by")), "{wrong}");
            }
        }
    }

    /// The flaw is in the core that both variants share, in rows without a reference.
    #[test]
    fn flaws_that_both_variants_share_are_found_in_any_row() {
        // Five of a thousand rows and more in each of the two threads' parts.
        let problem: Problem = "linear_bias_relu/f32/m1000.k33.n20".parse().unwrap();
        let subject = Subject::fusion(problem);
        let inputs = Inputs::random(&problem, 3);
        let prover = Prover::new(&subject, &inputs, 10_000);
        let mut cpu = Cpu::new(2).unwrap();
        let setup = CacheState::Warm.into();
        type Flaw = fn(&mut [f32]);
        let flaws: [(&str, Flaw); 5] = [
            ("nothing", |_| {}),
            ("row left unwritten", |output| output[321 * 20..322 * 20].fill(f32::NAN)),
            ("number left unwritten", |output| output[321 * 20 + 7] = f32::NAN),
            ("rows exchanged", |output| {
                let (one, next) = output[321 * 20..323 * 20].split_at_mut(20);
                one.swap_with_slice(next);
            }),
            ("one thread's part shifted", |output| output[500 * 20..].rotate_right(20)),
        ];
        for (name, flaw) in flaws {
            let prepared = cpu.prepare(&problem, &inputs, setup).unwrap().unwrap();
            let (sides, good_runs, ran) = (&Variant::ALL, 0, Variant::Unfused);
            let mut spoiled = Spoiled { prepared, sides, flaw, good_runs, ran };
            let found = prover.prove(&mut spoiled, None, [1; 2]).unwrap();
            assert_eq!(found.is_ok(), name == "nothing", "{name}: {found:?}");
            if let Ok(proof) = found {
                assert!(proof.verification.reference_rows < 20, "{proof:?}");
            }
        }
    }

    /// A kernel that does less when it is asked for more runs.
    #[test]
    fn what_a_sample_runs_is_proved_as_it_runs() {
        struct Lazy<'p>(Box<dyn Prepared + 'p>, u32);
        impl Prepared for Lazy<'_> {
            fn kernels(&self, variant: Variant) -> Vec<String> {
                self.0.kernels(variant)
            }
            fn new_layout(&mut self, seed: u64) -> Result<(), BackendError> {
                self.0.new_layout(seed)
            }
            fn poison(&mut self) -> Result<(), BackendError> {
                self.0.poison()
            }
            fn run(&mut self, side: Variant, runs: u32) -> Result<Duration, BackendError> {
                self.1 = if side == Variant::Fused { runs } else { 1 };
                self.0.run(side, runs)
            }
            fn output(&mut self) -> Result<Vec<f32>, BackendError> {
                let mut output = self.0.output()?;
                if self.1 > 1 {
                    output[3] += 1.0;
                }
                Ok(output)
            }
        }
        let problem: Problem = "add_relu/f32/m5.n7".parse().unwrap();
        let (subject, inputs) = (Subject::fusion(problem), Inputs::random(&problem, 4));
        let prover = Prover::new(&subject, &inputs, u64::MAX);
        let mut cpu = Cpu::new(1).unwrap();
        let setup = CacheState::Warm.into();
        let mut lazy = Lazy(cpu.prepare(&problem, &inputs, setup).unwrap().unwrap(), 1);
        let proof = prover.prove(&mut lazy, None, [1; 2]).unwrap().unwrap();
        assert_eq!(prover.prove(&mut lazy, Some(proof), [9, 1]).unwrap(), Ok(proof));
        let wrong = prover.prove(&mut lazy, Some(proof), [1, 9]).unwrap().unwrap_err();
        assert!(wrong.to_string().contains("the fused variant is off"), "{wrong}");
    }

    #[test]
    fn other_bits_that_are_right_are_compared_and_the_larger_error_counts() {
        let found = proofs(Comparison::UnfusedFused, Variant::Fused, 1e-5, 1);
        let [Ok(before), Ok(after)] = found[..] else { panic!("{found:?}") };
        assert_ne!(before.outputs[1], after.outputs[1]);
        assert_eq!(before.outputs[0], after.outputs[0]);
        assert!(after.verification.fused_error > before.verification.fused_error);
        for both in [before.with(after), after.with(before)] {
            assert_eq!(both.verification, after.verification);
        }
    }

    #[test]
    fn a_proof_goes_through_the_protocol() {
        let found = proofs(Comparison::UnfusedFused, Variant::Fused, 0.0, 0);
        let proof = *found[0].as_ref().unwrap();
        let text = serde_json::to_string(&proof).unwrap();
        assert_eq!(serde_json::from_str::<Proof>(&text).unwrap(), proof);
    }
}
