//! Recordings of Nsight Systems and rocprofv3.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each user needs some of the checks")]
mod checks;
#[allow(dead_code, reason = "one folder is enough here")]
mod real;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use checks::{Choices, SEED, random_bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use kernel_traces::segment::Phase;
use kernel_traces::{Classes, DeviceWork, Options, Segments, Trace, TraceError, Vendor, Warning};

const LINES: &str = "nsys.jsonl";
const ROCPROF: &str = "rocprofv3.json";
const CSV: &str = "rocprofv3_kernel_trace.csv";

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/profilers").join(name)
}

fn load(path: &Path) -> Result<Trace, TraceError> {
    Trace::load(path, &Options::default(), &mut |_, _| {})
}

fn read(text: &[u8]) -> Result<Trace, TraceError> {
    Trace::from_json(text, &Options::default())
}

/// What ran on a device: begin, duration, kind, device, stream, correlation, node, name.
type Row = (i64, u64, DeviceWork, i64, i64, u64, u64, String);

fn rows(trace: &Trace) -> Vec<Row> {
    let row = |row: usize| {
        let (kernels, lane) = (&trace.kernels, trace.lane_of(row).unwrap());
        (
            kernels.start_ns[row],
            kernels.duration_ns[row],
            kernels.work[row],
            lane.device,
            lane.stream,
            // Without the process.
            kernels.correlation[row] & 0xffff_ffff,
            kernels.graph_node[row],
            trace.names.text(kernels.name[row]).to_owned(),
        )
    };
    let mut rows: Vec<Row> = (0..trace.kernels.len()).map(row).collect();
    rows.sort_by_key(|row| row.0);
    rows
}

const NORM: &str =
    "void vllm::rms_norm_kernel<float>(float*, float const*, float const*, float, int, int)";

fn nsys_rows() -> Vec<Row> {
    use DeviceWork::{Kernel, Memcpy, Memset};
    vec![
        (3100, 4000, Kernel, 1, 7, 11, 0, "ampere_sgemm_128x64_tn".to_owned()),
        (7100, 200, Memcpy, 1, 7, 12, 0, "Memcpy HtoD".to_owned()),
        (7300, 50, Memset, 1, 7, 13, 0, "Memset".to_owned()),
        (7400, 500, Kernel, 1, 7, 14, 99, NORM.to_owned()),
    ]
}

fn rocprof_rows(with_copies: bool) -> Vec<Row> {
    use DeviceWork::{Kernel, Memcpy};
    let gemm = "Cijk_Ailk_Bljk_SB_MT128x64x16_MI32x32x2_SN".to_owned();
    let mut rows = vec![
        (3100, 4000, Kernel, 1, 7, 11, 0, gemm),
        (7100, 200, Memcpy, 1, 7, 12, 0, "Memcpy HtoD".to_owned()),
        (7400, 500, Kernel, 1, 7, 14, 0, NORM.to_owned()),
    ];
    rows.retain(|row| with_copies || row.2 == Kernel);
    rows
}

/// The names of the calls, in the order of their times.
fn calls(trace: &Trace) -> Vec<&str> {
    let mut calls: Vec<usize> = (0..trace.launches.len()).collect();
    calls.sort_by_key(|call| trace.launches.start_ns[*call]);
    calls.into_iter().map(|call| trace.names.text(trace.launches.name[call])).collect()
}

/// The mark is around both launches and before both kernels: they are of its phase by their calls.
fn assert_is_prefill(trace: &Trace) {
    let classes = Classes::of(trace);
    let steps = Segments::of(trace, &classes).steps;
    assert_eq!(steps.list.len(), 1);
    assert_eq!(steps.assignments.launch, trace.kernels.len() as u64);
    for kernel in 0..trace.kernels.len() {
        assert_eq!(steps.phase(kernel), Some(Phase::Prefill), "{kernel}");
    }
}

#[test]
fn lines_of_nsight_systems() {
    let trace = load(&data(LINES)).unwrap();
    assert_eq!(rows(&trace), nsys_rows());
    let expected = ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync", "cuLaunchKernelEx"];
    assert_eq!(calls(&trace), expected);
    // Ids of processes and threads are taken apart.
    assert_eq!((&*trace.threads[0].process, &*trace.threads[0].thread), ("4242", "4243"));
    assert_eq!(trace.threads.len(), 1);
    assert_eq!((trace.vendor(), &trace.warnings[..]), (Vendor::Nvidia, &[][..]));
    assert_is_prefill(&trace);
}

