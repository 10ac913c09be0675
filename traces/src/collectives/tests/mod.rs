mod named;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::synthetic::{self, CollectiveTruth, Communication, Lockstep, Model, Plan};
use crate::{Classes, Options, Segments, Trace, Vendor};

fn record(text: &[u8], rank: Option<u64>, file: &str) -> RankRecord {
    let trace = Trace::from_json(text, &Options::default()).unwrap();
    let classes = Classes::of(&trace);
    let segments = Segments::of(&trace, &classes);
    RankRecord::of(&trace, &classes, Some(&segments), RankName { rank, file: file.to_owned() })
}

fn recorded(run: &Lockstep) -> (Vec<RankRecord>, Vec<Vec<CollectiveTruth>>) {
    let of = |(rank, (text, truth)): (u64, (Vec<u8>, _))| {
        (record(&text, Some(rank), &format!("rank{rank}.json")), truth)
    };
    (0..).zip(run.texts().unwrap()).map(of).unzip()
}

/// Who waits how long and who is last how often, of ranks whose collectives are all matched:
/// counted from the truth, one collective after another.
fn expected(truth: &[Vec<CollectiveTruth>]) -> (u64, Vec<(u64, u64)>) {
    let mut transfer_ns = 0;
    let mut of_rank = vec![(0, 0); truth.len()];
    for number in 0..truth[0].len() {
        let durations: Vec<u64> = truth.iter().map(|rank| rank[number].duration_ns).collect();
        let least = *durations.iter().min().unwrap();
        let last = durations.iter().position(|ns| *ns == least).unwrap();
        transfer_ns += least;
        for (rank, duration) in durations.iter().enumerate() {
            of_rank[rank].0 += duration - least;
            of_rank[last].1 += duration - least;
        }
    }
    (transfer_ns, of_rank)
}

fn waits(skew: &Skew) -> Vec<(u64, u64)> {
    skew.ranks.iter().map(|rank| (rank.waiting_ns, rank.others_waited_ns)).collect()
}

/// The ranks of each group, in the order of the lowest.
fn groups(skew: &Skew) -> Vec<Vec<Option<u64>>> {
    let of = |group: &GroupSkew| group.members.iter().map(|member| member.name.rank).collect();
    let mut groups: Vec<Vec<_>> = skew.groups.iter().map(of).collect();
    groups.sort();
    groups
}

fn reasons(skew: &Skew) -> BTreeMap<Reason, usize> {
    let mut reasons = BTreeMap::new();
    for unmatched in &skew.unmatched {
        *reasons.entry(unmatched.reason).or_default() += unmatched.collectives;
    }
    reasons
}

#[test]
fn the_rank_that_is_late_is_found_and_what_it_costs() {
    for vendor in [Vendor::Nvidia, Vendor::Amd] {
        let run = Lockstep { vendor, late: vec![(2, 90_000)], ..Lockstep::default() };
        let (records, truth) = recorded(&run);
        let skew = Skew::of(&records);
        let (transfer_ns, of_rank) = expected(&truth);
        assert_eq!(waits(&skew), of_rank);
        assert_eq!(groups(&skew), [(0..4).map(Some).collect::<Vec<_>>()]);
        let group = &skew.groups[0];
        assert_eq!((group.collectives, group.with_last), (48, 48));
        assert_eq!(group.transfer_ns, transfer_ns);
        assert!(group.ends_within_ns < 2000, "{}", group.ends_within_ns);
        let straggler = group.straggler.as_ref().unwrap();
        // No other rank takes 90 us longer.
        assert_eq!((straggler.name.rank, straggler.last), (Some(2), 48));
        assert_eq!((straggler.parts_led, straggler.parts), (16, 16));
        assert_eq!(straggler.share, 1.0);
        assert_eq!(straggler.others_waited_ns, group.waiting_ns);
        assert_eq!(group.by_family.len(), 1);
        let (operation, kernel) = match vendor {
            // The kernel of AMD's library has no name, and none of these has an operator.
            Vendor::Amd => (Operation::Unnamed, "generic_1"),
            _ => (Operation::AllReduce, "all_reduce_sum_bf16_ring_ll"),
        };
        let family = &group.by_family[0];
        assert_eq!((family.operation, family.kernel.as_str()), (operation, kernel));
        assert_eq!((family.count, family.waiting_ns), (48, group.waiting_ns));
        assert!(skew.unmatched.is_empty() && skew.warnings.is_empty());
    }
}

