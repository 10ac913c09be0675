//! Strips on the unit where there is one, and everywhere on a model of it.

use std::cell::RefCell;

use fusion_cost_model::DType;
use half::{bf16, f16};
use proptest::prelude::*;
use pulp::Arch;

use super::tiles::{GROUP_BYTES, ROW_BYTES, ROWS, Shapes, TILES, Unit};
use super::*;
use crate::cpu::amx::supported;
use crate::cpu::epilogue::Epilogue;
use crate::cpu::factors::Factors;
use crate::cpu::panels::Panels;
use crate::cpu::strip::{Cut, Source};
use crate::cpu::{fours, pairs};

type Bytes = [[u8; ROW_BYTES]; ROWS];

/// The unit as its manual describes it, for sums that are exact in any order. What lies behind the size
/// of a tile is zero.
struct Model;

thread_local! {
    static SIZES: RefCell<Option<[[usize; 2]; TILES]>> = const { RefCell::new(None) };
    static ROWS_OF: RefCell<[Bytes; TILES]> = const { RefCell::new([[[0; ROW_BYTES]; ROWS]; TILES]) };
}

/// Rows of a tile, and bytes of a row.
fn size(tile: usize) -> [usize; 2] {
    let size = SIZES.with_borrow(|sizes| sizes.expect("no sizes are set")[tile]);
    assert!((1..=ROWS).contains(&size[0]) && (1..=ROW_BYTES).contains(&size[1]), "{size:?}");
    size
}

fn group(bytes: &[u8], at: usize) -> [u8; GROUP_BYTES] {
    bytes[at * GROUP_BYTES..][..GROUP_BYTES].try_into().unwrap()
}

fn dot<E: Dot>(sum: [u8; 4], left: [u8; 4], right: [u8; 4]) -> [u8; 4] {
    if E::TOGETHER == pairs::TOGETHER {
        let half = |four: [u8; 4], at: usize| {
            let bytes = [four[at], four[at + 1]];
            let is_f16 = E::DTYPE == DType::F16;
            if is_f16 {
                f16::from_le_bytes(bytes).to_f32()
            } else {
                bf16::from_le_bytes(bytes).to_f32()
            }
        };
        // The product of the lower numbers is added first.
        let sum = half(left, 0).mul_add(half(right, 0), f32::from_le_bytes(sum));
        return half(left, 2).mul_add(half(right, 2), sum).to_le_bytes();
    }
    let products = left.iter().zip(right).map(|(&x, w)| i32::from(x) * i32::from(w.cast_signed()));
    products.fold(i32::from_le_bytes(sum), i32::wrapping_add).to_le_bytes()
}

impl Unit for Model {
    unsafe fn set(shapes: &Shapes) {
        let (head, sizes) = (shapes.head(), shapes.sizes());
        // Others are an exception, or begin in the middle of a tile.
        let is_valid = |[rows, bytes]: [usize; 2]| {
            (rows > 0) == (bytes > 0) && rows <= ROWS && bytes <= ROW_BYTES
        };
        assert!(head[0] == 1 && head[1..].iter().all(|byte| *byte == 0), "{head:?}");
        assert!(sizes.iter().all(|size| is_valid(*size)), "{sizes:?}");
        assert!(sizes[TILES..].iter().all(|size| *size == [0, 0]), "{sizes:?}");
        SIZES.set(Some(std::array::from_fn(|tile| sizes[tile])));
        ROWS_OF.set([[[0; ROW_BYTES]; ROWS]; TILES]);
    }

    unsafe fn release() {
        SIZES.set(None);
    }

    unsafe fn zero<const TILE: usize>() {
        size(TILE);
        ROWS_OF.with_borrow_mut(|tiles| tiles[TILE] = [[0; ROW_BYTES]; ROWS]);
    }

    unsafe fn load<const TILE: usize>(rows: *const u8, stride: usize) {
        let [count, bytes] = size(TILE);
        ROWS_OF.with_borrow_mut(|tiles| {
            tiles[TILE] = [[0; ROW_BYTES]; ROWS];
            for (at, row) in tiles[TILE][..count].iter_mut().enumerate() {
                // SAFETY: the caller's guarantee.
                unsafe { rows.wrapping_add(at * stride).copy_to(row.as_mut_ptr(), bytes) };
            }
        });
    }

