//! Taking the samples of one process.

use std::time::Duration;

use fused_kernels::{BackendError, Prepared, Sensors, ThreadCounters, Variant};
use fusion_cost_model::Clock;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::disturbance::{Cause, causes_between, clock_changed, observable};
use super::procedure::Procedure;
use super::schedule::{Order, draw_orders};
use super::statistics::median;
use super::watch::{self, Watch};

/// Two samples taken one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Seconds per run of the first and of the second variant.
    pub seconds: [f64; 2],
    /// Which one was sampled first.
    pub order: Order,
    /// What disturbed one of the two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
}

impl Pair {
    /// The logarithm of the first variant's time over the second's.
    #[must_use]
    pub fn log_ratio(&self) -> f64 {
        (self.seconds[0] / self.seconds[1]).ln()
    }

    /// The logarithm of the geometric mean of both times.
    #[must_use]
    pub fn log_middle(&self) -> f64 {
        0.5 * (self.seconds[0] * self.seconds[1]).ln()
    }
}

/// The pairs that were taken in one memory layout, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// In the order in which they were taken.
    pub pairs: Vec<Pair>,
}

/// All samples of two variants in one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// In the order in which they were taken.
    pub rounds: Vec<Round>,
    /// Runs per sample of each variant.
    pub iterations: [u32; 2],
    /// Ticks of the clock in the shortest sample.
    pub ticks: u64,
    /// The logarithm of the ratio when all samples of one variant are taken before those of the
    /// other, in the layout of the last round.
    pub back_to_back: f64,
    /// The causes of disturbances that this system shows.
    pub observable: Vec<Cause>,
    /// What the device reported of itself around the samples; `None` where it reports nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensors: Option<SensorRange>,
}

impl Samples {
    /// Whether more than half of the pairs were disturbed.
    #[must_use]
    pub fn is_mostly_disturbed(&self) -> bool {
        let pairs = || self.rounds.iter().flat_map(|round| &round.pairs);
        2 * pairs().filter(|pair| pair.causes.is_empty()).count() < pairs().count()
    }
}

/// What a device reported of itself around some samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorRange {
    /// Its lowest and its highest clock.
    pub clock_mhz: Option<[u32; 2]>,
    /// All bits of the reasons for which that was lower than it could be.
    pub throttle_reasons: Option<u64>,
}

impl SensorRange {
    /// The same with another reading.
    fn add(&mut self, reading: Sensors) {
        let both = self.clock_mhz.into_iter().chain(reading.clock_mhz.map(|mhz| [mhz; 2]));
        self.clock_mhz = both.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]);
        let reasons = self.throttle_reasons.into_iter().chain(reading.throttle_reasons);
        self.throttle_reasons = reasons.reduce(|a, b| a | b);
    }

    /// What two processes reported together.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        for clock_mhz in other.clock_mhz.into_iter().flatten() {
            self.add(Sensors { clock_mhz: Some(clock_mhz), throttle_reasons: None });
        }
        self.add(Sensors { clock_mhz: None, throttle_reasons: other.throttle_reasons });
        self
    }
}

/// What a measurement is made with, apart from the device.
pub struct Instruments<'a> {
    /// Observes the machine.
    pub watch: &'a mut dyn Watch,
    /// What times begin and end with.
    pub clock: Clock,
    /// The smallest step of the clock.
    pub tick: Duration,
    /// Reads the counters of the threads whose disturbance would be one of the samples.
    pub counters: fn(&mut dyn Prepared) -> Vec<ThreadCounters>,
}

/// Samples in each block of the back-to-back pass, at most, and half as many as a round has pairs: a
/// few in each of many processes.
const BACK_TO_BACK: usize = 2;

