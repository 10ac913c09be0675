use super::*;
use crate::classify::Class;
use crate::synthetic::{self, Plan};
use crate::{Launches, Options};

/// A trace of some kernels, of what launched them, and of what stood around the launches.
fn trace(events: &[String]) -> Trace {
    let text = format!("{{\"traceEvents\": [{}]}}", events.join(","));
    Trace::from_json(text.as_bytes(), &Options::default()).unwrap()
}

fn event(category: &str, name: &str, start: u32, duration: u32, args: &str) -> String {
    format!(
        "{{\"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": 1, \"tid\": 1, \
         \"ts\": {start}, \"dur\": {duration}, \"args\": {{{args}}}}}"
    )
}

fn kernel(name: &str, start: u32, ids: &str) -> String {
    event("kernel", name, start, 1, &format!("\"device\": 0, \"stream\": 7{ids}"))
}

fn first(events: &[String]) -> (Class, &'static str) {
    let class = Classes::of(&trace(events)).get(0);
    (class.main, class.why)
}

#[test]
fn the_launch_leads_to_the_operator() {
    let launched = kernel("kernel_1", 100, ", \"correlation\": 5");
    let by_id = [
        launched.clone(),
        event("cuda_runtime", "cudaLaunchKernel", 10, 2, "\"correlation\": 5, \"External id\": 3"),
        event("cpu_op", "aten::layer_norm", 500, 9, "\"External id\": 3"),
    ];
    assert_eq!(first(&by_id), (Class::Norm, "op"));
    // The innermost of those around the launch that says something.
    let by_time = [
        launched.clone(),
        event("cuda_runtime", "cudaLaunchKernel", 10, 2, "\"correlation\": 5"),
        event("cpu_op", "aten::linear", 0, 30, ""),
        event("cpu_op", "aten::softmax", 5, 20, ""),
        event("cpu_op", "what::is_this", 8, 10, ""),
        event("cpu_op", "aten::mm", 11, 1, ""),
        event("cpu_op", "aten::mm", 0, 9, ""),
    ];
    assert_eq!(first(&by_time), (Class::Softmax, "op"));
    let elsewhere =
        by_time.map(|text| text.replace("\"cpu_op\", \"name\": \"aten", "\"x\", \"name\": \""));
    assert_eq!(first(&elsewhere), (Class::Unclassified, "none"));
}

#[test]
fn the_launch_of_a_graph_says_nothing_about_its_kernels() {
    let replayed = [
        kernel("kernel_1", 100, ", \"correlation\": 5, \"External id\": 3"),
        event("cuda_runtime", "cudaGraphLaunch", 10, 2, "\"correlation\": 5, \"External id\": 3"),
        event("cpu_op", "aten::layer_norm", 5, 20, "\"External id\": 3"),
        event("python_function", "torch/nn/functional.py(9): layer_norm", 5, 20, ""),
    ];
    assert_eq!(first(&replayed), (Class::Unclassified, "none"));
    let launched = replayed.map(|text| text.replace("cudaGraphLaunch", "cudaLaunchKernel"));
    assert_eq!(first(&launched), (Class::Norm, "op"));
}

#[test]
fn python_frames_are_asked_up_to_the_innermost_module() {
    let with = |frames: &[(&str, u32)]| {
        let mut events = vec![
            kernel("kernel_1", 100, ", \"correlation\": 5"),
            event("cuda_runtime", "cudaLaunchKernel", 50, 2, "\"correlation\": 5"),
        ];
        let frame = |&(name, start): &(&str, u32)| {
            event("python_function", name, start, 100 - 2 * start, "")
        };
        events.extend(frames.iter().map(frame));
        first(&events)
    };
    let module = ("nn.Module: Qwen2RMSNorm_3", 20);
    assert_eq!(with(&[("run.py(1): softmax", 10), module]), (Class::Norm, "frame"));
    assert_eq!(with(&[module, ("ops.py(7): silu_and_mul", 30)]), (Class::Act, "frame"));
    // What is in a layer may be anything.
    let layer = ("nn.Module: Qwen2DecoderLayer_3", 30);
    assert_eq!(with(&[module, layer]), (Class::Unclassified, "none"));
    let attention = ("nn.Module: Qwen2Attention_3", 30);
    assert_eq!(with(&[module, attention]), (Class::Unclassified, "none"));
}

/// The classes of kernels that follow each other on a stream.
fn in_order(names: &[&str]) -> Vec<Classification> {
    let events: Vec<String> =
        (0_u32..).zip(names).map(|(place, name)| kernel(name, 10 * place, "")).collect();
    let classes = Classes::of(&trace(&events));
    (0..names.len()).map(|row| classes.get(row)).collect()
}

