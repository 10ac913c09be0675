//! Layers of a model without markers: a sequence of classes that repeats.
//!
//! Iterations repeat too. A layer is inside of a step, which has something before its first layer
//! or behind its last one; where a recording without marks is one sequence over and over, and
//! nothing else, the sequence is a step.

use super::no_layers::NoLayers;
use super::sequence::Sequence;
use super::steps::Steps;
use crate::classify::Class;

/// A sequence that repeats fewer times does not prove layers.
const FEWEST: usize = 4;

/// A shorter sequence repeats by chance.
const SHORTEST: usize = 4;

/// Longer sequences than this are not tried: that would take time with the square of the length.
const LONGEST: usize = 1024;

/// At most this many kernels of a step are looked at.
const LOOKED_AT: usize = 1 << 15;

/// What repeats must be this share of the kernels.
const LEAST_SHARE: f64 = 0.5;

/// Where a sequence that repeats begins, and how long it is.
struct Run {
    begin: usize,
    period: usize,
    end: usize,
}

/// The places where layers begin and end, as far as a repeated sequence shows them.
pub(super) fn find(
    sequence: &Sequence<'_>,
    steps: &Steps,
) -> Result<Vec<(usize, usize)>, NoLayers> {
    let (from, to) = longest_step(sequence, steps);
    let classes = sequence.between(from, to.min(from + LOOKED_AT));
    let run = longest_run(classes).ok_or(NoLayers::NoMarker)?;
    let is_all = steps.list.is_empty() && run.begin == 0 && run.end == sequence.len();
    let run = if is_all || is_a_step(sequence, from, &run) {
        // The steps repeat; the layers are in one of them.
        let step = classes.get(run.begin..run.begin + run.period).unwrap_or_default();
        let repetitions = (run.end - run.begin) / run.period;
        let inner = longest_run(step)
            .ok_or(NoLayers::OnlySteps { steps: repetitions, kernels: run.period })?;
        Run { begin: run.begin + inner.begin, end: run.begin + inner.end, ..inner }
    } else {
        run
    };
    let pattern = classes.get(run.begin..run.begin + run.period).unwrap_or_default();
    let covered = occurrences(classes, pattern).len() * pattern.len();
    if (covered as f64) < LEAST_SHARE * classes.len() as f64 {
        return Err(NoLayers::NoMarker);
    }
    Ok(occurrences(&sequence.classes, pattern))
}

/// The step with the most kernels, or everything if there are no steps.
fn longest_step(sequence: &Sequence<'_>, steps: &Steps) -> (usize, usize) {
    let mut longest = (0, 0);
    let mut from = 0;
    for at in 1..=sequence.len() {
        let step = |at: usize| steps.step(sequence.kernel(at));
        if at == sequence.len() || step(at) != step(from) {
            let is_step = step(from).is_some() || steps.list.is_empty();
            if is_step && at - from > longest.1 - longest.0 {
                longest = (from, at);
            }
            from = at;
        }
    }
    longest
}

/// The shortest period whose repetition covers about as much as that of any.
fn longest_run(classes: &[Class]) -> Option<Run> {
    let mut best: Option<Run> = None;
    for period in SHORTEST..=(classes.len() / FEWEST).min(LONGEST) {
        let shifted = classes.get(period..).unwrap_or_default();
        let (mut begin, mut longest) = (0, (0, 0));
        for (at, (a, b)) in classes.iter().zip(shifted).enumerate() {
            if a != b {
                begin = at + 1;
            } else if at + 1 - begin > longest.1 - longest.0 {
                longest = (begin, at + 1);
            }
        }
        let (begin, end) = (longest.0, longest.1 + period);
        let is_better = |best: &Run| (end - begin) * 20 > (best.end - best.begin) * 21;
        if end - begin >= FEWEST * period
            && is_varied(classes.get(begin..begin + period).unwrap_or_default())
            && best.as_ref().is_none_or(is_better)
        {
            best = Some(Run { begin, period, end });
        }
    }
    best
}

/// Whether a sequence may be a layer: it computes a GEMM, and it is not one class over again.
fn is_varied(classes: &[Class]) -> bool {
    let has_gemm = classes.iter().any(|class| {
        matches!(class, Class::Gemm | Class::MoeGemm | Class::Conv | Class::Attn | Class::Ssm)
    });
    let first = classes.first();
    has_gemm && classes.iter().filter(|class| Some(*class) != first).count() * 3 >= classes.len()
}

/// Whether one repetition looks like a whole step, with what comes before the first layer or after
/// the last.
fn is_a_step(sequence: &Sequence<'_>, from: usize, run: &Run) -> bool {
    let (begin, end) = (from + run.begin, from + run.begin + run.period);
    (begin..end).any(|at| sequence.is_outer(at))
}

/// Where a pattern is in a sequence, from left to right without overlap.
fn occurrences(classes: &[Class], pattern: &[Class]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(here) = classes.get(at..at + pattern.len()) {
        if here == pattern {
            found.push((at, at + pattern.len()));
            at += pattern.len();
        } else {
            at += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use Class::{Conv, Copy, Elementwise, EmbedIndex, Gemm, Norm, Reduce};

    #[test]
    fn the_shortest_period_of_the_longest_repetition() {
        let mut classes = vec![EmbedIndex, Copy];
        for _ in 0..6 {
            classes.extend([Norm, Gemm, Elementwise, Gemm, Elementwise]);
        }
        classes.extend([Norm, Reduce]);
        let run = longest_run(&classes).unwrap();
        assert_eq!((run.begin, run.period), (2, 5));
        assert_eq!(occurrences(&classes, &classes[2..7]).len(), 6);
    }

    #[test]
    fn what_repeats_too_little_is_no_layer() {
        assert!(longest_run(&[]).is_none());
        assert!(longest_run(&[Gemm; 100]).is_none());
        assert!(longest_run(&[Norm, Elementwise, Copy, Reduce].repeat(10)).is_none());
        assert!(longest_run(&[Norm, Conv, Copy, Reduce].repeat(3)).is_none());
        assert!(longest_run(&[Norm, Conv, Copy, Reduce].repeat(4)).is_some());
    }
}
