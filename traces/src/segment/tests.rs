//! Small traces, made by hand.

use super::*;
use crate::Options;
use crate::classify::Class;

/// The events of a trace. Times are microseconds.
#[derive(Default)]
struct Sketch {
    events: Vec<String>,
    correlation: u64,
    now: u64,
}

const ATTENTION: &str = "flash_fwd_kernel";
const CACHE: &str = "reshape_and_cache_flash_kernel";
const NORM: &str = "rms_norm_kernel";
const GEMM: &str = "ampere_sgemm_128x64_tn";
const ACT: &str = "act_and_mul_kernel";
const EMBED: &str = "indexSelectLargeIndex";
const SORT: &str = "cub::DeviceRadixSortOnesweepKernel";
const SCAN: &str = "selective_scan_fwd_kernel";

impl Sketch {
    fn event(
        &mut self,
        category: &str,
        name: &str,
        place: (i64, i64),
        time: (u64, u64),
        args: &str,
    ) {
        let ((process, thread), (start, duration)) = (place, time);
        self.events.push(format!(
            "{{\"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": {process}, \
             \"tid\": {thread}, \"ts\": {start}, \"dur\": {duration}, \"args\": {{{args}}}}}"
        ));
    }

    fn mark(&mut self, name: &str, start: u64, end: u64) {
        self.event("user_annotation", name, (1, 1), (start, end - start), "");
    }

    fn launch(&mut self, name: &str, thread: i64, start: u64, correlation: u64) {
        let args = format!("\"correlation\": {correlation}");
        self.event("cuda_runtime", name, (1, thread), (start, 1), &args);
    }

    fn kernel(&mut self, name: &str, stream: i64, start: u64, args: &str) {
        let args = format!("\"device\": 0, \"stream\": {stream}{args}");
        self.event("kernel", name, (0, stream), (start, 1), &args);
    }

    /// A kernel and its launch, right after what came before.
    fn run(&mut self, name: &str) {
        self.correlation += 1;
        self.now += 2;
        let (correlation, now) = (self.correlation, self.now);
        self.launch("cudaLaunchKernel", 1, now, correlation);
        self.kernel(name, 7, now + 1, &format!(", \"correlation\": {correlation}"));
    }

    fn run_all(&mut self, names: &[&str]) {
        names.iter().for_each(|name| self.run(name));
    }

    fn trace(&self) -> Trace {
        let text = format!("{{\"traceEvents\": [{}]}}", self.events.join(","));
        let trace = Trace::from_json(text.as_bytes(), &Options::default()).unwrap();
        assert!(trace.warnings.iter().all(|warning| warning.code() == "no-kernels"));
        trace
    }

    fn segments(&self) -> Segments {
        let trace = self.trace();
        Segments::of(&trace, &Classes::of(&trace))
    }
}

fn phases(segments: &Segments, kernels: usize) -> Vec<Option<Phase>> {
    (0..kernels).map(|kernel| segments.steps.phase(kernel)).collect()
}

#[test]
fn the_time_of_the_launch_counts_and_not_that_of_the_kernel() {
    let mut sketch = Sketch::default();
    sketch.mark("execute_context_1(9)_generation_0(0)", 0, 10);
    sketch.mark("execute_context_0(0)_generation_1(1)", 10, 20);
    sketch.launch("cudaLaunchKernel", 1, 5, 1);
    sketch.launch("cudaGraphLaunch", 1, 15, 2);
    sketch.launch("cudaLaunchKernel", 1, 25, 3);
    sketch.kernel("a", 7, 16, ", \"correlation\": 1");
    sketch.kernel("b", 7, 30, ", \"correlation\": 2");
    sketch.kernel("c", 7, 31, ", \"correlation\": 2");
    // In the time of a mark, but launched after it.
    sketch.kernel("d", 8, 17, ", \"correlation\": 3");
    let segments = sketch.segments();
    let (prefill, decode) = (Some(Phase::Prefill), Some(Phase::Decode));
    assert_eq!(phases(&segments, 4), [prefill, decode, decode, None]);
    let steps: Vec<_> = (0..4).map(|kernel| segments.steps.step(kernel)).collect();
    assert_eq!(steps, [Some(0), Some(1), Some(1), None]);
    let counts = segments.steps.assignments;
    assert_eq!((counts.launch, counts.outside, counts.unknown), (3, 1, 0));
}

