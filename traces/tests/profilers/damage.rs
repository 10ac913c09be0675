//! Recordings that end early, or that cannot be read in places.

use std::fs;

use kernel_traces::{Options, Trace, Warning};

use super::{CSV, LINES, ROCPROF, data, read, rocprof_rows, rows};
use crate::checks::{self, Choices, SEED, random_bytes};

#[test]
fn every_prefix_gives_what_is_complete() {
    for (name, all) in [(LINES, 4), (ROCPROF, 3), (CSV, 2)] {
        let text = fs::read(data(name)).unwrap();
        let end = text.trim_ascii_end().len();
        let mut most = 0;
        for cut in 0..end {
            let Ok(trace) = read(&text[..cut]) else {
                assert_eq!(most, 0, "{name} cut at {cut}");
                continue;
            };
            assert!(trace.kernels.len() >= most, "{name} cut at {cut}");
            most = trace.kernels.len();
            let is_told = |warning: &Warning| warning.code() == "truncated";
            // Between two rows nothing shows that there were more, nor in the number that ends one.
            let left = text[cut..].iter().position(|&byte| byte == b'\n').unwrap_or(0);
            let is_between = text[cut - 1] == b'\n' || left <= if name == CSV { 3 } else { 0 };
            assert!(
                trace.warnings.iter().any(is_told) || (name != ROCPROF && is_between),
                "{name} cut at {cut}: {:?}",
                trace.warnings
            );
        }
        assert_eq!(most, all, "{name}");
    }
}

#[test]
fn random_changes() {
    let mut state = SEED;
    // One text of JSON ends where it is broken, and no row fits a broken header; lines and rows go on
    // behind it.
    for (name, least) in [(LINES, 150), (ROCPROF, 100), (CSV, 100)] {
        let whole = fs::read(data(name)).unwrap();
        let mut read = 0;
        for round in 0..300 {
            let mut text = whole.clone();
            for _ in 0..1 + round % 6 {
                Choices::new(&random_bytes(&mut state, 12)).change(&mut text);
            }
            checks::load(&text);
            checks::summarise(&text);
            let trace = Trace::from_json(&text, &Options::default());
            read += usize::from(trace.is_ok_and(|trace| !trace.kernels.is_empty()));
        }
        assert!(read > least, "{name}: of 300 damaged ones {read} have kernels");
    }
}

#[test]
fn a_line_or_record_that_is_broken_is_one() {
    let text = fs::read_to_string(data(LINES)).unwrap();
    let broken = text.replacen("\"eventClass\":3", "\"eventClass\":{3", 1);
    let trace = read(broken.as_bytes()).unwrap();
    assert_eq!(trace.kernels.len(), 3);
    assert!(matches!(trace.warnings[..], [Warning::BrokenEvents { count: 1, .. }]));
    let text = fs::read_to_string(data(ROCPROF)).unwrap();
    let broken = text.replacen("\"start_timestamp\":3100", "\"start_timestamp\":\"x\"", 1);
    let trace = read(broken.as_bytes()).unwrap();
    assert_eq!(rows(&trace), rocprof_rows(true)[1..]);
    assert!(matches!(trace.warnings[..], [Warning::BrokenEvents { count: 1, .. }]));
    // An end before the beginning.
    let broken = text.replacen("\"end_timestamp\":7100", "\"end_timestamp\":71", 1);
    let trace = read(broken.as_bytes()).unwrap();
    assert_eq!(rows(&trace)[0].1, 0);
    assert!(matches!(trace.warnings[..], [Warning::BadDurations { count: 1, .. }]));
}

/// Warnings call events what they are in the file, and say where these are.
#[test]
fn what_cannot_be_read_has_the_words_of_its_source() {
    let said = |text: &str| {
        let warnings = read(text.as_bytes()).unwrap().warnings;
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let lines = fs::read_to_string(data(LINES)).unwrap();
    let broken = lines.replacen("\"eventClass\":3", "\"eventClass\":{3", 1);
    let (before, _) = broken.split_once("\"eventClass\":{3").unwrap();
    let at = before.rfind('\n').unwrap() + 1;
    let bytes = broken[at..].find('\n').unwrap();
    let expected = format!(
        "lines that cannot be read: 1, the first at byte {at}; {bytes} bytes were passed over"
    );
    assert_eq!(said(&broken), expected);

    // A dispatch that does not say of what is JSON, and no record.
    let records = fs::read_to_string(data(ROCPROF)).unwrap();
    let broken = records.replacen("\"dispatch_info\"", "\"dispatch_info_\"", 1);
    let (before, behind) = broken.split_once("\"dispatch_info_\"").unwrap();
    assert!(behind.contains('}'));
    let said_of_records = said(&broken);
    let (found, passed) = said_of_records.split_once("; ").unwrap();
    let at: usize = found.rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(found, format!("records that cannot be read: 1, the first at byte {at}"));
    assert!(at < before.len() && broken[at..].starts_with('{'));
    let bytes: usize = passed.split(' ').next().unwrap().parse().unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&broken[at..at + bytes]).is_ok());

    let header = "\"Kind\",\"Agent_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"Kernel_Name\"\n";
    let rows = "\"KERNEL_DISPATCH\",4,100,350,\"f\"\n\"KERNEL_DISPATCH\",4\n";
    let expected = format!(
        "rows that cannot be read: 1, the first at byte {}; 20 bytes were passed over",
        header.len() + rows.find('\n').unwrap() + 1
    );
    assert_eq!(said(&format!("{header}{rows}")), expected);
    let late = "\"KERNEL_DISPATCH\",4,x,350,\"f\"\n";
    let trace = read(format!("{header}{late}").as_bytes()).unwrap();
    let bad = &trace.warnings[0];
    assert_eq!((bad.code(), bad.advice()), ("bad-times", "look at when it begins"));
}