#[test]
fn ranks_that_are_alike_have_no_straggler() {
    let (records, truth) = recorded(&Lockstep::default());
    let skew = Skew::of(&records);
    assert_eq!(waits(&skew), expected(&truth).1);
    let group = &skew.groups[0];
    assert_eq!(group.straggler, None);
    assert!(
        matches!(group.no_straggler_because, Some(NoStraggler::Several { .. })),
        "{:?}",
        group.no_straggler_because
    );
    // All arrive within a microsecond.
    let (records, _) = recorded(&Lockstep { spread_ns: 1000, ..Lockstep::default() });
    let group = &Skew::of(&records).groups[0];
    assert!(matches!(group.no_straggler_because, Some(NoStraggler::LittleWaiting { .. })));
}

#[test]
fn groups_that_run_the_same_program_are_told_apart_by_their_times() {
    // A straggler in each of two groups, and clocks that differ by seconds.
    let late = vec![(1, 50_000), (6, 80_000)];
    let run = Lockstep { ranks: 8, late, spread_ns: 20_000, ..Lockstep::default() };
    let (records, truth) = recorded(&run);
    let skew = Skew::of(&records);
    let of = |ranks: std::ops::Range<u64>| ranks.map(Some).collect::<Vec<_>>();
    assert_eq!(groups(&skew), [of(0..4), of(4..8)]);
    let mut stragglers: Vec<_> =
        skew.groups.iter().map(|group| group.straggler.as_ref().unwrap().name.rank).collect();
    stragglers.sort_unstable();
    assert_eq!(stragglers, [Some(1), Some(6)]);
    let (first, second) = (expected(&truth[..4]).1, expected(&truth[4..]).1);
    assert_eq!(waits(&skew), [first, second].concat());
    assert_eq!(skew.ranks[0].transfer_ns, expected(&truth[..4]).0);
}

#[test]
fn a_rank_whose_recording_begins_later_is_put_in_its_place() {
    for marks in [true, false] {
        let run = Lockstep {
            late: vec![(3, 90_000)],
            missing: vec![(1, 1)],
            steps: 6,
            marks,
            ..Lockstep::default()
        };
        let (records, mut truth) = recorded(&run);
        let skew = Skew::of(&records);
        assert_eq!(truth[1].len(), 60);
        for rank in [0, 2, 3] {
            truth[rank].drain(..12);
        }
        assert_eq!(waits(&skew), expected(&truth).1, "{marks}");
        assert_eq!(skew.groups[0].collectives, 60);
        assert_eq!(skew.groups[0].straggler.as_ref().unwrap().name.rank, Some(3));
        // What rank 1 lacks is not guessed.
        assert_eq!(reasons(&skew), BTreeMap::from([(Reason::NotOnAllRanks, 36)]));
        let codes: Vec<_> = skew.warnings.iter().map(SkewWarning::code).collect();
        let steps: &[&str] = if marks { &["different-steps"] } else { &[] };
        assert_eq!(codes, [steps, &["unmatched-collectives"]].concat());
    }
}

#[test]
fn a_recording_of_other_steps_is_not_matched() {
    let run = Lockstep { missing: vec![(1, 3)], ..Lockstep::default() };
    let (records, truth) = recorded(&run);
    let skew = Skew::of(&records);
    // Less than half of what the others have.
    assert_eq!(truth[1].len(), 12);
    assert_eq!(groups(&skew), [[Some(0), Some(2), Some(3)]]);
    assert_eq!(reasons(&skew), BTreeMap::from([(Reason::TooFew, 12)]));
    assert_eq!((skew.ranks[1].matched, skew.ranks[1].waiting_ns), (0, 0));
    assert_eq!(skew.ranks[1].unmatched_ns, skew.ranks[1].collective_ns);
}

