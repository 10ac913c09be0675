//! Which rank waits for which in the collectives of a group.

use std::collections::BTreeMap;

use serde::Serialize;

use super::alignment::Item;
use super::bandwidth::bus_gb_per_s;
use super::groups::{Group, Groups};
use super::operation::{Family, Operation};
use super::record::{RankName, RankRecord};
use super::straggler::{self, NoStraggler, Straggler, Waits};
use crate::ratio::ratio;

/// Ranks that take part in the same collectives. All times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupSkew {
    /// The process group and its ranks in the words of the profiler, if it names them.
    pub group: Option<String>,
    /// The ranks, in their order.
    pub members: Vec<MemberSkew>,
    /// The collectives that all of them recorded.
    pub collectives: usize,
    /// Those in which some rank waited longer than the ends are apart, so that one was the last.
    pub with_last: usize,
    /// The least durations added up: what each rank would take if all arrived at once.
    pub transfer_ns: u64,
    /// The waiting of all ranks.
    pub waiting_ns: u64,
    /// The part of the durations of all ranks that is waiting.
    pub waiting_share: f64,
    /// Three quarters of the collectives end on all ranks within so long, once clocks are set by
    /// each other.
    pub ends_within_ns: u64,
    /// The collectives by operation, kernel and size, the longest waiting first.
    pub by_family: Vec<CollectiveTime>,
    /// The rank that the others wait for, if one stands out.
    pub straggler: Option<Straggler>,
    /// Why none does.
    pub no_straggler_because: Option<NoStraggler>,
}

/// A rank in its group. All times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberSkew {
    /// Which rank.
    #[serde(flatten)]
    pub name: RankName,
    /// The stream that its collectives run on.
    pub stream: i64,
    /// How long it waited for others.
    pub waiting_ns: u64,
    /// How often it was the last.
    pub last: usize,
    /// How long the others waited together for it.
    pub others_waited_ns: u64,
}

/// Collectives of one operation, kernel and size. All times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollectiveTime {
    /// What they do.
    pub operation: Operation,
    /// The words of the kernel's name.
    pub kernel: String,
    /// How large one is, of the rank that moves most, if the traces say.
    pub bytes: Option<u64>,
    /// How many, each counted once for all ranks.
    pub count: usize,
    /// The least durations added up.
    pub transfer_ns: u64,
    /// The waiting of all ranks.
    pub waiting_ns: u64,
    /// The bandwidth of the bus as NCCL's tests define it, over the least durations, in gigabytes
    /// (10^9) a second.
    pub bus_gb_per_s: Option<f64>,
}

/// Waiting of less than a microsecond does not count: profilers are not more precise.
const LEAST_WAIT_NS: u64 = 1000;

