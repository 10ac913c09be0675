//! Recordings of Nsight Systems and rocprofv3.

mod damage;
#[cfg(feature = "sqlite")]
mod database;

use crate::real;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

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

#[test]
fn json_of_rocprofv3() {
    let trace = load(&data(ROCPROF)).unwrap();
    assert_eq!(rows(&trace), rocprof_rows(true));
    // Calls below HIP are left out.
    assert_eq!(calls(&trace), ["hipLaunchKernel", "hipMemcpyAsync", "hipModuleLaunchKernel"]);
    assert_eq!((trace.vendor(), &trace.warnings[..]), (Vendor::Amd, &[][..]));
    let device = &trace.metadata.devices[0];
    assert_eq!((device.id, device.name.as_str()), (1, "AMD Instinct MI300X"));
    assert_eq!(trace.metadata.devices.len(), 1, "the processor is not a device");
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
