//! Every file that a run writes is one that a reader accepts, and a reader notices when one of its
//! numbers is no longer what the others say.

use std::time::Duration;

use calibrate::measure::{Cause, Order, Pair, Procedure, Round, Samples, Surroundings};
use calibrate::plan::{Comparison, Subject};
use calibrate::record::{Context, record};
use calibrate::run::{Measured, Outcome, RunSettings, Session};
use calibrate::stop::Stop;
use calibrate::worker::{
    CeilingsReport, CeilingsTask, CoreChoice, MeasureAnswer, MeasureTask, NoAnswer, ProcessReport,
    Workers,
};
use fused_kernels::MachineReading;
use fusion_cost_model::calibration::{HardwareCalibration, MeasuredCeilings, Verification};
use fusion_cost_model::cost::{BandwidthPoint, Ceilings};
use fusion_cost_model::hardware::Peak;
use fusion_cost_model::{Backend, CacheState};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const EXAMPLE: &str = include_str!("../../tests/data/example.toml");

const PROBLEMS: [&str; 9] = [
    "add_relu/f32/m64.n8",
    "linear_bias_relu/f32/m7.k9.n11",
    "conv_bn_relu_maxpool/f32/n1.c3.h8.w9.k4.r3.s3",
    "multihead_linear/f32/b1.h2.q3.kv4.d5.n6",
    "mlp/f32/m3.k4.n5.o6",
    "relu/f32/m64.n8",
    "linear/f32/m7.k9.n11",
    "qk/f32/b1.h2.q3.kv4.d5",
    "pv/f32/b1.h2.q3.kv4.d5",
];

/// Processes of a machine on which anything may happen, which follows from their seeds.
struct Machine {
    /// How far samples, and processes, lie apart in the logarithm.
    spread: f64,
    /// The share of disturbed pairs.
    disturbed: f64,
    /// States of the machine.
    states: u32,
    /// Rates of the ceilings, in the logarithm to the base 10.
    rates: f64,
}

impl Machine {
    fn surroundings(&self, random: &mut ChaCha8Rng) -> Surroundings {
        let state = 1.0 + f64::from(random.random_range(0..self.states.max(1)));
        let handoff_us = Some(0.1 * state * state);
        let triad_gb_per_s = 0.2 * 10_f64.powf(self.rates) * state;
        let reading = MachineReading { handoff_us, triad_gb_per_s };
        let readings = [(self.states > 0).then_some(reading); 2];
        Surroundings { began_s: random.random_range(0.0..1e3), readings, others_busy: None }
    }
}

impl Workers for Machine {
    fn ceilings(
        &mut self,
        _: CeilingsTask,
        _: Option<Duration>,
    ) -> Result<Option<CeilingsReport>, NoAnswer> {
        let mut random = ChaCha8Rng::seed_from_u64(self.rates.to_bits());
        let rate = 10_f64.powf(self.rates);
        let point = |working_set_bytes, gb_per_s| BandwidthPoint {
            working_set_bytes,
            gb_per_s,
            nontemporal_gb_per_s: None,
            read_gb_per_s: Some(2.0 * gb_per_s),
        };
        let bandwidth = vec![point(1 << 10, rate), point(1 << 20, rate / 3.7)];
        let ceilings = Ceilings { peak_gflops: 3.3 * rate, launch_us: 0.01, bandwidth };
        let surroundings = self.surroundings(&mut random);
        Ok(Some(CeilingsReport { ceilings, surroundings, ladder: Default::default() }))
    }

    fn wait(&mut self, _: Duration, _: &Stop) {}

