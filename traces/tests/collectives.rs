//! Collectives of real traces, which are of single ranks of different runs.

use crate::real;
use kernel_traces::collectives::{Operation, RankName, RankRecord, Reason, Representative, Skew};
use kernel_traces::{Classes, Options, RankFile, Segments, Trace};

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn ranks_of_different_runs_are_not_matched() {
    let folder = real::folder();
    let names = ["a100_nccl_train", "a100_dlrm_train_control", "v100_dlrm_train_test"];
    let records = names.map(|name| {
        let file = RankFile::of(folder.join(format!("{name}.json.gz"))).unwrap();
        let trace = Trace::load(&file.path, &Options::default(), &mut |_, _| {}).unwrap();
        let classes = Classes::of(&trace);
        let segments = Segments::of(&trace, &classes);
        RankRecord::of(&trace, &classes, Some(&segments), RankName::from(&file))
    });
    let found = records.each_ref().map(|record| {
        (record.name.rank, record.world_size, record.collectives, record.collective_ns)
    });
    // As a plain parser counts them.
    let expected = [
        (Some(0), Some(2), 21, 46_876_493),
        (Some(3), Some(8), 60, 163_535_000),
        (Some(1), Some(2), 64, 251_341_000),
    ];
    assert_eq!(found, expected);

    let skew = Skew::of(&records);
    assert!(skew.groups.is_empty());
    assert_eq!(skew.waiting_ns, 0);
    let unmatched: Vec<_> = skew
        .unmatched
        .iter()
        .map(|one| (one.name.rank, one.stream, one.collectives, one.reason))
        .collect();
    // Two runs are of as many ranks and sum up with the same kernel, though not as often. Some of
    // NCCL's transfers are all-to-alls, by their operators or the framework's marks.
    let expected = [
        (Some(0), 40, 6, Reason::OneRoot),
        (Some(0), 40, 15, Reason::TooFew),
        (Some(1), 15, 1, Reason::NoCounterpart),
        (Some(1), 15, 63, Reason::TooFew),
        (Some(3), 21, 60, Reason::NoCounterpart),
    ];
    let mut sorted = unmatched.clone();
    sorted.sort_by_key(|one| (one.0, one.2));
    let mut expected = expected.to_vec();
    expected.sort_by_key(|one| (one.0, one.2));
    assert_eq!(sorted, expected);
    for rank in &skew.ranks {
        assert_eq!((rank.matched, rank.unmatched_ns), (0, rank.collective_ns));
    }
    assert!(Representative::of(&records).is_some());
}

/// As a plain parser counts it, with the collectives in the order of each rank's only stream: all
/// wait 46.8 ms, of them 35.5 ms for rank 7.
#[test]
#[ignore = "needs the public traces in ../shared/more_traces"]
fn eight_ranks_with_eight_collectives_each_name_their_straggler() {
    let records = real::more().join("dlrm_8ranks");
    let files = kernel_traces::Ranks::find([records]).unwrap().files;
    assert_eq!(files.len(), 8);
    let records: Vec<RankRecord> = files
        .iter()
        .map(|file| {
            let trace = Trace::load(&file.path, &Options::default(), &mut |_, _| {}).unwrap();
            let classes = Classes::of(&trace);
            RankRecord::of(&trace, &classes, None, RankName::from(file))
        })
        .collect();
    let skew = Skew::of(&records);
    assert_eq!(skew.waiting_ns, 46_806_000);
    assert!(skew.unmatched.is_empty(), "{:?}", skew.unmatched);
    let [group] = skew.groups.as_slice() else { panic!("{} groups", skew.groups.len()) };
    assert_eq!((group.members.len(), group.collectives), (8, 8));
    let straggler = group.straggler.as_ref().unwrap();
    assert_eq!((straggler.name.rank, straggler.last), (Some(7), 5));
    assert_eq!(straggler.others_waited_ns, 35_543_000);
    // The sizes are those of the operators; NCCL's all-to-all only sends and receives.
    let sized = |time: &&kernel_traces::collectives::CollectiveTime| time.bytes.is_some();
    let all_to_all: Vec<_> = group.by_family.iter().filter(sized).collect();
    assert!(all_to_all.iter().all(|time| time.operation == Operation::AllToAll));
    let of_size = |bytes: u64| all_to_all.iter().find(|time| time.bytes == Some(bytes)).unwrap();
    assert_eq!(of_size(6144 * 4).count, 2);
    // 7 / 8 of 24,576 bytes in 10 us, and again.
    assert!((of_size(6144 * 4).bus_gb_per_s.unwrap() - 0.875 * 2.4576).abs() < 1e-9);
}
