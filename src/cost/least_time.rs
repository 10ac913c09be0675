//! The least time that the measured ceilings allow: anything faster was not measured right.

use super::roofline::Ceilings;
use super::traffic::Traffic;
use crate::vocabulary::{Op, Problem};

/// The least time of both variants under the measured ceilings, in microseconds.
///
/// Unlike [`RooflineTime`](super::RooflineTime), which says what a good kernel can reach, this is a
/// bound: every kernel takes the longest of one launch, its flops at the peak rate, and its bytes
/// at the highest bandwidth that was seen by any means, at half its working set, since it may find
/// a part of it in a nearer cache.
#[derive(Debug, Clone, PartialEq)]
pub struct LeastTime {
    /// Each unfused kernel, one for each op.
    pub steps_us: Vec<f64>,
    /// Sum over the unfused kernels.
    pub unfused_us: f64,
    /// The fused kernel.
    pub fused_us: f64,
}

impl LeastTime {
    /// What is allowed by either of two: the lesser of each time of the same problem.
    #[must_use]
    pub fn or_less(self, other: Self) -> Self {
        let steps = self.steps_us.iter().zip(&other.steps_us);
        Self {
            steps_us: steps.map(|(a, b)| a.min(*b)).collect(),
            unfused_us: self.unfused_us.min(other.unfused_us),
            fused_us: self.fused_us.min(other.fused_us),
        }
    }
}

impl Ceilings {
    /// The least time of both variants; `None` when no bandwidth was measured.
    #[must_use]
    pub fn least_time(&self, problem: &Problem) -> Option<LeastTime> {
        let mut steps_us = Vec::new();
        let mut unread_bytes = 0;
        for step in problem.steps() {
            let operands = step.operand_bytes();
            let unread = if step.op == Op::Conv2d { unread_pixels(problem) } else { 0 };
            let unread = unread * step.input_element_bytes();
            unread_bytes += unread;
            let (input, output) = (step.input_bytes() - unread, step.output_bytes());
            // An op may work in place, and then input and output are the same memory.
            let touched = input.max(output) + operands;
            let moved = input + operands + output;
            steps_us.push(self.least_us(step.flops(), moved, touched)?);
        }
        let Traffic { flops, fused_bytes, .. } = Traffic::of(problem);
        let fused_bytes = fused_bytes - unread_bytes;
        let fused_us = self.least_us(flops, fused_bytes, fused_bytes)?;
        Some(LeastTime { unfused_us: steps_us.iter().sum(), steps_us, fused_us })
    }

    #[expect(clippy::cast_precision_loss, reason = "times")]
    fn least_us(&self, flops: u64, moved: u64, touched: u64) -> Option<f64> {
        let half = touched / 2;
        let beyond = self.bandwidth.partition_point(|point| point.working_set_bytes <= half);
        // The points around half the working set, and all larger ones.
        let points = &self.bandwidth[beyond.saturating_sub(1)..];
        let fastest = points.iter().map(super::BandwidthPoint::fastest_gb_per_s);
        let gb_per_s = fastest.reduce(f64::max)?;
        // 10^9 per second is 10^3 per microsecond.
        let compute_us = flops as f64 / (self.peak_gflops * 1e3);
        let memory_us = moved as f64 / (gb_per_s * 1e3);
        Some(self.launch_us.max(compute_us).max(memory_us))
    }
}

/// Elements of the input that a convolution steps over, because its stride is longer than its
/// filter. The compulsory traffic counts them, since they share lines of the caches with others;
/// a bound must not.
fn unread_pixels(problem: &Problem) -> u64 {
    let Some(conv) = problem.sizes().conv() else { return 0 };
    let rows = read_pixels(conv.h, conv.r, conv.stride, conv.pad, conv.out_h());
    let cols = read_pixels(conv.w, conv.s, conv.stride, conv.pad, conv.out_w());
    conv.n * conv.c * (conv.h * conv.w - rows * cols)
}

