//! Real traces: the classes that were given to their kernels by hand, weighted by time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod real;

use std::collections::{BTreeMap, HashMap};
use std::fs;

use kernel_traces::classify::Class;
use kernel_traces::{Classes, DeviceWork, Options, Trace, trace_files};

/// Per mille of the labelled time.
const LEAST_RIGHT: u64 = 970;
/// Per mille of all the time.
const MOST_UNCLASSIFIED: u64 = 20;

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn kernels_have_their_labels_in_every_file() {
    let folder = real::folder();
    let text = fs::read_to_string(folder.join("kernel_labels.tsv")).unwrap();
    let labels: HashMap<&str, &str> = text
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.splitn(5, '\t').collect();
            (fields[4], fields[0])
        })
        .collect();
    let mut failed = Vec::new();
    let mut seen = 0;
    for file in trace_files(&folder).unwrap() {
        if file.extension().is_none_or(|end| end != "gz") {
            continue;
        }
        let trace = Trace::load(&file, &Options::default(), &mut |_, _| {}).unwrap();
        let classes = Classes::of(&trace);
        let (mut all, mut labelled, mut right, mut unclassified) = (0, 0, 0, 0);
        let mut wrong: BTreeMap<String, u64> = BTreeMap::new();
        for row in 0..trace.kernels.len() {
            let (name, ns) =
                (trace.names.text(trace.kernels.name[row]), trace.kernels.duration_ns[row]);
            let found = classes.get(row);
            all += ns;
            if found.main == Class::Unclassified {
                unclassified += ns;
            }
            // The labels are of kernels; copies and fills of the runtime need none.
            let Some(&label) = labels.get(name) else {
                assert!(trace.kernels.work[row] != DeviceWork::Kernel, "no label: {name}");
                continue;
            };
            labelled += ns;
            if found.main.name() == label {
                right += ns;
            } else {
                let name: String = name.chars().take(120).collect();
                let row = format!("{label} found as {} ({}): {name}", found.main, found.why);
                *wrong.entry(row).or_default() += ns;
            }
        }
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        println!("{name}: {right} of {labelled} ns as labelled, {unclassified} ns unclassified");
        for (row, ns) in &wrong {
            println!("    {ns} ns {row}");
        }
        if right * 1000 < labelled * LEAST_RIGHT || unclassified * 1000 > all * MOST_UNCLASSIFIED {
            failed.push(name);
        }
        seen += 1;
    }
    assert!(seen > 0);
    assert!(failed.is_empty(), "below 97 % as labelled, or above 2 % unclassified: {failed:?}");
}
