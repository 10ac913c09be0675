//! Damaged traces: what is whole is read, and nothing panics.

use std::fs;
use std::io::Write;
use std::num::NonZero;

use crate::checks::{self, Choices, SEED, random_bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use kernel_traces::synthetic::{
    self, Annotation, Communication, Launching, Model, Oddity, Phase, Plan,
};
use kernel_traces::{Options, Trace, TraceError, Vendor, Warning};

fn plan(oddities: &[Oddity]) -> Plan {
    Plan { layers: 1, steps: 1, oddities: oddities.to_vec(), ..Plan::default() }
}

/// A trace of a step of serving: a graph, a collective, copies and a fill.
fn serving(oddities: &[Oddity]) -> Plan {
    Plan {
        vendor: Vendor::Amd,
        model: Model::MixtureOfExperts,
        phases: vec![Phase::Mixed],
        launching: Launching::Piecewise,
        annotations: vec![Annotation::VllmDetailed, Annotation::Sglang],
        communication: Communication::OwnStream,
        copies: true,
        frames: 2,
        ..plan(oddities)
    }
}

#[test]
fn every_prefix_gives_what_is_complete() {
    let plans = [
        plan(&[]),
        plan(&[Oddity::Compact, Oddity::MetadataLast]),
        plan(&[Oddity::BareList]),
        plan(&[Oddity::DictOfLists]),
        plan(&[Oddity::OtherKeys]),
        serving(&[]),
    ];
    for plan in plans {
        let (text, truth) = synthetic::text(&plan).unwrap();
        let end = text.trim_ascii_end().len();
        let mut most = 0;
        for cut in 0..end {
            let Ok(trace) = Trace::from_json(&text[..cut], &Options::default()) else { continue };
            let is_told = |warning: &Warning| match warning {
                Warning::Truncated { complete_bytes, dropped_bytes, .. } => {
                    complete_bytes + dropped_bytes == cut as u64
                }
                _ => false,
            };
            assert!(trace.warnings.iter().any(is_told), "cut at {cut}: {:?}", trace.warnings);
            assert_eq!(trace.bytes, cut as u64);
            assert!(trace.events >= most, "cut at {cut}");
            most = trace.events;
        }
        assert_eq!(most, truth.counts.events, "all events are there before the last bracket");
    }
}

#[test]
fn every_prefix_of_a_compressed_trace() {
    for plan in [plan(&[]), serving(&[])] {
        let packed = compress(&synthetic::text(&plan).unwrap().0);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.json.gz");
        for cut in 0..packed.len() {
            fs::write(&path, &packed[..cut]).unwrap();
            if let Ok(trace) = Trace::load(&path, &Options::default(), &mut |_, _| {}) {
                let is_truncation = |warning: &Warning| warning.code() == "truncated";
                assert!(trace.warnings.iter().any(is_truncation), "cut at {cut}");
            }
        }
    }
}

fn compress(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// So many random changes.
fn change(text: &mut Vec<u8>, changes: usize, state: &mut u64) {
    let bytes = random_bytes(state, changes * 12);
    for bytes in bytes.chunks(12) {
        Choices::new(bytes).change(text);
    }
}

#[test]
fn random_changes() {
    let mut state = SEED;
    let mut lost = 0;
    for _ in 0..1_000 {
        let count = 13 + usize::from(random_bytes(&mut state, 1)[0] % 48);
        let text = checks::changed_trace(&random_bytes(&mut state, count));
        checks::load(&text);
        checks::summarise(&text);
        lost += usize::from(Trace::from_json(&text, &Options::default()).is_err());
    }
    // A change in a hundred bytes or so of metadata may lose all, most do not.
    assert!(lost < 500, "{lost} of 1000 were not traces");
}

/// Events that a reader knows by heart, changed.
#[test]
fn random_changes_of_repeated_events() {
    let mut state = SEED;
    for _ in 0..500 {
        let count = 13 + usize::from(random_bytes(&mut state, 1)[0] % 48);
        checks::load(&checks::repeated_trace(&random_bytes(&mut state, count)));
    }
}

#[test]
fn random_cuts_into_pieces() {
    let mut state = SEED;
    for _ in 0..100 {
        let text = checks::changed_trace(&random_bytes(&mut state, 40));
        let place = random_bytes(&mut state, 4);
        checks::load_cut_at(&text, Choices::new(&place).below(text.len().max(257)));
    }
}

#[test]
fn random_metadata() {
    let whole = br#""schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "AMD Instinct",
        "totalGlobalMem": 206141652992, "computeMajor": 9, "warpSize": 64, "numSms": 304}],
        "roctracer_version": 4.1, "cupti_version": 22, "hip_runtime_version": "70051831",
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8}, "with_stack": 1,
        "record_shapes": true, "traceName": "data/\u00e9.json", "trace_id": null,
        "baseTimeNanoseconds": 1751410836000000000"#;
    checks::metadata(whole);
    let mut state = SEED;
    for round in 0..500 {
        let mut members = whole.to_vec();
        change(&mut members, 1 + round % 4, &mut state);
        checks::metadata(&members);
    }
}