#[test]
fn ranks_that_do_not_wait_for_each_other_are_not_matched() {
    let folder = tempfile::tempdir().unwrap();
    for communication in [Communication::SameStream, Communication::OwnStream] {
        for vendor in [Vendor::Nvidia, Vendor::Amd] {
            let plan = Plan { vendor, communication, layers: 8, steps: 6, ..Plan::default() };
            let files = synthetic::write_ranks(&plan, folder.path(), 4).unwrap();
            let records: Vec<RankRecord> = (0..)
                .zip(&files)
                .map(|(rank, (path, truth))| {
                    let record = record(&std::fs::read(path).unwrap(), Some(rank), "");
                    let communicate = |kernel: &&synthetic::KernelTruth| {
                        kernel.class == crate::classify::Class::Comm
                    };
                    assert_eq!(
                        record.collectives,
                        truth.kernels.iter().filter(communicate).count()
                    );
                    assert_eq!(record.busy_ns, truth.busy_ns);
                    assert_eq!(record.idle_ns, truth.idle_ns);
                    assert_eq!(record.communication.exposed_ns, truth.exposed_communication_ns);
                    assert_eq!((record.steps, record.vendor), (Some(6), vendor));
                    // What its operator says, for the kernel of AMD's library without a name.
                    let operations = record.families.iter().map(|family| family.operation);
                    assert_eq!(operations.collect::<Vec<_>>(), [Operation::AllReduce]);
                    record
                })
                .collect();
            let skew = Skew::of(&records);
            assert!(skew.groups.is_empty(), "{communication:?} {vendor:?}");
            assert_eq!(reasons(&skew).keys().copied().collect::<Vec<_>>(), [Reason::OtherTimes]);
            assert_eq!(skew.waiting_ns, 0);
        }
    }
}

#[test]
fn one_rank_and_no_collectives_have_nothing_to_match() {
    let (mut records, _) = recorded(&Lockstep::default());
    records.truncate(1);
    let skew = Skew::of(&records);
    assert_eq!(reasons(&skew), BTreeMap::from([(Reason::NoCounterpart, 48)]));
    assert!(skew.groups.is_empty() && skew.warnings.is_empty());

    let plan = Plan { model: Model::Dense, ..Plan::default() };
    let (text, _) = synthetic::text(&plan).unwrap();
    let quiet = [record(&text, Some(0), "a"), record(&text, Some(1), "b")];
    let skew = Skew::of(&quiet);
    assert_eq!((quiet[0].collectives, skew.ranks[1].collective_ns), (0, 0));
    assert!(skew.groups.is_empty() && skew.unmatched.is_empty() && skew.warnings.is_empty());

    assert_eq!(Skew::of(&[]).ranks, []);
    assert_eq!(Representative::of(&[]), None);
    let nothing = RankRecord::of(
        &Trace::default(),
        &Classes::default(),
        None,
        RankName { rank: None, file: "empty.json".to_owned() },
    );
    assert_eq!((nothing.device, nothing.kernels, nothing.steps), (None, 0, None));
    assert!(!nothing.is_whole());
    // Better than none.
    assert_eq!(Representative::of(&[nothing]).unwrap().left_out, 0);
}

#[test]
fn ranks_of_different_runs_are_not_matched() {
    let (mut records, _) = recorded(&Lockstep::default());
    records[2].world_size = Some(8);
    let skew = Skew::of(&records);
    assert_eq!(groups(&skew), [[Some(0), Some(1), Some(3)]]);
    assert_eq!(reasons(&skew), BTreeMap::from([(Reason::NoCounterpart, 48)]));
    // The same rank twice is not two ranks, also where its times agree.
    let twice = [records[0].clone(), records[0].clone()];
    assert!(Skew::of(&twice).groups.is_empty());
}

#[test]
fn ranks_that_are_not_there_are_said() {
    let (records, truth) = recorded(&Lockstep { late: vec![(3, 90_000)], ..Lockstep::default() });
    let skew = Skew::of(&records[..3]);
    assert_eq!(skew.warnings, [SkewWarning::UnseenRanks { found: 3, world_size: 4 }]);
    // Less than the truth: the one that they all wait for is not seen.
    assert_eq!(waits(&skew), expected(&truth[..3]).1);
    assert!(skew.waiting_ns < Skew::of(&records).waiting_ns);
}

fn events(text: &str) -> Vec<u8> {
    format!("{{\"traceEvents\": [{text}]}}").into_bytes()
}

fn kernel(name: &str, device: u64, stream: u64, start: u64, duration: u64) -> String {
    format!(
        "{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{name}\", \"pid\": {device}, \"tid\": \
         {stream}, \"ts\": {start}, \"dur\": {duration}, \"args\": {{\"device\": {device}, \
         \"stream\": {stream}}}}}"
    )
}