#[cfg(feature = "sqlite")]
#[test]
fn the_database_says_the_same_as_the_lines() {
    let trace = load(&data("nsys.sqlite")).unwrap();
    let lines = load(&data(LINES)).unwrap();
    assert_eq!(rows(&trace), rows(&lines));
    assert_eq!(calls(&trace), calls(&lines));
    assert_eq!(trace.threads, lines.threads);
    assert_eq!(trace.warnings, []);
    assert_is_prefill(&trace);
    let device = &trace.metadata.devices[0];
    assert_eq!((device.id, device.name.as_str()), (1, "NVIDIA A100-SXM4-80GB"));
    assert_eq!((device.multiprocessors, device.compute_capability), (Some(108), Some((8, 0))));
    assert_eq!(Trace::metadata(data("nsys.sqlite")).unwrap(), trace.metadata);
}

#[test]
fn json_of_rocprofv3() {
    let trace = load(&data(ROCPROF)).unwrap();
    assert_eq!(rows(&trace), rocprof_rows(true));
    // Calls below HIP are left out.
    assert_eq!(calls(&trace), ["hipLaunchKernel", "hipMemcpyAsync", "hipModuleLaunchKernel"]);
    assert_eq!((trace.vendor(), &trace.warnings[..]), (Vendor::Amd, &[][..]));
    let device = &trace.metadata.devices[0];
    assert_eq!((device.id, device.name.as_str()), (1, "AMD Instinct MI300X"));
    assert_eq!(trace.metadata.devices.len(), 1, "the processor is no device");
    assert_is_prefill(&trace);
    assert_eq!(Trace::metadata(data(ROCPROF)).unwrap(), trace.metadata);
}

#[test]
fn the_table_of_kernels_of_rocprofv3() {
    let trace = load(&data(CSV)).unwrap();
    assert_eq!(rows(&trace), rocprof_rows(false));
    // It names no device, but nobody else's devices are recorded by it.
    assert_eq!((trace.vendor(), &trace.warnings[..]), (Vendor::Amd, &[][..]));
    // Of older versions, and of converted databases.
    let older = b"\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Kernel_Id\",\"Kernel_Name\",\
        \"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n\
        \"KERNEL_DISPATCH\",4,2,18,\"f(int, \"\"x\"\")\",14,100,350\n";
    let expected = (100, 250, DeviceWork::Kernel, 4, 2, 14, 0, "f(int, \"x\")".to_owned());
    assert_eq!(rows(&read(older).unwrap()), [expected]);
    let converted = b"\"Guid\",\"Kind\",\"Agent_Id\",\"Kernel_Name\",\"Start_Timestamp\",\
        \"End_Timestamp\"\r\n\"a-b\",\"KERNEL_DISPATCH\",\"GPU 3\",\"g\",5,6\r\n";
    let expected = (5, 1, DeviceWork::Kernel, 3, -1, 0, 0, "g".to_owned());
    assert_eq!(rows(&read(converted).unwrap()), [expected]);
    let copies = b"\"Kind\",\"Direction\",\"Start_Timestamp\",\"End_Timestamp\"\n";
    let error = read(copies).unwrap_err().to_string();
    assert!(error.contains("no column Kernel_Name") && error.contains("kernel_trace.csv"));
}

/// Numbers behind a comma too many, or too few, are not in their columns.
#[test]
fn rows_with_other_columns_than_the_header_are_broken() {
    let header =
        "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Kernel_Name\",\"Start_Timestamp\",\"End_Timestamp\"";
    let text = format!(
        "{header}\nKERNEL_DISPATCH,4,2,f,100,350\nKERNEL_DISPATCH,4,2,7,3,400,500\n\
         KERNEL_DISPATCH,4,f,600,700\nKERNEL_DISPATCH,4,2,g,800,900\n"
    );
    let trace = read(text.as_bytes()).unwrap();
    let found: Vec<String> = rows(&trace).into_iter().map(|row| row.7).collect();
    assert_eq!(found, ["f", "g"]);
    let [Warning::BrokenEvents { count: 2, first_at, .. }] = trace.warnings[..] else {
        panic!("{:?}", trace.warnings)
    };
    assert_eq!(first_at, (header.len() + 1 + "KERNEL_DISPATCH,4,2,f,100,350\n".len()) as u64);
}

