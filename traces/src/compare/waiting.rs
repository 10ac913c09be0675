//! For what the devices of both sides waited, beside each other.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::Comparison;
use super::basis::Steps;
use super::result::{IdleComparison, IdleRow};
use super::side::{Chosen, on_both};
use super::text::time;
use crate::NameId;
use crate::idle::{Cause, Wait, waits};

/// Idle time of less than this share of a step is not worth a sentence.
const LITTLE_IDLE: f64 = 0.01;

/// What the host does in less than this share of a cause is not what it waits for.
const MOST_OF_IT: f64 = 0.5;

/// Idle time of one cause on one side.
#[derive(Default)]
struct Sums {
    ns: f64,
    gaps: u64,
    doing: FxHashMap<Option<NameId>, f64>,
}

/// Puts the idle times of both sides beside each other.
pub(super) fn compare(sides: &[Chosen<'_>; 2], steps: &Steps) -> IdleComparison {
    let [first, second] = on_both(&|index| sums(index, &sides[index], steps));
    let causes: BTreeSet<Cause> = first.keys().chain(second.keys()).copied().collect();
    let nothing = Sums::default();
    let mut rows: Vec<IdleRow> = causes
        .into_iter()
        .map(|cause| {
            let both = [&first, &second].map(|side| side.get(&cause).unwrap_or(&nothing));
            let [first_doing, second_doing] =
                [0, 1].map(|side: usize| doing(both[side], &sides[side]));
            let [first, second] = both;
            IdleRow {
                cause,
                first_ns: first.ns,
                second_ns: second.ns,
                gap_ns: first.ns - second.ns,
                first_gaps: first.gaps,
                second_gaps: second.gaps,
                first_doing,
                second_doing,
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        let by_gap = b.gap_ns.abs().total_cmp(&a.gap_ns.abs());
        by_gap.then_with(|| a.cause.cmp(&b.cause))
    });
    IdleComparison { rows }
}

#[expect(clippy::cast_precision_loss, reason = "a time of a step")]
fn sums(index: usize, side: &Chosen<'_>, steps: &Steps) -> BTreeMap<Cause, Sums> {
    let is_compared = side.is_compared();
    let mut causes: BTreeMap<Cause, Sums> = BTreeMap::new();
    for Wait { cause, ns, kernel, doing } in waits(side.side.trace, side.device) {
        if is_compared.get(kernel) != Some(&true) {
            continue;
        }
        let of_step = ns as f64 * steps.weight(index, steps.place(side.phase(kernel)));
        let sums = causes.entry(cause).or_default();
        sums.ns += of_step;
        sums.gaps += 1;
        *sums.doing.entry(doing).or_default() += of_step;
    }
    causes
}

/// What the host did for most of a cause.
fn doing(sums: &Sums, side: &Chosen<'_>) -> Option<String> {
    let trace = side.side.trace;
    let mut most: Vec<(&str, f64)> = sums
        .doing
        .iter()
        .filter_map(|(name, ns)| Some((trace.names.text((*name)?), *ns)))
        .collect();
    most.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let (name, ns) = most.first()?;
    (*ns >= MOST_OF_IT * sums.ns).then(|| (*name).to_owned())
}

impl Comparison {
    /// For what the devices wait in a step, and what makes the difference, without a full stop;
    /// none if neither waits long.
    #[must_use]
    pub fn idle_sentence(&self) -> Option<String> {
        let labels = [&self.first.label, &self.second.label];
        let steps = [self.gap.first_ns, self.gap.second_ns];
        let idle = [
            self.idle.rows.iter().map(|row| row.first_ns).sum::<f64>(),
            self.idle.rows.iter().map(|row| row.second_ns).sum::<f64>(),
        ];
        let is_little = |side: usize| idle[side] < LITTLE_IDLE * steps[side];
        if is_little(0) && is_little(1) {
            return None;
        }
        let step = self.basis.noun();
        let times = format!(
            "Nothing runs for {} of a {step} on {} and for {} on {}",
            time(idle[0]),
            labels[0],
            time(idle[1]),
            labels[1]
        );
        let gap = idle[0] - idle[1];
        // A cause explains a difference of its own sign.
        let widest = self.idle.rows.iter().find(|row| row.gap_ns * gap > 0.0);
        let Some(widest) =
            widest.filter(|row| row.gap_ns.abs() >= LITTLE_IDLE * steps[0].max(steps[1]))
        else {
            return Some(format!("{times}: no difference to speak of"));
        };
        let longer = usize::from(gap < 0.0);
        let doing = [&widest.first_doing, &widest.second_doing][longer].as_ref();
        let doing = doing.map_or_else(String::new, |doing| format!(", most of it in {doing}"));
        Some(format!(
            "{times}; {} of the difference: {} on {}{doing}",
            time(widest.gap_ns.abs()),
            widest.cause.describe(),
            labels[longer]
        ))
    }
}