/// Measures two variants against each other in this process.
///
/// A variant against itself is an A/A run. Every sample is preceded by an untimed run of the same
/// variant, so that it starts from the caches that the variant itself leaves.
///
/// # Errors
///
/// [`BackendError`] when the device fails.
pub fn measure(
    prepared: &mut dyn Prepared,
    variants: [Variant; 2],
    procedure: &Procedure,
    seed: u64,
    instruments: &mut Instruments<'_>,
) -> Result<Samples, BackendError> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    prepared.new_layout(random.next_u64())?;
    let least = procedure.sample.max(instruments.tick * Procedure::TICKS);
    let [first, second] = variants;
    let once =
        [seconds_per_run(prepared, first, least)?, seconds_per_run(prepared, second, least)?];
    let iterations = once.map(|seconds| runs_in(least, seconds));
    let sample = |index: usize| once[index] * (f64::from(iterations[index]) + 1.0);
    let (rounds_planned, pairs) = procedure.affordable(sample(0) + sample(1));

    let counters = instruments.counters;
    let is_observed_by_clock = |cause: &Cause| Cause::of_clock(instruments.clock).contains(cause);
    let mut observed = observable(&counters(prepared));
    let first_reading = prepared.sensors();
    observed.extend(first_reading.clock_mhz.map(|_| Cause::ClockChange));
    let mut range = SensorRange::default();
    let mut shortest = Duration::MAX;
    let mut take = |prepared: &mut dyn Prepared, index: usize, seen: &mut Seen| {
        let before = counters(prepared);
        let untimed = prepared.run(variants[index], 1)?;
        // Behind the untimed run, so that the device is at work when it is asked.
        let sensors_before = prepared.sensors();
        // A clock that did not move would make a ratio of nothing.
        let time = prepared.run(variants[index], iterations[index])?.max(instruments.tick);
        seen.causes.extend(causes_between(&before, &counters(prepared), untimed + time));
        for reading in [sensors_before, prepared.sensors()] {
            range.add(reading);
            seen.sensors.push(reading);
        }
        shortest = shortest.min(time);
        Ok::<_, BackendError>(time.as_secs_f64() / f64::from(iterations[index]))
    };

    let mut readings = vec![instruments.watch.read()];
    let mut rounds = Vec::new();
    for number in 0..rounds_planned {
        // The first round has the layout in which the runs of a sample were counted.
        if number > 0 {
            prepared.new_layout(random.next_u64())?;
        }
        let mut round = Round { pairs: Vec::with_capacity(pairs) };
        for order in draw_orders(pairs, &mut random) {
            let (mut seconds, mut seen) = ([0.0; 2], Seen::default());
            for index in order.positions() {
                seconds[index] = take(prepared, index, &mut seen)?;
            }
            let Seen { mut causes, sensors } = seen;
            causes.extend(clock_changed(&sensors).then_some(Cause::ClockChange));
            causes.retain(is_observed_by_clock);
            causes.sort_unstable();
            causes.dedup();
            round.pairs.push(Pair { seconds, order, causes });
        }
        rounds.push(round);
        readings.push(instruments.watch.read());
    }

    let order = if random.random() { Order::FirstSecond } else { Order::SecondFirst };
    let mut blocks = [0.0; 2];
    for index in order.positions() {
        let block =
            (0..BACK_TO_BACK.min(pairs / 2)).map(|_| take(prepared, index, &mut Seen::default()));
        blocks[index] = median(&block.collect::<Result<Vec<_>, _>>()?);
    }

    let of_rounds = watch::causes_of_rounds(&readings, instruments.watch.processors());
    for (round, causes) in rounds.iter_mut().zip(of_rounds) {
        let causes: Vec<Cause> = causes.into_iter().filter(is_observed_by_clock).collect();
        round.pairs.iter_mut().for_each(|pair| pair.causes.extend_from_slice(&causes));
    }
    observed.extend(watch::observable(&readings[0]));
    observed.retain(is_observed_by_clock);
    let ticks = shortest.as_nanos() / instruments.tick.as_nanos().max(1);
    Ok(Samples {
        rounds,
        iterations,
        ticks: u64::try_from(ticks).unwrap_or(u64::MAX),
        back_to_back: (blocks[0] / blocks[1]).ln(),
        observable: observed,
        sensors: Some(range).filter(|range| *range != SensorRange::default()),
    })
}