#[test]
fn the_busiest_device_stands_for_its_rank() {
    let text = [
        kernel("ampere_sgemm_128x64_tn", 0, 7, 0, 10),
        kernel("ampere_sgemm_128x64_tn", 1, 7, 0, 30),
        kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 1, 20, 20, 30),
        kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 0, 20, 20, 10),
        kernel("what_is_this", 1, 7, 90, 10),
    ];
    let record = record(&events(&text.join(",")), None, "two.json");
    assert_eq!((record.device, record.devices, record.kernels), (Some(1), 2, 3));
    assert_eq!((record.span_ns, record.busy_ns, record.idle_ns), (100_000, 60_000, 40_000));
    let communication = (record.communication.exposed_ns, record.communication.overlapped_ns);
    assert_eq!(communication, (20_000, 10_000));
    assert_eq!((record.collectives, record.collective_ns), (1, 30_000));
    assert!((record.unclassified_share - 10.0 / 70.0).abs() < 1e-12);
    let name = RankName { rank: None, file: "two.json".to_owned() };
    let expected = SkewWarning::SeveralDevices { name, devices: 2, device: 1 };
    assert_eq!(Skew::of(&[record]).warnings, [expected]);
}

/// What each rank has on one stream: all-reduces, transfers and broadcasts in turn. Transfers end
/// together, as those of an all-to-all do.
fn mixed(rank: u64, transfers: u64) -> RankRecord {
    let mut text = Vec::new();
    for n in 0..20 {
        let end = 1000 * n + n * n * 37 % 400 + 900 + rank * 77_000_000;
        let names = ["AllReduce_RING_LL_Sum_float", "SendRecv", "Broadcast_RING_LL"];
        for (place, name) in (0..).zip(names) {
            if name != "SendRecv" || n < transfers {
                let duration = 20 + 5 * (n + rank + place) % 7;
                let name = format!("ncclKernel_{name}(ncclWorkElem)");
                text.push(kernel(&name, 0, 20, end - 100 * place - duration, duration));
            }
        }
    }
    record(&events(&text.join(",")), Some(rank), "")
}

#[test]
fn transfers_are_matched_only_if_all_ranks_have_as_many() {
    let skew = Skew::of(&[mixed(0, 20), mixed(1, 20)]);
    let operations = |group: &GroupSkew| (group.by_family[0].operation, group.collectives);
    let mut found: Vec<_> = skew.groups.iter().map(operations).collect();
    found.sort();
    assert_eq!(found, [(Operation::AllReduce, 20), (Operation::SendRecv, 20)]);
    assert_eq!(reasons(&skew), BTreeMap::from([(Reason::OneRoot, 40)]));

    let skew = Skew::of(&[mixed(0, 20), mixed(1, 17)]);
    assert_eq!(groups(&skew).len(), 1);
    let expected = BTreeMap::from([(Reason::OneRoot, 40), (Reason::OtherOperations, 37)]);
    assert_eq!(reasons(&skew), expected);
    let json = serde_json::to_value(&skew).unwrap();
    assert_eq!(json["unmatched"][0]["reason"], "one_root");
    assert_eq!(json["groups"][0]["by_family"][0]["operation"], "all_reduce");
    assert_eq!(json["warnings"][0]["code"], "unmatched-collectives");
    assert_eq!(json["ranks"][1]["rank"], 1);
    assert_eq!(json["ranks"][1]["file"], "");
}

fn of_times(rank: u64, busy_ns: u64, exposed_ns: u64, span_ns: u64) -> RankRecord {
    let mut record = record(&events(&kernel("k", 0, 7, 0, 1)), Some(rank), "");
    (record.busy_ns, record.span_ns) = (busy_ns, span_ns);
    record.communication.exposed_ns = exposed_ns;
    record
}

