//! What was measured of one chain, and what it says about other sizes of it.

use super::covariance::{Place, Prior, Sample};
use super::features::{Features, MAX_DIMENSIONS};
use super::kriging::{Field, Guess};
use super::observation::Observation;
use super::prediction::{NEAREST, Prediction, Uncertain};
use super::roofline::Roofline;
use crate::cost::Ceilings;

/// What is believed of the logarithm of a speedup: it is below 1.5, and in part what the roofline
/// says.
pub(super) const OF_SPEEDUPS: Prior = Prior { mean_sd: 0.3, slope_sd: 0.5, amplitude: 0.1 };

/// And of the logarithm of a time over its roofline.
const OF_TIMES: Prior = Prior { mean_sd: 1.0, slope_sd: 0.0, amplitude: 0.2 };

/// What an octave beyond the measured range adds to a standard deviation: so much a kernel's
/// efficiency changes where nobody looked.
const SD_OF_AN_OCTAVE: f64 = 0.05;

/// Beyond the measured range a speedup is held, where the roofline may say that it changes: by so much
/// of that it may be off, as a standard deviation.
const SD_OF_A_CHANGE: f64 = 0.5;

/// What was measured of one chain, one dtype and one kind of sizes, on one target.
#[derive(Debug)]
pub(super) struct Cloud {
    /// The lowest and the highest of each coordinate.
    range: [[f64; 2]; MAX_DIMENSIONS],
    roofline: Roofline,
    /// The logarithm of the fused time over the roofline.
    times: Field,
    /// The logarithm of the speedup; `None` for a single op, which has no other variant.
    speedups: Option<Speedups>,
    /// The record of each observation.
    records: Vec<usize>,
}

#[derive(Debug)]
struct Speedups {
    field: Field,
    /// The lowest and the highest of the roofline's own.
    range: [f64; 2],
}

impl Cloud {
    /// From what was measured of the chain; `None` where no number can be made of it.
    pub(super) fn fit(ceilings: Option<&Ceilings>, observations: &[Observation]) -> Option<Self> {
        let known: Vec<(Features, &Observation)> =
            observations.iter().map(|one| (Features::of(&one.problem), one)).collect();
        let times = known.iter().map(|(features, one)| (&features.work, one.ln_fused.value.exp()));
        let roofline = Roofline::fit(ceilings, times);
        let mut range = [[f64::INFINITY, f64::NEG_INFINITY]; MAX_DIMENSIONS];
        for (features, _) in &known {
            for ([low, high], coordinate) in range.iter_mut().zip(features.coordinates()) {
                *low = low.min(*coordinate);
                *high = high.max(*coordinate);
            }
        }
        let (first, one) = known.first()?;
        let (dimensions, is_single) = (first.coordinates().len(), one.ln_speedup.is_none());
        let sample = |features: &Features, proportion: f64, value: f64, sd: f64| Sample {
            place: Place { at: padded(features), proportion },
            value,
            variance: sd * sd,
        };
        let times = known.iter().map(|(features, one)| {
            let value = one.ln_fused.value - roofline.fused_ms(&features.work).ln();
            sample(features, 0.0, value, one.ln_fused.sd)
        });
        let times = Field::fit(times.collect(), dimensions, OF_TIMES)?;
        let speedups = if is_single {
            None
        } else {
            let of = |(features, one): &(Features, &Observation)| {
                let [_, proportion] = roofline.logarithms(&features.work);
                Some(sample(features, proportion, one.ln_speedup?.value, one.ln_speedup?.sd))
            };
            let samples: Vec<Sample> = known.iter().filter_map(of).collect();
            let proportions = || samples.iter().map(|sample| sample.place.proportion);
            let range = [
                proportions().fold(f64::INFINITY, f64::min),
                proportions().fold(f64::NEG_INFINITY, f64::max),
            ];
            Some(Speedups { field: Field::fit(samples, dimensions, OF_SPEEDUPS)?, range })
        };
        let records = observations.iter().map(|one| one.record).collect();
        Some(Self { range, roofline, times, speedups, records })
    }

    /// The rate of arithmetic that its times show.
    pub(super) fn flops_per_ms(&self) -> f64 {
        self.roofline.flops_per_ms()
    }

    /// The speedups; `None` for a single op.
    pub(super) fn speedups(&self) -> Option<&Field> {
        self.speedups.as_ref().map(|speedups| &speedups.field)
    }