#[test]
fn compression_makes_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    for name in [LINES, ROCPROF, CSV] {
        let path = folder.path().join("packed.gz");
        let mut packed = GzEncoder::new(fs::File::create(&path).unwrap(), Compression::fast());
        packed.write_all(&fs::read(data(name)).unwrap()).unwrap();
        packed.finish().unwrap();
        assert!(load(&path).unwrap() == load(&data(name)).unwrap(), "{name}");
        assert_eq!(Trace::metadata(&path).unwrap(), Trace::metadata(data(name)).unwrap());
    }
}

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

/// The names are known wherever the file has them.
#[test]
fn symbols_may_follow_the_dispatches() {
    let text = fs::read_to_string(data(ROCPROF)).unwrap();
    let start = text.find("\"kernel_symbols\"").unwrap();
    let end = text.find("\"callback_records\":{}").unwrap();
    let symbols = text[start..end].trim_end_matches(',');
    let moved = format!(
        "{}{}",
        &text[..start],
        text[end..].trim_end().strip_suffix("}]}").unwrap().to_owned() + "," + symbols + "}]}"
    );
    assert_eq!(rows(&read(moved.as_bytes()).unwrap()), rocprof_rows(true));
}

/// Processes number their calls alike.
#[test]
fn calls_of_two_processes_are_told_apart() {
    let line = |kind: u8, event: &str, global: u64| {
        format!(
            "{{\"Type\":{kind},{event},\"correlationId\":5,\"globalTid\":\"{global}\",\
             \"globalPid\":\"{}\"}}}}\n",
            global >> 24 << 24
        )
    };
    let mut text = "{\"data\":[\"k\",\"cudaLaunchKernel\"]}\n".to_owned();
    for process in [3_u64, 4] {
        let global = 1 << 48 | process << 24 | process;
        let call = "\"TraceProcessEvent\":{\"startNs\":1,\"endNs\":2,\"name\":1";
        let kernel = "\"CudaEvent\":{\"startNs\":3,\"endNs\":4,\"kernel\":{\"shortName\":0}";
        text += &line(48, call, global);
        text += &line(79, kernel, global);
    }
    let trace = read(text.as_bytes()).unwrap();
    assert_eq!(trace.kernels.correlation, trace.launches.correlation);
    assert_ne!(trace.kernels.correlation[0], trace.kernels.correlation[1]);
}

#[cfg(not(feature = "sqlite"))]
#[test]
fn a_database_wants_a_feature() {
    let error = load(&data("nsys.sqlite")).unwrap_err().to_string();
    assert!(error.contains("built without SQLite") && error.contains("jsonlines"), "{error}");
}

#[cfg(feature = "sqlite")]
mod database {
    use rusqlite::Connection;

    use super::*;

    const SQL: &str = include_str!("data/profilers/nsys.sql");

    fn made(sql: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made.sqlite");
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        (folder, path)
    }

    #[test]
    fn the_file_is_what_its_text_makes() {
        let (_folder, path) = made(SQL);
        let (made, kept) = (load(&path).unwrap(), load(&data("nsys.sqlite")).unwrap());
        assert_eq!(rows(&made), rows(&kept));
        assert_eq!(made.metadata, kept.metadata);
    }

