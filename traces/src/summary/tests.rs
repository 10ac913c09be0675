use proptest::prelude::*;

use super::*;
use crate::{DeviceWork, Lane, Options};

fn summary(events: &str, taxonomy: Taxonomy) -> Summary {
    let text = format!("{{\"traceEvents\": [{events}]}}");
    Summary::of(&Trace::from_json(text.as_bytes(), &Options::default()).unwrap(), taxonomy)
}

fn kernel(name: &str, start: u32, duration: u32, external_id: u32) -> String {
    format!(
        "{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{name}\", \"pid\": 0, \"tid\": 7, \
         \"ts\": {start}, \"dur\": {duration}, \"args\": {{\"External id\": {external_id}, \
         \"device\": 0, \"stream\": 7}}}}"
    )
}

#[test]
fn kernels_are_summed_by_class_and_by_name() {
    let events = [
        kernel("void cublasLt::splitKreduce_kernel<32>(float*)", 0, 10, 0),
        kernel("ampere_sgemm_128x64_tn", 5, 10, 0),
        kernel("ampere_sgemm_128x64_tn", 20, 30, 0),
        kernel("what_is_this", 100, 50, 0),
    ];
    let summary = summary(&events.join(","), Taxonomy::Classes);
    assert_eq!((summary.kernels, summary.total_ns), (4, 100_000));
    // 0 to 15, 20 to 50 and 100 to 150.
    assert_eq!((summary.busy_ns, summary.span_ns), (95_000, 150_000));
    assert_eq!(summary.unclassified_share, 0.5);
    let names: Vec<&str> = summary.by_class.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["UNCLASSIFIED", "GEMM", "GEMM_EPILOGUE"]);
    let gemm = &summary.by_class[1];
    assert_eq!(
        (gemm.count, gemm.total_ns, gemm.median_ns, gemm.p95_ns),
        (2, 40_000, 10_000, 30_000)
    );
    assert!((gemm.mean_ns - 20_000.0).abs() < 1e-9 && (gemm.share - 0.4).abs() < 1e-12);
    assert_eq!(summary.by_kernel.len(), 3);
    assert_eq!(summary.by_kernel[1].name, "ampere_sgemm_128x64_tn");
}

#[test]
fn the_launching_operator_tells_what_the_name_does_not() {
    let op = "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::layer_norm\", \"pid\": 1, \
              \"tid\": 1, \"ts\": 0, \"dur\": 5, \"args\": {\"External id\": 42}}";
    let events = [op.to_owned(), kernel("kernel_1", 10, 10, 42)];
    let summary = summary(&events.join(","), Taxonomy::Classes);
    assert_eq!(summary.by_class[0].name, "NORM");
}

#[test]
fn a_trace_without_kernels_is_empty_and_not_a_number() {
    let op = "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add\", \"pid\": 1, \
              \"tid\": 1, \"ts\": 0, \"dur\": 5}";
    let summary = summary(op, Taxonomy::Legacy);
    assert_eq!((summary.kernels, summary.busy_ns, summary.span_ns), (0, 0, 0));
    assert_eq!(summary.unclassified_share, 0.0);
    assert!(summary.by_class.is_empty() && summary.by_kernel.is_empty());
}