    unsafe fn store<const TILE: usize>(rows: *mut u8, stride: usize) {
        let [count, bytes] = size(TILE);
        ROWS_OF.with_borrow(|tiles| {
            for (at, row) in tiles[TILE][..count].iter().enumerate() {
                // SAFETY: the caller's guarantee.
                unsafe { rows.wrapping_add(at * stride).copy_from(row.as_ptr(), bytes) };
            }
        });
    }

    unsafe fn add_products<E: Dot, const SUMS: usize, const LEFT: usize, const RIGHT: usize>() {
        let ([m, k_bytes], [k, n_bytes]) = (size(LEFT), size(RIGHT));
        assert_eq!((size(SUMS), k * GROUP_BYTES), ([m, n_bytes], k_bytes));
        assert!(n_bytes.is_multiple_of(GROUP_BYTES));
        assert!(SUMS != LEFT && SUMS != RIGHT && LEFT != RIGHT);
        ROWS_OF.with_borrow_mut(|tiles| {
            for row in 0..m {
                for col in 0..n_bytes / GROUP_BYTES {
                    let mut sum = group(&tiles[SUMS][row], col);
                    for at in 0..k {
                        let (left, right) = (&tiles[LEFT][row], &tiles[RIGHT][at]);
                        sum = dot::<E>(sum, group(left, at), group(right, col));
                    }
                    tiles[SUMS][row][col * GROUP_BYTES..][..GROUP_BYTES].copy_from_slice(&sum);
                }
            }
        });
    }
}

/// Rows of an image, each `runs` runs of `run` numbers, times weights `[runs * run, n]`.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    rows: usize,
    /// Rows in a line.
    line: usize,
    runs: usize,
    run: usize,
    n: usize,
    depth: usize,
}

/// What every unit computes, and the exact sums.
fn check<E: Dot>(sizes: Sizes, number: impl Fn(usize) -> f32, weight: impl Fn(usize) -> f32) {
    let foreign = if size_of::<E>() == 1 { 255.0 } else { f32::NAN };
    let Sizes { rows, line, runs, run, n, depth } = sizes;
    let k = runs * run;
    let stride = run + 1;
    let (line_stride, run_stride) = (line.min(rows) * stride + 5, run + 3);
    let count = rows.div_ceil(line) * line_stride + runs * run_stride + run;
    let place = |row: usize, term: usize| {
        row / line * line_stride + row % line * stride + term / run * run_stride + term % run
    };
    // What is not a number of any row is as far from one as can be.
    let mut numbers = vec![E::narrow(foreign); count];
    for (row, term) in (0..rows).flat_map(|row| (0..k).map(move |term| (row, term))) {
        numbers[place(row, term)] = E::narrow(number(place(row, term)));
    }
    let weights: Vec<f32> = (0..k * n).map(weight).collect();
    let cut = Cut { width: 64, lanes: 16, depth, together: E::TOGETHER, on_amx: true };
    let panels = Panels { k, n, run, cut };
    let mut packed = vec![E::Weight::default(); panels.numbers()];
    panels.pack(&weights, 0, &mut packed);
    let source = Source {
        data: numbers.as_ptr(),
        stride,
        line,
        line_stride,
        run: if runs == 1 { usize::MAX } else { run },
        run_stride,
    };
    let factors: Vec<f32> = (0..rows).map(|row| 0.25 * (row % 5 + 1) as f32).collect();
    type Compute<E> = unsafe fn(&Strip<E>);
    let units: [(bool, Compute<E>); 2] = [
        (true, strips::compute::<Model, E>),
        (supported::<E>(Arch::new()), strips::compute::<Amx, E>),
    ];
    for compute in units.into_iter().filter_map(|(is_there, compute)| is_there.then_some(compute)) {
        // Beside the last column lies what must stay.
        let target_stride = n + 3;
        let mut target = vec![f32::NAN; rows * target_stride];
        for col in (0..n).step_by(cut.width) {
            let (place, panel_stride) = panels.place(col);
            let strip = Strip {
                rows,
                k,
                cols: cut.cols(n, col),
                source,
                panel: packed[place..].as_ptr(),
                panel_stride,
                is_padded: true,
                // Without rows there is no target.
                target: target.as_mut_ptr().wrapping_add(col),
                target_stride,
                factors: Factors::each(factors.as_ptr()),
                epilogue: Epilogue::NONE,
                depth,
            };
            // SAFETY: all of them have the numbers that the sizes say.
            unsafe { compute(&strip) };
        }
        for (row, sums) in target.chunks(target_stride).enumerate() {
            for (col, &sum) in sums.iter().enumerate() {
                if col >= n {
                    assert!(sum.is_nan(), "{sizes:?}: it writes behind the last column");
                    continue;
                }
                let terms = (0..k).map(|term| {
                    let number = numbers[place(row, term)].widen();
                    f64::from(number) * f64::from(weights[term * n + col])
                });
                let expected = terms.sum::<f64>() as f32 * factors[row];
                assert_eq!(sum, expected, "{sizes:?}: row {row}, column {col}");
            }
        }
    }
}

