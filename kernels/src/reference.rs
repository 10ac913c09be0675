//! The reference: every op in f64, written for clarity, some output rows at a time.
//!
//! It shares the formulas of the pointwise ops with the kernels (they are tested by hand-computed
//! values) and nothing else: no blocking, no vectorisation, no fused code. The witness is the same
//! code with matrix products in f32, by a library that no kernel uses: less accurate, and fast
//! enough for every row of a large problem.

mod product;
mod real;
mod rows;

use fusion_cost_model::kernel::{OperandKind, PoolSizes, Step};
use fusion_cost_model::{AttentionSizes, DType, Op, Pointwise, Problem};

use self::product::{Arithmetic, Right};
pub(crate) use self::real::Real;
pub(crate) use self::rows::{LIKELY_ERRORS, Rows};
use crate::inputs::{Inputs, attention_scale, scale_of_sums, unit_roundoff};
use crate::random;

/// Computes output rows of a problem in f64.
#[derive(Debug, Clone)]
pub struct Reference<'a> {
    problem: &'a Problem,
    steps: Vec<Step>,
    input: &'a [f32],
    /// The operands of each step.
    operands: Vec<Vec<&'a [f32]>>,
    arithmetic: Arithmetic,
}

impl<'a> Reference<'a> {
    /// The reference of a problem on its inputs.
    #[must_use]
    pub fn new(problem: &'a Problem, inputs: &'a Inputs) -> Self {
        let steps: Vec<Step> = problem.steps().collect();
        let operands = (0..steps.len()).map(|index| inputs.operands_of(index).collect()).collect();
        let arithmetic = Arithmetic::F64;
        Self { problem, steps, input: &inputs.tensors[0], operands, arithmetic }
    }

    /// The same with matrix products in f32.
    pub(crate) fn witness(&self) -> Self {
        Self { arithmetic: Arithmetic::F32, ..self.clone() }
    }