#[test]
fn communication_is_exposed_where_nothing_else_runs() {
    let on = |name: &str, start: u32, duration: u32, stream: u32| {
        kernel(name, start, duration, 0).replace("\"stream\": 7", &format!("\"stream\": {stream}"))
    };
    let events = [
        on("ampere_sgemm_128x64_tn", 0, 10, 7),
        // 5 behind the GEMM, 15 alone, 5 with a copy, 5 alone.
        on("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 5, 30, 20),
        on("Memcpy DtoH (Device -> Pinned)", 25, 5, 21).replace("\"kernel\"", "\"gpu_memcpy\""),
        on("ampere_sgemm_128x64_tn", 50, 10, 7),
        on("Memset (Device)", 58, 4, 7).replace("\"kernel\"", "\"gpu_memset\""),
    ];
    let summary = summary(&events.join(","), Taxonomy::Classes);
    let [device] = &summary.devices[..] else { panic!("{:?}", summary.devices) };
    assert_eq!((device.kernels, device.span_ns, device.busy_ns), (5, 62_000, 47_000));
    assert_eq!((device.compute_ns, device.mixed_ns), (20_000, 5_000));
    let overlap =
        |busy_ns, exposed_ns, overlapped_ns| Overlap { busy_ns, exposed_ns, overlapped_ns };
    assert_eq!(device.communication, overlap(30_000, 20_000, 10_000));
    assert_eq!(device.copies, overlap(5_000, 0, 5_000));
    assert_eq!(device.fills, overlap(4_000, 2_000, 2_000));
    let idle = &device.idle;
    assert_eq!((idle.gaps, idle.total_ns, idle.largest_ns), (1, 15_000, 15_000));
    assert_eq!(idle.by_length[2], GapLength { from_ns: 10_000, gaps: 1, total_ns: 15_000 });
    let streams: Vec<(i64, u64)> =
        device.streams.iter().map(|stream| (stream.stream, stream.busy_ns)).collect();
    assert_eq!(streams, [(20, 30_000), (7, 22_000), (21, 5_000)]);
}

#[test]
fn too_much_unknown_time_is_warned_about() {
    let known = kernel("ampere_sgemm_128x64_tn", 0, 95, 0);
    let few = [known.clone(), kernel("what_is_this", 100, 5, 0)].join(",");
    assert_eq!(summary(&few, Taxonomy::Classes).warning(), None);
    let many = [known, kernel("what_is_this", 100, 5, 0), kernel("what_else", 105, 1, 0)].join(",");
    let summary = summary(&many, Taxonomy::Classes);
    let warning = summary.warning().unwrap();
    assert_eq!(warning.code(), "unclassified");
    assert!(warning.to_string().contains("what_is_this"), "{warning}");
    let top: Vec<&str> = summary.unclassified.top.iter().map(|group| group.name.as_str()).collect();
    assert_eq!((summary.unclassified.count, &top[..]), (2, &["what_is_this", "what_else"][..]));
}

/// Kernels of two names at any time, on three streams of two devices.
fn any_trace() -> impl Strategy<Value = Trace> {
    let time = prop_oneof![-50_i64..50, any::<i64>()];
    let length = prop_oneof![0_u64..20, any::<u64>()];
    let rows = prop::collection::vec((time, length, 0_u32..3, 0..4), 0..40);
    rows.prop_map(|rows| {
        let mut trace = Trace::default();
        let names = [b"ampere_sgemm_128x64_tn".as_slice(), b"ncclDevKernel_AllReduce"];
        let ids = names.map(|name| trace.names.intern(name));
        let lane = |device, stream| Lane { device, stream };
        trace.lanes = vec![lane(0, 7), lane(0, 8), lane(1, 7)];
        for (start, length, lane, kind) in rows {
            let kernels = &mut trace.kernels;
            kernels.start_ns.push(start);
            kernels.duration_ns.push(length);
            kernels.lane.push(lane);
            kernels.name.push(ids[usize::from(kind == 1)]);
            kernels.work.push(match kind {
                2 => DeviceWork::Memcpy,
                3 => DeviceWork::Memset,
                _ => DeviceWork::Kernel,
            });
            kernels.correlation.push(0);
            kernels.external_id.push(0);
            kernels.graph_node.push(0);
        }
        trace
    })
}

proptest! {
    #[test]
    fn the_parts_of_a_device_add_up(trace in any_trace()) {
        let summary = Summary::of(&trace, Taxonomy::Classes);
        let counted: usize = summary.devices.iter().map(|device| device.kernels).sum();
        prop_assert_eq!(counted, trace.kernels.len());
        for device in &summary.devices {
            let kinds = [device.communication, device.copies, device.fills];
            let exposed: u128 = kinds.iter().map(|kind| u128::from(kind.exposed_ns)).sum();
            let parts = exposed + u128::from(device.compute_ns) + u128::from(device.mixed_ns);
            prop_assert_eq!(parts, u128::from(device.busy_ns));
            for kind in kinds {
                prop_assert_eq!(kind.busy_ns, kind.exposed_ns + kind.overlapped_ns);
            }
            let idle = &device.idle;
            let whole = u128::from(device.busy_ns) + u128::from(idle.total_ns);
            prop_assert_eq!(whole, u128::from(device.span_ns));
            let lengths = idle.by_length.iter().map(|length| (length.gaps, length.total_ns));
            let sum = lengths.fold((0, 0), |sum, (gaps, ns)| (sum.0 + gaps, sum.1 + ns));
            prop_assert_eq!(sum, (idle.gaps, idle.total_ns));
            prop_assert!(device.streams.iter().all(|stream| stream.busy_ns <= device.busy_ns));
            prop_assert!(device.busy_ns <= summary.busy_ns && device.span_ns <= summary.span_ns);
        }
    }
}
