//! Every way to multiply bf16, against f64.

use proptest::prelude::*;

use super::*;
use crate::cpu::amx;
use crate::cpu::element::Left;
use crate::cpu::epilogue::Epilogue;
use crate::cpu::factors::Factors;
use crate::cpu::panels::Panels;
use crate::cpu::strip::{Cut, Source};

/// The largest relative error of rounding to f32.
const UNIT: f64 = f32::EPSILON as f64 / 2.0;

/// What is multiplied: rows of `runs` times `run` numbers, in parts of `depth` terms.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    runs: usize,
    run: usize,
    n: usize,
    depth: usize,
}

/// A way to multiply bf16: how many numbers together, and whether on the matrix unit.
type Way = (usize, bool);

/// `x` times `w`, in one of the ways. What lies behind each run of `x` is NaN.
fn product(x: &[bf16], w: &[f32], sizes: Sizes, (together, on_amx): Way) -> Vec<f32> {
    let arch = Arch::new();
    let Sizes { runs, run, n, depth } = sizes;
    let k = runs * run;
    let rows = x.len() / k;
    let cut = Cut { depth, on_amx, ..Cut::new::<bf16>(arch, 32 << 10, together) };
    let panels = Panels { k, n, run, cut };
    let mut packed = vec![bf16::NAN; panels.numbers()];
    panels.pack(w, 0, &mut packed);
    let source: Vec<bf16> = x.chunks(run).flat_map(|run| [run, &[bf16::NAN]].concat()).collect();
    let stride = runs * (run + 1);
    let mut output = vec![f32::NAN; rows * n];
    for col in (0..n).step_by(cut.width) {
        let mut tile = vec![f32::NAN; rows * cut.width];
        let (place, panel_stride) = panels.place(col);
        let cols = cut.cols(n, col);
        let strip = Strip {
            rows,
            k,
            cols,
            source: Source { run, run_stride: run + 1, ..Source::rows(source.as_ptr(), stride) },
            panel: packed[place..].as_ptr(),
            panel_stride,
            is_padded: true,
            target: tile.as_mut_ptr(),
            target_stride: cut.width,
            factors: Factors::one(),
            epilogue: Epilogue::NONE,
            depth,
        };
        // SAFETY: all of them have the numbers that the sizes say.
        unsafe { bf16::compute(strip, arch, cut) };
        for (row, tile) in tile.chunks(cut.width).enumerate() {
            output[row * n + col..][..cols].copy_from_slice(&tile[..cols]);
        }
    }
    output
}

/// One by one, by pairs, and on the matrix unit, where the processor has them.
fn ways() -> impl Iterator<Item = Way> {
    let arch = Arch::new();
    let pairs = supported(arch).then_some((TOGETHER, false));
    let on_amx = amx::supported::<bf16>(arch).then_some((TOGETHER, true));
    [(1, false)].into_iter().chain(pairs).chain(on_amx)
}

/// Numbers of very different magnitudes, whose products neither overflow nor are denormal.
fn numbers(count: usize) -> impl Strategy<Value = Vec<bf16>> {
    let number = (-1.0_f32..1.0, -20_i32..20)
        .prop_map(|(number, power)| bf16::from_f32(number * 2.0_f32.powi(power)));
    proptest::collection::vec(number, count)
}

fn sizes_and_numbers() -> impl Strategy<Value = (Sizes, Vec<bf16>, Vec<bf16>)> {
    let runs = prop_oneof![Just(1_usize), 1_usize..9];
    (1_usize..15, runs, 1_usize..40, 1_usize..140, 1_usize..20).prop_flat_map(
        |(rows, runs, run, n, half)| {
            let k = runs * run;
            let sizes = Sizes { runs, run, n, depth: 2 * half };
            (Just(sizes), numbers(rows * k), numbers(k * n))
        },
    )
}

proptest! {
    /// The error bound of any summation that rounds once for each term and once for each partial
    /// sum that it joins: the number of roundings, times the unit roundoff, times the sum of the
    /// magnitudes.
    #[test]
    fn sums_are_within_the_bound_of_f32(
        (sizes, x, w) in sizes_and_numbers(),
    ) {
        let Sizes { runs, run, n, depth } = sizes;
        let k = runs * run;
        let wide: Vec<f32> = w.iter().map(|w| w.to_f32()).collect();
        for way in ways() {
            let output = product(&x, &wide, sizes, way);
            // The unit adds up sixteen groups by themselves, of one number each at worst.
            let steps = if way.1 { 2 * k.div_ceil(16) } else { 0 };
            let joined = k.div_ceil(depth) + steps + 4;
            for (place, &sum) in output.iter().enumerate() {
                let (row, col) = (place / n, place % n);
                let terms = (0..k).map(|at| x[row * k + at].to_f64() * w[at * n + col].to_f64());
                let (mut exact, mut magnitude) = (0.0, 0.0);
                for term in terms {
                    exact += term;
                    magnitude += term.abs();
                }
                let bound = (k + joined) as f64 * UNIT * magnitude;
                prop_assert!(
                    (f64::from(sum) - exact).abs() <= bound,
                    "{sizes:?}, {way:?}, {place}: {sum:e} is off {exact:e}"
                );
            }
        }
    }
}

#[test]
fn infinities_and_nan_reach_only_their_row() {
    for way in ways() {
        for [runs, run, n] in
            [[1, 1, 1], [1, 5, 7], [3, 2, 17], [1, 33, 65], [7, 21, 64], [3, 1, 9]]
        {
            let k = runs * run;
            let mut x = vec![bf16::ONE; 4 * k];
            x[k] = bf16::NAN;
            x[2 * k] = bf16::INFINITY;
            // The number behind the last one of an odd row.
            x[3 * k] = bf16::NEG_INFINITY;
            let sizes = Sizes { runs, run, n, depth: 32 };
            let output = product(&x, &vec![1.0; k * n], sizes, way);
            let rows: Vec<&[f32]> = output.chunks(n).collect();
            assert!(rows[0].iter().all(|&y| y == k as f32), "{way:?}, {k}: {output:?}");
            assert!(rows[1].iter().all(|y| y.is_nan()), "{way:?}, {k}: {output:?}");
            assert!(rows[2].iter().all(|&y| y == f32::INFINITY), "{way:?}, {k}: {output:?}");
            assert!(rows[3].iter().all(|&y| y == f32::NEG_INFINITY), "{way:?}: {output:?}");
        }
    }
}

/// In the mode of the kernels' threads no way keeps denormals, whether given or computed.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[cfg_attr(miri, ignore = "Miri has no mode that flushes")]
#[test]
fn denormals_are_zero() {
    std::thread::spawn(|| {
        crate::cpu::numeric::flush_denormals();
        let small = bf16::from_bits(0x0040);
        let least = bf16::MIN_POSITIVE;
        assert!(small.to_f32() > 0.0 && small < least);
        for way in ways() {
            for (x, w, expected) in [(small, 1e30, 0.0), (least, 0.5, 0.0), (least, 1.0, 1.0)] {
                let sizes = Sizes { runs: 1, run: 3, n: 1, depth: 32 };
                let output = product(&[x; 3], &[w; 3], sizes, way);
                assert_eq!(output, [3.0 * expected * least.to_f32()], "{way:?}: {x:e}, {w}");
            }
        }
    })
    .join()
    .unwrap();
}