#[test]
fn random_names() {
    let mut state = SEED;
    for (_, _, example) in kernel_traces::classify::families() {
        checks::classify(example.as_bytes());
        for changes in 1..20 {
            let mut name = [example, "aten::mm", "nn.Module: RMSNorm_3"].join("\n").into_bytes();
            change(&mut name, changes, &mut state);
            checks::classify(&name);
        }
    }
}

/// What is decompressed comes in blocks and is read as it comes, which must give the same.
#[test]
fn random_changes_before_compression() {
    let plan = Plan { layers: 20, steps: 12, ..serving(&[]) };
    let (whole, _) = synthetic::text(&plan).unwrap();
    assert!(whole.len() > 2 << 20, "{} bytes do not take several blocks", whole.len());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json.gz");
    let mut state = SEED;
    for round in 0..40 {
        let mut text = whole.clone();
        change(&mut text, 1 + round, &mut state);
        fs::write(&path, compress(&text)).unwrap();
        let loaded = Trace::load(&path, &Options::default(), &mut |_, _| {});
        match (loaded, Trace::from_json(&text, &Options::default())) {
            (Ok(loaded), Ok(trace)) => assert!(
                loaded == trace,
                "{:?} of {}, but whole {:?} of {}",
                loaded.warnings,
                loaded.bytes,
                trace.warnings,
                trace.bytes
            ),
            (loaded, trace) => assert!(loaded.is_err() && trace.is_err()),
        }
    }
}

/// What is not read is counted, also what is not decompressed yet when the events end.
#[test]
fn what_follows_the_events_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json.gz");
    let start =
        br#"{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2}]"#;
    for next in ["} {", ", nonsense "] {
        let text = [start, next.as_bytes(), &b"x".repeat(3 << 20)].concat();
        fs::write(&path, compress(&text)).unwrap();
        let loaded = Trace::load(&path, &Options::default(), &mut |_, _| {}).unwrap();
        assert_eq!(loaded.bytes, text.len() as u64);
        assert_eq!(loaded, Trace::from_json(&text, &Options::default()).unwrap());
        assert_eq!(loaded.warnings.len(), 1);
    }
}

