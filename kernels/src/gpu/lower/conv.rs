//! Convolutions with what follows them.

use std::ops::Range;

use fusion_cost_model::{ConvSizes, Op};

use super::Builder;
use super::gemm::{Gemm, Left, Pool};
use super::gemm_tiles::TileShape;
use super::image::Image;
use super::operand::{Given, Operand, vector_width};
use super::phase::{self, Parameters, Phase, THREADS};
use crate::gpu::plan::KernelPlan;
use crate::gpu::tensors::{Role, TensorId};

/// Filters up to this width are compiled into kernels of depthwise convolutions.
const MOST_WIDTH: u64 = 7;
/// Numbers of an image that a thread of such a kernel holds at most, so that they and its sums fit
/// into its registers.
const MOST_HELD: u64 = 48;

impl Builder<'_> {
    /// Steps that begin with a convolution.
    pub(super) fn conv_kernel(
        &mut self,
        steps: Range<usize>,
        input: TensorId,
        output: TensorId,
    ) -> Option<KernelPlan> {
        let sizes = self.problem.sizes().conv()?;
        let filter = *self.operands[steps.start].first()?;
        let mut parameters = Parameters::default();
        let tail = self.tail(steps.start, steps.end);
        let pool = steps.clone().find(|&step| self.steps[step].op == Op::MaxPool);
        let depthwise = sizes.groups > 1 && sizes.groups == sizes.c;
        let in_tile = pool.and_then(|step| self.pool_in_tile(step, steps.end, depthwise));

        let target = match pool {
            Some(_) if in_tile.is_none() => self.intermediate(tail.end - 1, Role::Scratch),
            _ => output,
        };
        let mut phases = vec![if depthwise {
            self.depthwise_phase(&sizes, tail, [input, filter, target], &mut parameters)
        } else {
            let image =
                Image { tensor: input, sizes, window: in_tile.as_ref().map_or(0, |it| it.window) };
            let gemm = self.conv_gemm(image, filter, tail, in_tile.clone(), target);
            self.gemm_phase(&gemm, &mut parameters)
        }];
        if let (Some(step), None) = (pool, in_tile) {
            let tail = self.tail(step, steps.end);
            phases.push(self.max_pool_phase(step, tail, target, output, &mut parameters)?);
        }
        Some(phase::kernel(phases, parameters, self.problem.dtype(), &mut self.table))
    }

    /// The max-pool `step`, if its windows do not overlap and can be in one warp's rows each.
    fn pool_in_tile(&self, step: usize, end: usize, depthwise: bool) -> Option<Pool> {
        let sizes = self.problem.sizes().pool()?;
        let rows = TileShape::staged_rows(&self.device.architecture, self.problem.dtype());
        let whole = sizes.pad == 0 && sizes.window > 1 && sizes.window == sizes.stride;
        (whole && !depthwise && rows.is_multiple_of(sizes.window * sizes.window)).then(|| Pool {
            step,
            window: sizes.window,
            tail: self.tail(step, end),
        })
    }

    fn conv_gemm(
        &self,
        image: Image,
        filter: TensorId,
        tail: Range<usize>,
        pool: Option<Pool>,
        output: TensorId,
    ) -> Gemm {
        let ConvSizes { n, c, k, r, s, groups, .. } = image.sizes;
        let pixels = match &pool {
            Some(pool) => self.steps[pool.step].output.rows * pool.window * pool.window,
            None => n * image.sizes.out_h() * image.sizes.out_w(),
        };
        Gemm {
            name: if pool.is_some() { "conv_pool" } else { "conv" }.to_owned(),
            m: pixels,
            n: k / groups,
            k: r * s * (c / groups),
            batches: [1, groups],
            a: Left::Image(image),
            b: Operand { tensor: filter, stride: k, steps: [0, k / groups], sharing: 1 },
            given: Given::Rows,
            wide: false,
            scale: 1.0,
            tail,
            pool,
            output,
        }
    }

    /// A convolution with one input channel for each group, which is not a GEMM: nothing is summed
    /// over channels, and every number of the image is used a few times only.
    fn depthwise_phase(
        &self,
        sizes: &ConvSizes,
        tail: Range<usize>,
        [input, filter, output]: [TensorId; 3],
        parameters: &mut Parameters,
    ) -> Phase {
        let dtype = self.problem.dtype();
        let ConvSizes { n, c, h, w, k, r, s, stride, pad, .. } = *sizes;
        let (out_h, out_w) = (sizes.out_h(), sizes.out_w());
        let width = if k == c { vector_width(dtype, &[c]) } else { 1 };
        let compiled = s <= MOST_WIDTH && stride <= 2;
        let (filter_width, step) = if compiled { (s, stride) } else { (0, 1) };
        let held = |pixels: u64| ((pixels - 1) * stride + s) * width;
        let pixels = [4, 2].into_iter().find(|&pixels| compiled && held(pixels) <= MOST_HELD);
        let pixels = pixels.unwrap_or(1);
        let tail = self.tail_text("depthwise_tail", tail, parameters);
        let tensors =
            [parameters.read(input), parameters.read(filter), parameters.write(output)].join(", ");
        let fields = [n, h, w, out_h, out_w, r, s, stride, pad, c, k / c]
            .map(|size| parameters.size(size))
            .join(", ");
        let items = n * out_h * out_w.div_ceil(pixels) * (k / width);
        Phase {
            cluster: 1,
            name: format!("depthwise_{filter_width}x{pixels}x{width}"),
            headers: vec!["conv.h"],
            definitions: tail.definition,
            tile: format!(
                "const port::Depthwise<T, {width}, {pixels}, {filter_width}, {step}> depthwise = \
                 {{{tensors}, {fields}}}; depthwise.tile(tile, {});",
                tail.construct
            ),
            tiles: items.div_ceil(u64::from(THREADS)),
            threads: THREADS,
            shared_bytes: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::Problem;

    use crate::gpu::tests::emulation::check_all;

    const ARCHITECTURES: [&str; 6] = ["sm_80", "gfx942", "gfx1100", "gfx1201", "sm_75", "gfx906"];

    /// Convolutions for one of the architectures, in another dtype for the next one.
    fn problems(turn: usize) -> Vec<Problem> {
        let images = [
            "n1.c1.h1.w1.k1.r1.s1",
            "n2.c3.h5.w7.k5.r3.s3.pad1",
            "n1.c5.h9.w8.k7.r3.s2.stride2.pad1",
            "n2.c16.h11.w13.k33.r1.s1",
            "n1.c6.h9.w9.k9.r3.s3.pad1.groups3",
            "n1.c32.h5.w5.k48.r3.s3.pad1.groups2",
            "n2.c35.h7.w7.k35.r3.s3.pad1.groups35",
            "n1.c16.h9.w9.k16.r9.s9.pad4.groups16",
            "n1.c8.h6.w6.k16.r3.s3.pad1.groups8",
            "n1.c32.h3.w3.k300.r3.s3.pad1",
        ];
        let pooled = [
            "n2.c3.h9.w11.k18.r3.s3.pad1",
            "n1.c8.h13.w10.k16.r3.s3.pad1.pool4.pstride4",
            "n1.c2.h13.w10.k17.r3.s3.pad1.pool3.pstride2.ppad1",
            "n1.c4.h9.w9.k4.r3.s3.pad1.groups4.pool2.pstride2",
        ];
        let images = images.iter().map(|sizes| ("conv2d+batch_norm+dropout+add", sizes));
        let pooled = pooled.iter().map(|sizes| ("conv2d+bias+add+relu6+max_pool+add+tanh", sizes));
        let problem = |(index, (chain, sizes)): (usize, (&str, &&str))| {
            let dtype = ["f32", "f16", "bf16"][(index + turn) % 3];
            format!("{chain}/{dtype}/{sizes}").parse().unwrap()
        };
        images.chain(pooled).enumerate().map(problem).collect()
    }

    /// Every second problem of each architecture, and the others of the next one.
    #[test]
    fn convolutions_of_any_size_with_what_follows() {
        for (turn, architecture) in ARCHITECTURES.into_iter().enumerate() {
            let dealt: Vec<_> = problems(turn).into_iter().skip(turn % 2).step_by(2).collect();
            check_all(&dealt, architecture);
        }
    }

    #[test]
    #[ignore = "takes minutes: ALL_ARCHITECTURES=1 .ci/run runs it, and so does the workflow"]
    fn convolutions_of_every_size_on_every_architecture() {
        for (turn, architecture) in ARCHITECTURES.into_iter().enumerate() {
            check_all(&problems(turn), architecture);
        }
    }
}
