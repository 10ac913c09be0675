//! Weights that are packed ahead of time, for both variants alike.
//!
//! They lie in panels: all rows of a few columns one after the other, so that the micro-kernel reads a
//! panel from its first number to its last. For a micro-kernel that multiplies pairs, the numbers of two
//! rows lie side by side, and a row that is left over has zeros beside it: the last one, and in a
//! convolution each that belongs to the last number of a run. They are packed when the inputs are
//! written, outside the clock.

use super::element::{Element, Stored};
use super::strip::Cut;
use super::tensors::TensorId;

/// An input of a problem in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InputTensor {
    pub(crate) id: TensorId,
    pub(crate) stored: Stored,
    /// How it is packed, if it is: weights that both variants read in the same order.
    pub(crate) panels: Option<Panels>,
}

/// The weights of a linear layer, or the filters of a convolution, as panels. What they lack to whole
/// vectors and to rows that lie together is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Panels {
    pub(crate) k: usize,
    pub(crate) n: usize,
    /// Rows whose numbers of the source lie side by side: all of them, or a part that `k` is a multiple
    /// of. No two that lie together belong to different ones.
    pub(crate) run: usize,
    pub(crate) cut: Cut,
}

impl Panels {
    /// Rows with the padding that completes those that lie together.
    fn rows(&self) -> usize {
        self.k / self.run.max(1) * self.run.next_multiple_of(self.cut.together)
    }

    /// Numbers that they take.
    pub(crate) fn numbers(&self) -> usize {
        self.n.next_multiple_of(self.cut.lanes) * self.rows()
    }

    /// Where the panel that begins at column `col` lies, and the numbers from one of its rows to the
    /// next, where each lies by itself.
    pub(crate) fn place(&self, col: usize) -> (usize, usize) {
        // The panels before it are whole.
        (col * self.rows(), self.cut.packed_cols(self.n, col))
    }

