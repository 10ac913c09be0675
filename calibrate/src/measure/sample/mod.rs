//! Taking the samples of one process.

#[cfg(test)]
mod tests;
mod told;

use std::time::Duration;

use fused_kernels::{BackendError, Prepared, Sensors, ThreadCounters, Variant};
use fusion_cost_model::Clock;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::disturbance::{Cause, Lost, clock_changed, observable};
use super::procedure::Procedure;
use super::samples::{Pair, Round, Samples, SensorRange};
use super::schedule::{Order, draw_orders};
use super::statistics::median;
use super::watch::{self, Watch};
use told::{check_that_more_takes_longer, coarse_step};

/// What a measurement is made with, apart from the device.
pub struct Instruments<'a> {
    /// Observes the machine.
    pub watch: &'a mut dyn Watch,
    /// What times begin and end with.
    pub clock: Clock,
    /// The smallest step of the clock.
    pub tick: Duration,
    /// Whether the times are what another program says, whose clock may have longer steps.
    pub is_told: bool,
    /// Reads the counters of the threads whose disturbance would be one of the samples.
    pub counters: fn(&mut dyn Prepared) -> Vec<ThreadCounters>,
    /// Proves what each variant computes with so many runs, where the tensors lie now.
    pub proof: &'a mut ProofOfLayout<'a>,
}

/// What proves a layout.
pub(super) type ProofOfLayout<'a> =
    dyn FnMut(&mut dyn Prepared, [u32; 2]) -> Result<(), BackendError> + 'a;

/// Samples in each block of the back-to-back pass, at most, and half as many as a round has pairs: a
/// few in each of many processes.
const BACK_TO_BACK: usize = 2;

/// Measures two variants against each other in this process.
///
/// A variant against itself is an A/A run. Every sample is preceded by untimed runs of the same
/// variant, so that it starts from the caches that the variant itself leaves: by one, or by those of a
/// few milliseconds where another program has waited for a message. Every layout is proved
/// behind its samples, but for the last one: it stays, and is the caller's to prove.
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
    let told = if instruments.is_told { Procedure::TOLD_SAMPLE } else { Duration::ZERO };
    let least = procedure.sample.max(instruments.tick * Procedure::TICKS).max(told);
    let [first, second] = variants;
    let once =
        [seconds_per_run(prepared, first, least)?, seconds_per_run(prepared, second, least)?];
    let iterations = once.map(|seconds| runs_in(least, seconds));
    if instruments.is_told {
        for (variant, runs) in variants.into_iter().zip(iterations) {
            check_that_more_takes_longer(prepared, variant, runs)?;
        }
    }
    let untimed =
        once.map(|run| if instruments.is_told { runs_in(Procedure::TOLD_UNTIMED, run) } else { 1 });
    let sample =
        |index: usize| once[index] * (f64::from(iterations[index]) + f64::from(untimed[index]));
    let (rounds_planned, pairs) = procedure.affordable(sample(0) + sample(1));

    let counters = instruments.counters;
    let is_observed_by_clock = |cause: &Cause| cause.can_disturb(instruments.clock);
    let mut observed = observable(&counters(prepared));
    let first_reading = prepared.sensors();
    observed.extend(first_reading.clock_mhz.map(|_| Cause::ClockChange));
    let mut range = SensorRange::default();
    let mut times: [Vec<Duration>; 2] = Default::default();
    let mut take = |prepared: &mut dyn Prepared, index: usize, sensors: &mut Vec<Sensors>| {
        let before = counters(prepared);
        let (variant, untimed, runs) = (variants[index], untimed[index], iterations[index]);
        let ([untimed, time], sensors_before) = if instruments.is_told {
            (prepared.run_behind(variant, untimed, runs)?, prepared.sensors())
        } else {
            let untimed = prepared.run(variant, untimed)?;
            // Behind the untimed run, so that the device is at work when it is asked.
            let sensors = prepared.sensors();
            ([untimed, prepared.run(variant, runs)?], sensors)
        };
        // A clock that did not move would make a ratio of nothing.
        let time = time.max(instruments.tick);
        let lost = Lost::between(&before, &counters(prepared), untimed + time);
        for reading in [sensors_before, prepared.sensors()] {
            range.add(reading);
            sensors.push(reading);
        }
        times[index].push(time);
        Ok::<_, BackendError>((time.as_secs_f64() / f64::from(iterations[index]), lost))
    };

    let mut readings = vec![instruments.watch.read()];
    let mut rounds = Vec::new();
    for number in 0..rounds_planned {
        // The first round has the layout in which the runs of a sample were counted.
        if number > 0 {
            (instruments.proof)(prepared, iterations)?;
            prepared.new_layout(random.next_u64())?;
        }
        let mut round = Round { pairs: Vec::with_capacity(pairs) };
        for order in draw_orders(pairs, &mut random) {
            let (mut seconds, mut lost) = ([0.0; 2], [Lost::default(); 2]);
            let (mut changed, mut sensors) = ([false; 2], Vec::new());
            for index in order.positions() {
                // With the last reading before its untimed run, which may be what changes the clock.
                let from = sensors.len().saturating_sub(1);
                (seconds[index], lost[index]) = take(prepared, index, &mut sensors)?;
                changed[index] = clock_changed(&sensors[from..]);
            }
            let mut causes = Lost::causes(lost);
            causes.extend(changed.contains(&true).then_some(Cause::ClockChange));
            causes.retain(is_observed_by_clock);
            round.pairs.push(Pair { seconds, order, causes, clock_changed: changed });
        }
        rounds.push(round);
        readings.push(instruments.watch.read());
    }

    let order = if random.random() { Order::FirstSecond } else { Order::SecondFirst };
    let mut blocks = [0.0; 2];
    for index in order.positions() {
        let block =
            (0..BACK_TO_BACK.min(pairs / 2)).map(|_| Ok(take(prepared, index, &mut Vec::new())?.0));
        blocks[index] = median(&block.collect::<Result<Vec<_>, BackendError>>()?);
    }

    let of_rounds = watch::causes_of_rounds(&readings, instruments.watch.processors());
    for (round, causes) in rounds.iter_mut().zip(of_rounds) {
        let causes: Vec<Cause> = causes.into_iter().filter(is_observed_by_clock).collect();
        round.pairs.iter_mut().for_each(|pair| pair.causes.extend_from_slice(&causes));
    }
    observed.extend(watch::observable(&readings[0]));
    observed.retain(is_observed_by_clock);
    let shortest = times.iter().flatten().min().copied().unwrap_or(Duration::MAX);
    let coarse = if instruments.is_told { coarse_step(&times) } else { None };
    let tick = instruments.tick.max(coarse.unwrap_or_default());
    let ticks = shortest.as_nanos() / tick.as_nanos().max(1);
    Ok(Samples {
        rounds,
        iterations,
        ticks: u64::try_from(ticks).unwrap_or(u64::MAX).max(1),
        back_to_back: (blocks[0] / blocks[1]).ln(),
        observable: observed,
        sensors: Some(range).filter(|range| *range != SensorRange::default()),
    })
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
