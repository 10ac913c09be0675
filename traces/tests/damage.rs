//! Damaged traces: what is whole is read, and nothing panics.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::num::NonZero;

use flate2::Compression;
use flate2::write::GzEncoder;
use kernel_traces::synthetic::{self, Oddity, Plan};
use kernel_traces::{Options, Trace, Warning};

fn plan(oddities: &[Oddity]) -> Plan {
    Plan { layers: 1, steps: 1, oddities: oddities.to_vec(), ..Plan::default() }
}

#[test]
fn every_prefix_gives_what_is_complete() {
    let layouts: [&[Oddity]; 5] = [
        &[],
        &[Oddity::Compact, Oddity::MetadataLast],
        &[Oddity::BareList],
        &[Oddity::DictOfLists],
        &[Oddity::OtherKeys],
    ];
    for oddities in layouts {
        let (text, truth) = synthetic::text(&plan(oddities)).unwrap();
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
        assert_eq!(most, truth.events, "all events are there before the last bracket");
    }
}

#[test]
fn every_prefix_of_a_compressed_trace() {
    let (text, _) = synthetic::text(&plan(&[])).unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&text).unwrap();
    let packed = encoder.finish().unwrap();
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

/// Numbers below a bound: xorshift.
fn random() -> impl FnMut(usize) -> usize {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move |bound| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    }
}

/// Changes, removes or repeats something.
fn change(text: &mut Vec<u8>, below: &mut impl FnMut(usize) -> usize) {
    let at = below(text.len());
    match below(4) {
        0 => text[at] = below(256) as u8,
        1 => text[at] = b"\"\\{}[],: \n"[below(10)],
        2 => drop(text.drain(at..(at + 1 + below(40)).min(text.len()))),
        _ => {
            let from = below(text.len());
            let piece = text[from..(from + 1 + below(60)).min(text.len())].to_vec();
            text.splice(at..at, piece);
        }
    }
}

#[test]
fn random_changes() {
    let mut below = random();
    let layouts: [&[Oddity]; 4] =
        [&[], &[Oddity::Compact], &[Oddity::OtherKeys], &[Oddity::MetadataLast]];
    let texts = layouts.map(|oddities| synthetic::text(&plan(oddities)).unwrap().0);
    let mut lost = 0;
    for round in 0..10_000 {
        let mut text = texts[round % texts.len()].clone();
        for _ in 0..=below(3) {
            change(&mut text, &mut below);
        }
        for strict in [false, true] {
            let options = Options { strict, ..Options::default() };
            match Trace::from_json(&text, &options) {
                Ok(trace) => assert!(trace.bytes <= text.len() as u64),
                Err(error) => {
                    lost += 1;
                    assert!(error.to_string().contains("is not a profiler trace"), "{error}");
                }
            }
        }
    }
    // A change in a hundred bytes or so of metadata may lose all, most do not.
    assert!(lost < 4000, "{lost} of 20000 were no traces");
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
    let plan = Plan { layers: 40, steps: 60, ..Plan::default() };
    let (whole, _) = synthetic::text(&plan).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let mut below = random();
    for changes in [1, 30, 1000] {
        let mut text = whole.clone();
        for _ in 0..changes {
            change(&mut text, &mut below);
        }
        fs::write(&path, &text).unwrap();
        let load = |threads| {
            let options = Options { threads: NonZero::new(threads), ..Options::default() };
            Trace::load(&path, &options, &mut |_, _| {}).unwrap()
        };
        let one = load(1);
        assert_eq!(load(3), one);
        assert!(one.events > 80_000, "{} events, {:?}", one.events, one.warnings);
    }
}
