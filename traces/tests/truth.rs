//! Every oddity of a trace is read for what it is.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::num::NonZero;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use kernel_traces::synthetic::{self, Counts, Oddity, Plan, Truth};
use kernel_traces::{Options, Trace, TraceError, Vendor, Warning, trace_files};

fn check(trace: &Trace, truth: &Truth, plan: &Plan) {
    let found = Counts {
        kernels: trace.kernels.len() as u64,
        kernel_ns: trace.kernels.total_ns(),
        launches: trace.launches.len() as u64,
        ops: trace.ops.len() as u64,
        annotations: trace.annotations.len() as u64,
        frames: trace.frames.len() as u64,
        events: trace.events,
        broken: count_of(trace, "broken-events"),
        bad_ids: count_of(trace, "bad-ids"),
    };
    assert_eq!(found, truth.counts, "{:?}", plan.oddities);
    assert_eq!(trace.vendor(), plan.vendor, "{:?}", plan.oddities);
    let expected = u64::from(truth.counts.broken > 0) + u64::from(truth.counts.bad_ids > 0);
    assert_eq!(trace.warnings.len() as u64, expected, "{:?}", trace.warnings);
    let lane = trace.lane_of(0).unwrap();
    assert_eq!((lane.device, lane.stream), (0, 7));
}

fn count_of(trace: &Trace, code: &str) -> u64 {
    let of_warning = |warning: &Warning| match warning {
        Warning::BrokenEvents { count, .. } | Warning::BadIds { count, .. } => *count,
        _ => 0,
    };
    trace.warnings.iter().filter(|warning| warning.code() == code).map(of_warning).sum()
}

fn plans() -> impl Iterator<Item = Plan> {
    let mut lists: Vec<Vec<Oddity>> = Oddity::ALL.iter().map(|&oddity| vec![oddity]).collect();
    lists.push(Vec::new());
    lists.push(vec![Oddity::OtherKeys, Oddity::StringTimes, Oddity::InvalidUtf8, Oddity::HugeIds]);
    lists.push(vec![Oddity::Compact, Oddity::DictOfLists, Oddity::UnescapedQuotes]);
    let vendors = [Vendor::Nvidia, Vendor::Amd];
    lists.into_iter().flat_map(move |oddities| {
        vendors.map(|vendor| Plan {
            vendor,
            layers: 7,
            rank: 3,
            world_size: 8,
            oddities: oddities.clone(),
            ..Plan::default()
        })
    })
}

#[test]
fn every_oddity_by_both_parsers() {
    for plan in plans() {
        let (text, truth) = synthetic::text(&plan).unwrap();
        let fast = Trace::from_json(&text, &Options::default()).unwrap();
        check(&fast, &truth, &plan);
        let options = Options { strict: true, ..Options::default() };
        assert_eq!(Trace::from_json(&text, &options).unwrap(), fast, "{:?}", plan.oddities);
        if !plan.oddities.contains(&Oddity::BareList) {
            let metadata = &fast.metadata;
            assert_eq!(metadata.base_time_ns, Some(1_751_410_836_000_000_000));
            assert_eq!(metadata.distributed.as_ref().unwrap().rank, Some(3));
            let has_devices = !plan.oddities.contains(&Oddity::NoDevices);
            assert_eq!(metadata.devices.len(), usize::from(has_devices));
        }
    }
}

fn compress(text: &[u8], path: &Path) {
    let mut encoder = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap();
}

#[test]
fn files_plain_and_compressed() {
    let folder = tempfile::tempdir().unwrap();
    for plan in plans() {
        let (text, truth) = synthetic::text(&plan).unwrap();
        let plain = folder.path().join("rank1.json");
        let packed = folder.path().join("rank2.json.gz");
        fs::write(&plain, &text).unwrap();
        compress(&text, &packed);
        assert_eq!(trace_files(folder.path()).unwrap(), [plain.clone(), packed.clone()]);
        let mut traces = Vec::new();
        for file in [&plain, &packed] {
            let size = fs::metadata(file).unwrap().len();
            let mut last = 0;
            let trace = Trace::load(file, &Options::default(), &mut |done, total| {
                assert!(last <= done && done <= total && total == size);
                last = done;
            })
            .unwrap();
            assert_eq!(last, size);
            check(&trace, &truth, &plan);
            let is_last = plan.oddities.contains(&Oddity::MetadataLast);
            if file == &plain || !is_last {
                assert_eq!(Trace::metadata(file).unwrap(), trace.metadata);
            }
            traces.push(trace);
        }
        assert_eq!(traces[0], traces[1]);
    }
}

/// Long enough for several pieces and blocks, so that events lie across their ends.
#[test]
fn threads_make_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    for oddity in [Oddity::Graphs, Oddity::UnescapedQuotes, Oddity::OtherKeys, Oddity::DictOfLists]
    {
        let plan = Plan { layers: 40, steps: 130, oddities: vec![oddity], ..Plan::default() };
        let path = folder.path().join("trace.json");
        let mut file = BufWriter::new(File::create(&path).unwrap());
        let truth = synthetic::write(&plan, &mut file).unwrap();
        drop(file);
        let load = |path: &Path, threads| {
            let options = Options { threads: NonZero::new(threads), ..Options::default() };
            Trace::load(path, &options, &mut |_, _| {}).unwrap()
        };
        let one = load(&path, 1);
        assert!(one.bytes > 30 << 20, "{}", one.bytes);
        check(&one, &truth, &plan);
        assert_eq!(load(&path, 3), one);
        let packed = folder.path().join("trace.json.gz");
        compress(&fs::read(&path).unwrap(), &packed);
        assert_eq!(load(&packed, 1), one);
    }
}

#[test]
fn what_is_no_trace_says_so() {
    let texts: [&[u8]; 9] = [
        b"",
        b"  \n",
        b"\x28\xb5\x2f\xfd",
        b"name,duration\n",
        b"{}",
        b"{\"version\": 3}",
        b"[1, 2, 3]",
        b"{\"traceEvents\": 5}",
        b"{\"deviceProperties\": [",
    ];
    for text in texts {
        let error = Trace::from_json(text, &Options::default()).unwrap_err();
        assert!(matches!(error, TraceError::NotATrace { .. }), "{error}");
        assert!(error.to_string().contains("expected what torch.profiler"), "{error}");
    }
    assert!(Trace::from_json(b"[]", &Options::default()).unwrap().kernels.is_empty());
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("rank0.json.gz");
    fs::write(&packed, b"\x1f\x8b\x08garbage").unwrap();
    let error = Trace::load(&packed, &Options::default(), &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("cannot be decompressed"), "{error}");
    let early = Trace::metadata(&packed).unwrap_err();
    assert_eq!(early.to_string(), error.to_string());
    let missing = Trace::load("no/such/file", &Options::default(), &mut |_, _| {}).unwrap_err();
    assert!(missing.to_string().starts_with("cannot read no/such/file"), "{missing}");
}