    fn measure(
        &mut self,
        task: MeasureTask,
        _: Option<Duration>,
    ) -> Result<MeasureAnswer, NoAnswer> {
        let mut random = ChaCha8Rng::seed_from_u64(task.process_seed);
        let factor =
            |random: &mut ChaCha8Rng| (self.spread * random.random_range(-1.0..1.0_f64)).exp();
        let of_process = [factor(&mut random), factor(&mut random)];
        let mut pair = |order| {
            let seconds = of_process.map(|process| 1.234_567e-3 * process * factor(&mut random));
            let is_disturbed = random.random_bool(self.disturbed);
            let causes = if is_disturbed { vec![Cause::Migration] } else { Vec::new() };
            Pair { seconds, order, causes, clock_changed: [false; 2] }
        };
        let mut round =
            || Round { pairs: vec![pair(Order::FirstSecond), pair(Order::SecondFirst)] };
        let rounds = (0..task.procedure.rounds).map(|_| round()).collect();
        let chain = task.subject.problem.chain();
        let (ops, is_single) = (chain.len(), chain.is_single());
        let unfused: Vec<String> =
            chain.iter().map(|op| format!("{}: one pass", op.name())).collect();
        let fused = if is_single { unfused.clone() } else { vec!["all".to_owned()] };
        let steps = match task.subject.comparison {
            Comparison::UnfusedFused => (0..ops).map(|_| 4e-4 * factor(&mut random)).collect(),
            _ => Vec::new(),
        };
        Ok(MeasureAnswer::Measured(Box::new(ProcessReport {
            samples: Samples {
                rounds,
                iterations: [3, 4],
                ticks: random.random_range(900..90_000),
                back_to_back: factor(&mut random).ln(),
                observable: vec![Cause::Migration],
                sensors: None,
            },
            kernels: [unfused, fused],
            verification: Verification {
                reference_rows: 1,
                rows: task.subject.problem.steps().last().map_or(0, |step| step.output.rows),
                unfused_error: 1e-7 * factor(&mut random),
                fused_error: 0.0,
                tolerance: Verification::single_precision(&task.subject.problem),
            },
            outputs: None,
            wrong_after: None,
            pinned: true,
            processors: vec![0, 1],
            huge_page_share: Some(random.random_range(0.0..=1.0)),
            steps,
            scratch_bytes: [0, if is_single { 0 } else { 64 }],
            gpu_kernels: Default::default(),
            ladder: Default::default(),
            surroundings: self.surroundings(&mut random),
        })))
    }
}

/// The file of a run on such a machine.
fn file(machine: &mut Machine, settings: RunSettings, problems: &[&str]) -> HardwareCalibration {
    let subjects: Vec<Subject> =
        problems.iter().map(|text| Subject::fusion(text.parse().unwrap())).collect();
    let stop = Stop::default();
    let outcome = Session::new(machine, settings, &subjects, &stop).unwrap().run().unwrap();
    let context = Context::of(&settings, &outcome);
    let of = |measured: &Measured| {
        let Measured { subject, processes, estimate, .. } = measured;
        Some(record(subject, processes, estimate.as_ref()?, &context))
    };
    let records: Vec<_> = outcome.measured.iter().filter_map(of).collect();
    let Outcome { noise, ceilings, machine, .. } = &outcome;
    let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    calibration.settings.processes = settings.procedure.processes;
    calibration.settings.most_processes = settings.procedure.most_processes;
    // Its rates are those of another machine's ceilings.
    calibration.hardware.memory.source = "made up".to_owned();
    let peak = calibration.hardware.peaks[0].clone();
    let warm = ceilings.iter().filter(|measured| measured.cache_state == CacheState::Warm);
    let of = |measured: &MeasuredCeilings| Peak {
        dtype: measured.dtype,
        gflops: measured.ceilings.peak_gflops,
        ..peak.clone()
    };
    calibration.hardware.peaks = warm.map(of).collect();
    HardwareCalibration {
        num_records: records.len() as u64,
        states: machine.describe().to_vec(),
        ceilings: ceilings.clone(),
        noise: noise.clone(),
        records,
        ..calibration
    }
}

