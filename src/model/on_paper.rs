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
    /// Halves of the intervals of the logarithms of fused and unfused times, which may both be off with
    /// the speedup.
    of_fused: f64,
    of_unfused: f64,
    /// Half of that of a speedup: in parts of its [`scale`], and what it is at least.
    of_speedup: f64,
    least_of_speedup: f64,
}

/// The logarithms of a time in milliseconds and of a speedup, each with half of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rough {
    pub(super) fused: [f64; 2],
    pub(super) unfused: [f64; 2],
    pub(super) speedup: [f64; 2],
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
            of_fused: 3.0_f64.ln(),
            of_unfused: 3.0_f64.ln().hypot(1.5_f64.ln()),
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
/// pointwise ops are off by about as much as each other, and so are those of many ops: else one chain with
/// little to gain that is off would say that others may be off by factors of ten.
fn scale(allowed: f64) -> f64 {
    const OF_TWO: f64 = 0.5;
    const OF_MANY: f64 = 1.0;
    allowed.min(OF_MANY).hypot(OF_TWO)
}

impl Relation {
    /// From all records but those of a chain, in the order of how much slower they are; `None` without
    /// any.
    fn without(chain: Option<&Chain>, known: &[OnBoth]) -> Option<Self> {
        let others = || known.iter().filter(|one| chain != Some(&one.chain));
        let ln_slower = others().nth(others().count() / 2)?.slower;
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
        let mut known: Vec<OnBoth> = records.filter_map(on_both).collect();
        known.sort_by(|a, b| a.slower.total_cmp(&b.slower));
        let Some(relation) = Relation::without(None, &known) else { return before };
        let mut chains: Vec<Chain> = Vec::new();
        for one in &known {
            if !chains.contains(&one.chain) {
                chains.push(one.chain);
            }
        }
        let [mut of_fused, mut of_unfused, mut of_speedups] = [Vec::new(), Vec::new(), Vec::new()];
        for chain in &chains {
            let Some(relation) = Relation::without(Some(chain), &known) else { continue };
            let own = || known.iter().filter(|one| one.chain == *chain);
            let of_fused_time = |one: &OnBoth| one.slower - relation.ln_slower;
            let of_speedup = |[allowed, got]: [f64; 2]| got - relation.share * allowed;
            let of_unfused_time =
                |one: &OnBoth| of_fused_time(one) + one.speedup.map_or(0.0, of_speedup);
            of_fused.push(own().map(|one| of_fused_time(one).abs()).collect());
            of_unfused.push(own().map(|one| of_unfused_time(one).abs()).collect());
            let scaled = |both: [f64; 2]| of_speedup(both).abs() / scale(both[0]);
            let off: Vec<f64> = own().filter_map(|one| one.speedup).map(scaled).collect();
            if !off.is_empty() {
                of_speedups.push(off);
            }
        }
        let at_least = |groups: &[Vec<f64>], before: f64| {
            if groups.len() < FEW { before } else { 0.0 }
        };
        let half_width = |groups: &[Vec<f64>], before: f64| {
            quantile_of_groups(groups).unwrap_or(0.0).max(at_least(groups, before))
        };
        Self {
            relation,
            of_fused: half_width(&of_fused, before.of_fused),
            of_unfused: half_width(&of_unfused, before.of_unfused),
            of_speedup: half_width(&of_speedups, before.of_speedup),
            least_of_speedup: at_least(&of_speedups, before.least_of_speedup),
        }
    }

    /// What the ceilings say of a problem; `None` where no bandwidth was measured, or no number comes of
    /// it.
    pub(super) fn estimate(&self, ceilings: &Ceilings, problem: &Problem) -> Option<Rough> {
        let [fused, allowed] = logarithms(ceilings, problem)?;
        let Relation { ln_slower, share } = self.relation;
        let (fused, speedup) = (fused + ln_slower, share * allowed);
        // A single op has no other variant, for certain.
        let [of_unfused, of_speedup] = if problem.chain().is_single() {
            [self.of_fused, 0.0]
        } else {
            let of_speedup = self.of_speedup * scale(allowed);
            [self.of_unfused, of_speedup.max(self.least_of_speedup)]
        };
        let rough = Rough {
            fused: [fused, self.of_fused],
            unfused: [fused + speedup, of_unfused],
            speedup: [speedup, of_speedup],
        };
        let is_number = [fused, speedup].iter().all(|one| one.is_finite());
        is_number.then_some(rough)
    }
}

/// Of the fused time in milliseconds and of the speedup that the ceilings allow.
fn logarithms(ceilings: &Ceilings, problem: &Problem) -> Option<[f64; 2]> {
    let roofline = ceilings.roofline(problem)?;
    Some([(roofline.fused_us * 1e-3).ln(), roofline.speedup().ln()])
}