#[test]
fn the_rank_nearest_to_the_medians_stands_for_all() {
    let mut records = vec![
        of_times(0, 50, 10, 100),
        of_times(1, 60, 20, 110),
        of_times(2, 62, 21, 113),
        of_times(3, 90, 40, 150),
        of_times(4, 61, 19, 112),
    ];
    let chosen = Representative::of(&records).unwrap();
    // The medians are 61, 20 and 112.
    assert_eq!(chosen.medians, Medians { busy_ns: 61, exposed_ns: 20, span_ns: 112 });
    assert_eq!((chosen.name.rank, chosen.place, chosen.distance_ns), (Some(4), 4, 1));
    assert_eq!((chosen.chosen_from, chosen.largest_distance_ns), (5, 29 + 20 + 38));
    // A trace that is not whole is not taken if another one is.
    records[4].warnings = vec!["unclassified"];
    assert_eq!(Representative::of(&records).unwrap().name.rank, Some(4));
    records[4].warnings = vec!["truncated"];
    let chosen = Representative::of(&records).unwrap();
    // The medians of four are 61, 20 and 111.
    assert_eq!(chosen.medians, Medians { busy_ns: 61, exposed_ns: 20, span_ns: 111 });
    assert_eq!((chosen.name.rank, chosen.left_out, chosen.distance_ns), (Some(1), 1, 2));
    for record in &mut records {
        record.warnings = vec!["broken-events"];
    }
    assert_eq!(Representative::of(&records).unwrap().name.rank, Some(4));
    // Of equal ones the lowest, wherever it stands.
    let equal = [of_times(5, 1, 1, 1), of_times(2, 1, 1, 1), of_times(7, 1, 1, 1)];
    let chosen = Representative::of(&equal).unwrap();
    assert_eq!((chosen.name.rank, chosen.place), (Some(2), 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn everything_adds_up_in_any_order(
        ranks in 1_u64..7,
        group in 1_u64..5,
        steps in 1_u64..5,
        collectives in 1_u64..12,
        late in prop::collection::vec((0_u64..7, 0_u64..200_000), 0..3),
        missing in prop::collection::vec((0_u64..7, 0_u64..3), 0..2),
        is_amd in any::<bool>(),
        seed in 1_u64..1000,
        turn in 0_usize..7,
    ) {
        let vendor = if is_amd { Vendor::Amd } else { Vendor::Nvidia };
        let run = Lockstep {
            vendor, ranks, group, steps, collectives, late, missing, seed, ..Lockstep::default()
        };
        let (mut records, truth) = recorded(&run);
        let skew = Skew::of(&records);
        for (rank, truth) in skew.ranks.iter().zip(&truth) {
            let total_ns: u64 = truth.iter().map(|one| one.duration_ns).sum();
            prop_assert_eq!(rank.collective_ns, total_ns);
            let parts_ns = rank.transfer_ns + rank.waiting_ns + rank.unmatched_ns;
            prop_assert_eq!(parts_ns, rank.collective_ns);
            let unmatched = skew.unmatched.iter().filter(|one| one.name == rank.name);
            let count: usize = unmatched.map(|one| one.collectives).sum();
            prop_assert_eq!(rank.matched + count, truth.len());
        }
        let sum = |of: fn(&RankSkew) -> u64| skew.ranks.iter().map(of).sum::<u64>();
        prop_assert_eq!(sum(|rank| rank.waiting_ns), skew.waiting_ns);
        prop_assert_eq!(sum(|rank| rank.others_waited_ns), skew.waiting_ns);
        for found in &skew.groups {
            let of = |member: &MemberSkew| member.name.rank.unwrap() / group;
            // Ranks of two groups are not matched; of a few collectives it may be chance.
            prop_assert!(found.collectives < 24 || found.members.iter().all(|one| of(one) == of(&found.members[0])));
            let sum = |of: fn(&MemberSkew) -> u64| found.members.iter().map(of).sum::<u64>();
            prop_assert_eq!(sum(|one| one.waiting_ns), found.waiting_ns);
            prop_assert_eq!(sum(|one| one.others_waited_ns), found.waiting_ns);
            prop_assert_eq!(found.members.iter().map(|one| one.last).sum::<usize>(), found.with_last);
            prop_assert!(found.straggler.is_some() != found.no_straggler_because.is_some());
            let of_families = |of: fn(&CollectiveTime) -> u64| found.by_family.iter().map(of).sum::<u64>();
            prop_assert_eq!(of_families(|one| one.waiting_ns), found.waiting_ns);
            prop_assert_eq!(of_families(|one| one.transfer_ns), found.transfer_ns);
        }
        let chosen = Representative::of(&records).unwrap();
        let turns = turn % records.len();
        records.rotate_left(turns);
        prop_assert_eq!(Skew::of(&records), skew.clone());
        let again = Representative::of(&records).unwrap();
        prop_assert_eq!(&again.name, &chosen.name);
        prop_assert_eq!(&records[again.place].name, &chosen.name);
        records.reverse();
        prop_assert_eq!(Skew::of(&records), skew);
    }
}