    /// Output rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.steps.last().map_or(0, |step| step.output.rows as usize)
    }

    /// One output row.
    #[must_use]
    pub fn row(&self, row: usize) -> Vec<f64> {
        self.rows_at(&[row]).values
    }

    /// Some output rows, in ascending order.
    pub(crate) fn rows_at(&self, rows: &[usize]) -> Rows {
        self.rows_after(self.steps.len(), rows)
    }

    /// The most numbers that are kept for an output row at a time.
    pub(crate) fn widest(&self) -> usize {
        let width = |step: &Step| step.input.cols.max(step.output.cols).max(step.depth);
        self.steps.iter().map(width).max().unwrap_or(1) as usize
    }

    /// Some rows of the tensor after the first `count` steps.
    fn rows_after(&self, count: usize, rows: &[usize]) -> Rows {
        let Some(index) = count.checked_sub(1) else {
            return self.input_rows(rows);
        };
        let step = &self.steps[index];
        let operands = &self.operands[index];
        let before = |rows: &[usize]| self.rows_after(index, rows);
        let after = match step.op {
            Op::Linear => {
                let [depth, cols] = [step.input.cols as usize, step.output.cols as usize];
                let weights = Right::by_rows(operands[0], [depth, cols], cols);
                before(rows).times(self.arithmetic, weights)
            }
            Op::Conv2d => self.convolution(rows),
            Op::MaxPool => self.max_pool(rows, before),
            Op::Qk => self.scores(rows),
            Op::Pv => self.attention_output(rows, operands[0], before),
            Op::Softmax => self.softmax(rows, before(rows)),
            Op::LayerNorm => before(rows)
                .map(|row, rounding| rows::layer_norm(row, rounding, operands[0], operands[1])),
            Op::RmsNorm => {
                before(rows).map(|row, rounding| rows::rms_norm(row, rounding, operands[0]))
            }
            Op::Pointwise(op) => self.pointwise(op, index, rows, before(rows)),
        };
        if step.dtype != DType::I8 {
            return after.written_with(unit_roundoff(step.dtype));
        }
        match step.op {
            Op::Linear | Op::Conv2d => after.of_signed(f64::from(scale_of_sums(step))),
            Op::Pointwise(Pointwise::Requantize) => after.written_as_integers(),
            _ => after,
        }
    }

    fn input_rows(&self, rows: &[usize]) -> Rows {
        let cols = self.steps.first().map_or(0, |step| step.input.cols as usize);
        let numbers = rows.iter().flat_map(|row| &self.input[row * cols..][..cols]);
        Rows::exact(numbers.map(|&x| f64::from(x)).collect(), cols)
    }

    fn pointwise(&self, op: Pointwise, step: usize, rows: &[usize], mut block: Rows) -> Rows {
        let cols = block.cols;
        let operand = |position: usize, element: usize, col: usize| {
            let tensor = self.operands[step].get(position).copied().unwrap_or_default();
            Real(f64::from(match op.operands()[position].kind {
                OperandKind::PerChannel => tensor[col],
                OperandKind::PerElement => tensor[element],
                OperandKind::Scalar => tensor[0],
                #[expect(clippy::cast_possible_truncation, reason = "the low bits, as documented")]
                OperandKind::Random => random::uniform(element as u32),
                OperandKind::Matrix => f32::NAN,
            }))
        };
        let places = rows.iter().flat_map(|row| (0..cols).map(move |col| (row * cols + col, col)));
        let numbers = block.values.iter_mut().zip(&mut block.rounding);
        for ((element, col), (value, error)) in places.zip(numbers) {
            let given = |position: usize| operand(position, element, col);
            let folded = op.fold(given);
            let formula = |x| match folded {
                Some(folded) => op.apply(Real(x), |position: usize| folded[position]).0,
                None => op.apply(Real(x), given).0,
            };
            rows::point(formula, value, error);
        }
        block
    }

    fn convolution(&self, rows: &[usize]) -> Rows {
        let Some(conv) = self.problem.sizes().conv() else {
            return Rows::exact(Vec::new(), 0);
        };
        let (height, width) = (conv.h as usize, conv.w as usize);
        let (channels, filters) = (conv.c as usize, conv.k as usize);
        let (out_h, out_w) = (conv.out_h() as usize, conv.out_w() as usize);
        let groups = conv.groups as usize;
        let (group_channels, group_filters) = (channels / groups, filters / groups);
        let depth = (conv.r * conv.s) as usize * group_channels;
        let mut output = Rows::exact(vec![0.0; rows.len() * filters], filters);
        for group in 0..groups {
            // What the filters of the group see of the padded image; the padding is zero.
            let mut patches = vec![0.0; rows.len() * depth];
            for (&row, patch) in rows.iter().zip(patches.chunks_exact_mut(depth)) {
                let (image, y, x) = (row / (out_h * out_w), row / out_w % out_h, row % out_w);
                for (tap, seen) in patch.chunks_exact_mut(group_channels).enumerate() {
                    let (r, s) = (tap / conv.s as usize, tap % conv.s as usize);
                    let in_y = (y * conv.stride as usize + r).wrapping_sub(conv.pad as usize);
                    let in_x = (x * conv.stride as usize + s).wrapping_sub(conv.pad as usize);
                    if in_y >= height || in_x >= width {
                        continue;
                    }
                    let pixel = &self.input[((image * height + in_y) * width + in_x) * channels..];
                    for (seen, &x) in seen.iter_mut().zip(&pixel[group * group_channels..]) {
                        *seen = f64::from(x);
                    }
                }
            }
            let weights = &self.operands[0][0][group * group_filters..];
            let weights = Right::by_rows(weights, [depth, group_filters], filters);
            let part = Rows::exact(patches, depth).times(self.arithmetic, weights);
            output.put_columns(group * group_filters, &part);
        }
        output
    }

    fn max_pool(&self, rows: &[usize], before: impl Fn(&[usize]) -> Rows) -> Rows {
        let Some(pool) = self.problem.sizes().pool() else {
            return Rows::exact(Vec::new(), 0);
        };
        let windows: Vec<Vec<usize>> = rows.iter().map(|&row| window(&pool, row)).collect();
        let mut pixels = windows.concat();
        pixels.sort_unstable();
        pixels.dedup();
        let before = before(&pixels);
        let cols = before.cols;
        let mut output = Rows::exact(Vec::with_capacity(rows.len() * cols), cols);
        for window in windows {
            let places = window.into_iter().map(|pixel| pixels.partition_point(|&it| it < pixel));
            for (index, place) in places.enumerate() {
                let [values, rounding] =
                    [&before.values, &before.rounding].map(|of| &of[place * cols..][..cols]);
                if index == 0 {
                    output.values.extend(values);
                    output.rounding.extend(rounding);
                    continue;
                }
                let at = output.values.len() - cols;
                for (best, &value) in output.values[at..].iter_mut().zip(values) {
                    if value > *best || value.is_nan() {
                        *best = value;
                    }
                }
                for (largest, &error) in output.rounding[at..].iter_mut().zip(rounding) {
                    *largest = error.max(*largest);
                }
            }
        }
        output
    }

    /// The softmax of rows of scores or of any others. What a causal mask hides is zero, or
    /// NaN in a row that sees one.
    fn softmax(&self, rows: &[usize], mut block: Rows) -> Rows {
        let causal = self.problem.sizes().attention().filter(|sizes| sizes.causal);
        let Some(AttentionSizes { q, kv, .. }) = causal else {
            return block.map(rows::softmax);
        };
        let (queries, keys) = (q as usize, kv as usize);
        let numbers =
            block.values.chunks_exact_mut(keys).zip(block.rounding.chunks_exact_mut(keys));
        for (row, (values, rounding)) in rows.iter().zip(numbers) {
            // Both ends lie at each other: as far before the last key as before the last query.
            let before_last = queries - 1 - row % queries;
            let seen = keys - before_last;
            rows::softmax(&mut values[..seen], &mut rounding[..seen]);
            // Zero times the share of the row, which is NaN where it sees one.
            let hidden = 0.0 * values[..seen].iter().sum::<f64>();
            values[seen..].fill(hidden);
            rounding[seen..].fill(0.0);
        }
        block
    }

    fn scores(&self, rows: &[usize]) -> Rows {
        let Some(sizes) = self.problem.sizes().attention() else {
            return Rows::exact(Vec::new(), 0);
        };
        let (queries, keys, d) = (sizes.q as usize, sizes.kv as usize, sizes.d as usize);
        let scale = if self.problem.chain().contains(&Op::Pointwise(Pointwise::Scale)) {
            1.0
        } else {
            f64::from(attention_scale(sizes.d))
        };
        let group = sizes.group() as usize;
        let mut output = Rows::exact(Vec::with_capacity(rows.len() * keys), keys);
        for rows in rows.chunk_by(|one, next| one / queries == next / queries) {
            let head = &self.operands[0][0][rows[0] / queries / group * keys * d..];
            let transposed = Right::by_columns(head, [d, keys]);
            output.append(self.input_rows(rows).times(self.arithmetic, transposed));
        }
        output.values.iter_mut().for_each(|score| *score *= scale);
        output.rounding.iter_mut().for_each(|error| *error *= scale);
        output
    }

    fn attention_output(
        &self,
        rows: &[usize],
        values: &[f32],
        before: impl Fn(&[usize]) -> Rows,
    ) -> Rows {
        let Some(sizes) = self.problem.sizes().attention() else {
            return Rows::exact(Vec::new(), 0);
        };
        let (heads, queries) = (sizes.h as usize, sizes.q as usize);
        let (keys, d, group) = (sizes.kv as usize, sizes.d as usize, sizes.group() as usize);
        let mut output = Rows::exact(Vec::with_capacity(rows.len() * heads * d), heads * d);
        for rows in rows.chunk_by(|one, next| one / queries == next / queries) {
            let batch = rows[0] / queries;
            let mut joined = Rows::exact(vec![0.0; rows.len() * heads * d], heads * d);
            for head in 0..heads {
                let of_head = batch * heads + head;
                let query_rows: Vec<usize> =
                    rows.iter().map(|row| of_head * queries + row % queries).collect();
                let values = &values[of_head / group * keys * d..];
                let values = Right::by_rows(values, [keys, d], d);
                let part = before(&query_rows).times(self.arithmetic, values);
                joined.put_columns(head * d, &part);
            }
            output.append(joined);
        }
        output
    }
}

