//! How fast the machine is now, against the times in the profile.

use std::collections::BTreeMap;

use fusion_cost_model::{Family, Problem};
use serde::Serialize;

use super::as_text;
use crate::drift::{Change, Drift, Factor, Finding};
use crate::measure::Estimate;
use crate::plan::workload::Again;
use crate::report::estimated::Range;

/// What the machine takes for problems of the profile, measured again beside the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Speed {
    /// Their times now over those in the profile, all together.
    pub factor: Range,
    /// What that says.
    pub finding: Finding,
    /// The same of each family.
    pub families: BTreeMap<&'static str, Range>,
    /// The problems.
    pub problems: Vec<MeasuredAgain>,
    #[serde(skip)]
    drift: Drift,
}

/// A problem that was measured again, alone and with warm caches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredAgain {
    /// The problem.
    #[serde(serialize_with = "as_text")]
    pub problem: Problem,
    /// The time of its one kernel in the profile.
    pub in_profile_ms: Range,
    /// The time now.
    pub now_ms: Range,
}

impl Speed {
    /// What problems that were measured again say; `None` without any.
    #[must_use]
    pub fn of(again: &[(Again, Estimate)]) -> Option<Self> {
        let times = |(one, estimate): &(Again, Estimate)| {
            let time = estimate.times[1];
            let now = [time.seconds, time.low, time.high].map(|seconds| 1e3 * seconds);
            (one.problem, one.in_profile_ms, now)
        };
        Self::of_times(&again.iter().map(times).collect::<Vec<_>>())
    }

    /// The same from both times of each problem in milliseconds, each as value, low, high.
    #[must_use]
    pub fn of_times(times: &[(Problem, [f64; 3], [f64; 3])]) -> Option<Self> {
        let change = |&(problem, before, now): &(Problem, [f64; 3], [f64; 3])| {
            Change::of_time(family(&problem), before, now)
        };
        let drift = Drift::of(&times.iter().map(change).collect::<Vec<_>>())?;
        let all = drift.families.first()?.times;
        let of_family = |one: &crate::drift::OfFamily| Some((one.family?.name(), range(one.times)));
        let problem = |&(problem, before, now): &(Problem, [f64; 3], [f64; 3])| MeasuredAgain {
            problem,
            in_profile_ms: of(before),
            now_ms: of(now),
        };
        Some(Self {
            factor: range(all),
            finding: all.finding,
            families: drift.families.iter().filter_map(of_family).collect(),
            problems: times.iter().map(problem).collect(),
            drift,
        })
    }

    /// Whether the machine has another speed than it had for the profile, with a family at least.
    pub(super) fn is_another(&self) -> bool {
        self.families.values().any(|factor| excludes_1(*factor))
    }

