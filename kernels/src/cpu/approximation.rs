//! Elementary functions on vector registers.
//!
//! Each is good to a few units in the last place over the whole range; the tests below give the
//! measured errors. NaN goes through.

use pulp::Simd;

/// Whether `max` and `min` of vectors are the last of two numbers where neither is larger, NaN
/// included: one instruction of x86 (`MAXPS`), in place of three for a selection.
const LAST_OF_UNORDERED: bool = cfg!(target_arch = "x86_64");

/// The larger of `a` and `limit`; NaN stays NaN.
#[inline(always)]
pub(crate) fn clamp_min<S: Simd>(simd: S, a: S::f32s, limit: S::f32s) -> S::f32s {
    if LAST_OF_UNORDERED && S::F32_LANES > 1 {
        return simd.max_f32s(limit, a);
    }
    // A comparison with NaN is false, so the selection keeps it.
    simd.select_f32s(simd.less_than_f32s(a, limit), limit, a)
}

/// The smaller of `a` and `limit`; NaN stays NaN.
#[inline(always)]
pub(crate) fn clamp_max<S: Simd>(simd: S, a: S::f32s, limit: S::f32s) -> S::f32s {
    if LAST_OF_UNORDERED && S::F32_LANES > 1 {
        return simd.min_f32s(limit, a);
    }
    simd.select_f32s(simd.less_than_f32s(limit, a), limit, a)
}

#[inline(always)]
fn poly<S: Simd, const N: usize>(simd: S, x: S::f32s, coefficients: [f32; N]) -> S::f32s {
    let mut sum = simd.splat_f32s(coefficients[0]);
    let mut i = 1;
    while i < N {
        sum = simd.mul_add_e_f32s(sum, x, simd.splat_f32s(coefficients[i]));
        i += 1;
    }
    sum
}

/// Above this, `exp` is infinite in f32: 128 ln 2.
const EXP_OVERFLOW: f32 = 88.722_84;
/// Below this, `exp` counts as zero: -125.5 ln 2, where the smallest exponent that the
/// construction below can make ends, at 1.7e-38. The smallest normal f32 is 1.2e-38.
const EXP_UNDERFLOW: f32 = -86.98;
/// ln 2 as a sum of a short number, whose product with an integer is exact, and the rest.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;
/// 1.5 * 2^23: adding it rounds to an integer, which then stands in the low bits.
const ROUND: f32 = 12_582_912.0;
/// The minimax polynomial of `(exp(r) - 1 - r) / r^2` for |r| <= ln(2) / 2 of the Cephes library.
const EXP_POLY: [f32; 6] =
    [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5];

/// e to the power of `x`; results below 1.7e-38 are zero.
#[inline(always)]
pub(crate) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let log2_e = simd.splat_f32s(std::f32::consts::LOG2_E);
    let shifted = simd.mul_add_e_f32s(x, log2_e, simd.splat_f32s(ROUND));
    let n = simd.sub_f32s(shifted, simd.splat_f32s(ROUND));
    let r = simd.mul_add_e_f32s(n, simd.splat_f32s(-LN_2_HIGH), x);
    let r = simd.mul_add_e_f32s(n, simd.splat_f32s(-LN_2_LOW), r);
    let tail = simd.mul_f32s(poly(simd, r, EXP_POLY), simd.mul_f32s(r, r));
    let fraction = simd.add_f32s(simd.add_f32s(tail, r), simd.splat_f32s(1.0));
    // 2^(n - 1), doubled afterwards, so that n = 128 does not overflow the exponent.
    let exponent = simd.add_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(126));
    let bits = simd.wrapping_dyn_shl_u32s(exponent, simd.splat_u32s(23));
    let half = simd.mul_f32s(fraction, simd.transmute_f32s_u32s(bits));
    let result = simd.add_f32s(half, half);
    let overflow = simd.less_than_f32s(simd.splat_f32s(EXP_OVERFLOW), x);
    let result = simd.select_f32s(overflow, simd.splat_f32s(f32::INFINITY), result);
    let underflow = simd.less_than_f32s(x, simd.splat_f32s(EXP_UNDERFLOW));
    simd.select_f32s(underflow, simd.splat_f32s(0.0), result)
}