impl GroupSkew {
    pub(super) fn of(group: &Group, all: &Groups, records: &[&RankRecord]) -> Self {
        let ends_within_ns = group.within_ns();
        let common = group.common(&all.lines);
        let mut members: Vec<MemberSkew> = group
            .members
            .iter()
            .filter_map(|member| {
                let line = all.lines.get(member.line)?;
                let name = records.get(line.record)?.name.clone();
                let stream = line.stream;
                Some(MemberSkew { name, stream, waiting_ns: 0, last: 0, others_waited_ns: 0 })
            })
            .collect();
        let collectives = common.first().map_or(0, |items| items.len());
        let mut caused = Vec::with_capacity(collectives);
        let lines = || group.members.iter().filter_map(|member| all.lines.get(member.line));
        let name = lines().find_map(|line| line.group.clone());
        let size = lines().map(|line| line.group_size).max().unwrap_or(0).max(members.len() as u64);
        let mut by_family: BTreeMap<(&Family, u64), CollectiveTime> = BTreeMap::new();
        let (mut transfer_ns, mut with_last) = (0_u64, 0);
        for number in 0..collectives {
            let items: Vec<&Item> = common.iter().filter_map(|items| items.get(number)).collect();
            let Some(one) = Once::of(&items) else { continue };
            transfer_ns = transfer_ns.saturating_add(one.transfer_ns);
            for (member, item) in members.iter_mut().zip(&items) {
                let waiting = item.duration_ns - one.transfer_ns;
                member.waiting_ns = member.waiting_ns.saturating_add(waiting);
            }
            let has_last = one.longest_ns > ends_within_ns.max(LEAST_WAIT_NS);
            with_last += usize::from(has_last);
            if let Some(last) = members.get_mut(one.last) {
                last.last += usize::from(has_last);
                last.others_waited_ns = last.others_waited_ns.saturating_add(one.waiting_ns);
            }
            caused.push((one.last, one.waiting_ns));
            // Of a collective that has no name on some ranks, the one that has.
            let families = items.iter().filter_map(|item| all.families.get(item.family as usize));
            if let Some(family) = families.min() {
                let bytes = items.iter().map(|item| item.bytes).max().unwrap_or(0);
                let time = by_family
                    .entry((family, bytes))
                    .or_insert_with(|| CollectiveTime::none(family, bytes));
                time.count += 1;
                time.transfer_ns = time.transfer_ns.saturating_add(one.transfer_ns);
                time.waiting_ns = time.waiting_ns.saturating_add(one.waiting_ns);
            }
        }
        let waiting_ns = members.iter().fold(0_u64, |sum, one| sum.saturating_add(one.waiting_ns));
        let communication_ns =
            transfer_ns.saturating_mul(members.len() as u64).saturating_add(waiting_ns);
        let waits = Waits { caused: &caused, members: members.len(), communication_ns };
        let found = straggler::find(&waits);
        let no_straggler_because = found.err();
        let straggler = found.ok().and_then(|(member, parts_led, parts)| {
            let MemberSkew { name, last, others_waited_ns, .. } = members.get(member)?.clone();
            let share = ratio(others_waited_ns, waiting_ns);
            Some(Straggler { name, last, others_waited_ns, share, parts_led, parts })
        });
        let mut by_family: Vec<CollectiveTime> = by_family.into_values().collect();
        for time in &mut by_family {
            let bytes = time.bytes.unwrap_or(0).saturating_mul(time.count as u64);
            time.bus_gb_per_s = bus_gb_per_s(time.operation, size, bytes, time.transfer_ns);
        }
        by_family.sort_by_key(|time| std::cmp::Reverse(time.waiting_ns));
        Self {
            group: name,
            members,
            collectives,
            with_last,
            transfer_ns,
            waiting_ns,
            waiting_share: ratio(waiting_ns, communication_ns),
            ends_within_ns,
            by_family,
            straggler,
            no_straggler_because,
        }
    }
}

impl CollectiveTime {
    fn none(family: &Family, bytes: u64) -> Self {
        let Family { operation, kernel } = family.clone();
        Self {
            operation,
            kernel,
            bytes: Some(bytes).filter(|bytes| *bytes > 0),
            count: 0,
            transfer_ns: 0,
            waiting_ns: 0,
            bus_gb_per_s: None,
        }
    }
}

/// One collective on all ranks of its group.
struct Once {
    /// The member with the shortest kernel, the first of several.
    last: usize,
    transfer_ns: u64,
    /// How long the others waited together.
    waiting_ns: u64,
    /// How long one of them waited at most.
    longest_ns: u64,
}

impl Once {
    fn of(items: &[&Item]) -> Option<Self> {
        let durations = || items.iter().map(|item| item.duration_ns);
        let transfer_ns = durations().min()?;
        let last = durations().position(|ns| ns == transfer_ns)?;
        let waiting_ns = durations().fold(0, |sum: u64, ns| sum.saturating_add(ns - transfer_ns));
        Some(Self { last, transfer_ns, waiting_ns, longest_ns: durations().max()? - transfer_ns })
    }
}
