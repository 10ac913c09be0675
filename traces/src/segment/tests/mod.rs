//! Small traces, made by hand.

use super::*;
use crate::Options;
use crate::classify::Class;

mod layers;
mod models;

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
        self.run_for(name, 1);
    }

    /// One that takes some time.
    fn run_for(&mut self, name: &str, duration: u64) {
        self.correlation += 1;
        self.now += 2;
        let (correlation, now) = (self.correlation, self.now);
        self.launch("cudaLaunchKernel", 1, now, correlation);
        let args = format!(
            "\"device\": 0, \"stream\": 7, \"correlation\": {correlation}, \
             \"External id\": {correlation}"
        );
        self.event("kernel", name, (0, 7), (now + 1, duration), &args);
        self.now += duration - 1;
    }

    /// A GEMM, with its sizes if they are not zero.
    fn gemm(&mut self, [m, n, k]: [u64; 3], duration: u64) {
        let id = self.correlation + 1;
        if n > 0 {
            let args = format!(
                "\"External id\": {id}, \"Input Dims\": [[{m}, {k}], [{k}, {n}]], \
                 \"Input type\": [\"c10::BFloat16\", \"c10::BFloat16\"]"
            );
            self.event("cpu_op", "aten::mm", (1, 1), (self.now + 1, 2), &args);
        }
        self.run_for(GEMM, duration);
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
