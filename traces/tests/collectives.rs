//! Collectives of real traces, which are of single ranks of different runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod real;

use kernel_traces::collectives::{RankName, RankRecord, Reason, Representative, Skew};
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
    // Two runs are of as many ranks and sum up with the same kernel, though not as often.
    let expected = [
        (Some(0), 40, 15, Reason::TooFew),
        (Some(0), 40, 6, Reason::OneRoot),
        (Some(1), 15, 21, Reason::TooFew),
        (Some(1), 15, 43, Reason::NoCounterpart),
        (Some(3), 21, 18, Reason::NoCounterpart),
        (Some(3), 21, 42, Reason::NoCounterpart),
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
