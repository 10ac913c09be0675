//! The processes of a scripted machine.

use std::time::{Duration, Instant};

use fused_kernels::Variant;
use fusion_cost_model::calibration::Verification;
use fusion_cost_model::{Clock, Op};

use super::machine::Machine;
use super::process::Process;
use crate::measure::{Instruments, Reading, Surroundings, Watch, measure};
use crate::stop::Stop;
use crate::worker::{
    CeilingsReport, CeilingsTask, MeasureAnswer, MeasureTask, NoAnswer, ProcessReport, Workers,
};

/// What a process takes in a run of many problems, from its start to its end: it starts, proves its
/// kernels, and measures them.
const PROCESS_SECONDS: f64 = 0.5;

/// How long that is before the samples begin.
const BEFORE_SAMPLES: f64 = 0.3;

impl Workers for Machine {
    fn elapsed(&self, _: Instant) -> Duration {
        Duration::from_secs_f64(self.now)
    }

    fn wait(&mut self, time: Duration, _: &Stop) {
        self.now += time.as_secs_f64();
    }

    fn ceilings(
        &mut self,
        _: CeilingsTask,
        _: Option<Duration>,
    ) -> Result<Option<CeilingsReport>, NoAnswer> {
        Ok(None)
    }

    fn measure(
        &mut self,
        task: MeasureTask,
        _: Option<Duration>,
    ) -> Result<MeasureAnswer, NoAnswer> {
        let ends = self.now + PROCESS_SECONDS;
        self.now += BEFORE_SAMPLES;
        let state = self.begin(&task.subject);
        let others_busy = self.script.states.map_or(0.0, |states| states.others_busy[state]);
        let (began_s, before) = (1.0 + self.now, self.look());
        let mut instruments = Instruments {
            watch: &mut Idle,
            clock: Clock::Host,
            tick: Duration::from_nanos(20),
            is_told: false,
            counters: |prepared| prepared.counters(),
            proof: &mut |_, _| Ok(()),
        };
        let rows = task.subject.problem.steps().last().map_or(0, |step| step.output.rows);
        let chain = task.subject.problem.chain();
        let comparison = task.subject.comparison;
        // The two sides of a copy are two variants to those who run them.
        let variants = if comparison.has_copy() { Variant::ALL } else { comparison.variants() };
        let mut process = Process::start(self, &task);
        let seed = task.process_seed;
        let samples = measure(&mut process, variants, &task.procedure, seed, &mut instruments)
            .map_err(|error| NoAnswer::Failed(error.to_string()))?;
        let readings = [Some(before), Some(self.look())];
        self.now = self.now.max(ends);
        Ok(MeasureAnswer::Measured(Box::new(ProcessReport {
            samples,
            kernels: comparison.variants().map(|variant| match variant {
                Variant::Unfused => names(chain),
                Variant::Fused => vec![chain.to_string()],
            }),
            verification: Verification {
                reference_rows: rows,
                rows,
                unfused_error: 0.0,
                fused_error: 0.0,
                tolerance: 1e-6,
            },
            outputs: None,
            wrong_after: None,
            pinned: false,
            processors: Vec::new(),
            huge_page_share: None,
            steps: Vec::new(),
            scratch_bytes: [0; 2],
            gpu_kernels: Default::default(),
            ladder: Default::default(),
            surroundings: Surroundings { began_s, readings, others_busy: Some(others_busy) },
        })))
    }
}

/// Kernels that are named after their ops.
fn names(ops: &[Op]) -> Vec<String> {
    ops.iter().map(|op| op.name().to_owned()).collect()
}

/// Nothing that the whole machine counts shows what disturbs it.
struct Idle;

impl Watch for Idle {
    fn read(&mut self) -> Reading {
        Reading::default()
    }

    fn processors(&self) -> usize {
        1
    }
}