#[test]
fn neighbours_settle_what_repeats() {
    let layer = [
        "nvjet_tst_128x8",
        "reshape_and_cache_flash_kernel",
        "kernel_1",
        "nvjet_tst_64x8",
        "topkGatingSoftmax",
        "kernel_2",
        "silu_and_mul",
        "kernel_2",
        "moe_sum_kernel",
    ];
    let found = in_order(&layer.repeat(3));
    for layer in found.chunks(layer.len()) {
        assert_eq!((layer[2].main, layer[2].why), (Class::Attn, "neighbours"));
        assert_eq!((layer[5].main, layer[5].why), (Class::MoeGemm, "neighbours"));
        assert_eq!((layer[7].main, layer[7].why), (Class::MoeGemm, "neighbours"));
    }
    // Twice is not often enough for attention; the experts' GEMM is there four times.
    let found = in_order(&layer.repeat(2));
    assert_eq!((found[2].main, found[5].main), (Class::Unclassified, Class::MoeGemm));
}

#[test]
fn neighbours_settle_nothing_that_stands_elsewhere_too() {
    let layer = ["reshape_and_cache_flash_kernel", "kernel_1", "nvjet_tst_64x8"];
    let mut names = layer.repeat(5);
    assert_eq!(in_order(&names)[1].main, Class::Attn);
    names.push("kernel_1");
    assert!(in_order(&names).iter().all(|class| class.main != Class::Attn));
    // Between two known GEMMs it is their activation, or something else.
    let experts =
        ["topkGatingSoftmax", "fused_moe_kernel", "kernel_1", "fused_moe_kernel", "moe_sum"];
    assert_eq!(in_order(&experts.repeat(5))[2].main, Class::Unclassified);
}

#[test]
fn what_joins_rotated_halves_before_the_cache_rotates() {
    let cat = ["triton_poi_fused_cat_3", "triton_poi_fused_cat_4"];
    let layer =
        ["nvjet_tst_128x8", cat[0], cat[1], "reshape_and_cache_flash_kernel", "flash_fwd_kernel"];
    let found = in_order(&layer.repeat(3));
    assert!(found.chunks(5).all(|layer| layer[1].main == Class::Rope));
    assert!(
        found.chunks(5).all(|layer| (layer[2].main, layer[2].why) == (Class::Rope, "neighbours"))
    );
    // Elsewhere they join, and where another kernel rotates they do too.
    let elsewhere = ["nvjet_tst_128x8", cat[0], "nvjet_tst_64x8"];
    assert_eq!(in_order(&elsewhere.repeat(5))[1].main, Class::Copy);
    let mut latent = layer.to_vec();
    latent.insert(1, "rotary_embedding_kernel");
    latent.insert(2, "nvjet_tst_64x8");
    assert_eq!(in_order(&latent.repeat(5))[3].main, Class::Copy);
    // The operator of such a kernel is called like it, and says no more.
    let launched = [
        kernel(cat[0], 100, ", \"correlation\": 5"),
        event("cuda_runtime", "cudaLaunchKernel", 10, 2, "\"correlation\": 5"),
        event("cpu_op", cat[0], 5, 20, ""),
        event("python_function", "layers/rotary_embedding.py(9): forward", 2, 40, ""),
    ];
    assert_eq!(first(&launched), (Class::Rope, "frame"));
}

#[test]
fn a_long_run_of_unknown_kernels_is_no_problem() {
    let found = in_order(&["kernel_1"; 5_000]);
    assert!(found.iter().all(|class| class.main == Class::Unclassified));
}

#[test]
fn operators_decide_where_names_do_not() {
    let (text, _) = synthetic::text(&Plan::default()).unwrap();
    let mut trace = Trace::from_json(&text, &Options::default()).unwrap();
    let names = ["kernel_1", "triton_poi_fused_0", "_fwd_kernel", "ncclDevKernel_AllReduce"];
    let names = names.map(|name| trace.names.intern(name.as_bytes()));
    for (row, name) in trace.kernels.name.iter_mut().enumerate() {
        if row % 5 > 0 {
            *name = names[row % names.len()];
        }
    }
    trace.launches = Launches::default();
    trace.kernels.external_id[3] = 0;
    trace.kernels.external_id[6] = 999_999;
    trace.ops.external_id[9] = trace.ops.external_id[1];
    // What it must be the same as: every kernel on its own.
    let kernels = trace.kernels.name.iter().zip(&trace.kernels.external_id);
    let one_by_one = kernels.map(|(&name, &id)| {
        let op = trace.ops.external_id.iter().rposition(|&of_op| id != 0 && of_op == id);
        let op = op.map(|op| trace.names.text(trace.ops.name[op]));
        classify_with(trace.names.text(name), op, None)
    });
    let one_by_one: Vec<Classification> = one_by_one.collect();
    let classes = Classes::of(&trace);
    let all: Vec<_> = (0..trace.kernels.len()).map(|row| classes.get(row)).collect();
    assert_eq!(all, one_by_one);
    assert!(all.iter().any(|class| class.why == "op"));
    assert_eq!(classes.get(all.len()), Classification::UNCLASSIFIED);
}