const SETTINGS: RunSettings = RunSettings {
    procedure: Procedure::STANDARD,
    backend: Backend::Cpu,
    threads: 2,
    cache: CacheState::Warm,
    l2_bytes: None,
    seed: 1,
    spread: Duration::ZERO,
    forced: true,
    time_budget: None,
    cores: CoreChoice::None,
};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn what_is_written_is_read(
        (spread, disturbed, states) in (0.0..0.6_f64, 0.0..0.9_f64, 0_u32..3),
        (rates, seed, processes) in (-1.0..4.0_f64, any::<u64>(), prop::sample::select(vec![1, 3, 6, 10])),
        is_cold in any::<bool>(),
        problems in prop::sample::subsequence(PROBLEMS.to_vec(), 1..4),
    ) {
        let mut machine = Machine { spread, disturbed, states, rates };
        let procedure = Procedure::STANDARD.with(Some(processes), Some(2));
        let cache = if is_cold { CacheState::Cold } else { CacheState::Warm };
        let settings = RunSettings { procedure, cache, seed, ..SETTINGS };
        let calibration = file(&mut machine, settings, &problems);
        prop_assert_eq!(calibration.records.len(), problems.len());
        let text = calibration.to_toml().unwrap();
        match HardwareCalibration::from_toml(&text) {
            Ok(read) => prop_assert_eq!(read, calibration),
            Err(error) => prop_assert!(false, "{error}\n{text}"),
        }
    }
}

/// Numbers of a record that others follow from, or that follow from others, wherever they stand.
const RELATED: [&str; 22] = [
    "num_operators",
    "unfused_latency_ms",
    "unfused_memory_bytes",
    "unfused_peak_bytes",
    "unfused_gflops",
    "fused_latency_ms",
    "fused_memory_bytes",
    "fused_peak_bytes",
    "fused_gflops",
    "speedup_factor",
    "memory_reduction",
    "efficiency_improvement",
    "ceiling_speedup",
    "arithmetic_intensity_unfused",
    "arithmetic_intensity_fused",
    "processes",
    "share_outside_steps",
    "ms",
    "median_ms",
    "m",
    "n",
    "pairs",
];

/// Every one of them, in every record, taken three and a half times or negative.
#[test]
fn a_number_that_is_changed_alone_is_noticed() {
    let mut machine = Machine { spread: 0.05, disturbed: 0.1, states: 0, rates: 1.0 };
    let calibration = file(&mut machine, SETTINGS, &PROBLEMS);
    let text = calibration.to_toml().unwrap();
    assert_eq!(HardwareCalibration::from_toml(&text).unwrap(), calibration);
    let records = text.lines().position(|line| line == "[[fusion]]").unwrap();
    let mut changed = 0;
    for (at, line) in text.lines().enumerate().skip(records) {
        let Some((key, value)) = line.split_once(" = ") else { continue };
        let Some(number) = value.parse::<f64>().ok().filter(|_| RELATED.contains(&key)) else {
            continue;
        };
        // Nothing and its multiple are the same, and a single op is above the same ceiling.
        if number == 0.0 {
            continue;
        }
        let is_whole = !value.contains('.');
        for factor in [-1.0, 0.01, 100.0] {
            let other = number * factor;
            if is_whole && other.fract() != 0.0 || key == "pairs" && factor > 1.0 {
                continue;
            }
            let other = if is_whole { format!("{other:.0}") } else { format!("{other:.9}") };
            let mutated: Vec<String> = text
                .lines()
                .enumerate()
                .map(
                    |(index, line)| {
                        if index == at { format!("{key} = {other}") } else { line.to_owned() }
                    },
                )
                .collect();
            let mutated = mutated.join("\n") + "\n";
            let error = HardwareCalibration::from_toml(&mutated);
            assert!(error.is_err(), "line {}: {line} was accepted as {other}", at + 1);
            changed += 1;
        }
    }
    assert!(changed > 400, "{changed}");
}
