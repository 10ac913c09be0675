//! How far a newer calibration is off an older one of the same machine.
//!
//! Records of the same problems are compared. Each family has a factor of its times and one of its
//! speedups. What records of a family differ by is pooled over all families, and moderated by what is
//! usual, since there are few records. All intervals together hold with 95 %: each has its share of
//! the 5 % (Bonferroni).

use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Timing, Verdict};
use fusion_cost_model::{Family, Target};
use serde::Serialize;

use crate::measure::t_factor;

/// How many records what is usual is worth.
const USUAL_DEGREES: usize = 6;

/// The standard deviation of a time that has no interval.
const UNKNOWN_SD: f64 = 0.02;

/// How often all intervals together may fail.
const LEVEL: f64 = 0.05;

/// What is known of a kind of factor beforehand.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// What records of a family usually differ by in how they drifted, in the logarithm.
    usual_sd: f64,
    /// Factors within this of 1, as a ratio minus 1, are not drift: two runs of the same program
    /// may differ by as much.
    margin: f64,
}

/// Of three standard runs within forty minutes on a virtual machine, the times of a family differed by
/// 2 to 4 % in a quiet half of an hour and by 7 to 20 % beside a busy neighbour, and records of a family
/// by a standard deviation of 4 to 11 %.
const OF_TIMES: Kind = Kind { usual_sd: 0.05, margin: 0.1 };

/// The same of speedups: 0.1 to 1.3 %, and 0.7 to 3.8 %. What changes a machine changes both variants.
const OF_SPEEDUPS: Kind = Kind { usual_sd: 0.015, margin: 0.02 };

/// What became of a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The whole interval is so close to 1 that it does not matter.
    Same,
    /// Neither.
    Undecided,
    /// The interval excludes 1, and the factor is farther away than two runs differ by.
    Drifted,
}

/// A factor between two calibrations: the newer over the older.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    /// The factor.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// What that says.
    pub finding: Finding,
}

/// How far the records of a family are off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OfFamily {
    /// The family; `None` for all together.
    pub family: Option<Family>,
    /// How many records were compared.
    pub records: usize,
    /// The factor of their fused times.
    pub times: Factor,
    /// The factor of their speedups; `None` without a chain of several ops.
    pub speedups: Option<Factor>,
}

/// How far a newer calibration is off an older one.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    /// Of each family that was compared, and of all together first where they are several.
    pub families: Vec<OfFamily>,
}

impl Drift {
    /// Compares the valid records that two calibrations have of the same problems on a target, as they
    /// are written; `None` without any.
    #[must_use]
    pub fn between(
        older: &HardwareCalibration,
        newer: &HardwareCalibration,
        target: Target,
    ) -> Option<Self> {
        let is_meant = |record: &&FusionRecord| {
            is_on(record, target) && record.rewrite.is_none() && record.verdict != Verdict::Invalid
        };
        let again = |record: &FusionRecord| {
            let mut others = older.records.iter().filter(is_meant);
            let before = others.find(|before| before.problem == record.problem)?;
            Some(Change::of(before, record))
        };
        Self::of(&newer.records.iter().filter(is_meant).filter_map(again).collect::<Vec<_>>())
    }

    /// What changes of single problems say together; `None` without any.
    #[must_use]
    pub fn of(changes: &[Change]) -> Option<Self> {
        let of_family = |family: &Family| changes.iter().any(|change| change.family == *family);
        let families: Vec<Family> = Family::ALL.into_iter().filter(of_family).collect();
        if families.is_empty() {
            return None;
        }
        let groups: Vec<Option<Family>> = if families.len() > 1 {
            std::iter::once(None).chain(families.iter().copied().map(Some)).collect()
        } else {
            families.iter().copied().map(Some).collect()
        };
        // Without speedups there is one interval for each group.
        let has_speedups = changes.iter().any(|change| change.speedup.is_some());
        let intervals = if has_speedups { 2 * groups.len() } else { groups.len() };
        let times = Pooled::of(changes, |change| Some(change.time), OF_TIMES, intervals);
        let speedups = Pooled::of(changes, |change| change.speedup, OF_SPEEDUPS, intervals);
        let of_group = |family: Option<Family>| {
            let is_of_it = |change: &&Change| family.is_none_or(|family| change.family == family);
            let of_it: Vec<&Change> = changes.iter().filter(is_of_it).collect();
            let of_times = of_it.iter().map(|change| change.time[0]).collect::<Vec<_>>();
            let of_speedups = of_it.iter().filter_map(|change| change.speedup.map(|[log, _]| log));
            Some(OfFamily {
                family,
                records: of_it.len(),
                times: times.factor(&of_times)?,
                speedups: speedups.factor(&of_speedups.collect::<Vec<_>>()),
            })
        };
        Some(Self { families: groups.into_iter().filter_map(of_group).collect() })
    }

    /// The factor of the times of a family; that of all together where the family was not compared.
    #[must_use]
    pub fn times_of(&self, family: Family) -> Option<Factor> {
        let own = self.families.iter().find(|one| one.family == Some(family));
        own.or(self.families.first()).map(|one| one.times)
    }