/// What was seen around the samples of a pair.
#[derive(Default)]
struct Seen {
    causes: Vec<Cause>,
    sensors: Vec<Sensors>,
}

/// How many runs a sample needs to last at least `least`.
fn runs_in(least: Duration, seconds: f64) -> u32 {
    let wanted = (least.as_secs_f64() / seconds).ceil();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let wanted = wanted as u32;
    wanted.clamp(1, MOST_RUNS)
}

/// A sample has no more runs than this, even where the clock does not move.
const MOST_RUNS: u32 = 1 << 24;

/// A run that takes this many times as long as a sample has to needs no further ones to be timed by.
const SLOW: u32 = 20;

/// Seconds that one run takes, after warming up unless it is slow.
fn seconds_per_run(
    prepared: &mut dyn Prepared,
    variant: Variant,
    sample: Duration,
) -> Result<f64, BackendError> {
    let first = prepared.run(variant, 1)?;
    if first >= sample * SLOW {
        // Unless something held it up.
        let again = first.min(prepared.run(variant, 1)?);
        if again >= sample * SLOW {
            return Ok(again.as_secs_f64());
        }
    }
    let mut iterations = 1;
    loop {
        let mut time = prepared.run(variant, iterations)?;
        if time >= sample / 4 {
            // Once more: what holds up a single call would make all samples too short.
            time = time.min(prepared.run(variant, iterations)?);
        }
        if time >= sample / 4 || iterations >= MOST_RUNS {
            let seconds = time.max(Duration::from_nanos(1)).as_secs_f64();
            return Ok(seconds / f64::from(iterations));
        }
        iterations *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::super::watch::Reading;
    use super::*;

    /// A device whose clock is a script: it records what it is asked for.
    #[derive(Default)]
    struct Scripted {
        calls: Vec<(Variant, u32)>,
        layouts: Vec<u64>,
        /// The system takes the processor during the runs with these numbers.
        switched: Vec<usize>,
        /// The run with this number takes a second.
        held_up: Option<usize>,
        /// The factor by which all runs take longer; 0 means 1.
        times_slower: u32,
        /// The clock before the run with a number, where the device has one.
        mhz: Option<fn(usize) -> u32>,
    }

    impl Prepared for Scripted {
        fn kernels(&self, _: Variant) -> Vec<String> {
            Vec::new()
        }
        fn new_layout(&mut self, seed: u64) -> Result<(), BackendError> {
            self.layouts.push(seed);
            Ok(())
        }
        fn poison(&mut self) -> Result<(), BackendError> {
            Ok(())
        }
        fn run(&mut self, variant: Variant, iterations: u32) -> Result<Duration, BackendError> {
            self.calls.push((variant, iterations));
            if self.held_up == Some(self.calls.len() - 1) {
                return Ok(Duration::from_secs(1));
            }
            let micros = if variant == Variant::Unfused { 200 } else { 100 };
            Ok(Duration::from_micros(micros) * iterations * self.times_slower.max(1))
        }
        fn output(&mut self) -> Result<Vec<f32>, BackendError> {
            Ok(Vec::new())
        }
        fn counters(&mut self) -> Vec<ThreadCounters> {
            let done = self.calls.len();
            let switches = self.switched.iter().filter(|&&call| call < done).count() as u64;
            vec![ThreadCounters { involuntary_switches: Some(switches), ..Default::default() }]
        }
        fn sensors(&mut self) -> Sensors {
            let clock_mhz = self.mhz.map(|mhz| mhz(self.calls.len()));
            Sensors { clock_mhz, throttle_reasons: clock_mhz.map(|mhz| u64::from(mhz < 1900) << 2) }
        }
    }

    struct Idle;

    impl Watch for Idle {
        fn read(&mut self) -> Reading {
            Reading::default()
        }
        fn processors(&self) -> usize {
            2
        }
    }

    fn run(device: &mut Scripted, procedure: &Procedure, seed: u64) -> Samples {
        let tick = Duration::from_nanos(20);
        run_by(Clock::Host, tick, device, procedure, seed)
    }

    fn run_by(
        clock: Clock,
        tick: Duration,
        device: &mut Scripted,
        procedure: &Procedure,
        seed: u64,
    ) -> Samples {
        let counters = |prepared: &mut dyn Prepared| prepared.counters();
        let mut instruments = Instruments { watch: &mut Idle, clock, tick, counters };
        measure(device, Variant::ALL, procedure, seed, &mut instruments).unwrap()
    }

    const SMALL: Procedure = Procedure { rounds: 3, pairs: 4, ..Procedure::STANDARD };
    /// Runs of a process with [`SMALL`]: pairs, then two blocks of samples.
    const CALLS: usize = (3 * 4 + 2) * 2 * 2;

    #[test]
    fn every_sample_follows_an_untimed_run_of_its_variant() {
        let mut device = Scripted::default();
        let process = run(&mut device, &SMALL, 1);
        assert_eq!(process.iterations, [3, 5]);
        assert_eq!(process.ticks, 500_000 / 20);
        let samples = &device.calls[device.calls.len() - CALLS..];
        for call in samples.chunks(2) {
            assert_eq!(call[0], (call[1].0, 1), "an untimed run of the same variant first");
            let expected = if call[1].0 == Variant::Unfused { 3 } else { 5 };
            assert_eq!(call[1].1, expected);
        }
        assert_eq!(device.layouts.len(), 3, "one per round");
        assert_eq!(process.rounds.len(), 3);
        for round in &process.rounds {
            assert_eq!(round.pairs.len(), 4);
            for pair in &round.pairs {
                assert!((pair.seconds[0] - 200e-6).abs() < 1e-12);
                assert!((pair.seconds[1] - 100e-6).abs() < 1e-12);
            }
        }
        assert!((process.back_to_back - 2.0_f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn a_call_that_is_held_up_shortens_no_samples() {
        let quiet = run(&mut Scripted::default(), &SMALL, 1).iterations;
        for call in 0..6 {
            let mut device = Scripted { held_up: Some(call), ..Default::default() };
            assert_eq!(run(&mut device, &SMALL, 1).iterations, quiet, "call {call}");
        }
    }

    #[test]
    fn a_slow_problem_gets_few_runs() {
        // 60 and 30 ms: two runs of each to time them by, and two rounds of two pairs.
        let mut device = Scripted { times_slower: 300, ..Default::default() };
        let process = run(&mut device, &Procedure::STANDARD, 1);
        let shape: Vec<usize> = process.rounds.iter().map(|round| round.pairs.len()).collect();
        assert_eq!((shape, process.iterations), (vec![2, 2], [1, 1]));
        assert_eq!(device.calls.len(), 2 * 2 + (2 * 2 + 1) * 2 * 2);
        assert_eq!(device.layouts.len(), 2);
    }

    #[test]
    fn the_runs_follow_the_schedule() {
        let mut device = Scripted::default();
        let process = run(&mut device, &SMALL, 7);
        let samples = &device.calls[device.calls.len() - CALLS..][..3 * 4 * 4];
        let orders = process.rounds.iter().flat_map(|round| &round.pairs).map(|pair| pair.order);
        for (pair, order) in samples.chunks(4).zip(orders) {
            assert_eq!([pair[1].0, pair[3].0], order.positions().map(|i| Variant::ALL[i]));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_layouts_and_orders() {
        let run = |seed| {
            let mut device = Scripted::default();
            let process = run(&mut device, &Procedure::QUICK, seed);
            (device.layouts, process)
        };
        assert_eq!(run(5), run(5));
        assert_ne!(run(5).0, run(6).0);
    }

    #[test]
    fn a_disturbed_sample_marks_its_pair_and_no_other() {
        let quiet = {
            let mut device = Scripted::default();
            run(&mut device, &SMALL, 1);
            device.calls.len()
        };
        // The timed run of the second sample of the sixth pair, and a run of the calibration.
        let disturbed = quiet - CALLS + 5 * 4 + 3;
        let mut device = Scripted { switched: vec![0, disturbed], ..Default::default() };
        let process = run(&mut device, &SMALL, 1);
        let pairs: Vec<&Pair> = process.rounds.iter().flat_map(|round| &round.pairs).collect();
        for (index, pair) in pairs.iter().enumerate() {
            let expected: &[Cause] = if index == 5 { &[Cause::InvoluntarySwitch] } else { &[] };
            assert_eq!(pair.causes, expected, "pair {index}");
        }
        assert_eq!(process.observable, [Cause::InvoluntarySwitch]);
    }

    #[test]
    fn a_step_of_the_clock_drops_the_pair_that_it_falls_into_and_no_other() {
        /// Runs that find out how many make a sample.
        const BEFORE: usize = 9;
        let tick = Duration::from_nanos(500);
        let calls = |mhz, switched| {
            let mut device = Scripted { mhz: Some(mhz), switched, ..Default::default() };
            let process = run_by(Clock::Device, tick, &mut device, &SMALL, 1);
            (device.calls.len(), process)
        };
        let (all, quiet) = calls(|_| 1980, vec![]);
        assert!(
            quiet.rounds.iter().flat_map(|round| &round.pairs).all(|one| one.causes.is_empty())
        );
        let steady = SensorRange { clock_mhz: Some([1980; 2]), throttle_reasons: Some(0) };
        assert_eq!(quiet.sensors, Some(steady));
        // The samples last a millisecond each, so the script below is as long as this one.
        assert_eq!((all - CALLS, quiet.ticks), (BEFORE, 2000));
        // Before the second sample of the sixth pair; a lost processor is none of the device's.
        let stepped = BEFORE + 5 * 4 + 2;
        let (_, process) =
            calls(|call| if call > BEFORE + 5 * 4 + 2 { 1800 } else { 1980 }, vec![stepped]);
        let pairs = process.rounds.iter().flat_map(|round| &round.pairs);
        for (index, pair) in pairs.enumerate() {
            let expected: &[Cause] = if index == 5 { &[Cause::ClockChange] } else { &[] };
            assert_eq!(pair.causes, expected, "pair {index}");
        }
        assert_eq!(process.observable, [Cause::ClockChange]);
        let range = SensorRange { clock_mhz: Some([1800, 1980]), throttle_reasons: Some(4) };
        assert_eq!(process.sensors, Some(range));
        let other = SensorRange { clock_mhz: Some([1700, 1900]), throttle_reasons: Some(8) };
        let both = SensorRange { clock_mhz: Some([1700, 1980]), throttle_reasons: Some(12) };
        assert_eq!(range.with(other), both);
        assert_eq!(range.with(SensorRange::default()), range);
    }

    #[test]
    fn a_coarse_clock_gets_longer_samples() {
        let mut device = Scripted::default();
        let tick = Duration::from_micros(10);
        let process = run_by(Clock::Host, tick, &mut device, &SMALL, 1);
        assert_eq!(process.iterations, [100, 200]);
        assert_eq!(process.ticks, 2000);
    }

    #[test]
    fn a_process_survives_the_journal() {
        let process = run(&mut Scripted { switched: vec![30], ..Default::default() }, &SMALL, 1);
        let text = serde_json::to_string(&process).unwrap();
        assert_eq!(serde_json::from_str::<Samples>(&text).unwrap(), process);
    }
}
