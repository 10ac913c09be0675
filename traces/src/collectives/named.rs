//! Which collectives belong together where the profiler names their process group.
//!
//! A group of one name and the same ranks is one group. Its collectives have numbers that are the
//! same on all ranks, in profilers since 2025; without numbers, they are in the same order. So a
//! single collective is enough. Their ends are still compared: folders hold different runs, too.

use super::alignment::{Alignment, CLOSE_NS, Item, Mismatch, apart, may_be, overlap};
use super::groups::Line;
use super::operation::{Family, Operation};

/// The alignment of two lines of one process group; none if names and numbers do not tell.
pub(super) fn align(
    a: &Line,
    b: &Line,
    families: &[Family],
) -> Option<Result<Alignment, Mismatch>> {
    if a.group.is_none() || a.group != b.group {
        return None;
    }
    let are_numbered = [a, b].iter().all(|line| line.items.iter().all(|item| item.sequence != 0));
    let shift = match are_numbered {
        true => position(&a.items, &b.items)?,
        false if a.items.len() == b.items.len() => 0,
        false => return None,
    };
    Some(at(&a.items, &b.items, shift, families))
}

/// How many places later the collectives of `a` are in `b`, by the first number that both have.
fn position(a: &[Item], b: &[Item]) -> Option<i64> {
    let first = a.first()?.sequence.max(b.first()?.sequence);
    let place = |items: &[Item]| items.iter().position(|item| item.sequence == first);
    Some(place(b)? as i64 - place(a)? as i64)
}

fn at(a: &[Item], b: &[Item], shift: i64, families: &[Family]) -> Result<Alignment, Mismatch> {
    let (a, b) = overlap(a, b, shift);
    let is_same = |(one, other): (&Item, &Item)| {
        one.sequence == other.sequence && has_same_size(one, other, families)
    };
    if !may_be(a, b, families) || !a.iter().zip(b).all(is_same) {
        return Err(Mismatch::Operations);
    }
    let numbered = a.iter().zip(b).filter_map(|(a, b)| a.step.zip(b.step));
    let other_steps = numbered.filter(|(one, other)| one != other).count();
    let ends = apart(a, b, |item| item.end_ns).ok_or(Mismatch::TooShort)?;
    if ends > CLOSE_NS {
        return Err(Mismatch::Ends);
    }
    Ok(Alignment { shift, within_ns: ends.round() as u64, other_steps })
}

/// Whether the sizes fit: only ranks of an all-to-all may have different ones.
fn has_same_size(one: &Item, other: &Item, families: &[Family]) -> bool {
    let operation = families.get(one.family as usize).map(|family| family.operation);
    let may_differ = matches!(
        operation,
        None | Some(
            Operation::AllToAll
                | Operation::Dispatch
                | Operation::Combine
                | Operation::SendRecv
                | Operation::Unnamed
        )
    );
    may_differ || one.bytes == other.bytes
}
