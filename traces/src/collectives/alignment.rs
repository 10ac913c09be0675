//! Whether queues of two ranks ran the same collectives, and which ones belong together.
//!
//! Equal names are not enough: ranks of different groups run the same program, and a recording that
//! begins later has the same names too. The evidence is that what is one collective ends on both
//! ranks at the same time, but for the difference of their clocks: an offset, and a rate that
//! differs by some parts per million. So the difference between the ends must lie on a line, and
//! more closely than that between the starts, for ranks that do not wait for each other may still
//! keep step for a while.

use super::operation::Family;
use crate::quantile::quantile;

/// A collective of a queue, with what identifies it in another queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    /// An index into the families of all ranks.
    pub(super) family: u32,
    pub(super) duration_ns: u64,
    pub(super) end_ns: i64,
    pub(super) step: Option<u64>,
    /// Its number in its group; 0 if the trace does not say.
    pub(super) sequence: u32,
    /// How large it is; 0 if the trace does not say.
    pub(super) bytes: u64,
}

/// How two queues belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Alignment {
    /// The collective `n` of the first is `n + shift` of the second.
    pub(super) shift: i64,
    /// So close are the ends of three quarters of them, when the clocks are set by each other.
    pub(super) within_ns: u64,
    /// How many have the numbers of different steps.
    pub(super) other_steps: usize,
}

/// Why two queues do not belong together, the poorest evidence for it last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mismatch {
    /// They run different operations.
    Operations,
    /// One is too short.
    TooShort,
    /// They do not end together.
    Ends,
    /// They end together in several positions.
    Ambiguous,
}

/// From this many collectives on, ends that lie on a line are not a coincidence: of simulated ranks
/// that keep step without waiting for each other, one pair in a thousand passes.
const FEWEST: usize = 12;

/// Fewer are enough if their ends are so much closer than their starts: at least this many, for of
/// simulated ranks that do not wait for each other no pair in ten thousand passes.
const FEWEST_CLEAR: usize = 6;
const CLEARLY_CLOSER: f64 = 10.0;

/// The same where many positions are tried.
const FEWEST_SHIFTED: usize = 24;

/// Ends of one collective are so close. Ranks that do not wait for each other run apart by more in
/// every step.
pub(super) const CLOSE_NS: f64 = 50_000.0;

/// The ends are so much closer than the starts: what is waited away is the difference in arriving.
const CLOSER: f64 = 3.0;

/// Unless both are as close as this, where no rank waits: within a machine, kernels of one
/// collective end some microseconds apart.
const TOGETHER_NS: f64 = 3000.0;

/// Clocks that are set over a network run at rates that differ by no more than this.
const CLOCK_RATE: f64 = 5e-4;

/// The share of the collectives with the number of a step on both sides that must have the same
/// one. What is launched at the edge of a step may be on either side of it.
const SAME_STEPS: f64 = 0.9;

/// How many collectives a recording may lack at its beginning, and another one at its end.
const SLACK: i64 = 64;

/// Recordings that differ by more collectives than this are not of the same steps.
const MOST_SHIFT: i64 = 8192;

/// This many ends are looked at before all are.
const SAMPLE: usize = 64;

/// The position in which the ends of others are clearly not as close.
const CLEARLY: u64 = 3;

/// Below this, one position is not closer than another one: profilers are not more precise.
const LEAST_NS: u64 = 1000;

/// The alignment of queues of one length without a shift.
pub(super) fn in_place(a: &[Item], b: &[Item], families: &[Family]) -> Result<Alignment, Mismatch> {
    if a.len() != b.len() {
        return Err(Mismatch::Operations);
    }
    at(a, b, 0, families)
}

/// The alignment of two queues when one begins or ends later. It must be the only one: where a
/// shift by some collectives fits as well, nothing shows which is true.
pub(super) fn shifted(a: &[Item], b: &[Item], families: &[Family]) -> Result<Alignment, Mismatch> {
    let difference = b.len() as i64 - a.len() as i64;
    if difference.abs() > MOST_SHIFT {
        return Err(Mismatch::TooShort);
    }
    let shifts = difference.min(0) - SLACK..=difference.max(0) + SLACK;
    let mut found: Vec<Alignment> = Vec::new();
    let mut mismatch = Mismatch::Operations;
    for shift in shifts {
        let (of_a, of_b) = overlap(a, b, shift);
        if of_a.len() < FEWEST_SHIFTED || of_a.len() < a.len().max(b.len()).div_ceil(2) {
            if !of_a.is_empty() && may_be(of_a, of_b, families) {
                mismatch = mismatch.max(Mismatch::TooShort);
            }
            continue;
        }
        let stride = of_a.len().div_ceil(SAMPLE).max(1);
        let few = |items: &[Item]| items.iter().step_by(stride).copied().collect::<Vec<_>>();
        let ends = apart(&few(of_a), &few(of_b), |item| item.end_ns);
        let may_fit = ends.is_some_and(|ns| ns <= 2.0 * CLOSE_NS);
        let fit = if may_fit { at(a, b, shift, families) } else { Err(Mismatch::Ends) };
        match fit {
            Ok(alignment) => found.push(alignment),
            Err(reason) => mismatch = mismatch.max(reason),
        }
    }
    found.sort_by_key(|one| (one.other_steps, one.within_ns, one.shift));
    match found.as_slice() {
        [] => Err(mismatch),
        [best, second, ..]
            if second.other_steps == best.other_steps
                && second.within_ns.max(LEAST_NS) < CLEARLY * best.within_ns.max(LEAST_NS) =>
        {
            Err(Mismatch::Ambiguous)
        }
        [best, ..] => Ok(*best),
    }
}

