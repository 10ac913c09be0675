//! How noisy the machine is, by kernels that were measured against themselves.

use fusion_cost_model::calibration::{NoiseFloor, Verdict};
use fusion_cost_model::{Backend, Family};

use crate::digits::rounded;
use crate::measure::{Estimate, chi_squared_quantile, normal_quantile};
use crate::plan::Subject;

/// Below this a standard error is that of a script, not of a machine.
const LEAST_ERROR: f64 = 1e-4;

/// The result of an A/A run; `None` for a single process, which has no standard error.
#[must_use]
pub fn control(
    subject: &Subject,
    estimate: &Estimate,
    backend: Backend,
    threads: u32,
) -> Option<NoiseFloor> {
    Some(NoiseFloor {
        problem: subject.problem,
        backend,
        threads,
        clock: subject.clock,
        implementation: subject.implementation,
        own_tensors: subject.comparison.has_copy(),
        ratio: rounded(estimate.ratio),
        ratio_low: rounded(estimate.low),
        ratio_high: rounded(estimate.high),
        standard_error: rounded(Some(estimate.standard_error).filter(|one| one.is_finite())?),
        processes: u32::try_from(estimate.processes).unwrap_or(u32::MAX),
        disturbed: estimate.mostly_disturbed,
    })
}

/// The usable A/A runs that speak for a subject: those of its family, else all. What they say by one
/// clock is nothing for another, nor is what they say of one runtime.
#[must_use]
pub fn controls_for(noise: &[NoiseFloor], subject: &Subject) -> Vec<NoiseFloor> {
    let (clock, family) = (subject.clock, subject.family());
    let whose = subject.implementation.yardstick();
    let is_usable = move |one: &&NoiseFloor| {
        one.clock == clock && one.implementation.yardstick() == whose && !one.disturbed
    };
    let by_clock = || noise.iter().filter(is_usable);
    let is_alike = |one: &&NoiseFloor| Family::of(one.problem.chain().form()) == family;
    let alike: Vec<NoiseFloor> = by_clock().filter(is_alike).cloned().collect();
    if alike.is_empty() { by_clock().cloned().collect() } else { alike }
}

/// How far from 1 the machine measures a ratio whose truth is 1 beyond what its interval says, in the
/// logarithm: what a speedup must exceed.
///
/// An A/A run that is off by no more than its own standard error explains says that intervals are
/// wide, not that they are wrong. So the floor is 95 % of a normal distribution with the variance that
/// is left when the errors are taken off, over all controls together, where chance leaves none
/// (DerSimonian and Laird, Controlled Clinical Trials 1986); and at least 1 %.
#[must_use]
pub fn noise_floor(controls: &[NoiseFloor]) -> f64 {
    let least = Verdict::LEAST_NOISE_FLOOR.ln_1p();
    if controls.is_empty() {
        return least;
    }
    let of = |control: &NoiseFloor| {
        (control.ratio.ln().powi(2), control.standard_error.max(LEAST_ERROR).powi(2))
    };
    let statistic: f64 = controls.iter().map(of).map(|(off, error)| off / error).sum();
    if statistic <= chi_squared_quantile(controls.len(), 0.95) {
        return least;
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of controls")]
    let count = controls.len() as f64;
    let left = controls.iter().map(of).map(|(off, error)| off - error).sum::<f64>() / count;
    least.max(normal_quantile(0.975) * left.max(0.0).sqrt())
}

/// How far from 1 an interval may reach, in the logarithm, to be called SAME.
#[must_use]
pub fn same_margin(floor: f64) -> f64 {
    Verdict::same_margin(floor.exp_m1()).ln_1p()
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::{Clock, Implementation};

    use super::*;

    fn control(problem: &str, ratio: f64, standard_error: f64) -> NoiseFloor {
        let half = 2.6 * standard_error;
        NoiseFloor {
            problem: problem.parse().unwrap(),
            backend: fusion_cost_model::Backend::Cpu,
            threads: 2,
            clock: Clock::Host,
            implementation: Implementation::Native,
            own_tensors: true,
            ratio,
            ratio_low: ratio * (-half).exp(),
            ratio_high: ratio * half.exp(),
            standard_error,
            processes: 10,
            disturbed: false,
        }
    }

    const ADD: &str = "add_relu/f32/m64.n1024";

    #[test]
    fn a_noisy_control_does_not_raise_the_floor_and_an_honest_miss_does_not_either() {
        let least = 1.01_f64.ln();
        assert!((noise_floor(&[]) - least).abs() < 1e-12);
        let quiet = control(ADD, 1.001, 0.002);
        // 7 % off, and the interval says that it may be.
        let noisy = control(ADD, 1.07, 0.05);
        assert!((noise_floor(&[quiet.clone(), noisy]) - least).abs() < 1e-12);
        let missed = control(ADD, 1.004, 0.002);
        assert!((noise_floor(&[quiet, missed]) - least).abs() < 1e-12);
    }

    #[test]
    fn controls_that_are_off_beyond_their_intervals_raise_it() {
        let floor = noise_floor(&[control(ADD, 1.03, 0.002), control(ADD, 1.0 / 1.03, 0.002)]);
        assert!((floor - 1.96 * 1.03_f64.ln()).abs() < 1e-3, "{floor}");
        // Scripts without noise have no error at all.
        assert!(noise_floor(&[control(ADD, 1.0, 0.0), control(ADD, 1.0, 0.0)]) < 0.01);
    }

    #[test]
    fn each_family_has_its_own_controls_and_borrows_where_it_has_none() {
        let linear = control("linear_bias_relu/f32/m64.k64.n64", 1.02, 0.001);
        let disturbed = NoiseFloor { disturbed: true, ..control(ADD, 1.5, 0.001) };
        let all = [linear.clone(), control(ADD, 1.0, 0.001), disturbed];
        let of = |text: &str| controls_for(&all, &Subject::fusion(text.parse().unwrap()));
        let conv = "conv_relu/f32/n1.c1.h4.w4.k1.r1.s1";
        assert_eq!(of("linear_bias/f32/m1.k1.n1"), [linear]);
        assert_eq!(of(ADD).len(), 1);
        assert_eq!(of(conv).len(), 2);
        let by = |clock, implementation| {
            controls_for(&all, &Subject::of(conv.parse().unwrap(), clock, implementation))
        };
        assert!(by(Clock::Device, Implementation::Native).is_empty());
        assert_eq!(by(Clock::Host, Implementation::Vendor).len(), 2);
        assert!(by(Clock::Host, "pytorch@2.9.1".parse().unwrap()).is_empty());
    }
}
