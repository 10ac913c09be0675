//! Real traces have the steps, phases and layers that are known of them.

use crate::real;
use std::fs::File;

use kernel_traces::classify::Class;
use kernel_traces::segment::{self, Marker, NoLayers, Phase};
use kernel_traces::{Classes, Options, Segments, Trace};
use serde_json::Value;

fn load(name: &str) -> (Trace, Segments) {
    let file = real::folder().join(format!("{name}.json.gz"));
    let trace = Trace::load(file, &Options::default(), &mut |_, _| {}).unwrap();
    let segments = Segments::of(&trace, &Classes::of(&trace));
    (trace, segments)
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn layers_are_those_that_are_known() {
    let folder = real::folder();
    let truth: Value =
        serde_json::from_reader(File::open(folder.join("layer_truth.json")).unwrap()).unwrap();
    let traces = truth.as_object().unwrap().iter().filter(|(_, value)| value.is_object());
    for (name, truth) in traces {
        let (_, segments) = load(name);
        let layers = &segments.layers;
        assert_eq!(u64::from(layers.count), truth["layers"].as_u64().unwrap(), "{name}");
        assert_eq!(layers.list.len() as u64, truth["layer_instances"].as_u64().unwrap(), "{name}");
        let known: Vec<(u64, Vec<Class>)> = truth["layer_patterns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pattern| {
                let classes = pattern["seq"].as_array().unwrap().iter();
                let class = |name: &Value| Class::from_name(name.as_str().unwrap()).unwrap();
                (pattern["count"].as_u64().unwrap(), classes.map(class).collect())
            })
            .collect();
        let inner = layers.patterns.iter().filter(|pattern| !pattern.ends_pass);
        let found: Vec<(u64, Vec<Class>)> =
            inner.map(|pattern| (pattern.count as u64, pattern.classes.clone())).collect();
        assert_eq!(found, known, "{name}");
        // The last layer is the beginning of the others, up to the end of its block.
        let lasts: Vec<_> = layers.patterns.iter().filter(|pattern| pattern.ends_pass).collect();
        assert_eq!((lasts.len(), lasts[0].count), (1, 1), "{name}");
        assert!(known[0].1.starts_with(&lasts[0].classes), "{name}");
        let last = lasts[0].classes.last();
        assert!(matches!(last, Some(Class::Gemm | Class::MoeFinalize)), "{name}: {last:?}");
        assert!(segments.layers.list.iter().map(|layer| layer.number).eq(0..layers.count));
    }
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn eager_layers() {
    let cases = [
        ("mi300x_qwen1.5-0.5b_eager", 24, Marker::Attention, "Qwen2DecoderLayer", 2),
        ("h100_qwen1.5-0.5b_eager", 24, Marker::Attention, "Qwen2DecoderLayer", 2),
        ("mi300x_bert-small_eager", 4, Marker::Attention, "BertLayer", 1),
        ("h100_bert-small_eager", 4, Marker::Attention, "BertLayer", 1),
        // Attention over time and over space, each by separate kernels.
        ("mi300x_timesformer_eager", 12, Marker::Softmax, "TimesformerLayer", 1),
        ("h100_timesformer_eager", 12, Marker::Softmax, "TimesformerLayer", 1),
    ];
    for (name, count, marker, module, passes) in cases {
        let (_, segments) = load(name);
        let layers = &segments.layers;
        assert_eq!((layers.count, layers.marker), (count, Some(marker)), "{name}");
        assert_eq!(layers.modules, Some((module.to_owned(), count as usize)), "{name}");
        assert_eq!(layers.passes.len(), passes, "{name}");
        // One pattern for all layers, and one for the last of each pass.
        assert_eq!(layers.patterns.len(), 2, "{name}");
        let whole = layers.passes.last().unwrap();
        assert!(!whole.is_cut && whole.layers.len() == count as usize, "{name}");
        assert_eq!(segments.family.name(), "dense", "{name}");
        // The recording began in a pass, and only its last layers are left.
        if passes == 2 {
            let cut = &layers.passes[0];
            assert!(cut.is_cut && cut.layers.len() < count as usize, "{name}");
            assert_eq!(layers.list[cut.layers.end - 1].number, count - 1, "{name}");
        }
        let last = layers.patterns.iter().find(|pattern| pattern.ends_pass).unwrap();
        // The sum with the residual, or the norm behind it.
        let end = last.classes.last().unwrap();
        assert!(matches!(end, Class::Elementwise | Class::Norm), "{name}: {end:?}");
        assert!(last.classes.contains(&Class::Act), "{name}");
    }
}

/// Blocks of a diffusion transformer and of a residual network, not those of a text encoder and not
/// those of all steps together.
#[test]
#[ignore = "needs the public traces in ../shared/more_traces"]
fn blocks_of_images() {
    let (_, segments) = load("../more_traces/mi300x_flux_aiter");
    let layers = &segments.layers;
    assert_eq!((layers.count, layers.marker), (57, Some(Marker::Attention)));
    let lengths: Vec<_> =
        layers.passes.iter().map(|pass| (pass.layers.len(), pass.is_cut)).collect();
    assert_eq!(lengths, [(57, false); 4]);
    // No module of the transformer was recorded, since it is compiled.
    assert_eq!(layers.modules, None);
    // The text encoder, and the attention of what decodes the images.
    let others: Vec<_> = layers.others.iter().map(|one| (one.layers, one.passes)).collect();
    assert_eq!(others, [(12, 1), (1, 1)]);
    // 19 blocks with two streams of tokens have twice the GEMMs of the 38 with one.
    let gemms = |layer: &segment::Layer| {
        let classes = &layers.patterns[layer.pattern as usize].classes;
        classes.iter().filter(|class| **class == Class::Gemm).count()
    };
    let of_first_pass = &layers.list[layers.passes[0].layers.clone()];
    let doubles = of_first_pass.iter().take_while(|layer| gemms(layer) > 7).count();
    assert_eq!(doubles, 19);
    assert!(of_first_pass[19..].iter().all(|layer| gemms(layer) <= 7));

    let (_, segments) = load("../more_traces/mi300x_resnet18_ddp_train");
    let layers = &segments.layers;
    assert_eq!((layers.count, layers.marker), (8, Some(Marker::Module)));
    assert_eq!(layers.modules, Some(("BasicBlock".to_owned(), 8)));
    let lengths: Vec<_> =
        layers.passes.iter().map(|pass| (pass.layers.len(), pass.is_cut)).collect();
    assert_eq!(lengths, [(8, false); 5]);
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn traces_without_layers_say_why() {
    let cases = ["a100_dlrm_train_control", "v100_dlrm_train_test", "a100_nccl_train", "tiny_base"];
    for name in cases {
        let (_, segments) = load(name);
        assert_eq!(segments.layers.none_because, Some(NoLayers::NoMarker), "{name}");
        assert!(segments.layers.list.is_empty() && segments.layers.count == 0, "{name}");
        assert_eq!(segments.family.name(), "unknown", "{name}");
    }
    let (_, segments) = load("mi300x_torch_compile_triton");
    let reason = segments.layers.none_because.unwrap();
    assert_eq!(reason, NoLayers::OneMarker { marker: Marker::Attention });
    assert!(reason.to_string().starts_with("attention is there only once"));
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn every_kernel_of_the_serving_traces_has_its_phase() {
    let cases = [
        ("mi300x_gpt-oss-20b_vllm_prefilldecode", Phase::Mixed, "mixture of experts"),
        ("mi300x_qwen3-8b_sglang_decode_graph", Phase::Decode, "dense"),
    ];
    for (name, phase, family) in cases {
        let (trace, segments) = load(name);
        assert_eq!(segments.steps.list.len(), 1, "{name}");
        assert_eq!(segments.family.name(), family, "{name}");
        for kernel in 0..trace.kernels.len() {
            assert_eq!(segments.steps.phase(kernel), Some(phase), "{name}: kernel {kernel}");
        }
        // By the launches alone, without a guess.
        assert_eq!(segments.steps.assignments.launch, trace.kernels.len() as u64, "{name}");
    }
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn training_steps() {
    let (trace, segments) = load("a100_dlrm_train_control");
    assert_eq!(segments.steps.list.len(), 6);
    // No mark says what they are for; operators show their parts.
    assert!(segments.steps.list.iter().all(|step| step.phase.is_none()));
    let parts: Vec<_> =
        segments.steps.findings.iter().map(|found| (found.phase, found.runs)).collect();
    assert_eq!(parts, [(Phase::Forward, 6), (Phase::Backward, 6), (Phase::Optimizer, 6)]);
    assert_eq!(segments.steps.assignments.launch, trace.kernels.len() as u64);
}
