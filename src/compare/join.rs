//! Which records of two sides are of the same problem.

use std::collections::HashMap;

use serde::Serialize;

use super::CompareOptions;
use super::figure::chance;
use super::pair::{Choice, Pair, PairVerdict, could_hide};
use super::side::{Entry, Measured, Side};
use super::times::{self, CommonChange, SingleOp};
use crate::vocabulary::{CacheState, Chain, DType, Family, Problem, Sizes};

/// A problem that is not compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotCompared {
    /// The problem.
    pub problem: Problem,
    /// What the caches held.
    pub cache_state: CacheState,
    /// The second side, as an index of [`Comparison::sides`](super::Comparison::sides).
    pub side: usize,
    /// Why, for programs.
    pub why: WhyNot,
    /// Why, in words.
    pub reason: String,
}

impl NotCompared {
    /// The problem's family.
    #[must_use]
    pub const fn family(&self) -> Family {
        Family::of(self.problem.chain().form())
    }
}

/// Why a problem is not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhyNot {
    /// Only the first side has it.
    OnlyOnFirst,
    /// Only the second side has it.
    OnlyOnSecond,
    /// A measurement of it must not be used.
    Invalid,
    /// It was rewritten, which gains by other means than fusion.
    Rewrite,
}

/// Two sides, record by record. Each pair comes with the noise floor that it is judged by.
pub(super) struct Joined {
    pub(super) pairs: Vec<(Pair, f64)>,
    pub(super) single_ops: Vec<SingleOp>,
    pub(super) not_compared: Vec<NotCompared>,
    /// What the times of the pairs, and then of the single ops, are made from.
    measured: Vec<[Measured; 2]>,
}

/// What both sides of a pair have in common.
type Key = (Chain, Sizes, CacheState, Option<DType>);

/// A problem, whatever the caches held.
const fn without_caches((chain, sizes, _, dtype): Key) -> (Chain, Sizes, Option<DType>) {
    (chain, sizes, dtype)
}

pub(super) fn join(side: usize, [first, second]: [&Side; 2], options: &CompareOptions) -> Joined {
    let key = |entry: &Entry| -> Key {
        let problem = &entry.problem;
        let dtype = (!options.across_dtypes).then(|| problem.dtype());
        (*problem.chain(), *problem.sizes(), entry.cache_state, dtype)
    };
    let mut others: HashMap<Key, &Entry> =
        second.entries.iter().map(|entry| (key(entry), entry)).collect();
    let mut joined = Joined {
        pairs: Vec::new(),
        single_ops: Vec::new(),
        not_compared: Vec::new(),
        measured: Vec::new(),
    };
    let mut of_singles = Vec::new();
    let states = [first, second].map(|side| {
        let state = |entry: &Entry| (without_caches(key(entry)), entry.cache_state);
        side.entries.iter().map(state).collect::<HashMap<_, _>>()
    });
    let only = |entry: &Entry, why: WhyNot| {
        let (on, not_on, states) = match why {
            WhyNot::OnlyOnSecond => (second, first, &states[0]),
            WhyNot::OnlyOnFirst | WhyNot::Invalid | WhyNot::Rewrite => (first, second, &states[1]),
        };
        let (on, not_on, state) = (&on.facts.label, &not_on.facts.label, entry.cache_state);
        let reason = match states.get(&without_caches(key(entry))) {
            Some(other) => format!("with {state} caches only in {on}; {not_on} has it {other}"),
            None => format!("only in {on}"),
        };
        NotCompared { problem: entry.problem, cache_state: state, side, why, reason }
    };
    for entry in &first.entries {
        let Some(other) = others.remove(&key(entry)) else {
            joined.not_compared.push(only(entry, WhyNot::OnlyOnFirst));
            continue;
        };
        let both = [(first, entry), (second, other)];
        let invalid = both.into_iter().filter_map(|(side, entry)| {
            let reason = entry.invalid.as_ref()?;
            let colon = if reason.is_empty() { "" } else { ": " };
            Some(format!("INVALID on {}{colon}{reason}", side.facts.label))
        });
        let invalid: Vec<String> = invalid.collect();
        if !invalid.is_empty() {
            joined.not_compared.push(NotCompared {
                why: WhyNot::Invalid,
                reason: invalid.join("; "),
                ..only(entry, WhyNot::Invalid)
            });
        } else if entry.problem.chain().is_single() {
            of_singles.push([entry.measured, other.measured]);
            joined.single_ops.push(single_op(side, [entry, other]));
        } else {
            joined.measured.push([entry.measured, other.measured]);
            joined.pairs.push(pair(side, [entry, other], options.threshold));
        }
    }
    let is_left = |entry: &&Entry| others.contains_key(&key(entry));
    let left = second.entries.iter().filter(is_left);
    joined.not_compared.extend(left.map(|entry| only(entry, WhyNot::OnlyOnSecond)));
    joined.not_compared.extend([first, second].into_iter().flat_map(|on| {
        on.rewrites.iter().map(move |one| NotCompared {
            problem: one.problem,
            cache_state: one.cache_state,
            side,
            why: WhyNot::Rewrite,
            reason: format!("rewritten on {}: {}", on.facts.label, one.rewrite),
        })
    }));
    joined.measured.append(&mut of_singles);
    joined
}

impl Joined {
    /// Says of every record what its times changed by beyond what all have in common, and what that
    /// is.
    pub(super) fn tell_times_apart(&mut self, side: usize) -> Option<CommonChange> {
        let common = times::common(side, &self.measured)?;
        let mut moved = times::moved(&self.measured, common.ratio).into_iter();
        for (pair, _) in &mut self.pairs {
            pair.moved = moved.next().flatten();
        }
        for single in &mut self.single_ops {
            single.moved = moved.next().flatten();
        }
        Some(common)
    }
}

fn single_op(side: usize, [first, second]: [&Entry; 2]) -> SingleOp {
    let ms = [first.measured.fused_ms, second.measured.fused_ms];
    SingleOp {
        problem: first.problem,
        cache_state: first.cache_state,
        side,
        ms,
        ratio: ms[1].over(&ms[0]),
        moved: None,
    }
}

fn pair(side: usize, [first, second]: [&Entry; 2], threshold: f64) -> (Pair, f64) {
    let [a, b] = [&first.measured, &second.measured];
    let ratio = b.speedup.over(&a.speedup);
    let processes = |one: &Measured| one.processes.unwrap_or_default();
    let p = chance((&b.speedup, processes(b)), (&a.speedup, processes(a)));
    let pair = Pair {
        problem: first.problem,
        cache_state: first.cache_state,
        family: Family::of(first.problem.chain().form()),
        side,
        first: *a,
        second: *b,
        ratio,
        p,
        adjusted_p: None,
        verdict: PairVerdict::Undecided,
        could_hide: could_hide(&ratio),
        choices: [a, b].map(|one| Choice::of(&one.speedup, threshold)),
        times: [b.unfused_ms.over(&a.unfused_ms), b.fused_ms.over(&a.fused_ms)],
        moved: None,
    };
    (pair, first.noise_floor.max(second.noise_floor))
}