/// How many of the `pixels` along one side lie in at least one window of a filter.
fn read_pixels(pixels: u64, filter: u64, stride: u64, pad: u64, windows: u64) -> u64 {
    // Pixels before the first one that window `index` does not reach, and after the last one.
    let end = |index: u64| (index * stride + filter).saturating_sub(pad).min(pixels);
    let start = |index: u64| (index * stride).saturating_sub(pad).min(pixels);
    // A window counts from where the one before it ended.
    let own = |index: u64| {
        let before = index.checked_sub(1).map_or(0, end);
        end(index).saturating_sub(start(index).max(before))
    };
    (0..windows).map(own).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::BandwidthPoint;
    use proptest::prelude::*;

    fn ceilings() -> Ceilings {
        let point = |working_set_bytes, gb_per_s, read| BandwidthPoint {
            working_set_bytes,
            gb_per_s,
            nontemporal_gb_per_s: None,
            read_gb_per_s: Some(read),
        };
        Ceilings {
            peak_gflops: 100.0,
            launch_us: 1.0,
            bandwidth: vec![point(1 << 16, 80.0, 100.0), point(1 << 30, 10.0, 20.0)],
        }
    }

    #[test]
    fn each_limit_by_hand() {
        // 64 MiB a tensor: more than half of it lies beyond the first point, but that point is
        // the nearest below, and its fastest way is reading at 100 GB/s.
        let problem: Problem = "add_relu/f32/m4096.n4096".parse().unwrap();
        let least = ceilings().least_time(&problem).unwrap();
        let tensor_us = 67_108_864.0 / 100e3;
        assert!((least.fused_us - 3.0 * tensor_us).abs() < 1e-6);
        assert!((least.unfused_us - 5.0 * tensor_us).abs() < 1e-6);
        // Beyond the last point only that counts.
        let huge: Problem = "add_relu/f32/m65536.n16384".parse().unwrap();
        let least = ceilings().least_time(&huge).unwrap();
        assert!((least.fused_us - 3.0 * 4_294_967_296.0 / 20e3).abs() < 1e-3);
        // Two billion flops at 100 GFLOP/s.
        let product: Problem = "linear_bias/f32/m1000.k1000.n1000".parse().unwrap();
        assert!((ceilings().least_time(&product).unwrap().fused_us - 20_010.0).abs() < 1.0);
        let tiny: Problem = "linear_bias_relu/f32/m2.k2.n2".parse().unwrap();
        let least = ceilings().least_time(&tiny).unwrap();
        assert_eq!((least.unfused_us, least.fused_us), (3.0, 1.0));
        assert_eq!(least.steps_us, [1.0; 3]);
        let slower = Ceilings { launch_us: 2.0, ..ceilings() }.least_time(&tiny).unwrap();
        assert_eq!(slower.or_less(least.clone()), least);
        let unknown = Ceilings { bandwidth: Vec::new(), ..ceilings() };
        assert_eq!(unknown.least_time(&tiny), None);
    }

    #[test]
    fn what_a_stride_steps_over_is_not_counted() {
        let unread =
            |sizes: &str| unread_pixels(&format!("conv_bias/f32/n2.c3.{sizes}").parse().unwrap());
        assert_eq!(unread("h8.w8.k4.r3.s3.pad1.stride2"), 0);
        // Every second row and column: 16 of 64 pixels are read, and 9 of 25.
        assert_eq!(unread("h8.w8.k4.r1.s1.stride2"), 2 * 3 * 48);
        assert_eq!(unread("h5.w5.k4.r1.s1.stride2"), 2 * 3 * 16);
        // One window in a corner; and four by four of them that leave a row and a column.
        assert_eq!(unread("h4.w4.k4.r2.s2.stride3"), 2 * 3 * 12);
        assert_eq!(unread("h9.w9.k4.r2.s2.stride2"), 2 * 3 * 17);
    }

    proptest! {
        /// A kernel on the roofline is never faster than the bound.
        #[test]
        fn the_roofline_lies_above_the_bound(
            m in 1_u64..5000, k in 1_u64..500, n in 1_u64..500, peak in 1.0..1e4_f64,
        ) {
            let problem: Problem =
                format!("linear_bias_relu/f32/m{m}.k{k}.n{n}").parse().unwrap();
            let ceilings = Ceilings { peak_gflops: peak, ..ceilings() };
            let least = ceilings.least_time(&problem).unwrap();
            let roofline = ceilings.roofline(&problem).unwrap();
            prop_assert!(least.fused_us <= roofline.fused_us);
            prop_assert!(least.unfused_us <= roofline.unfused_us);
        }
    }
}