/// Where the approximation of `tanh`, which rounds to 1 from 9.01 on, is above 1 however it is rounded.
const TANH_LIMIT: f32 = 10.4;
/// Odd and even polynomials of the rational approximation that Eigen documents for `tanh`.
const TANH_P: [f32; 7] = [
    -2.760_768_5e-16,
    2.000_188e-13,
    -8.604_672e-11,
    5.122_297_3e-8,
    1.485_722_35e-5,
    6.372_619_4e-4,
    4.893_524_6e-3,
];
const TANH_Q: [f32; 4] = [1.198_258_4e-6, 1.185_347_1e-4, 2.268_434_6e-3, 4.893_525e-3];

/// Hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh<S: Simd, const U: usize>(simd: S, x: [S::f32s; U]) -> [S::f32s; U] {
    odd_rational(simd, x, TANH_LIMIT, TANH_P, TANH_Q)
}

/// `x P(x^2) / Q(x^2)`, highest powers first, and no more than 1 away from zero. Beyond the limit `x^2`
/// stays where it is, where the quotient is above 1. So it is exactly 1 there: a difference to 1 must
/// leave nothing, however large the number is that it is multiplied with.
///
/// Of a few vectors together, step by step: a constant is then loaded once for all of them, where it has
/// no register of its own.
#[inline(always)]
fn odd_rational<S: Simd, const U: usize, const N: usize, const M: usize>(
    simd: S,
    mut x: [S::f32s; U],
    limit: f32,
    p: [f32; N],
    q: [f32; M],
) -> [S::f32s; U] {
    let limit = simd.splat_f32s(limit * limit);
    let mut squares = x;
    let mut u = 0;
    while u < U {
        squares[u] = clamp_max(simd, simd.mul_f32s(x[u], x[u]), limit);
        u += 1;
    }
    let above = polys(simd, squares, p);
    u = 0;
    while u < U {
        x[u] = simd.mul_f32s(x[u], above[u]);
        u += 1;
    }
    let below = polys(simd, squares, q);
    let (least, most) = (simd.splat_f32s(-1.0), simd.splat_f32s(1.0));
    u = 0;
    while u < U {
        let quotient = simd.div_f32s(x[u], below[u]);
        x[u] = clamp_max(simd, clamp_min(simd, quotient, least), most);
        u += 1;
    }
    x
}

/// [`poly`] of a few vectors.
#[inline(always)]
fn polys<S: Simd, const U: usize, const N: usize>(
    simd: S,
    x: [S::f32s; U],
    coefficients: [f32; N],
) -> [S::f32s; U] {
    let mut sums = [simd.splat_f32s(coefficients[0]); U];
    let mut i = 1;
    while i < N {
        let coefficient = simd.splat_f32s(coefficients[i]);
        let mut u = 0;
        while u < U {
            sums[u] = simd.mul_add_e_f32s(sums[u], x[u], coefficient);
            u += 1;
        }
        i += 1;
    }
    sums
}

/// Where the approximation of `erf`, which rounds to 1 from 3.92 on, is above 1 however it is rounded.
const ERF_LIMIT: f32 = 4.1;
/// Odd and even polynomials of the rational approximation that Eigen documents for `erf`.
const ERF_P: [f32; 7] = [
    -2.726_142_4e-10,
    2.770_681_5e-8,
    -2.101_024e-6,
    -5.692_506_5e-5,
    -7.349_906_4e-4,
    -2.954_6e-3,
    -1.609_603_4e-2,
];
const ERF_Q: [f32; 5] =
    [-1.456_607_2e-5, -2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_474e-2];

