//! The noise floors of records against the A/A runs that they are computed from.

use std::collections::HashMap;

use super::contradiction::{DIGITS, fail};
use super::controls;
use crate::calibration::{FusionRecord, HardwareCalibration, NoiseFloor, Verdict};
use crate::error::Error;
use crate::place::{Place, Section};
use crate::vocabulary::{Clock, Family, Implementation};

/// 95 % of a normal distribution lie within this many standard errors.
const MOST_OF_NORMAL: f64 = 1.959_964;

/// Half of a normal distribution's 10 %, for the quantile of chi-squared.
const MOST_BELOW: f64 = 1.644_854;

/// Below this a standard error is that of a script, not of a machine.
const LEAST_ERROR: f64 = 1e-4;

/// How far the approximation of chi-squared and six digits of each number can be off, as a share.
const UNSURE: f64 = 0.04;

/// What the A/A runs for a record depend on.
type Kind = (Clock, Implementation, Family);

fn kind(record: &FusionRecord) -> Kind {
    let family = Family::of(record.problem.chain().form());
    (record.clock, record.implementation.yardstick(), family)
}

/// Checks the noise floor of each record. In a file of several runs it is not to be seen which A/A runs
/// a record was judged by: there a floor is 1 % at least, and no more than the A/A run explains that is
/// off the most.
pub(super) fn check(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    let most = most(calibration);
    let mut known: HashMap<Kind, Vec<f64>> = HashMap::new();
    for (index, record) in calibration.records.iter().enumerate() {
        let floor = record.noise_floor;
        let why = if calibration.is_of_one_run() {
            let possible = known
                .entry(kind(record))
                .or_insert_with(|| possible(controls::speaking_for(calibration, record)));
            let is_one = |one: &f64| (floor.ln_1p() - one).abs() <= DIGITS;
            (!possible.iter().any(is_one)).then(|| {
                let texts = possible.iter().map(|one| format!("{:.6}", one.exp_m1()));
                texts.collect::<Vec<String>>().join(" or ")
            })
        } else {
            let least = Verdict::LEAST_NOISE_FLOOR;
            let allowed = least - DIGITS..=most + DIGITS;
            (!allowed.contains(&floor)).then(|| format!("from {least} to {most:.6}"))
        };
        if let Some(why) = why {
            let why = format!("it is {floor}, and the A/A runs give {why}");
            return fail(Place::of("noise_floor"), why)
                .map_err(|wrong| wrong.within(Section::nth("fusion", index), text));
        }
    }
    Ok(())
}

/// The highest floor that any A/A run of a file explains, as a ratio minus 1.
fn most(calibration: &HardwareCalibration) -> f64 {
    let usable = calibration.noise.iter().filter(|noise| !noise.disturbed);
    let off = usable.map(|noise| noise.ratio.ln().abs()).fold(0.0, f64::max);
    (MOST_OF_NORMAL * off).exp_m1().max(Verdict::LEAST_NOISE_FLOOR)
}

/// The floors, in the logarithm, that these A/A runs can give: 1 %, or 95 % of a normal distribution
/// with the variance that their standard errors leave (DerSimonian and Laird, Controlled Clinical
/// Trials 1986), where chance leaves none; both, where that is too close to say.
fn possible(controls: Vec<&NoiseFloor>) -> Vec<f64> {
    let least = Verdict::LEAST_NOISE_FLOOR.ln_1p();
    let squares: Vec<[f64; 2]> = controls
        .iter()
        .map(|one| [one.ratio.ln().powi(2), one.standard_error.max(LEAST_ERROR).powi(2)])
        .collect();
    #[expect(clippy::cast_precision_loss, reason = "a handful of A/A runs")]
    let count = squares.len() as f64;
    let statistic: f64 = squares.iter().map(|[off, error]| off / error).sum();
    let ratio = statistic / chi_squared(count);
    let mut possible = Vec::new();
    if squares.is_empty() || ratio < 1.0 + UNSURE {
        possible.push(least);
    }
    if ratio > 1.0 - UNSURE {
        let left = squares.iter().map(|[off, error]| off - error).sum::<f64>() / count;
        possible.push(least.max(MOST_OF_NORMAL * left.max(0.0).sqrt()));
    }
    possible
}

/// What 95 % of the chi-squared distribution with this many degrees of freedom do not exceed, within
/// 2.5 % (Wilson and Hilferty, PNAS 1931); for no degrees not a number.
fn chi_squared(degrees: f64) -> f64 {
    let share = 2.0 / (9.0 * degrees);
    degrees * (1.0 - share + MOST_BELOW * share.sqrt()).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the tables of Abramowitz and Stegun, 26.8.
    #[test]
    fn quantiles_of_chi_squared_are_those_of_tables() {
        let table =
            [(1.0, 3.841_46), (2.0, 5.991_46), (5.0, 11.0705), (10.0, 18.3070), (100.0, 124.342)];
        for (degrees, expected) in table {
            let off = chi_squared(degrees) / expected - 1.0;
            assert!(off.abs() < 0.025, "{degrees}: {off}");
        }
    }

    fn control(ratio: f64, standard_error: f64) -> NoiseFloor {
        NoiseFloor {
            problem: "add_relu/f32/m64.n1024".parse().unwrap(),
            backend: crate::vocabulary::Backend::Cpu,
            threads: 1,
            clock: Clock::Host,
            implementation: Implementation::Native,
            own_tensors: true,
            ratio,
            ratio_low: ratio,
            ratio_high: ratio,
            standard_error,
            processes: 10,
            disturbed: false,
        }
    }

    #[test]
    fn what_is_off_by_more_than_its_errors_gives_a_floor() {
        let least = Verdict::LEAST_NOISE_FLOOR.ln_1p();
        assert_eq!(possible(vec![]), [least]);
        let (quiet, noisy) = (control(1.001, 0.002), control(1.07, 0.05));
        assert_eq!(possible(vec![&quiet, &noisy]), [least]);
        let [over, under] = [control(1.03, 0.002), control(1.0 / 1.03, 0.002)];
        let floors = possible(vec![&over, &under]);
        let expected = MOST_OF_NORMAL * (1.03_f64.ln().powi(2) - 0.002_f64.powi(2)).sqrt();
        assert!(floors.len() == 1 && (floors[0] - expected).abs() < 1e-12, "{floors:?}");
        // 3.84 is what chance leaves of one.
        let doubtful = control((0.01 * 3.84_f64.sqrt()).exp(), 0.01);
        assert_eq!(possible(vec![&doubtful]).len(), 2);
    }
}
