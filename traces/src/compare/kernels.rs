//! The kernels of both sides by name.

use rustc_hash::FxHashMap;

use super::basis::{PHASES, Steps};
use super::ledger::{Ledger, NameSums};
use super::result::{KernelRow, Part, SameKernel, Which};
use super::side::Chosen;
use super::tally::Both;

/// The kernels with the same name on both sides, the largest gap first.
pub(super) fn same(sides: &[Chosen<'_>; 2], steps: &Steps, ledger: &Ledger) -> Vec<SameKernel> {
    let text = |side: usize, id| sides[side].side.trace.names.text(id);
    let second: FxHashMap<&str, &NameSums> =
        ledger.names[1].iter().map(|(name, sums)| (text(1, *name), sums)).collect();
    let pair = |(name, first): (&crate::NameId, &NameSums)| {
        let name = text(0, *name);
        let second = second.get(name)?;
        let both = Both([first.all(), second.all()]);
        let mut part = Part::default();
        for phase in 0..PHASES {
            let both = Both([first.phases[phase], second.phases[phase]]);
            part.add(&both.part(steps, phase));
        }
        Some(SameKernel {
            kernel: name.to_owned(),
            class: first.work.label(),
            part,
            first_mean_ns: both.0[0].mean_ns()?,
            second_mean_ns: both.0[1].mean_ns()?,
            ratio: both.ratio()?,
        })
    };
    let mut same: Vec<SameKernel> = ledger.names[0].iter().filter_map(pair).collect();
    same.sort_by(|a, b| {
        let by_gap = b.part.gap_ns.abs().total_cmp(&a.part.gap_ns.abs());
        by_gap.then_with(|| a.kernel.cmp(&b.kernel))
    });
    same
}

/// The kernels of both sides, the longest first.
pub(super) fn rows(sides: &[Chosen<'_>; 2], steps: &Steps, ledger: &Ledger) -> Vec<KernelRow> {
    let mut rows = Vec::new();
    for (index, side) in sides.iter().enumerate() {
        let all = ledger.phases[index].iter().map(|tally| tally.total_ns);
        let whole = all.fold(0, u64::saturating_add);
        for (name, sums) in &ledger.names[index] {
            let all = sums.all();
            let step_ns = (0..PHASES)
                .map(|phase| {
                    #[expect(clippy::cast_precision_loss, reason = "exact for 104 days")]
                    let own = sums.phases[phase].own_ns as f64;
                    own * steps.weight(index, phase)
                })
                .sum();
            rows.push(KernelRow {
                side: Which::of(index),
                kernel: side.side.trace.names.text(*name).to_owned(),
                class: sums.work.label(),
                amount: all.amount(),
                step_ns,
                share: crate::ratio::ratio(all.total_ns, whole),
            });
        }
    }
    rows.sort_by(|a, b| {
        let by_total = b.amount.total_ns.cmp(&a.amount.total_ns);
        by_total.then_with(|| (&a.kernel, a.side).cmp(&(&b.kernel, b.side)))
    });
    rows
}