    /// The families with which the machine has another speed.
    pub(super) fn others(&self) -> impl Iterator<Item = &'static str> + '_ {
        let is_other =
            |(name, factor): (&&'static str, &Range)| excludes_1(*factor).then_some(*name);
        self.families.iter().filter_map(is_other)
    }

    /// The factor of the times of a problem's family, or of all together if it has none; 1 where it is
    /// no more than what it is off by.
    pub(super) fn factor_of(&self, problem: &Problem) -> Range {
        known(self.drift.times_of(family(problem)).map_or(self.factor, range))
    }

    /// The same of all families together.
    pub(super) fn factor_of_all(&self) -> Range {
        known(self.factor)
    }
}

/// A time at the speed of now: both are off independently.
pub(super) fn at_speed(time: Range, factor: Range) -> Range {
    let value = time.value * factor.value;
    let off =
        |time_off: f64, factor_off: f64| (time_off * factor.value).hypot(time.value * factor_off);
    Range {
        value,
        low: value - off(time.value - time.low, factor.value - factor.low),
        high: value + off(time.high - time.value, factor.high - factor.value),
    }
}

fn excludes_1(Range { low, high, .. }: Range) -> bool {
    low > 1.0 || high < 1.0
}

fn known(factor: Range) -> Range {
    if excludes_1(factor) { factor } else { Range { value: 1.0, low: 1.0, high: 1.0 } }
}

fn family(problem: &Problem) -> Family {
    Family::of(problem.chain().form())
}

fn range(Factor { value, low, high, .. }: Factor) -> Range {
    Range { value, low, high }
}

fn of([value, low, high]: [f64; 3]) -> Range {
    Range { value, low, high }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(text: &str, before: f64, factor: f64) -> (Problem, [f64; 3], [f64; 3]) {
        let around = |value: f64| [value, 0.99 * value, 1.01 * value];
        (text.parse().unwrap(), around(before), around(before * factor))
    }

    #[test]
    fn each_family_has_a_speed_of_its_own_and_others_that_of_all() {
        let all = [
            times("conv_bn_relu/f32/n1.c64.h56.w56.k64.r3.s3.pad1", 1.5, 0.801),
            times("conv_bn_relu/f32/n1.c64.h28.w28.k64.r3.s3.pad1", 0.4, 0.799),
            times("add_relu/f32/m64.n1024", 0.02, 1.0),
            times("add_relu/f32/m128.n1024", 0.04, 1.0),
        ];
        let speed = Speed::of_times(&all).unwrap();
        let value = |text: &str| speed.factor_of(&text.parse().unwrap()).value;
        assert!((value("conv_bn_relu/f32/n1.c8.h8.w8.k8.r3.s3.pad1") - 0.8).abs() < 1e-3);
        assert!((value("add_relu/f32/m8.n8") - 1.0).abs() < 1e-9);
        let both = speed.factor.value;
        assert!((both - 0.8_f64.sqrt()).abs() < 1e-3, "{both}");
        assert_eq!(value("linear_bias/f32/m8.k8.n8"), both);
        assert_eq!(speed.families.len(), 2);
        assert_eq!(Speed::of_times(&[]), None);
    }

    #[test]
    fn a_speed_is_another_one_where_the_interval_of_a_family_excludes_1() {
        let conv = "conv_bn_relu/f32/n1.c64.h56.w56.k64.r3.s3.pad1";
        let other = "conv_bn_relu/f32/n1.c64.h28.w28.k64.r3.s3.pad1";
        for (factors, expected) in
            [([0.8, 0.81], true), ([1.3, 1.28], true), ([1.01, 0.99], false), ([1.4, 0.9], false)]
        {
            let all = [times(conv, 1.5, factors[0]), times(other, 0.4, factors[1])];
            assert_eq!(Speed::of_times(&all).unwrap().is_another(), expected, "{factors:?}");
        }
        // A family that is not known to be another is left as it is, whatever the others are.
        let all = [
            times(conv, 1.5, 0.8),
            times(other, 0.4, 0.8),
            times("linear_bias/f32/m8.k8.n8", 0.1, 1.02),
        ];
        let speed = Speed::of_times(&all).unwrap();
        assert_eq!(speed.others().collect::<Vec<_>>(), ["conv"]);
        assert_eq!(speed.factor_of(&"linear/f32/m4.k4.n4".parse().unwrap()).value, 1.0);
        assert!((speed.factor_of(&conv.parse().unwrap()).value - 0.8).abs() < 1e-9);
    }

    #[test]
    fn a_time_at_another_speed_is_off_by_both() {
        let time = Range { value: 10.0, low: 9.7, high: 10.3 };
        let factor = Range { value: 0.8, low: 0.768, high: 0.832 };
        let Range { value, low, high } = at_speed(time, factor);
        assert_eq!(value, 8.0);
        // 3 % and 4 % are 5 % together.
        assert!((low - 7.6).abs() < 1e-9 && (high - 8.4).abs() < 1e-9, "{low} {high}");
    }
}