/// The pixels that an output row of a max-pool looks at.
fn window(pool: &PoolSizes, row: usize) -> Vec<usize> {
    let (height, width) = (pool.h as usize, pool.w as usize);
    let (out_h, out_w) = (pool.out_h() as usize, pool.out_w() as usize);
    let (image, y, x) = (row / (out_h * out_w), row / out_w % out_h, row % out_w);
    let mut pixels = Vec::new();
    for r in 0..pool.window as usize {
        for s in 0..pool.window as usize {
            let in_y = (y * pool.stride as usize + r).wrapping_sub(pool.pad as usize);
            let in_x = (x * pool.stride as usize + s).wrapping_sub(pool.pad as usize);
            if in_y < height && in_x < width {
                pixels.push((image * height + in_y) * width + in_x);
            }
        }
    }
    pixels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_two_by_two_convolution_by_hand() {
        let problem: Problem = "conv_bias/f32/n1.c1.h3.w3.k1.r2.s2".parse().unwrap();
        let mut inputs = Inputs::random(&problem, 0);
        inputs.tensors =
            vec![(1..=9).map(|x| x as f32).collect(), vec![1.0, 10.0, 100.0, 1000.0], vec![0.5]];
        let reference = Reference::new(&problem, &inputs);
        let rows: Vec<f64> = (0..reference.rows()).flat_map(|row| reference.row(row)).collect();
        // 1 + 20 + 400 + 5000 + 0.5, and so on for the other three windows.
        assert_eq!(rows, [5421.5, 6532.5, 8754.5, 9865.5]);
    }

    /// Two heads that share their keys, three queries and four keys of one feature: scores of zero
    /// weigh all keys that are seen alike, and the first query sees two of them.
    #[test]
    fn attention_with_a_causal_mask_and_shared_keys_by_hand() {
        let problem: Problem = "attention_head/f32/b1.h2.q3.kv4.d1.kvh1.causal1".parse().unwrap();
        let mut inputs = Inputs::random(&problem, 0);
        let lengths: Vec<usize> = inputs.tensors.iter().map(Vec::len).collect();
        assert_eq!(lengths, [6, 4, 4]);
        inputs.tensors = vec![vec![0.0; 6], vec![1.0; 4], vec![1.0, 3.0, 8.0, 100.0]];
        let reference = Reference::new(&problem, &inputs);
        for (row, mean) in [2.0, 4.0, 28.0].into_iter().enumerate() {
            assert_eq!(reference.row(row), [mean; 2]);
        }
        // The first head sees the first key alone as soon as its score is large.
        inputs.tensors[0][0] = 1.0;
        inputs.tensors[1][0] = 1e9;
        let row = Reference::new(&problem, &inputs).row(0);
        assert_eq!(row, [1.0, 2.0]);
    }

    #[test]
    fn attention_of_one_key_is_its_value() {
        let problem: Problem = "attention_head/f32/b1.h2.q1.kv1.d2".parse().unwrap();
        let mut inputs = Inputs::random(&problem, 0);
        inputs.tensors[2] = vec![1.0, 2.0, 3.0, 4.0];
        assert_eq!(Reference::new(&problem, &inputs).row(0), [1.0, 2.0, 3.0, 4.0]);
    }

    /// Of every anchor and row op, with more than one image, head and group, and rows that are far
    /// from each other.
    const PROBLEMS: [&str; 10] = [
        "mlp/f32/m17.k33.n21.o5",
        "linear+bias+add+layer_norm/f32/m17.k33.n21",
        "linear+rms_norm+silu+linear+dropout+softmax+relu/f32/m9.k33.n21.o7",
        "conv2d+bias+relu6+max_pool+add+tanh/f32/n2.c6.h9.w11.k18.r3.s3.pad1.groups3",
        "conv_bn_relu_maxpool/f32/n2.c3.h13.w10.k17.r3.s3.pad1.pool3.pstride2.ppad1",
        "conv2d+batch_norm/f32/n2.c5.h9.w8.k5.r3.s2.stride2.pad1.groups5",
        "qk+scale+add+softmax+dropout+pv+add/f32/b2.h3.q7.kv13.d8",
        "multihead_linear/f32/b2.h3.q5.kv7.d4.n9",
        "multihead_linear/f32/b2.h6.q5.kv7.d4.kvh2.causal1.n9",
        "softmax+dropout+pv+linear+bias/f32/b2.h3.q5.kv7.d4.n9",
    ];

    #[test]
    fn rows_are_the_same_alone_and_in_any_company() {
        for text in PROBLEMS {
            let problem: Problem = text.parse().unwrap();
            let inputs = Inputs::random(&problem, 5);
            let reference = Reference::new(&problem, &inputs);
            let all: Vec<usize> = (0..reference.rows()).collect();
            let alone: Vec<f64> = all.iter().flat_map(|&row| reference.row(row)).collect();
            assert_eq!(reference.rows_at(&all).values, alone, "{text}");
            let some: Vec<usize> = all.iter().copied().filter(|row| row % 3 != 1).collect();
            let cols = alone.len() / all.len();
            let expected: Vec<f64> =
                some.iter().flat_map(|row| alone[row * cols..][..cols].to_vec()).collect();
            assert_eq!(reference.rows_at(&some).values, expected, "{text}");
        }
    }

    #[test]
    fn the_witness_is_as_right_as_a_kernel() {
        for text in PROBLEMS {
            let problem: Problem = text.parse().unwrap();
            let inputs = Inputs::random(&problem, 5);
            let reference = Reference::new(&problem, &inputs);
            let all: Vec<usize> = (0..reference.rows()).collect();
            let (exact, seen) = (reference.rows_at(&all), reference.witness().rows_at(&all));
            assert_eq!(exact.values.len(), seen.values.len());
            assert_ne!(exact.values, seen.values, "{text}");
            let numbers = exact.values.iter().zip(&seen.values).zip(&exact.rounding);
            for ((y, other), error) in numbers {
                assert!((y - other).abs() <= 4.0 * error, "{text}: {other} is off {y}, {error:e}");
            }
        }
    }
}
