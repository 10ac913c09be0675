//! Whether one rank of a group is the one that the others wait for.
//!
//! It takes three things: that waiting is a part of communication worth naming; that most of it is
//! for one rank; and that this comes back all through the recording. Collectives that follow one
//! another are not independent, since a rank that is late stays late for a while. So the recording
//! is cut into parts, and each part counts once: the rank that caused most waiting in it leads it.
//! If all ranks were alike, each would lead a part with the same chance. The straggler leads more
//! parts than would happen by chance to any rank in one of a hundred such groups.

use serde::Serialize;

use super::record::RankName;

/// The rank that the others of its group wait for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Straggler {
    /// Which rank.
    #[serde(flatten)]
    pub name: RankName,
    /// The collectives in which it was the last.
    pub last: usize,
    /// How long the others waited for it together, in nanoseconds.
    pub others_waited_ns: u64,
    /// The part of all waiting in the group that this is.
    pub share: f64,
    /// Parts of the recording that it leads.
    pub parts_led: usize,
    /// Parts in all.
    pub parts: usize,
}

/// Why no rank of a group is named.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum NoStraggler {
    /// The ranks arrive together: waiting is a small part of communication.
    LittleWaiting {
        /// The part.
        share: f64,
    },
    /// Several ranks are waited for.
    Several {
        /// The largest part of all waiting that is for one rank.
        largest_share: f64,
    },
    /// Most waiting is for one rank, but only in some of the recording: it may be chance.
    NotThroughout {
        /// Parts of the recording that it leads.
        parts_led: usize,
        /// Parts in all.
        parts: usize,
    },
}

/// Waiting of less than this part of communication is not worth a name.
const LEAST_WAITING: f64 = 0.05;

/// A straggler causes at least this part of the waiting in its group.
const LEAST_SHARE: f64 = 0.5;

/// The parts of a recording.
const PARTS: usize = 16;

/// Accepted false-positive rate: the share of groups without a straggler in which one is named.
const MOST_CHANCE: f64 = 0.01;

/// What the others waited for each member in each collective: at most one member is waited for.
pub(super) struct Waits<'w> {
    /// Of each collective, who was the last and how long the others waited together.
    pub(super) caused: &'w [(usize, u64)],
    pub(super) members: usize,
    /// All communication of all members, in nanoseconds.
    pub(super) communication_ns: u64,
}

/// The member that stands out, with the parts of the recording that it leads and all parts.
pub(super) fn find(waits: &Waits<'_>) -> Result<(usize, usize, usize), NoStraggler> {
    let (of_member, all_ns) = sums(waits.caused, waits.members);
    let share = crate::ratio::ratio(all_ns, waits.communication_ns);
    if share < LEAST_WAITING {
        return Err(NoStraggler::LittleWaiting { share });
    }
    let first = leader(&of_member);
    let largest_share = crate::ratio::ratio(of_member.get(first).copied().unwrap_or(0), all_ns);
    if largest_share < LEAST_SHARE {
        return Err(NoStraggler::Several { largest_share });
    }
    let parts = PARTS.min(waits.caused.len());
    let part = |number: usize| {
        let place = |number: usize| number * waits.caused.len() / parts.max(1);
        waits.caused.get(place(number)..place(number + 1)).unwrap_or_default()
    };
    let leads = |number: &usize| {
        let (of_member, all_ns) = sums(part(*number), waits.members);
        all_ns > 0 && leader(&of_member) == first
    };
    let parts_led = (0..parts).filter(leads).count();
    let chance = waits.members as f64 * at_least(parts_led, parts, 1.0 / waits.members as f64);
    if chance < MOST_CHANCE {
        Ok((first, parts_led, parts))
    } else {
        Err(NoStraggler::NotThroughout { parts_led, parts })
    }
}

/// The waiting for each member, and for all.
fn sums(caused: &[(usize, u64)], members: usize) -> (Vec<u64>, u64) {
    let mut of_member = vec![0_u64; members];
    for &(member, ns) in caused {
        if let Some(sum) = of_member.get_mut(member) {
            *sum = sum.saturating_add(ns);
        }
    }
    let all = of_member.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
    (of_member, all)
}

/// The member with most waiting, the first of several.
fn leader(of_member: &[u64]) -> usize {
    let most = of_member.iter().max();
    of_member.iter().position(|ns| Some(ns) == most).unwrap_or(0)
}

/// The chance of at least this number of successes.
fn at_least(successes: usize, attempts: usize, chance: f64) -> f64 {
    let mut term = (1.0 - chance).powi(i32::try_from(attempts).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for count in 0..successes {
        below += term;
        term *= (attempts - count) as f64 / (count + 1) as f64 * chance / (1.0 - chance);
    }
    (1.0 - below).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(
        caused: &[(usize, u64)],
        members: usize,
    ) -> Result<(usize, usize, usize), NoStraggler> {
        find(&Waits { caused, members, communication_ns: 100_000 })
    }

    #[test]
    fn chances_are_those_of_tables() {
        assert!((at_least(8, 8, 0.5) - 1.0 / 256.0).abs() < 1e-12);
        assert!((at_least(13, 16, 0.5) - 697.0 / 65_536.0).abs() < 1e-12);
        assert!((at_least(0, 16, 0.25) - 1.0).abs() < 1e-12);
        assert!((at_least(1, 2, 0.25) - 7.0 / 16.0).abs() < 1e-12);
    }

    #[test]
    fn a_rank_that_is_always_last_stands_out() {
        assert_eq!(found(&[(2, 1000); 96], 4), Ok((2, 16, 16)));
        // Two ranks and eight collectives are the least.
        assert_eq!(found(&[(1, 1000); 8], 2), Ok((1, 8, 8)));
        let no = Err(NoStraggler::NotThroughout { parts_led: 7, parts: 7 });
        assert_eq!(found(&[(1, 1000); 7], 2), no);
    }

    #[test]
    fn a_rank_that_is_late_for_a_while_does_not() {
        // All of 30 collectives in a row, and a little of the others.
        let mut caused: Vec<(usize, u64)> = (0..96).map(|n| (n % 4, 100)).collect();
        caused[30..60].fill((3, 10_000));
        let NoStraggler::NotThroughout { parts_led, parts } = found(&caused, 4).unwrap_err() else {
            panic!("{:?}", found(&caused, 4));
        };
        assert_eq!((parts_led, parts), (5, 16));
    }

    #[test]
    fn waiting_for_each_in_turn_is_of_several() {
        let caused: Vec<(usize, u64)> = (0..96).map(|n| (n % 4, 1000)).collect();
        assert_eq!(found(&caused, 4), Err(NoStraggler::Several { largest_share: 0.25 }));
        let little = Err(NoStraggler::LittleWaiting { share: 0.0096 });
        assert_eq!(found(&[(0, 10); 96], 4), little);
        assert_eq!(found(&[], 4), Err(NoStraggler::LittleWaiting { share: 0.0 }));
    }

    /// With ranks that are all alike, and late at random, hardly ever a name.
    #[test]
    fn chance_names_no_rank() {
        let mut state = 7_u64;
        let mut random = |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let mut named = 0;
        for _ in 0..400 {
            let caused: Vec<(usize, u64)> =
                (0..64).map(|_| (random(2) as usize, random(5000))).collect();
            named += usize::from(found(&caused, 2).is_ok());
        }
        assert!(named <= 8, "{named} of 400");
    }
}
