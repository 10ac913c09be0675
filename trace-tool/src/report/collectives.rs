//! The ranks of one run side by side, and which rank waits for which.

use std::collections::BTreeMap;

use cli_support::tables::{right, styled};
use cli_support::units::percent as rounded;
use comfy_table::{Cell, Table};
use kernel_traces::collectives::{
    CollectiveTime, GroupSkew, NoStraggler, Operation, RankRecord, RankSkew, RankSurvey, Reason,
    Representative, Skew, Straggler,
};

use super::{capital, percent, ranks, share, time};

/// At most this many groups get a sentence; the JSON has all.
const MOST_GROUPS: usize = 3;

/// The columns of a table of ranks: the first two are names, the others numbers.
pub(super) const RANK_COLUMNS: [&str; 8] =
    ["rank", "device", "steps", "busy", "idle", "exposed comm.", "waiting", "others waited for it"];

/// A row for each rank.
pub(super) fn rank_table(survey: &RankSurvey) -> Table {
    let mut table = styled();
    table.set_header(RANK_COLUMNS);
    for row in rank_rows(survey) {
        let cells = row.into_iter().enumerate();
        table.add_row(cells.map(|(column, text)| match column {
            1 => Cell::new(text),
            _ => right(text),
        }));
    }
    table
}

/// At most this many kinds of collectives are listed; the JSON has all.
const MOST_KINDS: usize = 12;

/// A row for each operation, kernel and size of matched collectives; none if nothing was matched.
pub(super) fn collective_table(skew: &Skew) -> Option<Table> {
    let kinds = skew.groups.iter().flat_map(|group| &group.by_family);
    let mut kinds: Vec<&CollectiveTime> = kinds.collect();
    if kinds.is_empty() {
        return None;
    }
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.transfer_ns.saturating_add(kind.waiting_ns)));
    let mut table = styled();
    table.set_header([
        "collective",
        "kernel",
        "size",
        "count",
        "transfer",
        "waiting",
        "bus bandwidth",
    ]);
    for kind in kinds.into_iter().take(MOST_KINDS) {
        table.add_row([
            Cell::new(kind.operation.name()),
            Cell::new(&kind.kernel),
            right(kind.bytes.map_or_else(|| "?".to_owned(), super::bytes)),
            right(kind.count.to_string()),
            right(time(kind.transfer_ns)),
            right(time(kind.waiting_ns)),
            right(
                kind.bus_gb_per_s.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2} GB/s")),
            ),
        ]);
    }
    Some(table)
}

/// The cells of [`RANK_COLUMNS`] of each rank.
pub(super) fn rank_rows(survey: &RankSurvey) -> Vec<[String; 8]> {
    let RankSurvey { records, skew, .. } = survey;
    let row = |rank: &RankSkew| {
        let record = records.iter().find(|record| record.name == rank.name)?;
        // Nothing is known of the waiting of one that was not matched.
        let known = |ns: u64| match ns {
            _ if rank.matched == 0 => "-".to_owned(),
            0 => "0".to_owned(),
            _ => time(ns),
        };
        Some([
            ranks::number(rank.name.rank),
            device(record),
            record.steps.map_or_else(|| "-".to_owned(), |steps| steps.to_string()),
            time(record.busy_ns),
            time(record.idle_ns),
            time(record.communication.exposed_ns),
            known(rank.waiting_ns),
            known(rank.others_waited_ns),
        ])
    };
    skew.ranks.iter().filter_map(row).collect()
}

/// What is to be said about the ranks.
pub(super) fn rank_sentences(survey: &RankSurvey) -> Vec<String> {
    let RankSurvey { records, skew, representative, .. } = survey;
    let groups = skew.groups.iter().take(MOST_GROUPS);
    let mut sentences: Vec<String> =
        groups.map(|group| sentence(group, skew.groups.len() > 1)).collect();
    if let Some(more @ 1..) = skew.groups.len().checked_sub(MOST_GROUPS) {
        sentences.push(format!("{more} more groups of ranks wait for each other less."));
    }
    if records.len() > 1 {
        sentences.extend(unmatched(skew));
        sentences.extend(representative.as_ref().map(standing_for_all));
    }
    sentences.iter().map(|sentence| capital(sentence)).collect()
}

fn device(record: &RankRecord) -> String {
    let number = match record.device {
        None => "-".to_owned(),
        Some(-1) => "?".to_owned(),
        Some(number) => number.to_string(),
    };
    let more = if record.devices > 1 { format!(" of {}", record.devices) } else { String::new() };
    let name = &record.device_name;
    let space = if name.is_empty() { "" } else { " " };
    format!("{number}{more}{space}{name}")
}

