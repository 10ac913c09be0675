//! The queues of different ranks that ran the same collectives.

use rustc_hash::FxHashMap;

use super::alignment::{Alignment, Item, Mismatch, in_place, shifted};
use super::named;
use super::operation::{Family, Participation};
use super::record::RankRecord;

/// A part of the queue of a rank: its collectives of all, or its transfers between some.
#[derive(Debug)]
pub(super) struct Line {
    /// The rank: an index into the list of records.
    pub(super) record: usize,
    /// The process group and its ranks, in the words of the profiler.
    pub(super) group: Option<String>,
    /// How many ranks the group has; 0 if the trace does not say.
    pub(super) group_size: u64,
    pub(super) stream: i64,
    pub(super) participation: Participation,
    pub(super) items: Vec<Item>,
}

/// A line in its group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    /// An index into the list of lines.
    pub(super) line: usize,
    /// The collective `n` of the line that the group began with is `n + shift` here.
    shift: i64,
    within_ns: u64,
}

/// Lines of the same collectives, at least two.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) members: Vec<Member>,
}

/// All lines, and which of them belong together.
#[derive(Debug)]
pub(super) struct Groups {
    pub(super) lines: Vec<Line>,
    pub(super) families: Vec<Family>,
    pub(super) groups: Vec<Group>,
    /// The lines of no group, with the reason; none if there is no line to compare them with.
    pub(super) alone: Vec<(usize, Option<Mismatch>)>,
}

impl Member {
    /// The collectives of the line that the group began with that this one has.
    fn range(&self, lines: &[Line]) -> (i64, i64) {
        let count = lines.get(self.line).map_or(0, |line| line.items.len() as i64);
        (-self.shift, count - self.shift)
    }
}

impl Group {
    /// The collectives that all members have: of each member, in the order of the members.
    pub(super) fn common<'l>(&self, lines: &'l [Line]) -> Vec<&'l [Item]> {
        let ranges = || self.members.iter().map(|member| member.range(lines));
        let from = ranges().map(|(from, _)| from).max().unwrap_or(0);
        let to = ranges().map(|(_, to)| to).min().unwrap_or(0);
        let of_member = |member: &Member| {
            let place = |n: i64| usize::try_from(n + member.shift).unwrap_or(0);
            let items = lines.get(member.line).map(|line| line.items.as_slice());
            items.and_then(|items| items.get(place(from)..place(to))).unwrap_or_default()
        };
        self.members.iter().map(of_member).collect()
    }

    /// How close the ends of most collectives are, in nanoseconds: of the rank where they are least
    /// so.
    pub(super) fn within_ns(&self) -> u64 {
        self.members.iter().map(|member| member.within_ns).max().unwrap_or(0)
    }
}

impl Groups {
    /// Those of some ranks, which are in the order of their numbers.
    pub(super) fn of(records: &[&RankRecord]) -> Self {
        let (lines, families) = lines(records);
        let mut finding = Finding { records, lines: &lines, families: &families, why: Vec::new() };
        finding.why = vec![None; lines.len()];
        let mut groups: Vec<Group> = Vec::new();
        let ends_together = |line: &usize| lines[*line].participation != Participation::Root;
        for line in (0..lines.len()).filter(ends_together) {
            match finding.join(line, &groups, in_place) {
                Some((group, member)) => groups[group].members.push(member),
                None => groups.push(Group::new(line)),
            }
        }
        // What is left began later or ended earlier than the others.
        let (mut groups, single): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| group.members.len() > 1);
        for member in single.iter().filter_map(|group| group.members.first()) {
            let may_shift = finding.lines[member.line].participation == Participation::All;
            let joined = may_shift.then(|| finding.join(member.line, &groups, shifted)).flatten();
            match joined {
                Some((group, member)) => groups[group].members.push(member),
                None => groups.push(Group::new(member.line)),
            }
        }
        let why = finding.why;
        let (mut groups, single): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| group.members.len() > 1);
        for group in &mut groups {
            group.members.sort_by_key(|member| member.line);
        }
        let lines_alone = single.iter().filter_map(|group| group.members.first());
        let with_root = (0..lines.len()).filter(|line| !ends_together(line));
        let alone = lines_alone.map(|member| member.line).chain(with_root);
        let alone = alone.map(|line| (line, why[line])).collect();
        Self { lines, families, groups, alone }
    }
}

