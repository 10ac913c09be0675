//! Every micro-kernel that this processor has, against sums in 64 bits.

use proptest::prelude::*;

use super::*;
use crate::cpu::amx;
use crate::cpu::epilogue::Epilogue;
use crate::cpu::factors::Factors;
use crate::cpu::panels::Panels;
use crate::cpu::strip::{Cut, Source};

/// A micro-kernel with the lanes and the columns of its panels.
type Kernel = (&'static str, unsafe fn(&Strip<u8>), [usize; 2]);

fn kernels() -> Vec<Kernel> {
    let mut kernels: Vec<Kernel> = Vec::new();
    if is_x86_feature_detected!("avx2") {
        kernels.push(("words_256", x86::words_256::compute, [8, 16]));
    }
    if is_x86_feature_detected!("avxvnni") {
        kernels.push(("dot_256", x86::dot_256::compute, [8, 16]));
    }
    if is_x86_feature_detected!("avx512bw") {
        kernels.push(("words_512", x86::words_512::compute, [16, 64]));
    }
    if is_x86_feature_detected!("avx512vnni") {
        kernels.push(("dot_512", x86::dot_512::compute, [16, 64]));
    }
    if amx::supported::<u8>(Arch::new()) {
        kernels.push(("amx", amx::compute, [16, 64]));
    }
    kernels
}

/// Rows of numbers times weights `[k, n]`. Each row is `runs` runs, `apart` numbers from one to the next.
struct Case {
    rows: usize,
    runs: usize,
    run: usize,
    apart: usize,
    n: usize,
    depth: usize,
    numbers: Vec<u8>,
    weights: Vec<i8>,
}

impl Case {
    fn new([rows, runs, run, gap, n, depth]: [usize; 6], byte: impl Fn(usize) -> u8) -> Self {
        let (k, apart) = (runs * run, run + gap);
        // Rows are the windows of neighbouring pixels, `run` numbers apart.
        let numbers = (0..rows * run + runs * apart).map(&byte).collect();
        let weights = (0..k * n).map(|index| byte(index * 7 + 3).cast_signed()).collect();
        Self { rows, runs, run, apart, n, depth, numbers, weights }
    }

    fn expected(&self, row: usize, col: usize) -> f32 {
        let terms = (0..self.runs * self.run).map(|term| {
            let number = row * self.run + term / self.run * self.apart + term % self.run;
            i64::from(self.numbers[number]) * i64::from(self.weights[term * self.n + col])
        });
        terms.sum::<i64>() as f32 * 0.25
    }

    fn check(&self) {
        for (name, compute, [lanes, width]) in kernels() {
            let k = self.runs * self.run;
            let cut = Cut { width, lanes, depth: self.depth, together: TOGETHER, on_amx: false };
            let panels = Panels { k, n: self.n, run: k, cut };
            let weights: Vec<f32> = self.weights.iter().map(|&weight| f32::from(weight)).collect();
            let mut packed = vec![0_i8; panels.numbers()];
            panels.pack(&weights, 0, &mut packed);
            // Beside the last column lies what must stay.
            let stride = self.n + 3;
            let mut target = vec![f32::NAN; self.rows * stride];
            let factor = 0.25;
            for col in (0..self.n).step_by(width) {
                let (place, panel_stride) = panels.place(col);
                let run = if self.runs == 1 { usize::MAX } else { self.run };
                let strip = Strip {
                    rows: self.rows,
                    k,
                    cols: cut.cols(self.n, col),
                    source: Source {
                        run,
                        run_stride: self.apart,
                        ..Source::rows(self.numbers.as_ptr(), self.run)
                    },
                    panel: packed[place..].as_ptr(),
                    panel_stride,
                    is_padded: true,
                    target: target[col..].as_mut_ptr(),
                    target_stride: stride,
                    factors: Factors::all(&raw const factor),
                    epilogue: Epilogue::NONE,
                    depth: cut.depth,
                };
                // SAFETY: all of them have the numbers that the sizes say, and the processor has the
                // instructions.
                unsafe { compute(&strip) };
            }
            for (row, numbers) in target.chunks(stride).enumerate() {
                for (col, &number) in numbers.iter().enumerate() {
                    if col < self.n {
                        assert_eq!(number, self.expected(row, col), "{name}: {row}, {col}");
                    } else {
                        assert!(number.is_nan(), "{name} writes behind the last column");
                    }
                }
            }
        }
    }
}

/// A number that looks random.
fn mixed(index: usize) -> u8 {
    ((index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u8
}

#[test]
fn the_largest_products_fit() {
    for (number, weight) in [(255, -128), (255, 127), (128, -128)] {
        let mut case = Case::new([3, 1, 65, 0, 17, 32], mixed);
        case.numbers.fill(number);
        case.weights.fill(weight);
        case.check();
    }
    let mut case = Case::new([1, 1, MOST_TERMS, 0, 1, 1364], mixed);
    case.numbers.fill(255);
    case.weights.fill(-128);
    case.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn sums_are_those_of_whole_numbers(
        rows in 1_usize..20, k in 1_usize..150, n in 1_usize..140, depth in 1_usize..20,
    ) {
        Case::new([rows, 1, k, 0, n, 4 * depth], mixed).check();
    }

    #[test]
    fn and_of_rows_in_runs(
        rows in 1_usize..9, runs in 2_usize..5, fours in 1_usize..9, gap in 0_usize..9,
        n in 1_usize..70, depth in 1_usize..9,
    ) {
        Case::new([rows, runs, 4 * fours, gap, n, 4 * depth], mixed).check();
    }
}