/// The alignment in one position.
fn at(a: &[Item], b: &[Item], shift: i64, families: &[Family]) -> Result<Alignment, Mismatch> {
    let (a, b) = overlap(a, b, shift);
    if a.len() < FEWEST_CLEAR {
        return Err(Mismatch::TooShort);
    }
    let numbered = a.iter().zip(b).filter_map(|(a, b)| a.step.zip(b.step));
    let (same, all) = numbered.fold((0_usize, 0_usize), |(same, all), (one, other)| {
        (same + usize::from(one == other), all + 1)
    });
    if (same as f64) < SAME_STEPS * all as f64 || !may_be(a, b, families) {
        return Err(Mismatch::Operations);
    }
    let ends = apart(a, b, |item| item.end_ns).filter(|ends| *ends <= CLOSE_NS);
    let starts = apart(a, b, |item| item.end_ns.saturating_sub_unsigned(item.duration_ns));
    let (Some(ends), Some(starts)) = (ends, starts) else { return Err(Mismatch::Ends) };
    if a.len() < FEWEST {
        // Profilers of old write whole microseconds.
        let is_clear = ends.max(LEAST_NS as f64) * CLEARLY_CLOSER <= starts;
        return if is_clear {
            Ok(Alignment { shift, within_ns: ends.round() as u64, other_steps: all - same })
        } else {
            Err(Mismatch::TooShort)
        };
    }
    if ends > TOGETHER_NS && ends * CLOSER > starts {
        return Err(Mismatch::Ends);
    }
    Ok(Alignment { shift, within_ns: ends.round() as u64, other_steps: all - same })
}

/// Whether every collective of `a` could be the one of `b` at its position.
pub(super) fn may_be(a: &[Item], b: &[Item], families: &[Family]) -> bool {
    let family = |item: &Item| families.get(item.family as usize);
    a.iter().zip(b).all(|(a, b)| {
        a.family == b.family
            || family(a).zip(family(b)).is_some_and(|(one, other)| one.may_be(other))
    })
}

/// The parts of two queues that overlap under a shift.
pub(super) fn overlap<'i>(a: &'i [Item], b: &'i [Item], shift: i64) -> (&'i [Item], &'i [Item]) {
    let skip = |count: i64| usize::try_from(count).unwrap_or(0);
    let a = a.get(skip(-shift)..).unwrap_or_default();
    let b = b.get(skip(shift)..).unwrap_or_default();
    let both = a.len().min(b.len());
    (a.get(..both).unwrap_or_default(), b.get(..both).unwrap_or_default())
}

/// How far three quarters of the ends, or of other times, are at most from the line that the clocks
/// give, in nanoseconds. `None` without any.
pub(super) fn apart(a: &[Item], b: &[Item], time_ns: fn(&Item) -> i64) -> Option<f64> {
    let (first_a, first_b) = (time_ns(a.first()?), time_ns(b.first()?));
    // Times since 1970 have more digits than floats.
    let since = |item: &Item, first: i64| time_ns(item).saturating_sub(first) as f64;
    let time: Vec<f64> = a.iter().map(|item| since(item, first_a)).collect();
    let later: Vec<f64> =
        b.iter().zip(&time).map(|(item, time)| since(item, first_b) - time).collect();
    // A line through the medians of the outer thirds: a few ends that are far off do not matter.
    let third = a.len().div_ceil(3);
    let outer = |values: &[f64]| {
        let left = quantile(values.get(..third)?.to_vec(), 50)?;
        let right = quantile(values.get(values.len() - third..)?.to_vec(), 50)?;
        Some(right - left)
    };
    let (run, rise) = (outer(&time)?, outer(&later)?);
    let rate = if run > 0.0 { (rise / run).clamp(-CLOCK_RATE, CLOCK_RATE) } else { 0.0 };
    let flat: Vec<f64> = time.iter().zip(&later).map(|(time, later)| later - rate * time).collect();
    let middle = quantile(flat.clone(), 50)?;
    quantile(flat.into_iter().map(|value| (value - middle).abs()).collect(), 75)
}

#[cfg(test)]
mod tests {
    use super::super::operation::Operation;
    use super::*;

    fn families() -> Vec<Family> {
        let family =
            |kernel: &str| Family { operation: Operation::AllReduce, kernel: kernel.into() };
        vec![family("a"), family("b")]
    }

