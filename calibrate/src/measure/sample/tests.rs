//! A scripted device: what it is asked for, and what disturbs it.

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
    /// Microseconds of each call, and of each of its runs, in place of those of its variants.
    call_and_run: Option<[u64; 2]>,
    /// It makes only the first of the runs of this variant.
    leaves_out: Option<Variant>,
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
        let of_variant = if variant == Variant::Unfused { 200 } else { 100 };
        let [call, run] = self.call_and_run.unwrap_or([0, of_variant]).map(Duration::from_micros);
        let made = if self.leaves_out == Some(variant) { 1 } else { iterations };
        Ok(call + run * made * self.times_slower.max(1))
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
        let throttle_reasons = clock_mhz.map(|mhz| u64::from(mhz < 1900) << 2);
        // The device counts a little less.
        let device_clock_mhz = clock_mhz.map(|mhz| mhz - 5);
        Sensors { clock_mhz, throttle_reasons, device_clock_mhz }
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

fn unproved(_: &mut dyn Prepared, _: [u32; 2]) -> Result<(), BackendError> {
    Ok(())
}

fn host<'a>(watch: &'a mut dyn Watch, proof: &'a mut ProofOfLayout<'a>) -> Instruments<'a> {
    Instruments {
        watch,
        clock: Clock::Host,
        tick: Duration::from_nanos(20),
        is_told: false,
        counters: |prepared| prepared.counters(),
        proof,
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
    let (watch, proof) = (&mut Idle, &mut unproved);
    let mut instruments = Instruments { clock, tick, ..host(watch, proof) };
    measure(device, Variant::ALL, procedure, seed, &mut instruments).unwrap()
}

/// The scripted times are all alike, as those of a clock are whose steps are longer than they.
#[test]
fn the_ticks_of_another_programs_clock_are_those_that_its_times_show() {
    let ticks = |is_told| {
        let (watch, proof) = (&mut Idle, &mut unproved);
        let mut instruments = Instruments { is_told, ..host(watch, proof) };
        let device = &mut Scripted::default();
        measure(device, Variant::ALL, &SMALL, 1, &mut instruments).unwrap().ticks
    };
    assert_eq!([false, true].map(ticks), [500_000 / 20, 1]);
}

#[test]
fn another_program_that_makes_only_the_first_run_is_seen() {
    let measured_on = |device: &mut Scripted| {
        let (watch, proof) = (&mut Idle, &mut unproved);
        let mut instruments = Instruments { is_told: true, ..host(watch, proof) };
        let samples = measure(device, Variant::ALL, &SMALL, 1, &mut instruments);
        samples.map(|samples| samples.iterations).map_err(|error| error.to_string())
    };
    let measured = |leaves_out, times_slower| {
        measured_on(&mut Scripted { leaves_out, times_slower, ..Scripted::default() })
    };
    assert_eq!(measured(None, 1), Ok([25, 50]), "5 ms, not 500 us");
    // Four runs take 1.6 ms, and sixteen not twice as much: most of it is the call.
    let call_and_run = Some([1200, 100]);
    assert_eq!(measured_on(&mut Scripted { call_and_run, ..Scripted::default() }), Ok([4, 4]));
    let leaves_out = Some(Variant::Fused);
    let device = &mut Scripted { call_and_run, leaves_out, ..Scripted::default() };
    assert!(measured_on(device).unwrap_err().contains("takes 1.3ms for 4 runs"));
    for variant in Variant::ALL {
        let message = measured(Some(variant), 1).unwrap_err();
        assert!(message.starts_with(&format!("its {} variant takes", variant.name())), "{message}");
        assert!(message.contains("does not make all runs"), "{message}");
        // Where a sample is a single run, all are made.
        assert_eq!(measured(Some(variant), 100), Ok([1, 1]));
    }
}

/// A kernel may be right at some addresses only. The last layout stays, and is proved by the caller.
#[test]
fn every_layout_but_the_last_is_proved_behind_its_samples() {
    const OF_PROOF: u32 = 7;
    let mut proof = |prepared: &mut dyn Prepared, runs: [u32; 2]| {
        assert_eq!(runs, [3, 5], "those of a sample");
        prepared.run(Variant::Unfused, OF_PROOF).map(drop)
    };
    let mut device = Scripted::default();
    measure(&mut device, Variant::ALL, &SMALL, 1, &mut host(&mut Idle, &mut proof)).unwrap();
    let calls = &device.calls[device.calls.len() - CALLS - 2..];
    let proofs = (0..calls.len()).filter(|&call| calls[call].1 == OF_PROOF);
    assert_eq!(Vec::from_iter(proofs), [4 * 2 * 2, 2 * 4 * 2 * 2 + 1]);
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
fn samples_of_another_program_follow_untimed_runs_of_milliseconds() {
    let (watch, proof) = (&mut Idle, &mut unproved);
    let mut instruments = Instruments { is_told: true, ..host(watch, proof) };
    let mut device = Scripted::default();
    let samples = measure(&mut device, Variant::ALL, &SMALL, 1, &mut instruments).unwrap();
    assert_eq!(samples.iterations, [25, 50], "5 ms");
    let calls = &device.calls[device.calls.len() - CALLS..];
    for call in calls.chunks(2) {
        let [(first, untimed), (second, runs)] = call else { panic!("calls come in twos") };
        let of_variant = if *second == Variant::Unfused { [15, 25] } else { [30, 50] };
        assert_eq!((*first, [*untimed, *runs]), (*second, of_variant), "3 ms, and 5 ms");
    }
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
fn a_step_of_the_clock_is_counted_for_the_variant_that_met_it() {
    /// Runs that find out how many make a sample.
    const BEFORE: usize = 9;
    let tick = Duration::from_nanos(500);
    let calls = |mhz, switched| {
        let mut device = Scripted { mhz: Some(mhz), switched, ..Default::default() };
        let process = run_by(Clock::Device, tick, &mut device, &SMALL, 1);
        (device.calls.len(), process)
    };
    let (all, quiet) = calls(|_| 1980, vec![]);
    assert!(quiet.rounds.iter().flat_map(|round| &round.pairs).all(|one| one.causes.is_empty()));
    let of = |low, high, reasons| SensorRange {
        clock_mhz: Some([low, high]),
        device_clock_mhz: Some([low - 5, high - 5]),
        throttle_reasons: Some(reasons),
    };
    let steady = of(1980, 1980, 0);
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
        // The second sample met it.
        let second = pair.order.positions()[1];
        assert_eq!(pair.clock_changed, [0, 1].map(|one| index == 5 && one == second));
        assert!(pair.is_kept());
    }
    assert_eq!(process.observable, [Cause::ClockChange]);
    let range = of(1800, 1980, 4);
    assert_eq!(process.sensors, Some(range));
    let other = of(1700, 1900, 8);
    let both = of(1700, 1980, 12);
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