impl Group {
    fn new(line: usize) -> Self {
        Self { members: vec![Member { line, shift: 0, within_ns: 0 }] }
    }
}

type Align = fn(&[Item], &[Item], &[Family]) -> Result<Alignment, Mismatch>;

struct Finding<'r> {
    records: &'r [&'r RankRecord],
    lines: &'r [Line],
    families: &'r [Family],
    /// Of each line, the best of the reasons why it belongs to no other one.
    why: Vec<Option<Mismatch>>,
}

impl Finding<'_> {
    /// The group that a line belongs to. Streams of one number come first: the same program has the
    /// same numbers on all ranks, as a rule.
    fn join(&mut self, line: usize, groups: &[Group], align: Align) -> Option<(usize, Member)> {
        let lines = self.lines;
        let stream = lines[line].stream;
        let first = |group: usize| groups[group].members[0].line;
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|group| lines[first(*group)].stream != stream);
        for group in order {
            if !self.may_join(line, &groups[group]) {
                continue;
            }
            let (one, other) = (&lines[first(group)], &lines[line]);
            let by_name = named::align(one, other, self.families);
            match by_name.unwrap_or_else(|| align(&one.items, &other.items, self.families)) {
                Ok(Alignment { shift, within_ns, .. }) => {
                    return Some((group, Member { line, shift, within_ns }));
                }
                Err(mismatch) => {
                    for line in [line, first(group)] {
                        self.why[line] = self.why[line].max(Some(mismatch));
                    }
                }
            }
        }
        None
    }

    /// Whether a line can be of a group at all: a rank takes part once, and ranks of one run know
    /// the same number of ranks.
    fn may_join(&self, line: usize, group: &Group) -> bool {
        let line = &self.lines[line];
        let record = self.records[line.record];
        group.members.iter().all(|member| {
            let other = &self.lines[member.line];
            let named = self.records[other.record];
            let same_rank = record.name.rank.is_some() && record.name.rank == named.name.rank;
            let worlds = record.world_size.zip(named.world_size);
            let groups = line.group.as_ref().zip(other.group.as_ref());
            other.record != line.record
                && !same_rank
                && other.participation == line.participation
                && worlds.is_none_or(|(one, other)| one == other)
                && groups.is_none_or(|(one, other)| one == other)
        })
    }
}

/// The lines of some ranks, in their order, with the families of all.
fn lines(records: &[&RankRecord]) -> (Vec<Line>, Vec<Family>) {
    let mut families: Vec<Family> = Vec::new();
    let mut known: FxHashMap<Family, u32> = FxHashMap::default();
    let mut lines = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let ids: Vec<(u32, Participation)> = record
            .families
            .iter()
            .map(|family| {
                let id = *known.entry(family.clone()).or_insert_with(|| {
                    families.push(family.clone());
                    u32::try_from(families.len() - 1).unwrap_or(u32::MAX)
                });
                (id, family.operation.participation())
            })
            .collect();
        for queue in &record.queues {
            for participation in [Participation::All, Participation::Some, Participation::Root] {
                let items: Vec<Item> = queue
                    .collectives
                    .iter()
                    .filter_map(|one| {
                        let &(family, kind) = ids.get(one.family as usize)?;
                        let (duration_ns, end_ns) = (one.duration_ns, one.end_ns());
                        let (step, sequence, bytes) = (one.step, one.sequence, one.bytes);
                        let item = Item { family, duration_ns, end_ns, step, sequence, bytes };
                        (kind == participation).then_some(item)
                    })
                    .collect();
                if !items.is_empty() {
                    lines.push(Line {
                        record: index,
                        group: queue.group.clone(),
                        group_size: queue.group_size,
                        stream: queue.stream,
                        participation,
                        items,
                    });
                }
            }
        }
    }
    (lines, families)
}