#[test]
fn kernels_without_a_launch() {
    let mut sketch = Sketch::default();
    sketch.mark("prefill[bs=1]", 0, 10);
    sketch.mark("decode[bs=8]", 10, 20);
    sketch.event("gpu_user_annotation", "decode[bs=8]", (0, 9), (40, 10), "");
    sketch.event("cpu_op", "aten::mm", (1, 1), (4, 1), "\"External id\": 77");
    sketch.launch("hipLaunchKernel", 1, 12, 1);
    sketch.launch("hipLaunchKernel", 1, 13, 2);
    sketch.kernel("operator", 7, 30, ", \"External id\": 77");
    sketch.kernel("before", 8, 30, ", \"correlation\": 1");
    sketch.kernel("between", 8, 31, ", \"correlation\": 0");
    sketch.kernel("after", 8, 32, ", \"correlation\": 2");
    sketch.kernel("behind", 8, 33, "");
    sketch.kernel("in the mark's copy", 9, 45, "");
    sketch.kernel("beside it", 9, 60, "");
    let segments = sketch.segments();
    let (prefill, decode) = (Some(Phase::Prefill), Some(Phase::Decode));
    let expected = [prefill, decode, decode, decode, None, decode, None];
    assert_eq!(phases(&segments, 7), expected);
    assert_eq!(
        segments.steps.assignments,
        Assignments {
            launch: 2,
            operator: 1,
            device_mark: 1,
            stream_order: 1,
            outside: 0,
            unknown: 2
        }
    );
}

#[test]
fn a_mark_in_a_mark_is_no_step_of_its_own() {
    let mut sketch = Sketch::default();
    sketch.mark("ProfilerStep#3", 0, 100);
    sketch.mark("execute_32_context_0(sq0)_generation_32(sq32)", 10, 40);
    sketch.mark("step[DECODE bs=32]", 20, 30);
    sketch.launch("hipGraphLaunch", 1, 25, 1);
    // The backward pass has a thread of its own, which the marks of its process count for.
    sketch.launch("hipLaunchKernel", 2, 35, 2);
    sketch.launch("hipLaunchKernel", 1, 50, 3);
    for correlation in 1..=3 {
        sketch.kernel("k", 7, 200 + correlation, &format!(", \"correlation\": {correlation}"));
    }
    let segments = sketch.segments();
    assert_eq!(segments.steps.list.len(), 1);
    assert_eq!(segments.steps.list[0].kind, MarkKind::Execute);
    assert_eq!(phases(&segments, 3), [Some(Phase::Decode), Some(Phase::Decode), None]);
}

#[test]
fn steps_of_the_profiler_if_there_are_no_others() {
    let mut sketch = Sketch::default();
    sketch.mark("ProfilerStep#3", 0, 10);
    sketch.mark("ProfilerStep#4", 10, 20);
    sketch.launch("cudaLaunchKernel", 2, 15, 1);
    sketch.kernel("k", 7, 5, ", \"correlation\": 1");
    let segments = sketch.segments();
    assert_eq!((segments.steps.step(0), segments.steps.phase(0)), (Some(1), None));
    assert!(!segments.steps.have_phases());
    assert_eq!(sketch.trace().names.text(segments.steps.list[1].name), "ProfilerStep#4");
}

#[test]
fn of_calls_with_one_id_the_one_that_launches() {
    let mut sketch = Sketch::default();
    let far = u64::MAX - 1;
    for (id, name, start) in [
        (1, "cudaLaunchKernel", 5),
        (1, "cudaStreamIsCapturing", 6),
        // After the kernel.
        (1, "cudaLaunchKernel", 50),
        (far, "cuLaunchKernel", 7),
        (0, "cudaLaunchKernel", 8),
    ] {
        sketch.launch(name, 1, start, id);
    }
    for id in [1, far, 0, 99] {
        sketch.kernel("k", 7, 20, &format!(", \"correlation\": {id}"));
    }
    let none = crate::launched::NONE;
    assert_eq!(launches(&sketch.trace()), [0, 3, none, none]);
}

/// The kernels of a layer from its norm on.
const LAYER: [&str; 9] = [NORM, GEMM, CACHE, ATTENTION, GEMM, NORM, GEMM, ACT, GEMM];

fn decoder(passes: usize, layers: usize) -> Sketch {
    let mut sketch = Sketch::default();
    for _ in 0..passes {
        sketch.run(EMBED);
        (0..layers).for_each(|_| sketch.run_all(&LAYER));
        sketch.run_all(&[NORM, GEMM, SORT]);
    }
    sketch
}

