//! Layers, and passes through the model.

use super::*;

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
