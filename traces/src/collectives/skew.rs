//! Which rank waits for which, over all ranks of a run.

use serde::Serialize;

use super::alignment::Mismatch;
use super::groups::{Groups, Line};
use super::operation::Participation;
use super::record::{RankName, RankRecord};
use super::waits::GroupSkew;
use super::warning::{self, SkewWarning};

/// Which rank waits for which. All times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skew {
    /// Every rank, in the order of their numbers.
    pub ranks: Vec<RankSkew>,
    /// Ranks that take part in the same collectives, those that wait longest first.
    pub groups: Vec<GroupSkew>,
    /// The collectives that were not matched with those of other ranks, and why.
    pub unmatched: Vec<Unmatched>,
    /// The waiting of all ranks.
    pub waiting_ns: u64,
    /// What a reader should know about it.
    pub warnings: Vec<SkewWarning>,
}

/// The collectives of one rank, added up over its groups. All times are in nanoseconds.
///
/// `collective_ns` = `transfer_ns` + `waiting_ns` + `unmatched_ns`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankSkew {
    /// Which rank.
    #[serde(flatten)]
    pub name: RankName,
    /// Its collectives.
    pub collectives: usize,
    /// Those that were matched with those of other ranks.
    pub matched: usize,
    /// Their durations together, overlapping or not.
    pub collective_ns: u64,
    /// What the matched ones would take if all ranks arrived at once.
    pub transfer_ns: u64,
    /// How long it waited for others in them.
    pub waiting_ns: u64,
    /// The durations of the others, whose waiting is not known.
    pub unmatched_ns: u64,
    /// How often it was the last.
    pub last: usize,
    /// How long the others waited together for it.
    pub others_waited_ns: u64,
}

/// Collectives of one stream that were not matched with those of other ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unmatched {
    /// The rank.
    #[serde(flatten)]
    pub name: RankName,
    /// The stream that they ran on.
    pub stream: i64,
    /// How many.
    pub collectives: usize,
    /// Their durations together, in nanoseconds.
    pub total_ns: u64,
    /// Why they were not matched.
    pub reason: Reason,
}

/// Why collectives were not matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// There is no other rank, or none of the same run that communicates in this way.
    NoCounterpart,
    /// Broadcasts and reductions to one rank, which do not make every rank wait for the last.
    OneRoot,
    /// No other rank has the same operations in the same order, or as many of them.
    OtherOperations,
    /// Too few to tell whether they belong together.
    TooFew,
    /// They do not end when those of other ranks do: they are of another group, or another run.
    OtherTimes,
    /// A recording begins or ends elsewhere, and several positions fit.
    SeveralPositions,
    /// Other ranks of the group recorded them not.
    NotOnAllRanks,
}

impl Reason {
    /// In words, to go on after `not matched:`.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::NoCounterpart => "no other rank of the run communicates in this way",
            Self::OneRoot => {
                "broadcasts and reductions to one rank do not make all ranks wait for the last"
            }
            Self::OtherOperations => {
                "no other rank has the same operations in the same order, and as many"
            }
            Self::TooFew => "too few to tell whether they are those of other ranks",
            Self::OtherTimes => {
                "they do not end when those of other ranks do, so they are of another group or run"
            }
            Self::SeveralPositions => {
                "the recordings begin or end at different times, and several positions fit"
            }
            Self::NotOnAllRanks => "not all ranks of the group recorded them",
        }
    }
}

impl From<Mismatch> for Reason {
    fn from(mismatch: Mismatch) -> Self {
        match mismatch {
            Mismatch::Operations => Self::OtherOperations,
            Mismatch::TooShort => Self::TooFew,
            Mismatch::Ends => Self::OtherTimes,
            Mismatch::Ambiguous => Self::SeveralPositions,
        }
    }
}

impl Skew {
    /// That of the ranks of one run, in any order.
    #[must_use]
    pub fn of(records: &[RankRecord]) -> Self {
        let mut records: Vec<&RankRecord> = records.iter().collect();
        records.sort_by(|a, b| a.name.order().cmp(&b.name.order()));
        let all = Groups::of(&records);
        let mut ranks: Vec<RankSkew> = records.iter().map(|record| RankSkew::new(record)).collect();
        let mut groups = Vec::with_capacity(all.groups.len());
        let mut unmatched = Vec::new();
        for group in &all.groups {
            let skew = GroupSkew::of(group, &all, &records);
            for (member, sums) in group.members.iter().zip(&skew.members) {
                let Some(line) = all.lines.get(member.line) else { continue };
                let Some(rank) = ranks.get_mut(line.record) else { continue };
                rank.matched += skew.collectives;
                rank.transfer_ns = rank.transfer_ns.saturating_add(skew.transfer_ns);
                rank.waiting_ns = rank.waiting_ns.saturating_add(sums.waiting_ns);
                rank.last += sums.last;
                rank.others_waited_ns = rank.others_waited_ns.saturating_add(sums.others_waited_ns);
                let matched_ns = skew.transfer_ns.saturating_add(sums.waiting_ns);
                let total_ns = total_ns(line).saturating_sub(matched_ns);
                let collectives = line.items.len().saturating_sub(skew.collectives);
                if collectives > 0 {
                    rank.unmatched_ns = rank.unmatched_ns.saturating_add(total_ns);
                    let (name, stream) = (rank.name.clone(), line.stream);
                    let reason = Reason::NotOnAllRanks;
                    unmatched.push(Unmatched { name, stream, collectives, total_ns, reason });
                }
            }
            groups.push(skew);
        }
        for (line, mismatch) in &all.alone {
            let Some(line) = all.lines.get(*line) else { continue };
            let Some(rank) = ranks.get_mut(line.record) else { continue };
            let reason = match line.participation {
                Participation::Root => Reason::OneRoot,
                _ => mismatch.map_or(Reason::NoCounterpart, Reason::from),
            };
            let (name, stream, total_ns) = (rank.name.clone(), line.stream, total_ns(line));
            rank.unmatched_ns = rank.unmatched_ns.saturating_add(total_ns);
            let collectives = line.items.len();
            unmatched.push(Unmatched { name, stream, collectives, total_ns, reason });
        }
        let order = |one: &Unmatched| (one.name.rank.unwrap_or(u64::MAX), one.stream, one.reason);
        unmatched.sort_by_key(order);
        groups.sort_by_key(|group| std::cmp::Reverse(group.waiting_ns));
        let waiting_ns = groups.iter().fold(0_u64, |sum, one| sum.saturating_add(one.waiting_ns));
        let warnings = warning::of(&records, &unmatched, !groups.is_empty());
        Self { ranks, groups, unmatched, waiting_ns, warnings }
    }
}

fn total_ns(line: &Line) -> u64 {
    line.items.iter().fold(0, |sum, item| sum.saturating_add(item.duration_ns))
}

impl RankSkew {
    fn new(record: &RankRecord) -> Self {
        Self {
            name: record.name.clone(),
            collectives: record.collectives,
            matched: 0,
            collective_ns: record.collective_ns,
            transfer_ns: 0,
            waiting_ns: 0,
            unmatched_ns: 0,
            last: 0,
            others_waited_ns: 0,
        }
    }
}
