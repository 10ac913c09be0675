//! Where the gap between two traces comes from.
//!
//! `same_work` asks whether both did the same work, which decides what may be said of their times.
//! `side` chooses what is compared of each trace, and `attribution` whose each nanosecond of the
//! device is. `models` says whether layers can be compared, `basis` what a step is. `variants` are
//! the distinct layers of each side, and the `stretches`
//! between its passes, with the `roles` of their kernels; `kinds` puts those together
//! that are the same layers of the model, and aligns (`align`) their kernels. The `ledger` then
//! puts every kernel down once by place, class, name and phase. `explain` finds `fusion`s and
//! differences of the `implementation` in the `places` of layers and puts the gap down to causes,
//! with what of a fusion lies at the `ends` of passes; `proofs` are what operators and names say,
//! `epilogues` those of GEMMs, with the `addends` of additions, what is `listed` those in
//! activations, and an `absence` needs what is `missing`;
//! `gap`, `rates`, `waiting`, `layers`, `kernels` and `notes` make the rest of the `result`; traces
//! that are `identical` have a note.

mod absence;
mod addends;
mod align;
mod attribution;
mod basis;
mod causes;
mod describe;
mod document;
mod ends;
mod epilogues;
mod error;
mod explain;
mod files;
mod findings;
mod fusion;
mod gap;
mod identical;
mod implementation;
mod kernels;
mod kinds;
mod layers;
mod ledger;
mod linears;
mod listed;
mod measured;
mod missing;
mod models;
mod notes;
pub mod older;
mod operators;
mod places;
mod proofs;
mod rates;
mod result;
mod roles;
mod same_work;
mod sentences;
mod side;
mod stretches;
mod tally;
mod text;
mod updates;
mod variants;
mod waiting;
mod warnings;
mod work;

pub use document::{Document, RanksOfSides};
pub use error::CompareError;
pub use measured::{
    EstimatedSpeedup, FusionRecords, MeasuredPattern, MeasuredSpeedup, fusion_records,
};
pub use result::{
    Amount, Answer, Basis, Cause, CauseKind, ClassPart, Comparison, Fusion, FusionEvidence, Gap,
    Headline, IdleComparison, IdleRow, ImplementationDifference, ImplementationKind, KernelRow,
    LayerComparison, LayerKind, LayerNumber, MatchedOperator, MatchedWork, OverlapPart, Part,
    PhasePart, Question, RateComparison, RateRow, Ratio, RolePart, SameKernel, SameWork, SideRate,
    SideSummary, Slot, SlotKernel, SlotStatus, Which, WorkAspect, WorkRate,
};
pub use roles::Role;
pub use side::{CompareOptions, Side};
pub use warnings::{CompareWarning, Severity};

use basis::Steps;
use explain::Evidence;
use kinds::Kinds;
use ledger::Ledger;
use models::Mismatch;
use side::{Chosen, on_both};
use variants::Variants;

impl Comparison {
    /// Compares two traces. Exchanging them mirrors the result.
    ///
    /// # Errors
    ///
    /// When there is nothing to compare: no kernels, or none of the phase or the layer that is
    /// asked for.
    pub fn of(
        first: Side<'_>,
        second: Side<'_>,
        options: &CompareOptions,
    ) -> Result<Self, CompareError> {
        let sides = [first, second];
        let sides = on_both(&|side| Chosen::of(sides[side], options));
        if let Some(error) = sides.iter().find_map(|side| CompareError::of(side, options)) {
            return Err(error);
        }
        let mismatch = Mismatch::of(&sides);
        let labels = describe::labels(&sides);
        let steps = Steps::of(&sides, mismatch.is_none(), options.phase);
        let variants = if mismatch.is_none() {
            on_both(&|side| Variants::of(&sides[side], &steps, options.layer))
        } else if mismatch.as_ref().is_some_and(Mismatch::may_be_one_model) {
            let calls = operators::calls(&sides, &steps);
            on_both(&|side| Variants::of_calls(&sides[side], &steps, &calls[side]))
        } else {
            <[Variants; 2]>::default()
        };
        let kinds = Kinds::of(&variants);
        let ledger = Ledger::of(&sides, &steps, &variants, &kinds);
        let [first_ns, second_ns] = gap::step_ns(&steps, &ledger);
        let explanation = Evidence {
            sides: &sides,
            labels: &labels,
            steps: &steps,
            kinds: &kinds,
            ledger: &ledger,
            gap_ns: first_ns - second_ns,
        }
        .explain();
        let summary = |index: usize| {
            let label = &labels[index];
            describe::summary(index, &sides[index], label, &steps, &kinds, &ledger)
        };
        let mut layers =
            layers::compare(&sides, &steps, &variants, &kinds, &ledger, &explanation.slots);
        layers.none_because = mismatch.as_ref().map(|mismatch| mismatch.reason(&labels));
        let mut gap = gap::gap(&steps, &kinds, &ledger, explanation.causes);
        let same_work = same_work::Evidence {
            sides: &sides,
            steps: &steps,
            mismatch: mismatch.as_ref(),
            options,
            little_in_common: notes::little_in_common(&gap.classes),
            step_ns: [gap.first_ns, gap.second_ns],
            phases: &gap.phases,
        }
        .same_work();
        gap.ratio = gap.ratio.filter(|_| same_work.headline.is_of_a_step());
        let mut comparison = Self {
            same_work,
            first: summary(0),
            second: summary(1),
            phase: options.phase,
            layer: options.layer,
            basis: steps.basis,
            gap,
            rates: rates::compare(&sides, &steps),
            idle: waiting::compare(&sides, &steps),
            layers,
            fusions: explanation.fusions,
            implementation: explanation.implementation,
            same_kernels: kernels::same(&sides, &steps, &ledger),
            kernels: kernels::rows(&sides, &steps, &ledger),
            warnings: Vec::new(),
        };
        comparison.warnings = notes::notes(&sides, &labels, &steps, mismatch.as_ref(), &comparison);
        Ok(comparison)
    }
}
