//! A roofline that was fitted to measured times: the coarse form of a time over all sizes.
//!
//! `T = L + ((bytes / B)^4 + (flops / P)^4)^(1/4)`: where bytes and flops take equally long, neither
//! hides the other completely. What is left, the logarithm of the measured time over `T`, is smooth
//! enough in the sizes to be interpolated.

use super::features::{PAIRS, Work};
use super::search::minimise;
use crate::cost::Ceilings;

/// A roofline for the fused variant of one chain.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Roofline {
    launch_ms: f64,
    /// At the largest working set of the curve.
    bytes_per_ms: f64,
    flops_per_ms: f64,
    /// Bandwidth over the working set, relative to that of the largest one: its logarithm to base 2
    /// in bytes, and the factor. Empty where none was measured.
    curve: Vec<(f64, f64)>,
}

/// How sure the start of a fit is of each parameter, as the standard deviation of its logarithm.
const CEILINGS_SD: f64 = 0.7;
/// The same where the start itself is only a guess from the times.
const GUESS_SD: f64 = 2.0;

/// Residuals below this count by their squares, those above by their size.
const ROBUST_FROM: f64 = 0.1;

/// No launch is shorter: a clock that reports nothing has none to start with.
const LEAST_LAUNCH_MS: f64 = 1e-6;

/// Times that a fit looks at: its three parameters are certain long before.
const MOST_TIMES: usize = 400;

impl Roofline {
    /// The roofline of measured ceilings; `None` where no bandwidth was measured.
    #[expect(clippy::cast_precision_loss, reason = "an interpolation")]
    pub(super) fn of(ceilings: &Ceilings) -> Option<Self> {
        let last = ceilings.bandwidth.last()?;
        let point = |bytes: u64, rate: f64| ((bytes.max(1) as f64).log2(), rate / last.gb_per_s);
        Some(Self {
            launch_ms: (ceilings.launch_us * 1e-3).max(LEAST_LAUNCH_MS),
            // 10^9 per second is 10^6 per millisecond.
            bytes_per_ms: last.gb_per_s * 1e6,
            flops_per_ms: ceilings.peak_gflops * 1e6,
            curve: ceilings
                .bandwidth
                .iter()
                .map(|one| point(one.working_set_bytes, one.gb_per_s))
                .collect(),
        })
    }

    /// The roofline nearest to times in milliseconds, starting at the ceilings or, without them, at
    /// what the times themselves show.
    pub(super) fn fit<'a>(
        ceilings: Option<&Ceilings>,
        times: impl ExactSizeIterator<Item = (&'a Work, f64)> + Clone,
    ) -> Self {
        let (start, sd) = match ceilings.and_then(Self::of) {
            Some(of_ceilings) => (of_ceilings, CEILINGS_SD),
            None => (Self::seen_in(times.clone()), GUESS_SD),
        };
        let every = times.len().div_ceil(MOST_TIMES).max(1);
        // What the parameters do not change is computed once.
        let times: Vec<(&Work, f64, f64)> = times
            .step_by(every)
            .map(|(work, time)| (work, start.relative_bandwidth(work), time.ln()))
            .collect();
        let first = [start.launch_ms, start.bytes_per_ms, start.flops_per_ms].map(f64::ln);
        let without_curve = |at: &[f64]| Self {
            launch_ms: at[0].exp(),
            bytes_per_ms: at[1].exp(),
            flops_per_ms: at[2].exp(),
            curve: Vec::new(),
        };
        let found = minimise(&first, |at| {
            let roofline = without_curve(at);
            let misfit = |(work, bandwidth, ln_time): &(&Work, f64, f64)| {
                let ms_per_byte = (roofline.bytes_per_ms * bandwidth).recip();
                let fused_ms = roofline.kernel_ms(work.flops(), work.bytes(), ms_per_byte);
                let off = (ln_time - fused_ms.ln()) / ROBUST_FROM;
                (1.0 + off * off).sqrt() - 1.0
            };
            let distrust = |(at, first): (&f64, f64)| 0.5 * ((at - first) / sd).powi(2);
            times.iter().map(misfit).sum::<f64>() + at.iter().zip(first).map(distrust).sum::<f64>()
        });
        Self { curve: start.curve, ..without_curve(&found) }
    }

