//! How noisy the machine is, by kernels that were measured against themselves.

use fusion_cost_model::Clock;
use fusion_cost_model::calibration::NoiseFloor;

/// A ratio that differs from 1 by less than this counts as 1, however quiet the machine.
pub const LEAST_FLOOR: f64 = 0.01;

/// A difference of less than this does not matter to a decision about fusion.
const LEAST_MARGIN: f64 = 0.02;

/// A difference of more than this is one, however noisy the machine.
const MOST_MARGIN: f64 = 0.05;

/// The A/A runs that the noise floor needs.
pub const CONTROLS: usize = 2;

/// The A/A runs by a clock: what they say of one is nothing for another.
#[must_use]
pub fn of_clock(noise: &[NoiseFloor], clock: Clock) -> Vec<NoiseFloor> {
    noise.iter().filter(|control| control.clock == clock).cloned().collect()
}

/// How far from 1 the machine measures a ratio whose truth is 1, in the logarithm: what a speedup
/// must exceed.
#[must_use]
pub fn noise_floor(controls: &[NoiseFloor]) -> f64 {
    controls.iter().map(NoiseFloor::log_width).fold(LEAST_FLOOR.ln_1p(), f64::max)
}

/// How far from 1 an interval may reach, in the logarithm, to be called SAME: as far as the noise
/// floor, but at least 2 % and at most 5 %. On a quiet machine intervals are about as wide as the
/// floor, and none would lie within it; on a noisy one everything would.
#[must_use]
pub fn same_margin(floor: f64) -> f64 {
    floor.clamp(LEAST_MARGIN.ln_1p(), MOST_MARGIN.ln_1p())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control([low, ratio, high]: [f64; 3]) -> NoiseFloor {
        NoiseFloor {
            problem: "add_relu/f32/m64.n1024".parse().unwrap(),
            backend: fusion_cost_model::Backend::Cpu,
            threads: 2,
            clock: Clock::Host,
            ratio,
            ratio_low: low,
            ratio_high: high,
            processes: 5,
            disturbed: false,
        }
    }

    #[test]
    fn the_floor_is_the_wider_control_and_never_nothing() {
        assert!((noise_floor(&[]) - 1.01_f64.ln()).abs() < 1e-12);
        let wide = control([0.96, 1.0, 1.0 / 0.96]);
        let off = control([1.049, 1.05, 1.051]);
        assert!((noise_floor(&[control([1.0; 3]), wide.clone()]) + 0.96_f64.ln()).abs() < 1e-12);
        assert!((noise_floor(&[wide, off]) - 1.05_f64.ln()).abs() < 1e-12);
    }
}
