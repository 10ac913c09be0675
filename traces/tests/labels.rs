//! Real traces: the classes that were given to their kernels by hand, weighted by time.

use crate::real;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use kernel_traces::classify::Class;
use kernel_traces::{Classes, DeviceWork, Options, Trace, Vendor, trace_files};

/// Per mille of the labelled time, in each file and for each vendor.
const LEAST_RIGHT: u64 = 990;
/// Per mille of all the time.
const MOST_UNCLASSIFIED: u64 = 20;

#[test]
#[ignore = "needs the public traces in ../shared/traces and ../shared/more_traces"]
fn kernels_have_their_labels_in_every_file() {
    let folder = real::folder();
    let labels = labels();
    let mut of_vendor: BTreeMap<String, (u64, u64)> = BTreeMap::new();
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
            let Some(label) = labels.get(name) else {
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
        let (of_right, of_labelled) =
            of_vendor.entry(trace.vendor().name().to_owned()).or_default();
        *of_right += right;
        *of_labelled += labelled;
        seen += 1;
    }
    println!("{of_vendor:?}");
    assert!(seen > 0);
    assert!(failed.is_empty(), "below 99 % as labelled, or above 2 % unclassified: {failed:?}");
    for vendor in [Vendor::Amd, Vendor::Nvidia] {
        let (right, labelled) = of_vendor[vendor.name()];
        assert!(right * 1000 >= labelled * LEAST_RIGHT, "{vendor:?}: {right} of {labelled} ns");
    }
}

/// The class of each kernel's name, with the corrections of labels that were wrong.
fn labels() -> HashMap<String, String> {
    let rows = |path: &Path, columns: usize| -> Vec<Vec<String>> {
        let text = fs::read_to_string(path).unwrap();
        let fields = |line: &str| line.splitn(columns, '\t').map(str::to_owned).collect();
        text.lines().skip(1).map(fields).collect()
    };
    let labelled = rows(&real::folder().join("kernel_labels.tsv"), 5);
    let mut labels: HashMap<String, String> =
        labelled.into_iter().map(|row| (row[4].clone(), row[0].clone())).collect();
    for row in rows(&real::folder().join("../more_traces").join("label_corrections.tsv"), 3) {
        let label = labels.get_mut(&row[2]).unwrap();
        assert_eq!(*label, row[0], "another label was corrected: {}", row[2]);
        label.clone_from(&row[1]);
    }
    labels
}

/// What cuDNN and MIOpen, or the framework, do under other names is the same work.
#[test]
#[ignore = "needs the public traces in ../shared/more_traces"]
fn batch_norm_and_pooling_are_the_same_classes_on_both_vendors() {
    for (file, least_norm, most_norm) in [
        ("v100_resnet50_train_rank0.json.gz", 0.13, 0.19),
        ("mi300x_resnet18_ddp_train.json.gz", 0.40, 0.46),
    ] {
        let file = real::folder().join("../more_traces").join(file);
        let trace = Trace::load(&file, &Options::default(), &mut |_, _| {}).unwrap();
        let classes = Classes::of(&trace);
        let share = |class: Class| {
            let rows = 0..trace.kernels.len();
            let of_class = rows.filter(|row| classes.get(*row).main == class);
            let ns: u64 = of_class.map(|row| trace.kernels.duration_ns[row]).sum();
            ns as f64 / trace.kernels.duration_ns.iter().sum::<u64>() as f64
        };
        let (norm, pool) = (share(Class::Norm), share(Class::Pool));
        assert!((least_norm..most_norm).contains(&norm), "{}: NORM {norm}", file.display());
        assert!((0.005..0.08).contains(&pool), "{}: POOL {pool}", file.display());
    }
}