/// Which rank waits for which in a group.
fn sentence(group: &GroupSkew, names_group: bool) -> String {
    let what = operations(group);
    let of_group = if names_group { format!("{}: ", members(group)) } else { String::new() };
    let waiting = time(group.waiting_ns);
    if let Some(straggler) = &group.straggler {
        let Straggler { name, last, others_waited_ns, share, .. } = straggler;
        return format!(
            "{of_group}{name} arrives last in {last} of {} {what}; the others waited {} for it, \
             {} of all waiting.",
            group.collectives,
            time(*others_waited_ns),
            rounded(*share)
        );
    }
    let why = match group.no_straggler_because {
        Some(NoStraggler::LittleWaiting { share }) => {
            return format!(
                "{of_group}the ranks arrive together: {} of their time in {} {what} is waiting.",
                percent(share),
                group.collectives
            );
        }
        Some(NoStraggler::Several { largest_share }) => {
            format!("no rank causes more than {} of it", rounded(largest_share))
        }
        Some(NoStraggler::NotThroughout { parts_led, parts }) => format!(
            "the rank that causes most of it does so in {parts_led} of {parts} parts of the \
             recording, which may be chance"
        ),
        None => "no rank stands out".to_owned(),
    };
    format!(
        "{of_group}the ranks wait {waiting} for each other in {} {what}, {} of their time in \
         these; {why}.",
        group.collectives,
        rounded(group.waiting_share)
    )
}

/// What the collectives of a group are called.
fn operations(group: &GroupSkew) -> &'static str {
    let mut operations: Vec<Operation> =
        group.by_family.iter().map(|family| family.operation).collect();
    operations.sort_unstable();
    operations.dedup();
    match operations.as_slice() {
        [Operation::AllReduce] => "all-reduces",
        [Operation::AllGather] => "all-gathers",
        [Operation::ReduceScatter] => "reduce-scatters",
        [Operation::AllToAll] => "all-to-alls",
        [Operation::SendRecv] => "transfers",
        _ => "collectives",
    }
}

/// At most this many ranks of a group are listed.
const MOST_MEMBERS: usize = 8;

fn members(group: &GroupSkew) -> String {
    let listed = group.members.iter().take(MOST_MEMBERS);
    let numbers: Vec<String> = listed.map(|member| ranks::number(member.name.rank)).collect();
    let more = group.members.len().saturating_sub(MOST_MEMBERS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("ranks {}{more}", numbers.join(", "))
}

/// How many collectives were not matched, and the reason that most time has.
fn unmatched(skew: &Skew) -> Option<String> {
    let mut by_reason: BTreeMap<Reason, u64> = BTreeMap::new();
    let (mut count, mut total_ns) = (0, 0_u64);
    for one in &skew.unmatched {
        count += one.collectives;
        total_ns = total_ns.saturating_add(one.total_ns);
        let of_reason = by_reason.entry(one.reason).or_default();
        *of_reason = of_reason.saturating_add(one.total_ns);
    }
    let all_ns = skew.ranks.iter().fold(0_u64, |sum, one| sum.saturating_add(one.collective_ns));
    let (reason, _) = by_reason.iter().max_by_key(|(_, ns)| **ns)?;
    let mostly = if by_reason.len() > 1 { "; mostly: " } else { ": " };
    Some(format!(
        "{count} collectives of all ranks, {} of the time in them, are not matched{mostly}{}.",
        share(total_ns, all_ns),
        reason.describe()
    ))
}

fn standing_for_all(chosen: &Representative) -> String {
    let Representative { name, distance_ns, largest_distance_ns, left_out, .. } = chosen;
    let left_out = match left_out {
        0 => String::new(),
        _ => format!(", without {left_out} whose traces are not whole"),
    };
    format!(
        "{name} stands for all {}: its busy time, exposed communication and span differ from the \
         medians by {} together, those of the farthest rank by {}{left_out}.",
        chosen.chosen_from + chosen.left_out,
        time(*distance_ns),
        time(*largest_distance_ns)
    )
}

#[cfg(test)]
mod tests {
    use kernel_traces::collectives::RankName;
    use kernel_traces::synthetic::Lockstep;
    use kernel_traces::{Classes, Options, Segments, Trace};

    use super::*;

    fn shown(run: &Lockstep) -> String {
        let record = |(rank, (text, _)): (u64, (Vec<u8>, _))| {
            let trace = Trace::from_json(&text, &Options::default()).unwrap();
            let classes = Classes::of(&trace);
            let segments = Segments::of(&trace, &classes);
            let name = RankName { rank: Some(rank), file: format!("rank{rank}.json") };
            RankRecord::of(&trace, &classes, Some(&segments), name)
        };
        let records: Vec<RankRecord> = (0..).zip(run.texts().unwrap()).map(record).collect();
        let survey = RankSurvey::of(records);
        let sentences = rank_sentences(&survey).into_iter().map(|sentence| sentence + "\n");
        format!("{}\n{}", rank_table(&survey), sentences.collect::<String>())
    }

    #[test]
    fn a_straggler() {
        insta::assert_snapshot!(shown(&Lockstep {
            late: vec![(3, 90_000)],
            steps: 8,
            ..Lockstep::default()
        }));
    }

    #[test]
    fn two_groups_and_a_recording_that_begins_later() {
        insta::assert_snapshot!(shown(&Lockstep {
            ranks: 8,
            late: vec![(3, 90_000)],
            missing: vec![(5, 1)],
            ..Lockstep::default()
        }));
    }

    #[test]
    fn ranks_that_arrive_together() {
        insta::assert_snapshot!(shown(&Lockstep {
            ranks: 2,
            spread_ns: 1000,
            ..Lockstep::default()
        }));
    }

    #[test]
    fn one_rank_alone() {
        insta::assert_snapshot!(shown(&Lockstep { ranks: 1, ..Lockstep::default() }));
    }

    #[test]
    fn ranks_without_groups() {
        insta::assert_snapshot!(shown(&Lockstep { ranks: 3, group: 1, ..Lockstep::default() }));
    }
}