/// A number that looks random, below `end`.
fn mixed(index: usize, end: u64) -> f32 {
    (((index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) % end) as f32
}

fn sizes(together: usize) -> impl Strategy<Value = Sizes> {
    let line = prop_oneof![Just(usize::MAX), 1_usize..40];
    // A run of fours is whole ones where there are several.
    let runs = prop_oneof![
        (Just(1_usize), 1_usize..200),
        (
            2_usize..9,
            (1_usize..30).prop_map(move |groups| {
                if together == fours::TOGETHER { groups * together } else { groups }
            })
        ),
        (2_usize..5, (1_usize..3).prop_map(move |steps| steps * 16 * together)),
    ];
    (0_usize..60, line, runs, 1_usize..140, 1_usize..300)
        .prop_map(|(rows, line, (runs, run), n, depth)| Sizes { rows, line, runs, run, n, depth })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if supported::<bf16>(Arch::new()) { 60 } else { 120 }))]

    /// Sums of whole numbers are exact in any order.
    #[test]
    fn sums_of_bf16_are_those_of_whole_numbers(sizes in sizes(pairs::TOGETHER)) {
        check::<bf16>(sizes, |at| mixed(at, 31) - 15.0, |at| mixed(at * 7 + 3, 31) - 15.0);
    }

    #[test]
    fn sums_of_f16_are_those_of_whole_numbers(sizes in sizes(pairs::TOGETHER)) {
        check::<f16>(sizes, |at| mixed(at, 31) - 15.0, |at| mixed(at * 7 + 3, 31) - 15.0);
    }

    #[test]
    fn sums_of_bytes_are_those_of_whole_numbers(sizes in sizes(fours::TOGETHER)) {
        check::<u8>(sizes, |at| mixed(at, 256), |at| mixed(at * 7 + 3, 256) - 128.0);
    }
}

#[test]
fn the_largest_products_of_bytes_fit() {
    let whole = Sizes { rows: 33, line: usize::MAX, runs: 1, run: 130, n: 33, depth: 64 };
    for (number, weight) in [(255.0, -128.0), (255.0, 127.0), (128.0, -128.0)] {
        check::<u8>(whole, |_| number, |_| weight);
    }
}

#[test]
fn all_sizes_of_a_tile_fit_their_instruction() {
    assert_eq!(size_of::<Shapes>(), 64);
    for (rows, cols) in [([16, 16], [16, 16]), ([7, 6], [16, 1]), ([1, 0], [3, 0])] {
        let sizes = Shapes::new(rows, cols).sizes();
        assert_eq!(sizes[0], [rows[0], 4 * cols[0]]);
        let of = |rows: usize, bytes| if rows > 0 && bytes > 0 { [rows, bytes] } else { [0, 0] };
        assert_eq!(sizes[3], of(rows[1], 4 * cols[1]));
        assert_eq!(sizes[5], of(rows[1], 64));
        assert_eq!(sizes[7], of(16, 4 * cols[1]));
        assert!(sizes[8..].iter().all(|size| *size == [0, 0]));
    }
}

#[test]
fn operations_are_counted() {
    if supported::<f16>(Arch::new()) {
        // SAFETY: the unit is there.
        let pairs = unsafe { operations::<f16>() };
        assert_eq!(pairs, f64::from(2 * 16 * 16 * 32 * 4 * 1024));
    }
    if supported::<bf16>(Arch::new()) {
        // SAFETY: the unit is there.
        let [pairs, fours] = unsafe { [operations::<bf16>(), operations::<u8>()] };
        assert_eq!(pairs, f64::from(2 * 16 * 16 * 32 * 4 * 1024));
        assert_eq!(fours, 2.0 * pairs);
    }
}