#[test]
fn random_changes_after_compression() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json.gz");
    let mut state = SEED;
    for plan in [plan(&[]), serving(&[Oddity::Compact])] {
        let whole = compress(&synthetic::text(&plan).unwrap().0);
        for _ in 0..300 {
            let mut packed = whole.clone();
            change(&mut packed, 1, &mut state);
            fs::write(&path, &packed).unwrap();
            match Trace::load(&path, &Options::default(), &mut |_, _| {}) {
                Ok(_) | Err(TraceError::NotATrace { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// A string that never ends, many times over, must not be searched to the end of the file each
/// time.
#[test]
fn many_broken_strings_take_no_time() {
    let event =
        r#"{"ph": "X", "cat": "cpu_op", "name": "a", "args": {"stack": "x " y, "n": "1"}},"#;
    let text = format!("[{}{{\"ph\": \"M\"}}]", event.repeat(50_000));
    let trace = Trace::from_json(text.as_bytes(), &Options::default()).unwrap();
    assert_eq!(trace.events, 1);
    let expected =
        |warning: &Warning| matches!(warning, Warning::BrokenEvents { count: 50_000, .. });
    assert!(trace.warnings.iter().any(expected), "{:?}", trace.warnings);
}

#[test]
fn what_follows_the_events_may_be_broken() {
    let text = br#"{"traceEvents": [{"ph": "M"}], "traceName": "a"b", "x": 1}"#;
    let trace = Trace::from_json(text, &Options::default()).unwrap();
    assert_eq!(trace.events, 1);
    assert_eq!(trace.warnings[0], Warning::BrokenEnd { at: 47, dropped_bytes: 11 });
    let text = br#"[{"ph": "M"}] [{"ph": "M"}]"#;
    let trace = Trace::from_json(text, &Options::default()).unwrap();
    assert_eq!((trace.events, &trace.warnings[0]), (1, &Warning::TrailingData { at: 14 }));
}

#[test]
fn threads_make_no_difference_to_damage() {
    let oddities = vec![Oddity::BareList];
    let plan = Plan { layers: 40, steps: 30, frames: 2, oddities, ..Plan::default() };
    let (whole, truth) = synthetic::text(&plan).unwrap();
    assert!(whole.len() > 20 << 20, "{} bytes do not take several pieces", whole.len());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let mut state = SEED;
    // The list has nothing around it, where one change would lose everything. A change inside may
    // end it, which leaves little to compare: hence three of the most damaged.
    let mut ended = 0;
    for changes in [1, 30, 1000, 1000, 1000] {
        let mut text = whole.clone();
        change(&mut text, changes, &mut state);
        fs::write(&path, &text).unwrap();
        let load = |threads| {
            let options = Options { threads: NonZero::new(threads), ..Options::default() };
            Trace::load(&path, &options, &mut |_, _| {}).unwrap()
        };
        let one = load(1);
        assert!(load(3) == one, "{changes} changes: {:?}", one.warnings);
        let is_end = |warning: &Warning| {
            ["broken-end", "truncated", "trailing-data"].contains(&warning.code())
        };
        if one.warnings.iter().any(is_end) {
            ended += 1;
        } else {
            // No change takes more than three events with it.
            let least = truth.counts.events - 3 * changes as u64;
            assert!(one.events >= least, "{} of {least}: {:?}", one.events, one.warnings);
        }
    }
    assert!(ended < 3, "{ended} of 5 lists ended early");
}

#[test]
fn what_follows_a_compressed_trace_is_not_missing_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.json.gz");
    let (text, truth) = synthetic::text(&plan(&[])).unwrap();
    let load = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Trace::load(&path, &Options::default(), &mut |_, _| {}).unwrap()
    };
    let packed = compress(&text);
    for more in [&[0; 512][..], b"\n", b"something else"] {
        let trace = load(&[packed.as_slice(), more].concat());
        let [warning] = trace.warnings.as_slice() else { panic!("{:?}", trace.warnings) };
        assert_eq!(warning.code(), "trailing-bytes");
        assert_eq!(trace.kernels.len(), truth.kernels.len());
    }
    // Damage in it is damage still, although the text comes to its end.
    let mut broken = packed.clone();
    let checksum = broken.len() - 8;
    broken[checksum] ^= 1;
    let codes: Vec<_> = load(&broken).warnings.iter().map(Warning::code).collect();
    assert_eq!(codes, ["truncated"]);
    // And so is an end that is missing.
    let codes: Vec<_> =
        load(&packed[..packed.len() - 100]).warnings.iter().map(Warning::code).collect();
    assert_eq!(codes, ["truncated"]);
}

#[test]
fn devices_whose_kernels_are_not_there_have_their_own_advice() {
    let advice = |category: &str| {
        let event = format!(
            "[{{\"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"a\", \"ts\": 1, \"dur\": 2, \
             \"pid\": 0, \"tid\": 1}}]"
        );
        let trace = Trace::from_json(event.as_bytes(), &Options::default()).unwrap();
        let [warning] = trace.warnings.as_slice() else { panic!("{:?}", trace.warnings) };
        assert_eq!(warning.code(), "no-kernels");
        warning.advice()
    };
    assert!(advice("cuda_runtime").contains("ProfilerActivity.CUDA"));
    assert!(advice("xpu_runtime").contains("ProfilerActivity.XPU"));
    assert!(advice("mtia_runtime").contains("MTIA"));
}

/// A kernel of another phase, or of none, among those of a layer was weighted by the phase of the
/// layer, but its share of the mix of phases by its own. The parts of a comparison missed the gap.
#[test]
fn parts_add_up_where_kernels_of_a_layer_have_other_phases() {
    const FOUND_BY_FUZZING: [u8; 27] = [
        0x1b, 0xb4, 0x94, 0xf4, 0x77, 0x91, 0x53, 0x20, 0x7f, 0xc6, 0x65, 0xf7, 0x0d, 0x9b, 0xe8,
        0x79, 0x38, 0xbf, 0xb1, 0xcf, 0xc7, 0x7e, 0xd5, 0x20, 0x02, 0xe8, 0xd3,
    ];
    checks::summarise(&checks::changed_trace(&FOUND_BY_FUZZING));
}