    /// The worst that the factors of the speedups say.
    #[must_use]
    pub fn of_speedups(&self) -> Finding {
        worst(self.families.iter().filter_map(|one| one.speedups))
    }

    /// The worst that a factor of any family says.
    #[must_use]
    pub fn finding(&self) -> Finding {
        worst(self.families.iter().flat_map(|one| [Some(one.times), one.speedups]).flatten())
    }
}

fn worst(factors: impl Iterator<Item = Factor>) -> Finding {
    factors.map(|factor| factor.finding).max().unwrap_or(Finding::Undecided)
}

fn is_on(record: &FusionRecord, target: Target) -> bool {
    (record.backend, record.threads, record.cache_state)
        == (target.backend, target.threads, target.cache_state)
        && (record.clock, record.implementation) == (target.clock, target.implementation)
}

/// How far one record is off: logarithms of two factors, each with its standard deviation.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    family: Family,
    time: [f64; 2],
    speedup: Option<[f64; 2]>,
}

impl Change {
    /// Of a time that was measured again: both with their intervals, each as value, low, high.
    #[must_use]
    pub fn of_time(family: Family, before: [f64; 3], now: [f64; 3]) -> Self {
        let sd = |[_, low, high]: [f64; 3]| sd_of(low, high);
        let time = [(now[0] / before[0]).ln(), sd(before).hypot(sd(now))];
        Self { family, time, speedup: None }
    }

    fn of(before: &FusionRecord, now: &FusionRecord) -> Self {
        let of_time = |timing: &Timing| {
            timing.low_ms.zip(timing.high_ms).map_or(UNKNOWN_SD, |(low, high)| sd_of(low, high))
        };
        let of_speedup = |record: &FusionRecord| sd_of(record.speedup_low, record.speedup_high);
        let chain = now.problem.chain();
        Self {
            family: Family::of(chain.form()),
            time: [
                (now.fused_latency_ms / before.fused_latency_ms).ln(),
                of_time(&before.fused_timing).hypot(of_time(&now.fused_timing)),
            ],
            speedup: (!chain.is_single()).then(|| {
                [
                    (now.speedup_factor / before.speedup_factor).ln(),
                    of_speedup(before).hypot(of_speedup(now)),
                ]
            }),
        }
    }
}

/// The standard deviation, in the logarithm, of what has a 95 % interval.
fn sd_of(low: f64, high: f64) -> f64 {
    /// Standard deviations of a normal distribution in such an interval.
    const IN_AN_INTERVAL: f64 = 2.0 * 1.96;
    (high / low).ln() / IN_AN_INTERVAL
}

/// What the records of a family differ by, from all families.
struct Pooled {
    sd: f64,
    /// Half of an interval, in standard deviations of a mean.
    quantile: f64,
    margin: f64,
}

impl Pooled {
    #[expect(clippy::cast_precision_loss, reason = "counts of records")]
    fn of(
        changes: &[Change],
        value: impl Fn(&Change) -> Option<[f64; 2]>,
        kind: Kind,
        intervals: usize,
    ) -> Self {
        let (mut squares, mut degrees, mut of_measuring, mut count) = (0.0, 0, 0.0, 0);
        for family in Family::ALL {
            let of_family = changes.iter().filter(|change| change.family == family);
            let values: Vec<[f64; 2]> = of_family.filter_map(&value).collect();
            let mean = values.iter().map(|[log, _]| log).sum::<f64>() / values.len().max(1) as f64;
            squares += values.iter().map(|[log, _]| (log - mean).powi(2)).sum::<f64>();
            of_measuring += values.iter().map(|[_, sd]| sd * sd).sum::<f64>();
            degrees += values.len().saturating_sub(1);
            count += values.len();
        }
        let all_degrees = degrees + USUAL_DEGREES;
        let usual = USUAL_DEGREES as f64 * kind.usual_sd * kind.usual_sd;
        let variance = (squares + usual) / all_degrees as f64;
        // No less than what the records' own intervals say.
        let variance = variance.max(of_measuring / count.max(1) as f64);
        let covered = 1.0 - LEVEL / intervals.max(1) as f64;
        let quantile = t_factor(all_degrees, covered);
        Self { sd: variance.sqrt(), quantile, margin: kind.margin.ln_1p() }
    }