    /// Ends that are irregular, as those of real steps are.
    fn queue(count: i64) -> Vec<Item> {
        let end_ns = |n: i64| n * 1_000_000 + (n * n * 7919) % 400_000;
        let item = |n: i64| Item {
            family: u32::from(n % 5 == 0),
            duration_ns: 1000,
            end_ns: end_ns(n),
            step: None,
            sequence: 0,
            bytes: 0,
        };
        (0..count).map(item).collect()
    }

    fn by_clock(items: &[Item], offset_ns: i64, per_million: i64) -> Vec<Item> {
        let set = |item: &Item| Item {
            end_ns: item.end_ns + offset_ns + item.end_ns / 1_000_000 * per_million,
            ..*item
        };
        items.iter().map(set).collect()
    }

    #[test]
    fn another_clock_is_no_difference() {
        let a = queue(40);
        for (offset, rate) in [(0, 0), (-1_700_000_000_000_000_000, 0), (5_000_000_000, 120)] {
            let found = in_place(&a, &by_clock(&a, offset, rate), &families()).unwrap();
            assert_eq!(found.shift, 0);
            assert!(found.within_ns < 5000, "{found:?}");
        }
        // Another speed is not a clock.
        let slower = by_clock(&a, 0, 20_000);
        assert_eq!(in_place(&a, &slower, &families()), Err(Mismatch::Ends));
    }

    #[test]
    fn a_recording_that_begins_later_or_ends_earlier_is_found() {
        let a = queue(40);
        let b = by_clock(&a[3..38], 77_000_000, 3);
        let found = shifted(&a, &b, &families()).unwrap();
        assert_eq!(found.shift, -3);
        assert_eq!(shifted(&b, &a, &families()).unwrap().shift, 3);
        // One lacks the beginning and the other one the end.
        assert_eq!(shifted(&a[..36], &a[2..], &families()).unwrap().shift, -2);
        assert_eq!(shifted(&a, &a[..15], &families()), Err(Mismatch::TooShort));
        assert_eq!(in_place(&a, &a[..39], &families()), Err(Mismatch::Operations));
    }

    #[test]
    fn equal_intervals_tell_nothing_unless_steps_do() {
        let regular = |range: std::ops::Range<i64>, has_steps: bool| -> Vec<Item> {
            let item = |n: i64| Item {
                family: 0,
                duration_ns: 1000,
                end_ns: n * 1_000_000,
                step: has_steps.then_some(n as u64 / 4),
                sequence: 0,
                bytes: 0,
            };
            range.map(item).collect()
        };
        let (a, b) = (regular(0..40, false), regular(4..40, false));
        assert_eq!(shifted(&a, &b, &families()), Err(Mismatch::Ambiguous));
        let (a, b) = (regular(0..40, true), regular(4..40, true));
        assert_eq!(shifted(&a, &b, &families()).map(|found| found.shift), Ok(-4));
        // Equal numbers of collectives, but of other steps.
        let b = regular(4..44, true);
        assert_eq!(in_place(&a, &b, &families()), Err(Mismatch::Operations));
        assert_eq!(shifted(&a, &b, &families()).map(|found| found.shift), Ok(-4));
    }

    /// Ranks that run the same program and do not wait for each other: how many of a thousand pairs
    /// pass by chance.
    #[test]
    fn ranks_that_only_keep_step_do_not_end_together() {
        let mut state = 11_u64;
        let mut random = |bound: u64| {
            state =
                state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x1405_7B7E_F767_814F);
            ((state >> 33) % bound) as i64
        };
        for (count, most) in [(6, 0), (8, 0), (12, 5), (24, 0)] {
            let mut queue = || {
                let mut end_ns = 0;
                let mut item = |_| {
                    let duration = 10_000 + random(20_000);
                    end_ns += 20_000 + random(20_000) + duration;
                    Item {
                        family: 0,
                        duration_ns: duration.unsigned_abs(),
                        end_ns,
                        step: None,
                        sequence: 0,
                        bytes: 0,
                    }
                };
                (0..count).map(&mut item).collect::<Vec<_>>()
            };
            let pairs = (0..1000).map(|_| in_place(&queue(), &queue(), &families()));
            let passed = pairs.filter(Result::is_ok).count();
            assert!(passed <= most, "{passed} with {count} collectives");
        }
    }

    #[test]
    fn other_operations_and_few_collectives_do_not_fit() {
        let a = queue(40);
        let mut b = a.clone();
        b[20].family ^= 1;
        assert_eq!(in_place(&a, &b, &families()), Err(Mismatch::Operations));
        assert_eq!(in_place(&a[..11], &a[..11], &families()), Err(Mismatch::TooShort));
        assert_eq!(in_place(&[], &[], &families()), Err(Mismatch::TooShort));
        assert_eq!(shifted(&[], &a, &families()), Err(Mismatch::Operations));
        let far = |item: &Item| Item { end_ns: i64::MAX - item.end_ns, ..*item };
        let far: Vec<Item> = a.iter().map(far).collect();
        assert_eq!(in_place(&a, &far, &families()), Err(Mismatch::Ends));
    }
}