    /// The times of a problem of these features. Beyond the measured range, what the time is over
    /// its roofline is held, and so is the speedup.
    pub(super) fn at(&self, features: &Features) -> Prediction {
        let mut held = [0.0; MAX_DIMENSIONS];
        let mut octaves = 0.0_f64;
        let coordinates = features.coordinates();
        for (index, (&coordinate, [low, high])) in coordinates.iter().zip(&self.range).enumerate() {
            held[index] = coordinate.clamp(*low, *high);
            if index < features.sized() {
                octaves = octaves.max((coordinate - held[index]).abs());
            }
        }
        // A class that was not measured is as far away as it is.
        let ragged = features.sized()..coordinates.len();
        held[ragged.clone()].copy_from_slice(&coordinates[ragged]);
        let beyond = SD_OF_AN_OCTAVE * octaves;
        let uncertain = |guess: &Guess| with_further(guess.sd, beyond);
        let [ln_roofline, ln_ceiling] = self.roofline.logarithms(&features.work);
        let time = self.times.at(&Place { at: held, proportion: 0.0 });
        let ln_speedup = self.speedups.as_ref().map(|Speedups { field, range: [low, high] }| {
            let proportion = ln_ceiling.clamp(*low, *high);
            let speedup = field.at(&Place { at: held, proportion });
            let of_change = SD_OF_A_CHANGE * (ln_ceiling - proportion);
            let sd = with_further(uncertain(&speedup), of_change);
            Uncertain { value: speedup.mean, sd }
        });
        let mut nearest = [None; NEAREST];
        for (named, sample) in nearest.iter_mut().zip(time.nearest) {
            *named = sample.map(|sample| self.records[sample as usize]);
        }
        Prediction {
            ln_fused: Uncertain { value: ln_roofline + time.mean, sd: uncertain(&time) },
            ln_speedup: ln_speedup.unwrap_or(Uncertain::NOTHING),
            octaves,
            nearest,
        }
    }

    /// Estimates of what was timed from all other observations, where there are enough of them to say how
    /// sizes differ.
    pub(super) fn left_out(
        &self,
        ceilings: Option<&Ceilings>,
        observations: &[Observation],
    ) -> Vec<LeftOut> {
        const FEWEST: usize = 3;
        /// Where one of more is left out, what was fitted to all of them hardly changes.
        const MOST_FITTED_ANEW: usize = 12;
        if observations.len() < FEWEST {
            return Vec::new();
        }
        if observations.len() <= MOST_FITTED_ANEW {
            return fitted_anew(ceilings, observations).collect();
        }
        let of = |sample: usize| LeftOut {
            record: self.records[sample],
            octaves: 0.0,
            time: None,
            speedup: None,
        };
        let is_timed = |(sample, _): &(usize, [f64; 2])| observations[*sample].is_timed;
        let of_time = |(sample, time)| LeftOut { time: Some(time), ..of(sample) };
        let of_speedup = |(sample, speedup)| LeftOut { speedup: Some(speedup), ..of(sample) };
        let times = self.times.left_out().into_iter().filter(is_timed).map(of_time);
        let speedups = self.speedups.iter().flat_map(|speedups| speedups.field.left_out());
        times.chain(speedups.filter(is_timed).map(of_speedup)).collect()
    }
}

/// An estimate of what was measured, made without it: by how much the logarithms of the fused time
/// and of the speedup are off, each with its standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LeftOut {
    /// Its index.
    pub(super) record: usize,
    pub(super) octaves: f64,
    pub(super) time: Option<[f64; 2]>,
    pub(super) speedup: Option<[f64; 2]>,
}

/// Estimates of each observation from a cloud of the others.
fn fitted_anew<'o>(
    ceilings: Option<&'o Ceilings>,
    observations: &'o [Observation],
) -> impl Iterator<Item = LeftOut> + 'o {
    let timed = (0..observations.len()).filter(|&index| observations[index].is_timed);
    timed.filter_map(move |left_out| {
        let mut others = observations.to_vec();
        let one = others.remove(left_out);
        let found = Cloud::fit(ceilings, &others)?.at(&Features::of(&one.problem));
        let off = |value: f64, found: Uncertain| [value - found.value, found.sd];
        Some(LeftOut {
            record: one.record,
            octaves: found.octaves,
            time: Some(off(one.ln_fused.value, found.ln_fused)),
            speedup: one.ln_speedup.map(|speedup| off(speedup.value, found.ln_speedup)),
        })
    })
}

/// Two independent standard deviations together: `hypot` without its care for numbers whose squares
/// overflow, which these are far from.
fn with_further(sd: f64, further: f64) -> f64 {
    (sd * sd + further * further).sqrt()
}

/// The coordinates of a problem, and 0 where it has no more.
pub(super) fn padded(features: &Features) -> [f64; MAX_DIMENSIONS] {
    let mut padded = [0.0; MAX_DIMENSIONS];
    padded[..features.coordinates().len()].copy_from_slice(features.coordinates());
    padded
}