/// The error function.
#[inline(always)]
pub(crate) fn erf<S: Simd, const U: usize>(simd: S, x: [S::f32s; U]) -> [S::f32s; U] {
    odd_rational(simd, x, ERF_LIMIT, ERF_P, ERF_Q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Vectors;

    #[derive(Clone, Copy)]
    enum Function {
        Exp,
        Tanh,
        Erf,
    }

    struct Evaluate<'a>(Function, &'a [f32]);

    impl pulp::WithSimd for Evaluate<'_> {
        type Output = Vec<f32>;

        fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
            let Self(function, numbers) = self;
            let mut results = Vec::new();
            for &number in numbers {
                let x = simd.splat_f32s(number);
                let y = match function {
                    Function::Exp => exp(simd, x),
                    Function::Tanh => tanh(simd, [x])[0],
                    Function::Erf => erf(simd, [x])[0],
                };
                results.push(simd.reduce_max_f32s(y));
            }
            results
        }
    }

    fn evaluate(function: Function, numbers: &[f32]) -> Vec<f32> {
        pulp::Arch::new().dispatch(Evaluate(function, numbers))
    }

    fn range(from: f32, to: f32) -> Vec<f32> {
        let steps: u16 = 20_000;
        (0..=steps).map(|i| from + (to - from) * (f32::from(i) / f32::from(steps))).collect()
    }

    /// The largest `|y - truth| / max(|truth|, floor)`.
    fn worst(function: Function, numbers: &[f32], truth: fn(f64) -> f64, floor: f64) -> f64 {
        let results = evaluate(function, numbers);
        numbers.iter().zip(results).fold(0.0, |worst, (&x, y)| {
            let truth = truth(f64::from(x));
            let error = (f64::from(y) - truth).abs() / truth.abs().max(floor);
            if error > worst { error } else { worst }
        })
    }

    #[test]
    fn relative_errors_are_a_few_units_in_the_last_place() {
        // One unit in the last place of an f32 is at most 1.2e-7 of its value.
        let error = worst(Function::Exp, &range(-86.9, 88.7), libm::exp, 0.0);
        assert!(error < 2.5e-7, "exp {error:e}");
        let error = worst(Function::Tanh, &range(-10.0, 10.0), libm::tanh, 1e-30);
        assert!(error < 5e-7, "tanh {error:e}");
        let error = worst(Function::Erf, &range(-6.0, 6.0), libm::erf, 1e-30);
        assert!(error < 5e-7, "erf {error:e}");
        let error = worst(Function::Tanh, &range(-1e-3, 1e-3), libm::tanh, 1e-30);
        assert!(error < 5e-7, "tanh near zero {error:e}");
    }

    #[test]
    fn extremes_and_nan() {
        let inputs = [f32::INFINITY, f32::NEG_INFINITY, 89.0, -88.0, 0.0];
        assert_eq!(evaluate(Function::Exp, &inputs), [f32::INFINITY, 0.0, f32::INFINITY, 0.0, 1.0]);
        // One less than 1 would leave something of a large number in `gelu`.
        for arch in Vectors::all() {
            for function in [Function::Tanh, Function::Erf] {
                let far = [f32::INFINITY, f32::NEG_INFINITY, 3e38, -3e38, 10.5, -10.5];
                let ends = arch.dispatch(Evaluate(function, &far));
                assert_eq!(ends, [1.0, -1.0, 1.0, -1.0, 1.0, -1.0], "{arch:?}");
            }
        }
        struct Nan;
        impl pulp::WithSimd for Nan {
            type Output = [bool; 5];
            fn with_simd<S: Simd>(self, simd: S) -> [bool; 5] {
                let nan = simd.splat_f32s(f32::NAN);
                let zero = simd.splat_f32s(0.0);
                [
                    exp(simd, nan),
                    tanh(simd, [nan])[0],
                    erf(simd, [nan])[0],
                    clamp_min(simd, nan, zero),
                    clamp_max(simd, nan, zero),
                ]
                .map(|y| simd.reduce_sum_f32s(y).is_nan())
            }
        }
        assert_eq!(pulp::Arch::new().dispatch(Nan), [true; 5]);
    }

    #[test]
    fn clamps_select_to_the_bit() {
        struct Clamped {
            number: f32,
            limit: f32,
        }
        impl pulp::WithSimd for Clamped {
            type Output = [f32; 2];
            fn with_simd<S: Simd>(self, simd: S) -> [f32; 2] {
                let (a, limit) = (simd.splat_f32s(self.number), simd.splat_f32s(self.limit));
                let clamped = [clamp_min(simd, a, limit), clamp_max(simd, a, limit)];
                clamped.map(|v| {
                    let mut lanes = [0.0; 16];
                    simd.partial_store_f32s(&mut lanes[..S::F32_LANES], v);
                    assert!(
                        lanes[..S::F32_LANES].iter().all(|x| x.to_bits() == lanes[0].to_bits())
                    );
                    lanes[0]
                })
            }
        }
        let numbers = [-1.5, -0.0, 0.0, 1e-40, 6.0, f32::NEG_INFINITY, f32::INFINITY, f32::NAN];
        for (arch, name) in [(pulp::Arch::new(), "widest"), (pulp::Arch::Scalar, "scalar")] {
            for number in numbers {
                for limit in [0.0, -0.0, 6.0, -1.0] {
                    let found = arch.dispatch(Clamped { number, limit });
                    // As the reference: the number itself unless it is beyond the limit.
                    let expected = [
                        if number < limit { limit } else { number },
                        if number > limit { limit } else { number },
                    ];
                    let [found, expected] = [found, expected].map(|pair| pair.map(f32::to_bits));
                    assert_eq!(found, expected, "{name}: {number} at {limit}");
                }
            }
        }
    }
}
