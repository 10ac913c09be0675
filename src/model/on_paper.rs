//! What the roofline on the measured ceilings is worth on a target.

use super::spread::quantile_of_groups;
use crate::calibration::FusionRecord;
use crate::cost::Ceilings;
use crate::vocabulary::{Chain, DType, Problem};

/// How measured times and speedups relate to those that the ceilings allow: kernels take longer than
/// a roofline, and fusion gains a part of what it could.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OnPaper {
    relation: Relation,
    /// Half of the interval of the logarithm of a time.
    of_time: f64,
    /// Half of that of a speedup: in parts of its [`scale`], and what it is at least.
    of_speedup: f64,
    least_of_speedup: f64,
}

/// What is expected of a chain.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Relation {
    /// The median of the logarithm of a fused time over its roofline.
    ln_slower: f64,
    /// The share of the logarithm of the ceiling speedup that is reached.
    share: f64,
}

/// Before anything was measured: kernels take as long as the ceilings allow, or up to three times
/// that; fusion gains what it could, or half as much again, or as much less.
impl Default for OnPaper {
    fn default() -> Self {
        Self {
            relation: Relation { ln_slower: 0.0, share: 1.0 },
            of_time: 3.0_f64.ln(),
            of_speedup: 0.0,
            least_of_speedup: 1.5_f64.ln(),
        }
    }
}

/// Below this many chains an interval is not narrower than the one before any.
const FEW: usize = 8;

/// A record beside its roofline.
struct OnBoth {
    chain: Chain,
    /// The logarithm of its fused time over the roofline.
    slower: f64,
    /// The logarithms of the speedup that the ceilings allow and of the measured one; `None` for a
    /// single op.
    speedup: Option<[f64; 2]>,
}

/// What the error of a speedup is compared with, from the logarithm of what the ceilings allow: the
/// more there is to gain, the more an estimate of it is off. Chains whose gain is less than that of two
/// pointwise ops are off by about as much as each other.
fn scale(allowed: f64) -> f64 {
    const OF_TWO: f64 = 0.5;
    allowed.hypot(OF_TWO)
}

impl Relation {
    /// From all records but those of a chain; `None` without any.
    fn without(chain: Option<&Chain>, known: &[OnBoth]) -> Option<Self> {
        let others = || known.iter().filter(|one| chain != Some(&one.chain));
        let mut slower: Vec<f64> = others().map(|one| one.slower).collect();
        slower.sort_unstable_by(f64::total_cmp);
        let &ln_slower = slower.get(slower.len() / 2)?;
        // By least squares, with as much for a share of 1 as a few records say.
        const FOR_ALL: f64 = 0.1;
        let [products, squares] = others().filter_map(|one| one.speedup).fold(
            [FOR_ALL; 2],
            |[products, squares], [allowed, got]| {
                [products + allowed * got, squares + allowed * allowed]
            },
        );
        Some(Self { ln_slower, share: (products / squares).clamp(0.0, 1.0) })
    }
}

impl OnPaper {
    /// A roofline is asked about chains that were not measured, so that its errors are those of each
    /// chain without its records, and each chain counts once, however many records it has.
    pub(super) fn of<'r, 'c>(
        records: impl Iterator<Item = &'r FusionRecord>,
        ceilings: impl Fn(DType) -> Option<&'c Ceilings>,
    ) -> Self {
        let before = Self::default();
        let on_both = |record: &FusionRecord| {
            let [fused, speedup] = logarithms(ceilings(record.dtype)?, &record.problem)?;
            let slower = record.fused_latency_ms.ln() - fused;
            let chain = *record.problem.chain();
            let speedup = (!chain.is_single()).then(|| [speedup, record.speedup_factor.ln()]);
            slower.is_finite().then_some(OnBoth { chain, slower, speedup })
        };
        let known: Vec<OnBoth> = records.filter_map(on_both).collect();
        let Some(relation) = Relation::without(None, &known) else { return before };
        let mut chains: Vec<Chain> = Vec::new();
        for one in &known {
            if !chains.contains(&one.chain) {
                chains.push(one.chain);
            }
        }
        let [mut of_times, mut of_speedups] = [Vec::new(), Vec::new()];
        for chain in &chains {
            let Some(relation) = Relation::without(Some(chain), &known) else { continue };
            let own = || known.iter().filter(|one| one.chain == *chain);
            of_times.push(own().map(|one| (one.slower - relation.ln_slower).abs()).collect());
            let off =
                |[allowed, got]: [f64; 2]| (got - relation.share * allowed).abs() / scale(allowed);
            let off: Vec<f64> = own().filter_map(|one| one.speedup).map(off).collect();
            if !off.is_empty() {
                of_speedups.push(off);
            }
        }
        let [least_of_time, least_of_speedup] =
            [(&of_times, before.of_time), (&of_speedups, before.least_of_speedup)]
                .map(|(all, before)| if all.len() < FEW { before } else { 0.0 });
        Self {
            relation,
            of_time: quantile_of_groups(&of_times).unwrap_or(0.0).max(least_of_time),
            of_speedup: quantile_of_groups(&of_speedups).unwrap_or(0.0),
            least_of_speedup,
        }
    }

    /// The logarithms of a fused time in milliseconds and of a speedup, and halves of their
    /// intervals; `None` where no bandwidth was measured.
    pub(super) fn estimate(&self, ceilings: &Ceilings, problem: &Problem) -> Option<[[f64; 2]; 2]> {
        let [fused, allowed] = logarithms(ceilings, problem)?;
        let Relation { ln_slower, share } = self.relation;
        let of_speedup = (self.of_speedup * scale(allowed)).max(self.least_of_speedup);
        // A single op has no other variant, for certain.
        let of_speedup = if problem.chain().is_single() { 0.0 } else { of_speedup };
        Some([[fused + ln_slower, self.of_time], [share * allowed, of_speedup]])
    }
}

/// Of the fused time in milliseconds and of the speedup that the ceilings allow.
fn logarithms(ceilings: &Ceilings, problem: &Problem) -> Option<[f64; 2]> {
    let roofline = ceilings.roofline(problem)?;
    Some([(roofline.fused_us * 1e-3).ln(), roofline.speedup().ln()])
}