#[test]
fn passes_are_told_apart_without_marks() {
    for (passes, count) in [(1, 2), (1, 5), (2, 2), (5, 3), (3, 30)] {
        let layers = decoder(passes, count).segments().layers;
        assert_eq!(layers.count as usize, count, "{passes} passes of {count}");
        assert_eq!(layers.passes.len(), passes, "{passes} passes of {count}");
        assert_eq!(layers.marker, Some(Marker::CacheWrite));
        let numbers = layers.list.iter().map(|layer| layer.number as usize);
        assert!(numbers.eq((0..passes).flat_map(|_| 0..count)));
        let kv = Class::KvCache;
        assert!(layers.patterns.iter().all(|pattern| pattern.classes[0] == kv));
        let last = layers.patterns.iter().find(|pattern| pattern.ends_pass).unwrap();
        assert_eq!((last.count, last.classes.len()), (passes, LAYER.len() - 2));
        let inner = layers.patterns.iter().find(|pattern| !pattern.ends_pass).unwrap();
        assert_eq!((inner.count, inner.classes.len()), (passes * (count - 1), LAYER.len()));
        // Every kernel of a layer knows it, and no other does.
        let trace = decoder(passes, count).trace();
        let in_layers = (0..trace.kernels.len()).filter(|kernel| layers.layer(*kernel).is_some());
        assert_eq!(in_layers.count(), passes * (count * LAYER.len() - 2));
        let third = layers.kernels(&layers.list[1]);
        assert!(third.iter().all(|kernel| layers.layer(*kernel as usize) == Some(1)));
    }
}

#[test]
fn a_pass_that_the_recording_cuts() {
    let whole = decoder(3, 6);
    // Each kernel is two events. The first pass loses its first layers, and the last its last.
    let cut_at = 2 * (1 + 2 * LAYER.len());
    let events = whole.events[cut_at..whole.events.len() - 2 * 20].to_vec();
    let layers = Sketch { events, ..Sketch::default() }.segments().layers;
    assert_eq!((layers.count, layers.passes.len()), (6, 3));
    let lengths: Vec<_> =
        layers.passes.iter().map(|pass| (pass.layers.len(), pass.is_cut)).collect();
    assert_eq!(lengths, [(4, true), (6, false), (4, true)]);
    let numbers: Vec<_> = layers.list.iter().map(|layer| layer.number).collect();
    assert_eq!(numbers, [2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3]);
}

#[test]
fn the_last_pass_of_a_truncated_file_is_not_whole() {
    let events = decoder(2, 5).events.join(",");
    let text = format!("{{\"traceEvents\": [{}", &events[..events.len() - 2000]);
    let trace = Trace::from_json(text.as_bytes(), &Options::default()).unwrap();
    let layers = Segments::of(&trace, &Classes::of(&trace)).layers;
    let cut: Vec<_> = layers.passes.iter().map(|pass| pass.is_cut).collect();
    assert_eq!(cut, [false, true]);
}

#[test]
fn forward_and_backward() {
    let mut sketch = Sketch::default();
    for _ in 0..2 {
        sketch.run(EMBED);
        for _ in 0..4 {
            sketch.run_all(&[NORM, GEMM, ATTENTION, GEMM, NORM, GEMM, ACT, GEMM]);
        }
        sketch.run_all(&[
            NORM,
            GEMM,
            "cunn_SoftMaxForward",
            "nll_loss_forward_reduce_cuda_kernel_2d",
        ]);
        for _ in 0..4 {
            sketch.run_all(&[GEMM, GEMM, GEMM, GEMM, "flash_bwd_kernel", GEMM, GEMM, NORM]);
        }
        sketch.run("multi_tensor_apply_kernel");
    }
    let layers = sketch.segments().layers;
    let passes: Vec<_> =
        layers.passes.iter().map(|pass| (pass.layers.len(), pass.is_backward)).collect();
    assert_eq!(passes, [(4, false), (4, true), (4, false), (4, true)]);
    assert_eq!((layers.count, layers.marker), (4, Some(Marker::Attention)));
    let numbers: Vec<_> = layers.list.iter().map(|layer| layer.number).take(8).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 3, 2, 1, 0]);
}

#[test]
fn layers_of_two_kinds() {
    let mut sketch = Sketch::default();
    for _ in 0..2 {
        sketch.run(EMBED);
        for layer in 0..12 {
            if layer % 4 == 3 {
                sketch.run_all(&LAYER);
            } else {
                sketch.run_all(&[NORM, GEMM, "causal_conv1d_fwd_kernel", SCAN, GEMM]);
            }
        }
        sketch.run_all(&[NORM, GEMM, SORT]);
    }
    let segments = sketch.segments();
    assert_eq!(segments.family.name(), "hybrid");
    let layers = segments.layers;
    assert_eq!((layers.count, layers.marker), (12, Some(Marker::StateSpace)));
    assert_eq!(layers.passes.len(), 2);
    // Scan before scan, scan before attention, attention before scan; and the last.
    assert_eq!(layers.patterns.len(), 4);
}