    #[test]
    fn tables_and_columns_may_be_missing() {
        let less = "CREATE TABLE StringIds (id INTEGER, value TEXT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, shortName INTEGER);
            INSERT INTO StringIds VALUES (3, 'k');
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 30, 3), (40, 45, 9), ('x', 50, 3);";
        let (_folder, path) = made(less);
        let trace = load(&path).unwrap();
        let row = |start, duration, name: &str| {
            (start, duration, DeviceWork::Kernel, -1, -1, 0, 0, name.to_owned())
        };
        assert_eq!(rows(&trace), [row(10, 20, "k"), row(40, 5, "")]);
        assert!(matches!(trace.warnings[..], [Warning::BadTimes { count: 1, .. }]));
        let said = trace.warnings[0].to_string();
        assert!(said.ends_with("left out, the first in row 3 of all tables"), "{said}");
    }

    #[test]
    fn other_databases_say_what_they_lack() {
        let (_folder, path) = made("CREATE TABLE rocpd_string (id INTEGER)");
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("without the tables of Nsight Systems"), "{error}");
        assert!(error.contains("rocpd convert"), "{error}");
        let error = read(&fs::read(data("nsys.sqlite")).unwrap()).unwrap_err().to_string();
        assert!(error.contains("must be a file"), "{error}");
    }

    /// A view of a known name could compute without end.
    #[test]
    fn views_are_not_read() {
        let sql = "CREATE TABLE StringIds (id INTEGER, value TEXT);
            CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS
                WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n)
                SELECT start, start AS end FROM n;";
        let (_folder, path) = made(sql);
        assert!(load(&path).unwrap().kernels.is_empty());
    }

    #[test]
    fn whole_graphs_are_told() {
        let graphs = "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER);
            INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1, 2), (3, 4);";
        let (_folder, path) = made(&format!("{SQL}{graphs}"));
        let trace = load(&path).unwrap();
        assert_eq!(trace.warnings, [Warning::WholeGraphs { count: 2 }]);
        assert!(trace.warnings[0].advice().contains("--cuda-graph-trace=node"));
    }

    #[test]
    fn damage_is_no_panic_and_is_told() {
        let whole = fs::read(data("nsys.sqlite")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged.sqlite");
        let expected = rows(&load(&data("nsys.sqlite")).unwrap());
        let mut whole_ones = 0;
        for cut in (0..whole.len()).step_by(97) {
            fs::write(&path, &whole[..cut]).unwrap();
            if let Ok(trace) = load(&path) {
                let is_told = trace.warnings.iter().any(|one| one.code() == "damaged-table");
                assert!(is_told || rows(&trace) == expected, "cut at {cut}");
            }
        }
        for at in (0..whole.len()).step_by(13) {
            let mut text = whole.clone();
            text[at] ^= 0x55;
            fs::write(&path, &text).unwrap();
            match load(&path) {
                Ok(trace) => whole_ones += usize::from(rows(&trace) == expected),
                Err(TraceError::NotATrace { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert!(whole_ones > 0);
    }
}

#[test]
#[ignore = "needs the public traces in ../shared/more_traces"]
fn a_real_recording_of_rocprofv3() {
    let path = real::more().join("rocprofv3_results.json.gz");
    let trace = load(&path).unwrap();
    // An independent count.
    let mut text = Vec::new();
    let mut packed = flate2::read::GzDecoder::new(fs::File::open(&path).unwrap());
    std::io::Read::read_to_end(&mut packed, &mut text).unwrap();
    let all: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let tool = &all["rocprofiler-sdk-tool"][0];
    let dispatches = tool["buffer_records"]["kernel_dispatch"].as_array().unwrap();
    let time = |one: &serde_json::Value, key: &str| one[key].as_u64().unwrap();
    let total: u64 = dispatches
        .iter()
        .map(|one| time(one, "end_timestamp") - time(one, "start_timestamp"))
        .sum();
    assert_eq!((trace.kernels.len(), trace.kernels.total_ns()), (dispatches.len(), total.into()));
    assert_eq!((trace.kernels.len(), total), (43_915, 4_441_741_378));
    let streams: std::collections::HashSet<u64> =
        dispatches.iter().map(|one| time(&one["stream_id"], "handle")).collect();
    assert_eq!(trace.lanes.len(), streams.len());
    let device = &trace.metadata.devices[0];
    assert_eq!((device.name.as_str(), device.warp_size), ("AMD Instinct MI350X", Some(64)));
    assert_eq!((trace.vendor(), &trace.warnings[..]), (Vendor::Amd, &[][..]));
    assert_eq!(Trace::metadata(&path).unwrap(), trace.metadata);
    // Names alone: almost all of the time is in collectives.
    let summary = kernel_traces::Summary::of(&trace, kernel_traces::Taxonomy::Classes);
    assert_eq!(summary.by_class[0].name, "COMM");
    assert!(summary.by_class[0].share > 0.9, "{:?}", summary.by_class[0]);
    assert!((summary.unclassified.total_ns as f64) < 0.01 * total as f64);
}
