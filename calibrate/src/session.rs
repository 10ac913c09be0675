//! A run on one backend: the ceilings and the noise first, then each problem through the stages.

use std::collections::HashMap;

use fused_kernels::{Backend, Expected, Inputs, Prepared, Variant};
use fusion_cost_model::calibration::{
    FusionRecord, MeasuredCeilings, NoiseFloor, Skipped, Verdict, Verification,
};
use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{DType, Problem};

use crate::journal::Journal;
use crate::judge::{Case, judge};
use crate::measure::{Procedure, estimate, measure};
use crate::plan::Plan;
use crate::prove::{WrongResult, prove};
use crate::record::{Evidence, record, rounded};
use crate::report::{Progress, ratio};
use crate::stop::Stop;

/// What the noise floor is measured on: a problem of a few microseconds and one that streams
/// through memory.
const NOISE_PROBLEMS: [&str; 2] = ["add_relu/f32/m64.n1024", "add_relu/f32/m4096.n1024"];

/// Multiply-adds that the reference of one problem may cost: about half a second on two cores.
const REFERENCE_BUDGET: u64 = 500_000_000;

/// A run on one backend.
pub struct Session<'a> {
    backend: &'a mut dyn Backend,
    procedure: Procedure,
    seed: u64,
    stop: &'a Stop,
    /// Records of an earlier part of the run.
    done: HashMap<Problem, FusionRecord>,
    outcome: Outcome,
}

/// What a run leaves.
pub struct Outcome {
    /// One per finished problem.
    pub records: Vec<FusionRecord>,
    /// Problems without a record.
    pub skipped: Vec<Skipped>,
    /// The machine's limits.
    pub ceilings: Vec<MeasuredCeilings>,
    /// The A/A runs.
    pub noise: Vec<NoiseFloor>,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// Whether a kernel computed something wrong, before the timing or after it.
    pub wrong: bool,
    /// Records of an earlier part of the run for problems that this part did not ask for.
    pub left_over: usize,
    /// Still to be finished when the records are safe in the calibration file.
    pub journal: Journal,
}

/// What came of one problem.
enum Finished {
    Record(Box<FusionRecord>),
    Skipped(String),
    Wrong(WrongResult),
    Stopped,
}

impl<'a> Session<'a> {
    /// A run that has not started.
    pub fn new(
        backend: &'a mut dyn Backend,
        procedure: Procedure,
        seed: u64,
        stop: &'a Stop,
        journal: Journal,
    ) -> Self {
        let outcome = Outcome {
            records: Vec::new(),
            skipped: Vec::new(),
            ceilings: Vec::new(),
            noise: Vec::new(),
            interrupted: false,
            wrong: false,
            left_over: 0,
            journal,
        };
        Self { backend, procedure, seed, stop, done: HashMap::new(), outcome }
    }

    /// Takes over the records of an earlier part of the run.
    pub fn resume(&mut self, records: Vec<FusionRecord>) {
        self.done = records.into_iter().map(|record| (record.problem, record)).collect();
    }

    /// Measures everything that is planned, until the user stops it.
    ///
    /// # Errors
    ///
    /// When the journal cannot be written, or the device fails.
    pub fn run(mut self, plan: &Plan) -> anyhow::Result<Outcome> {
        let total = plan.problems.len() as u64;
        let mut progress = Progress::new(total);
        progress.start("measuring the machine's limits");
        self.measure_limits(&plan.problems, &progress)?;
        self.outcome.skipped.clone_from(&plan.skipped);
        for problem in &plan.problems {
            if self.stop.requested() {
                self.outcome.interrupted = true;
                break;
            }
            let name = problem.to_string();
            if let Some(record) = self.done.remove(problem) {
                progress.finish(&name, "done before");
                self.outcome.records.push(record);
                continue;
            }
            progress.start(&name);
            let seed = self.seed ^ hash(&name);
            match self.problem(problem, seed)? {
                Finished::Record(record) => {
                    let speedup =
                        ratio(record.speedup_factor, record.speedup_low, record.speedup_high);
                    progress.finish(&name, &format!("{speedup} {}", record.verdict));
                    self.outcome.wrong |= record.verdict == Verdict::Invalid;
                    self.outcome.journal.append(&record)?;
                    self.outcome.records.push(*record);
                }
                Finished::Skipped(reason) => {
                    progress.finish(&name, &reason);
                    self.outcome.skipped.push(Skipped { problem: *problem, reason });
                }
                Finished::Wrong(wrong) => {
                    progress.finish(&name, "WRONG");
                    progress.note(&format!("error: {problem}: {wrong}; it was not timed"));
                    self.outcome.wrong = true;
                    let reason = format!("{problem}: {wrong}");
                    self.outcome.skipped.push(Skipped { problem: *problem, reason });
                }
                Finished::Stopped => {
                    self.outcome.interrupted = true;
                    break;
                }
            }
        }
        self.outcome.left_over = self.done.len();
        Ok(self.outcome)
    }