    /// Fills a part of the packed numbers, which begins at number `first`.
    pub(crate) fn pack<E: Element>(&self, weights: &[f32], first: usize, part: &mut [E]) {
        let Self { n, run, cut, .. } = *self;
        let together = cut.together;
        let groups_of_run = run.div_ceil(together);
        let mut done = 0;
        while done < part.len() {
            let at = first + done;
            let col = at / (cut.width * self.rows()) * cut.width;
            // The rows that lie together are one group: their numbers of the first column, then those
            // of the next.
            let group_numbers = cut.packed_cols(n, col) * together;
            let inside_panel = at - col * self.rows();
            let (group, inside) = (inside_panel / group_numbers, inside_panel % group_numbers);
            let count = (group_numbers - inside).min(part.len() - done);
            let shift = together.trailing_zeros();
            let first_row = group / groups_of_run * run;
            let first_in_run = group % groups_of_run * together;
            for (place, number) in (inside..).zip(&mut part[done..][..count]) {
                let (in_run, col) = (first_in_run + place % (1 << shift), col + (place >> shift));
                let weight = (first_row + in_run) * n + col;
                let is_given = in_run < run && col < n;
                *number = if is_given { E::narrow(weights[weight]) } else { E::default() };
            }
            done += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use pulp::Arch;

    use super::*;
    use crate::cpu::conforms::{conforms, cpus};
    use crate::cpu::epilogue::Epilogue;
    use crate::cpu::factors::Factors;
    use crate::cpu::strip::{Source, Strip};

    #[test]
    fn packed_weights_are_those_of_each_column_and_zeros() {
        let sizes = [
            (1, 1, 1, 64, 16),
            (3, 3, 5, 2, 1),
            (7, 7, 64, 64, 16),
            (5, 5, 65, 64, 16),
            (2, 2, 31, 16, 8),
            (6, 3, 7, 16, 8),
            (15, 5, 70, 64, 16),
            (8, 4, 3, 2, 1),
        ];
        for ((k, run, n, width, lanes), together) in
            sizes.into_iter().flat_map(|sizes| [1, 2, 4].map(|together| (sizes, together)))
        {
            let panels =
                Panels { k, n, run, cut: Cut { width, lanes, depth: 32, together, on_amx: false } };
            let weights: Vec<f32> = (1..=k * n).map(|one| one as f32).collect();
            let mut packed = vec![-1.0_f32; panels.numbers()];
            // In parts that begin and end anywhere.
            let mut first = 0;
            for size in [1, 7, 2, 40].into_iter().cycle() {
                let end = (first + size).min(packed.len());
                panels.pack(&weights, first, &mut packed[first..end]);
                first = end;
                if end == packed.len() {
                    break;
                }
            }
            let mut seen = 0;
            for start in (0..n).step_by(width) {
                let (place, cols) = panels.place(start);
                let padded = run.next_multiple_of(together);
                for row in 0..k / run * padded {
                    for col in 0..cols {
                        let inside = row % padded < run && start + col < n;
                        let weight = (row / padded * run + row % padded) * n + start + col;
                        let expected = if inside { weights[weight] } else { 0.0 };
                        let (group, below) = (row / together, row % together);
                        let at = place + (group * cols + col) * together + below;
                        assert_eq!(packed[at], expected, "{panels:?}");
                        seen += 1;
                    }
                }
            }
            assert_eq!(seen, packed.len());
        }
    }

    /// Every number of rows that the micro-kernel takes, depths of one part, several and a rest, and
    /// panels that are whole and not.
    #[test]
    fn linear_layers_conform_on_all_vectors() {
        for mut cpu in cpus() {
            for (m, k, n) in [
                (1, 1, 1),
                (1, 1031, 130),
                (2, 513, 64),
                (3, 512, 63),
                (4, 17, 129),
                (5, 2, 16),
                (6, 67, 17),
                (7, 1025, 31),
                (13, 97, 64),
                (32, 520, 67),
                (33, 9, 5),
                (200, 33, 96),
                (131, 257, 81),
            ] {
                for chain in ["linear_bias_relu", "linear+bias+softmax"] {
                    let text = format!("{chain}/f32/m{m}.k{k}.n{n}");
                    let [unfused, _] = conforms(&mut cpu, &text);
                    assert!(unfused[0].contains("packed"), "{text}");
                }
            }
        }
    }

    /// What is not a number in one row stays there, and in the padding.
    #[test]
    fn infinities_and_nan_reach_only_their_row() {
        let arch = Arch::new();
        let (rows, k, n) = (3, 5, 7);
        let cut = Cut::new::<f32>(arch, 32 << 10, 1);
        let panels = Panels { k, n, run: k, cut };
        let weights = vec![1.0; k * n];
        let mut packed = vec![0.0_f32; panels.numbers()];
        panels.pack(&weights, 0, &mut packed);
        let mut input = vec![1.0_f32; rows * k];
        input[k] = f32::NAN;
        input[2 * k] = f32::INFINITY;
        let mut output = vec![0.0_f32; rows * n];
        for col in (0..n).step_by(cut.width) {
            let (place, panel_stride) = panels.place(col);
            let strip = Strip {
                rows,
                k,
                cols: cut.cols(n, col),
                source: Source::rows(input.as_ptr(), k),
                panel: packed[place..].as_ptr(),
                panel_stride,
                is_padded: true,
                target: output[col..].as_mut_ptr(),
                target_stride: n,
                factors: Factors::one(),
                epilogue: Epilogue::NONE,
                depth: cut.depth,
            };
            // SAFETY: all of them have the numbers that the sizes say.
            unsafe { strip.compute(arch) };
        }
        assert!(output[..n].iter().all(|&y| y == 5.0), "{output:?}");
        assert!(output[n..2 * n].iter().all(|y| y.is_nan()), "{output:?}");
        assert!(output[2 * n..].iter().all(|&y| y == f32::INFINITY), "{output:?}");
    }
}
