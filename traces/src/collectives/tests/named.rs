//! Collectives whose process group the profiler names.

use super::*;
use crate::synthetic::{COLLECTIVE_ELEMENTS, Naming};

/// Eight ranks in groups of four, with two collectives each: too few to tell by their times.
fn few(naming: Naming) -> Lockstep {
    let late = vec![(3, 90_000), (5, 90_000)];
    Lockstep { ranks: 8, steps: 1, collectives: 2, late, naming, ..Lockstep::default() }
}

#[test]
fn a_name_of_the_group_is_enough() {
    for naming in [Naming::Groups, Naming::Sequences] {
        for vendor in [Vendor::Nvidia, Vendor::Amd] {
            let (records, truth) = recorded(&Lockstep { vendor, ..few(naming) });
            let skew = Skew::of(&records);
            let of = |ranks: std::ops::Range<u64>| ranks.map(Some).collect::<Vec<_>>();
            assert_eq!(groups(&skew), [of(0..4), of(4..8)], "{naming:?}");
            let (first, second) = (expected(&truth[..4]).1, expected(&truth[4..]).1);
            assert_eq!(waits(&skew), [first, second].concat());
            // The name of the operation comes with that of the group, also to kernels without one.
            let family = &skew.groups[0].by_family[0];
            assert_eq!(family.operation, Operation::AllReduce);
            assert!(
                skew.groups.iter().any(|group| group.group.as_deref() == Some("1 [4, 5, 6, 7]"))
            );
        }
    }
    let (records, _) = recorded(&few(Naming::Nothing));
    assert_eq!(reasons(&Skew::of(&records)), BTreeMap::from([(Reason::TooFew, 16)]));
}

#[test]
fn numbers_put_a_recording_that_begins_later_in_its_place() {
    let missing = vec![(1, 2)];
    let run = Lockstep { steps: 4, missing, marks: false, ..few(Naming::Sequences) };
    let (records, mut truth) = recorded(&run);
    let skew = Skew::of(&records);
    for rank in [0, 2, 3] {
        truth[rank].drain(..4);
    }
    let first = skew.groups.iter().find(|group| group.group.as_deref() == Some("0 [0, 1, 2, 3]"));
    let first = first.unwrap();
    assert_eq!((first.members.len(), first.collectives), (4, 4));
    assert_eq!(waits(&skew)[..4], expected(&truth[..4]).1);
    // Without numbers, the shorter one may be anywhere.
    let (records, _) = recorded(&Lockstep { naming: Naming::Groups, ..run });
    let skew = Skew::of(&records);
    assert_eq!((skew.ranks[1].matched, skew.ranks[0].matched), (0, 8));
}

#[test]
fn bandwidth_is_that_of_nccl_tests() {
    let (records, truth) = recorded(&Lockstep { ranks: 4, ..few(Naming::Sequences) });
    let skew = Skew::of(&records);
    let family = &skew.groups[0].by_family[0];
    let bytes = 2 * COLLECTIVE_ELEMENTS;
    assert_eq!((family.bytes, family.count), (Some(bytes), 2));
    // 2 (n - 1) / n of the size, over the time of the rank that came last.
    let expected = 1.5 * (2 * bytes) as f64 / expected(&truth).0 as f64;
    let found = family.bus_gb_per_s.unwrap();
    assert!((found - expected).abs() < 1e-9 * expected, "{found} {expected}");
    // Of a size that is not known there is none.
    let (records, _) = recorded(&Lockstep::default());
    let family = &Skew::of(&records).groups[0].by_family[0];
    assert_eq!((family.bytes, family.bus_gb_per_s), (None, None));
}

#[test]
fn groups_of_one_name_and_other_ranks_or_sizes_are_different() {
    let texts = few(Naming::Sequences).texts().unwrap();
    let text = |rank: usize, from: &str, to: &str| {
        String::from_utf8(texts[rank].0.clone()).unwrap().replace(from, to).into_bytes()
    };
    let pair = |other: Vec<u8>| {
        let records = [record(&texts[0].0, Some(0), "a"), record(&other, Some(1), "b")];
        Skew::of(&records)
    };
    assert_eq!(pair(text(1, "", "")).groups.len(), 1);
    for (from, to) in [
        ("[0, 1, 2, 3]", "[0, 1]"),
        ("\"Process Group Name\": \"0\"", "\"Process Group Name\": \"2\""),
        ("\"In msg nelems\": 1048576, \"Out msg nelems\": 1048576", "\"In msg nelems\": 5"),
    ] {
        let changed = text(1, from, to);
        assert_ne!(changed, texts[1].0, "{from}");
        assert!(pair(changed).groups.is_empty(), "{from}");
    }
}