    #[expect(clippy::cast_precision_loss, reason = "a count of records")]
    fn factor(&self, logs: &[f64]) -> Option<Factor> {
        let count = logs.len() as f64;
        let mean = (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / count)?;
        let half_width = self.quantile * self.sd / count.sqrt();
        let (low, high, margin) = (mean - half_width, mean + half_width, self.margin);
        let finding = if low >= -margin && high <= margin {
            Finding::Same
        } else if (low > 0.0 || high < 0.0) && mean.abs() > margin {
            Finding::Drifted
        } else {
            Finding::Undecided
        };
        Some(Factor { value: mean.exp(), low: low.exp(), high: high.exp(), finding })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../../../tests/data/example.toml");
    const TARGET: Target = Target::cpu(2);

    fn example() -> HardwareCalibration {
        HardwareCalibration::from_toml(EXAMPLE).unwrap()
    }

    /// Eight problems of two families, with times and speedups that changed by some factors.
    fn changed(times: [f64; 2], speedups: [f64; 2], noise: f64) -> Option<Drift> {
        let (mut older, mut newer) = (example(), example());
        older.records.clear();
        newer.records.clear();
        for index in 0..8_u32 {
            let is_linear = index % 2 == 0;
            let m = 64 + index;
            let text = if is_linear {
                format!("linear_bias_relu/f32/m{m}.k64.n64")
            } else {
                format!("add_relu/f32/m{m}.n64")
            };
            let mut record = example().records[1].clone();
            record.problem = text.parse().unwrap();
            older.records.push(record.clone());
            let family = usize::from(!is_linear);
            let sign = if index % 4 < 2 { 1.0 } else { -1.0 };
            record.fused_latency_ms *= times[family] * (sign * noise).exp();
            record.speedup_factor *= speedups[family] * (-sign * 0.2 * noise).exp();
            newer.records.push(record);
        }
        Drift::between(&older, &newer, TARGET)
    }

    #[test]
    fn nothing_changed() {
        let drift = changed([1.0; 2], [1.0; 2], 0.005).unwrap();
        assert_eq!(drift.finding(), Finding::Same, "{drift:#?}");
        let groups: Vec<_> = drift.families.iter().map(|one| (one.family, one.records)).collect();
        let [linear, elementwise] = [Family::Linear, Family::Elementwise].map(Some);
        assert_eq!(groups, [(None, 8), (linear, 4), (elementwise, 4)]);
    }

    #[test]
    fn a_factor_of_all_times_and_one_familys_speedups_are_found() {
        let drift = changed([0.8, 0.8], [1.0, 0.85], 0.005).unwrap();
        assert_eq!(drift.finding(), Finding::Drifted);
        let [all, linear, elementwise] = drift.families[..] else { panic!("{drift:?}") };
        for one in [all, linear, elementwise] {
            assert_eq!(one.times.finding, Finding::Drifted);
            assert!((one.times.value - 0.8).abs() < 0.01);
            assert!(one.times.low < 0.8 && 0.8 < one.times.high);
        }
        let of_speedups = |one: OfFamily| one.speedups.unwrap().finding;
        assert_eq!(of_speedups(elementwise), Finding::Drifted);
        assert_ne!(of_speedups(linear), Finding::Drifted);
    }

    #[test]
    fn what_two_runs_differ_by_is_no_drift_and_noise_decides_nothing() {
        let little = changed([1.02; 2], [1.0; 2], 0.005).unwrap();
        assert_ne!(little.families[0].times.finding, Finding::Drifted);
        let noisy = changed([0.9; 2], [1.0; 2], 0.3).unwrap();
        assert_eq!(noisy.families[0].times.finding, Finding::Undecided);
    }

    #[test]
    fn nothing_in_common_is_no_comparison() {
        let (older, mut newer) = (example(), example());
        newer.records.clear();
        assert_eq!(Drift::between(&older, &newer, TARGET), None);
        assert_eq!(Drift::between(&older, &example(), TARGET.with_threads(8)), None);
        // One family needs no line for all together.
        newer.records.push(example().records[1].clone());
        assert_eq!(Drift::between(&older, &newer, TARGET).unwrap().families.len(), 1);
    }

    /// Of runs without any drift, few are said to have drifted or to exclude 1.
    #[test]
    fn all_intervals_together_hold_as_often_as_they_say() {
        use rand::SeedableRng;
        use rand_distr::{Distribution, Normal};

        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let [of_times, of_speedups] = [0.06, 0.018].map(|sd| Normal::new(0.0, sd).unwrap());
        let mut wrong = 0;
        for _ in 0..2000 {
            let change = |index: usize| Change {
                family: Family::ALL[index % 4],
                time: [0.0, 0.01],
                speedup: Some([0.0, 0.005]),
            };
            let mut changes: Vec<Change> = (0..8).map(change).collect();
            for change in &mut changes {
                change.time[0] = of_times.sample(&mut random);
                change.speedup = Some([of_speedups.sample(&mut random), 0.005]);
            }
            let times = Pooled::of(&changes, |change| Some(change.time), OF_TIMES, 10);
            let speedups = Pooled::of(&changes, |change| change.speedup, OF_SPEEDUPS, 10);
            let holds = |logs: Vec<f64>, pooled: &Pooled| {
                let Factor { low, high, .. } = pooled.factor(&logs).unwrap();
                (low..=high).contains(&1.0)
            };
            let groups = Family::ALL.into_iter().map(Some).chain([None]);
            let all_hold = groups.into_iter().all(|family| {
                let of_it =
                    || changes.iter().filter(|one| family.is_none_or(|it| one.family == it));
                holds(of_it().map(|one| one.time[0]).collect(), &times)
                    && holds(of_it().map(|one| one.speedup.unwrap()[0]).collect(), &speedups)
            });
            wrong += u32::from(!all_hold);
        }
        println!("{wrong} of 2000");
        assert!(wrong <= 140, "{wrong} of 2000");
    }
}