    /// Measures the ceilings of every dtype that occurs, and the noise floor.
    fn measure_limits(&mut self, problems: &[Problem], progress: &Progress) -> anyhow::Result<()> {
        let (backend, threads) = (self.backend.name(), self.backend.threads());
        for dtype in DType::ALL {
            if !problems.iter().any(|problem| problem.dtype() == dtype) || self.stop.requested() {
                continue;
            }
            if let Some(limits) = self.backend.ceilings(dtype)?.map(rounded_ceilings) {
                self.outcome.ceilings.push(MeasuredCeilings { backend, dtype, threads, limits });
            }
        }
        for text in NOISE_PROBLEMS {
            progress.start(&format!("measuring noise: {text}"));
            let problem: Problem = text.parse()?;
            let inputs = Inputs::random(&problem, self.seed);
            let Some(mut prepared) = self.backend.prepare(&problem, &inputs)? else { continue };
            let both = [Variant::Unfused, Variant::Unfused];
            let measured = measure(&mut *prepared, both, &self.procedure, self.seed, self.stop);
            let Some(measurement) = measured else { break };
            let estimate = estimate(&measurement);
            self.outcome.noise.push(NoiseFloor {
                problem,
                backend,
                threads,
                ratio: rounded(estimate.ratio),
                ratio_low: rounded(estimate.low),
                ratio_high: rounded(estimate.high),
            });
        }
        Ok(())
    }

    /// How far from 1 this machine measures a ratio whose truth is 1, in the logarithm.
    fn noise_floor(&self) -> f64 {
        self.outcome.noise.iter().map(NoiseFloor::log_width).fold(0.0, f64::max)
    }

    /// Takes one problem through the stages.
    fn problem(&mut self, problem: &Problem, seed: u64) -> anyhow::Result<Finished> {
        let floor = self.noise_floor();
        let (backend, threads) = (self.backend.name(), self.backend.threads());
        let ceilings = self.outcome.ceilings.iter().find(|known| known.dtype == problem.dtype());
        let roofline = ceilings.and_then(|known| known.limits.roofline(problem));

        let inputs = Inputs::random(problem, seed);
        let expected = Expected::compute(problem, &inputs, REFERENCE_BUDGET);
        let Some(mut prepared) = self.backend.prepare(problem, &inputs)? else {
            return Ok(Finished::Skipped(format!(
                "{problem}: the {backend} backend has no kernels"
            )));
        };
        let before = match prove(&mut *prepared, &expected) {
            Ok(verification) => verification,
            Err(wrong) => return Ok(Finished::Wrong(wrong)),
        };
        let measured = measure(&mut *prepared, Variant::ALL, &self.procedure, seed, self.stop);
        let Some(measurement) = measured else { return Ok(Finished::Stopped) };
        let estimate = estimate(&measurement);
        let (verification, wrong) = match prove_again(&mut *prepared, &expected, before) {
            Ok(verification) => (verification, None),
            Err(wrong) => (before, Some(wrong)),
        };
        let judgement = judge(&Case {
            estimate: &estimate,
            floor,
            ceiling: roofline.map(|time| time.speedup()),
            wrong,
        });
        Ok(Finished::Record(Box::new(record(
            problem,
            &Evidence {
                backend,
                threads,
                prepared: &*prepared,
                measurement: &measurement,
                estimate: &estimate,
                judgement: &judgement,
                floor,
                verification,
                roofline,
            },
        ))))
    }
}

/// A number for a problem's name (FNV-1a), so that each problem has a seed of its own whatever
/// else is measured, and can be reproduced by itself.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// The ceilings with as many digits as they deserve.
fn rounded_ceilings(mut ceilings: Ceilings) -> Ceilings {
    ceilings.peak_gflops = rounded(ceilings.peak_gflops);
    ceilings.launch_us = rounded(ceilings.launch_us);
    for point in &mut ceilings.bandwidth {
        point.gb_per_s = rounded(point.gb_per_s);
    }
    ceilings
}

/// Proves both variants once more after the timing, and keeps the larger errors.
fn prove_again(
    prepared: &mut dyn Prepared,
    expected: &Expected,
    before: Verification,
) -> Result<Verification, WrongResult> {
    let after = prove(prepared, expected)?;
    Ok(Verification {
        unfused_error: before.unfused_error.max(after.unfused_error),
        fused_error: before.fused_error.max(after.fused_error),
        ..after
    })
}