#[test]
fn two_attentions_of_one_layer() {
    let mut sketch = Sketch::default();
    // Attention to the own sequence, then to another one whose cache was written before.
    let layer = [NORM, GEMM, CACHE, ATTENTION, GEMM, NORM, ATTENTION, GEMM, NORM, GEMM, ACT, GEMM];
    for _ in 0..2 {
        sketch.run(EMBED);
        (0..5).for_each(|_| sketch.run_all(&layer));
        sketch.run_all(&[NORM, GEMM, SORT]);
    }
    let layers = sketch.segments().layers;
    assert_eq!((layers.count, layers.marker), (5, Some(Marker::CacheWrite)));
    // Without a cache, the feed-forward part shows which two are one layer.
    let mut sketch = Sketch::default();
    for _ in 0..2 {
        sketch.run(EMBED);
        let layer = layer.iter().copied().filter(|name| *name != CACHE).collect::<Vec<_>>();
        (0..5).for_each(|_| sketch.run_all(&layer));
        sketch.run_all(&[NORM, GEMM, SORT]);
    }
    let layers = sketch.segments().layers;
    assert_eq!((layers.count, layers.marker), (5, Some(Marker::Attention)));
    // Layers that share the cache of those before are layers too.
    let mut sketch = Sketch::default();
    sketch.run(EMBED);
    for layer in 0..9 {
        let has_cache = layer < 3;
        sketch.run_all(&[NORM, GEMM]);
        sketch.run_all(if has_cache { &[CACHE][..] } else { &[] });
        sketch.run_all(&[ATTENTION, GEMM, NORM, GEMM, ACT, GEMM]);
    }
    let layers = sketch.segments().layers;
    assert_eq!((layers.count, layers.marker), (9, Some(Marker::Attention)));
}

#[test]
fn streams_that_do_not_wait_for_each_other_are_cut_alone() {
    let mut sketch = decoder(1, 8);
    // Communication that begins at another kernel of every layer.
    for (index, start) in (20..150).step_by(13).enumerate() {
        sketch.kernel("ncclDevKernel_AllGather_RING_LL", 20, start as u64 + index as u64 % 3, "");
        sketch.kernel("ncclDevKernel_AllReduce_RING_LL", 20, start as u64 + 7, "");
    }
    let layers = sketch.segments().layers;
    assert_eq!(layers.count, 8);
    assert_eq!((layers.passes[0].stream, layers.passes[0].device), (Some(7), 0));
    assert_eq!(layers.patterns.len(), 2);
}

#[test]
fn why_there_are_no_layers() {
    let none = |sketch: &Sketch| sketch.segments().layers.none_because;
    assert_eq!(none(&Sketch::default()), Some(NoLayers::NoKernels));
    let mut sketch = Sketch::default();
    sketch.run_all(&[GEMM, NORM]);
    assert_eq!(none(&sketch), Some(NoLayers::NoMarker));
    sketch.run_all(&[ATTENTION, GEMM]);
    assert_eq!(none(&sketch), Some(NoLayers::OneMarker { marker: Marker::Attention }));
    // Other kernels behind every attention.
    let others = [GEMM, NORM, ACT, "cunn_SoftMaxForward", EMBED, "reduce_kernel", CACHE];
    for stride in 1..9 {
        sketch.run_all(&[ATTENTION, GEMM]);
        (0..6).for_each(|place| sketch.run(others[(place * stride + stride / 2) % 6]));
    }
    let reason = none(&sketch).unwrap();
    assert!(matches!(reason, NoLayers::NoRepetition { markers: 9, .. }), "{reason:?}");
    assert!(reason.to_string().contains("9 times"), "{reason}");
}

#[test]
fn a_sequence_that_repeats_without_a_marker() {
    let mut sketch = Sketch::default();
    for _ in 0..3 {
        sketch.run(EMBED);
        for _ in 0..6 {
            sketch.run_all(&[NORM, GEMM, "vectorized_elementwise_kernel", GEMM, ACT]);
        }
        sketch.run_all(&["reduce_kernel", SORT]);
    }
    let layers = sketch.segments().layers;
    assert_eq!((layers.count, layers.marker), (6, Some(Marker::Repetition)));
    assert_eq!(layers.passes.len(), 3);
    assert_eq!(layers.patterns.len(), 1);
    assert_eq!(layers.patterns[0].count, 18);
}

#[test]
fn modules_of_a_model_without_markers() {
    let mut sketch = Sketch::default();
    for layer in 0..3 {
        let begin = sketch.now;
        sketch.run_all(&[NORM, GEMM, ACT][..2 + layer % 2]);
        let time = (begin + 1, sketch.now - begin);
        let name = format!("nn.Module: MlpBlock_{layer}");
        sketch.event("python_function", &name, (1, 1), time, "");
    }
    sketch.run(GEMM);
    let layers = sketch.segments().layers;
    assert_eq!((layers.count, layers.marker), (3, Some(Marker::Module)));
    assert_eq!(layers.modules, Some(("MlpBlock".to_owned(), 3)));
    assert_eq!(layers.layer(7), None);
}