    /// A fifth of the shortest time, and the best rates, that any of the times shows.
    fn seen_in<'a>(times: impl Iterator<Item = (&'a Work, f64)>) -> Self {
        let (mut launch_ms, mut bytes_per_ms, mut flops_per_ms) =
            (f64::INFINITY, LEAST_LAUNCH_MS, LEAST_LAUNCH_MS);
        for (work, time) in times {
            launch_ms = launch_ms.min(0.2 * time);
            bytes_per_ms = bytes_per_ms.max(work.bytes() / time);
            flops_per_ms = flops_per_ms.max(work.flops() / time);
        }
        // A chain without a flop, such as a ReLU, is bound by its bytes.
        let flops_per_ms = flops_per_ms.max(bytes_per_ms);
        let launch_ms = if launch_ms.is_finite() { launch_ms } else { 1.0 };
        Self {
            launch_ms: launch_ms.max(LEAST_LAUNCH_MS),
            bytes_per_ms,
            flops_per_ms,
            curve: Vec::new(),
        }
    }

    pub(super) const fn flops_per_ms(&self) -> f64 {
        self.flops_per_ms
    }

    /// The time of the fused variant.
    pub(super) fn fused_ms(&self, work: &Work) -> f64 {
        self.kernel_ms(work.flops(), work.bytes(), self.ms_per_byte(work))
    }

    /// The logarithms of the time of the fused variant, and of the speedup that the roofline allows:
    /// the unfused kernels one after the other, at the bandwidth of the chain's footprint, over the
    /// fused one.
    pub(super) fn logarithms(&self, work: &Work) -> [f64; 2] {
        let ms_per_byte = self.ms_per_byte(work);
        let mut times = [[0.0; 2]; PAIRS];
        // In pairs, which are vectors: square roots take longest.
        for (times, pair) in times.iter_mut().zip(work.pairs()) {
            *times = std::array::from_fn(|kernel| {
                self.kernel_ms(pair.flops[kernel], pair.bytes[kernel], ms_per_byte)
            });
        }
        let times = times.as_flattened();
        let unfused: f64 = times[1..=work.steps()].iter().sum();
        let ln_fused = times[0].ln();
        [ln_fused, unfused.ln() - ln_fused]
    }

    #[inline]
    fn kernel_ms(&self, flops: f64, bytes: f64, ms_per_byte: f64) -> f64 {
        let (memory, compute) = (bytes * ms_per_byte, flops / self.flops_per_ms);
        let (memory2, compute2) = (memory * memory, compute * compute);
        self.launch_ms + (memory2 * memory2 + compute2 * compute2).sqrt().sqrt()
    }

    /// Milliseconds for a byte at the footprint of the fused variant.
    fn ms_per_byte(&self, work: &Work) -> f64 {
        (self.bytes_per_ms * self.relative_bandwidth(work)).recip()
    }

    /// The bandwidth at that footprint, relative to that of the largest one.
    #[inline]
    fn relative_bandwidth(&self, work: &Work) -> f64 {
        let after = self.curve.partition_point(|point| point.0 < work.log2_bytes);
        let below = after.checked_sub(1).and_then(|index| self.curve.get(index));
        match (below, self.curve.get(after)) {
            (Some(low), Some(high)) => {
                low.1 + (work.log2_bytes - low.0) / (high.0 - low.0) * (high.1 - low.1)
            }
            (Some(only), None) | (None, Some(only)) => only.1,
            (None, None) => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::BandwidthPoint;
    use crate::model::features::Features;

    fn work(text: &str) -> Work {
        Features::of(&text.parse().unwrap()).work
    }

    fn works() -> Vec<Work> {
        let sizes = [16, 64, 256, 1024];
        let of = |m, n| work(&format!("linear_bias_relu/f32/m{m}.k{n}.n256"));
        sizes.into_iter().flat_map(|m| sizes.map(|n| of(m, n))).collect()
    }

    fn truth() -> Roofline {
        let curve = Vec::new();
        Roofline { launch_ms: 0.01, bytes_per_ms: 2e7, flops_per_ms: 4e8, curve }
    }

    #[test]
    fn times_on_a_roofline_give_it_back_whatever_the_outliers() {
        let (works, truth) = (works(), truth());
        let times = works.iter().enumerate().map(|(index, work)| {
            let off = if index % 5 == 0 { 3.0 } else { 1.0 };
            (work, off * truth.fused_ms(work))
        });
        let fitted = Roofline::fit(None, times);
        for work in &works {
            let off = (fitted.fused_ms(work) / truth.fused_ms(work)).ln();
            assert!(off.abs() < 0.15, "{off} {fitted:?}");
        }
    }

    #[test]
    fn one_time_leaves_the_ceilings_where_they_are_but_for_a_factor() {
        let point = |working_set_bytes, gb_per_s| BandwidthPoint {
            working_set_bytes,
            gb_per_s,
            nontemporal_gb_per_s: None,
            read_gb_per_s: None,
        };
        let bandwidth = vec![point(1 << 16, 80.0), point(1 << 26, 20.0)];
        let ceilings = Ceilings { peak_gflops: 400.0, launch_us: 10.0, bandwidth };
        let start = Roofline::of(&ceilings).unwrap();
        let only = work("relu/f32/m4096.n4096");
        // Half way between the points of the curve in the logarithm: 50 GB/s.
        let middle = work("relu/f32/m512.n512");
        assert!((start.fused_ms(&middle) - (0.01 + 2_097_152.0 / 50e6)).abs() < 1e-9);
        let time = 2.0 * start.fused_ms(&only);
        let fitted = Roofline::fit(Some(&ceilings), [(&only, time)].into_iter());
        assert!((fitted.fused_ms(&only) / time).ln().abs() < 0.1);
        assert!((fitted.flops_per_ms / start.flops_per_ms).ln().abs() < 0.01);
        let none = Ceilings { bandwidth: Vec::new(), ..ceilings };
        assert_eq!(Roofline::of(&none), None);
    }

    #[test]
    fn the_speedup_of_launches_and_of_bytes() {
        let truth = truth();
        let ln_speedup = |text: &str| truth.logarithms(&work(text))[1];
        assert!((ln_speedup("add_relu/f32/m1.n1").exp() - 2.0).abs() < 1e-3);
        let large = ln_speedup("add_relu/f32/m9999.n9999").exp();
        assert!((large - 5.0 / 3.0).abs() < 1e-2, "{large}");
        assert_eq!(ln_speedup("relu/f32/m9.n9"), 0.0);
        let nothing = Roofline::fit(None, std::iter::empty());
        assert!(nothing.fused_ms(&work("relu/f32/m9.n9")).is_finite());
    }
}
