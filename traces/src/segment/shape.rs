//! What the layers of the passes in one direction look like, and where the last ones end.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::ends::{body, common_prefix, lead};
use super::sequence::Sequence;
use super::steps::Steps;
use crate::classify::Class;

/// Rarer patterns, and the beginnings of further passes, are not looked at.
const MOST: usize = 8;

/// What the layers of some passes look like.
pub(super) struct Shape<'s> {
    /// The classes from one marker to the next, the most frequent first.
    patterns: Vec<&'s [Class]>,
    /// For each pattern, how much of its end is the beginning of a next layer.
    leads: Vec<usize>,
    /// What was found of the ends of passes. Most end in the same way.
    lengths: FxHashMap<&'s [Class], usize>,
}

impl<'s> Shape<'s> {
    /// Looks at passes, each a range of markers.
    pub(super) fn of(
        sequence: &'s Sequence<'_>,
        markers: &[usize],
        passes: impl Iterator<Item = Range<usize>> + Clone,
        steps: &Steps,
    ) -> Self {
        let inner =
            passes.clone().flat_map(|pass| markers.get(pass).unwrap_or_default().windows(2));
        let patterns = most_common(inner.map(|pair| sequence.between(pair[0], pair[1])));
        let heads: Vec<Head<'s>> = passes
            .take(MOST)
            .filter_map(|pass| Head::of(sequence, markers, pass.start, steps))
            .collect();
        let mut leads: Vec<usize> =
            patterns.iter().map(|pattern| lead_of(pattern, &heads)).collect();
        complete(&patterns, &mut leads);
        Self { patterns, leads, lengths: FxHashMap::default() }
    }

    /// Where the layer of the last marker of a pass ends, before the first marker of the next.
    pub(super) fn end(
        &mut self,
        sequence: &'s Sequence<'_>,
        last: usize,
        next: usize,
        steps: &Steps,
    ) -> usize {
        let limit = (last..next).find(|other| is_other_step(sequence, last, *other, steps));
        let rest = sequence.between(last, limit.unwrap_or(next));
        let (patterns, leads) = (&self.patterns, &self.leads);
        let length = || last_length(patterns, leads, rest);
        last + *self.lengths.entry(rest).or_insert_with(length)
    }
}

/// What comes before the first marker of a pass.
struct Head<'s> {
    classes: &'s [Class],
    begins_recording: bool,
}

impl<'s> Head<'s> {
    fn of(
        sequence: &'s Sequence<'_>,
        markers: &[usize],
        first: usize,
        steps: &Steps,
    ) -> Option<Self> {
        let to = *markers.get(first)?;
        let before = first.checked_sub(1).and_then(|before| markers.get(before).copied());
        let limit = before.map_or(0, |before| before + 1);
        // What looks up tokens comes before the first layer, and other steps before that.
        let ends_before =
            |at: &usize| sequence.is_outer(*at) || is_other_step(sequence, to, *at, steps);
        let from = (limit..to).rev().find(ends_before).map_or(limit, |at| at + 1);
        Some(Self { classes: sequence.between(from, to), begins_recording: from == 0 })
    }
}

/// Whether a kernel shows that it is of another step.
fn is_other_step(sequence: &Sequence<'_>, at: usize, other: usize, steps: &Steps) -> bool {
    let other_step = steps.step(sequence.kernel(other));
    !sequence.is_beside(other)
        && other_step.is_some()
        && other_step != steps.step(sequence.kernel(at))
}

/// The classes of stretches, the most frequent first.
pub(super) fn most_common<'s>(stretches: impl Iterator<Item = &'s [Class]>) -> Vec<&'s [Class]> {
    let mut counts: FxHashMap<&[Class], (usize, usize)> = FxHashMap::default();
    for (index, stretch) in stretches.enumerate() {
        counts.entry(stretch).or_insert((0, index)).0 += 1;
    }
    let mut sorted: Vec<(&[Class], (usize, usize))> = counts.into_iter().collect();
    sorted.sort_by_key(|(_, (count, first))| (Reverse(*count), *first));
    sorted.into_iter().take(MOST).map(|(stretch, _)| stretch).collect()
}

/// How much of a pattern's end most passes begin with; of equals the least.
fn lead_of(pattern: &[Class], heads: &[Head<'_>]) -> usize {
    let mut counts: FxHashMap<usize, usize> = FxHashMap::default();
    for head in heads {
        let (lead, used) = lead(pattern, head.classes);
        // The recording began in a layer, and nothing shows where that layer began.
        if lead > 0 && !(head.begins_recording && used == head.classes.len()) {
            *counts.entry(lead).or_insert(0) += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(lead, count)| (*count, Reverse(*lead)));
    most.map_or(0, |(lead, _)| lead)
}

/// Finds the leads of patterns after which a layer of another kind comes than the first one is: no
/// pass begins like it, but its first two kernels are those that every layer begins with.
fn complete(patterns: &[&[Class]], leads: &mut [usize]) {
    let mut known = patterns.iter().zip(leads.iter()).filter(|(_, lead)| **lead > 1);
    let opening = known.next().and_then(|(pattern, lead)| {
        pattern.get(pattern.len() - lead..).and_then(|lead| lead.get(..2))
    });
    let Some(opening) = opening else { return };
    for (pattern, lead) in patterns.iter().zip(leads).filter(|(_, lead)| **lead == 0) {
        let last = pattern.windows(2).rposition(|pair| pair == opening);
        *lead = last.map_or(0, |at| pattern.len() - at);
    }
}

/// How many kernels of the rest of a pass belong to its last layer, by the pattern that fits best.
fn last_length(patterns: &[&[Class]], leads: &[usize], rest: &[Class]) -> usize {
    let fits = patterns.iter().zip(leads).map(|(pattern, &lead)| {
        let body_length = pattern.len().saturating_sub(lead).max(1);
        let exact = common_prefix(pattern, rest).min(body_length);
        (exact as f64 / body_length as f64, pattern, lead)
    });
    // Of equals the first, which is the most frequent one.
    let best = fits.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map_or(1, |(_, pattern, lead)| body(pattern, lead, rest).max(1)).min(rest.len())
}
