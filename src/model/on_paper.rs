//! What the roofline on the measured ceilings is worth on a target.

use super::spread::quantile;
use crate::calibration::FusionRecord;
use crate::cost::Ceilings;
use crate::vocabulary::{DType, Problem};

/// How measured times and speedups relate to those that the ceilings allow: kernels take longer than
/// a roofline, and fusion gains a part of what it could.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OnPaper {
    /// The median of the logarithm of a fused time over its roofline.
    ln_slower: f64,
    /// The share of the logarithm of the ceiling speedup that is reached.
    share: f64,
    half_widths: [f64; 2],
}

/// Before anything was measured: kernels take as long as the ceilings allow, or up to three times
/// that; fusion gains what it could, or half as much again, or as much less.
impl Default for OnPaper {
    fn default() -> Self {
        Self { ln_slower: 0.0, share: 1.0, half_widths: [3.0_f64.ln(), 1.5_f64.ln()] }
    }
}

/// Below this many records an interval is not narrower than the one before any.
const FEW: usize = 20;

impl OnPaper {
    pub(super) fn of<'r, 'c>(
        records: impl Iterator<Item = &'r FusionRecord>,
        ceilings: impl Fn(DType) -> Option<&'c Ceilings>,
    ) -> Self {
        let before = Self::default();
        let on_paper = |record: &FusionRecord| {
            let [fused, speedup] = logarithms(ceilings(record.dtype)?, &record.problem)?;
            let slower = record.fused_latency_ms.ln() - fused;
            let is_single = record.problem.chain().len() == 1;
            Some((slower, (!is_single).then(|| [speedup, record.speedup_factor.ln()])))
        };
        let known: Vec<_> = records.filter_map(on_paper).collect();
        let mut slower: Vec<f64> = known.iter().map(|(slower, _)| *slower).collect();
        slower.retain(|one| one.is_finite());
        slower.sort_unstable_by(f64::total_cmp);
        let Some(&ln_slower) = slower.get(slower.len() / 2) else { return before };
        let speedups = || known.iter().filter_map(|(_, speedup)| *speedup);
        // By least squares, with as much for a share of 1 as a few records say.
        const FOR_ALL: f64 = 0.1;
        let [products, squares] = speedups()
            .fold([FOR_ALL; 2], |[products, squares], [on, got]| {
                [products + on * got, squares + on * on]
            });
        let share = (products / squares).clamp(0.0, 1.0);
        let half_width = |off: Vec<f64>, before: f64| {
            let few = off.len() < FEW;
            let found = quantile(off).unwrap_or(before);
            if few { found.max(before) } else { found }
        };
        let off_times = slower.iter().map(|one| (one - ln_slower).abs()).collect();
        let off_speedups = speedups().map(|[on, got]| (got - share * on).abs()).collect();
        let half_widths = [
            half_width(off_times, before.half_widths[0]),
            half_width(off_speedups, before.half_widths[1]),
        ];
        Self { ln_slower, share, half_widths }
    }

    /// The logarithms of a fused time in milliseconds and of a speedup, and halves of their
    /// intervals; `None` where no bandwidth was measured.
    pub(super) fn estimate(&self, ceilings: &Ceilings, problem: &Problem) -> Option<[[f64; 2]; 2]> {
        let [fused, speedup] = logarithms(ceilings, problem)?;
        let [of_time, of_speedup] = self.half_widths;
        // A single op has no other variant, for certain.
        let of_speedup = if problem.chain().len() == 1 { 0.0 } else { of_speedup };
        Some([[fused + self.ln_slower, of_time], [self.share * speedup, of_speedup]])
    }
}

/// Of the fused time in milliseconds and of the speedup that the ceilings allow.
fn logarithms(ceilings: &Ceilings, problem: &Problem) -> Option<[f64; 2]> {
    let roofline = ceilings.roofline(problem)?;
    Some([(roofline.fused_us * 1e-3).ln(), roofline.speedup().ln()])
}
