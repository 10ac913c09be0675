//! Several models in one trace, models without attention, and schedules of training.

use super::*;

const CONV: &str = "miopenSp3AsmConv_v21";
const BATCH_NORM: &str = "MIOpenBatchNormFwdTrainSpatial";
const ADD: &str = "vectorized_elementwise_kernel<4, CUDAFunctor_add<float> >";
const RELU: &str = "vectorized_elementwise_kernel<4, launch_clamp_scalar, relu>";
const ADAM: &str =
    "multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata, FusedAdamMathFunctor>";
const SEND: &str = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";

fn lengths(layers: &Layers) -> Vec<(usize, bool)> {
    layers.passes.iter().map(|pass| (pass.layers.len(), pass.is_backward)).collect()
}

/// A text encoder, a transformer of two kinds of blocks that runs several times, and a decoder of
/// images with one attention.
fn diffusion(steps: usize, doubles: usize, singles: usize) -> Sketch {
    let mut sketch = Sketch::default();
    for _ in 0..7 {
        sketch.run_all(&["layer_norm_a", GEMM, "attn_fwd", GEMM, ADD, "layer_norm_a", GEMM]);
        sketch.run_all(&["gelu_kernel", GEMM, ADD]);
    }
    sketch.run("layer_norm_a");
    let own = "Cijk_Alik_Bljk_BBS_BH_MT256x192x64";
    let flash = "fmha_fwd_hd128_bf16";
    for _ in 0..steps {
        let time_step = "Memcpy HtoD (Pageable -> Device)";
        sketch.run_all(&[time_step, own, "triton_poi_fused_silu_3", own]);
        for _ in 0..doubles {
            sketch.run_all(&["triton_red_fused_native_layer_norm_1", own, own, flash, own, own]);
            sketch.run_all(&[
                "triton_red_fused_native_layer_norm_1",
                own,
                "triton_poi_fused_gelu_2",
            ]);
            sketch.run_all(&[own, own, "triton_poi_fused_gelu_2", own]);
        }
        for _ in 0..singles {
            sketch.run_all(&["triton_red_fused_native_layer_norm_1", own, flash, own]);
            sketch.run_all(&["triton_poi_fused_gelu_2", own]);
        }
        sketch.run_all(&["triton_red_fused_native_layer_norm_1", own]);
    }
    sketch.run_all(&[CONV, "group_norm_kernel", "silu_kernel", CONV, "group_norm_kernel", GEMM]);
    sketch.run_all(&["attn_fwd", GEMM, ADD, CONV, "group_norm_kernel", CONV]);
    sketch
}

#[test]
fn a_diffusion_transformer_is_not_its_text_encoder() {
    for (steps, doubles, singles) in [(4, 19, 38), (3, 5, 0), (6, 2, 9)] {
        let layers = diffusion(steps, doubles, singles).segments().layers;
        let count = doubles + singles;
        assert_eq!(layers.count as usize, count);
        assert_eq!(lengths(&layers), vec![(count, false); steps]);
        assert!(layers.passes.iter().all(|pass| !pass.is_cut));
        let others: Vec<_> = layers.others.iter().map(|one| (one.layers, one.passes)).collect();
        assert_eq!(others, [(7, 1), (1, 1)]);
        assert_eq!(layers.others[0].marker, "attn_fwd");
        // What the other models run is in no layer.
        assert_eq!(layers.layer(0), None);
        assert!(layers.list.iter().all(|layer| (layer.number as usize) < count));
    }
}

/// A pass of a model whose layers look like those of any other size, with the sizes of its weights.
fn pass_of(sketch: &mut Sketch, layers: u64, (tokens, width): (u64, u64), has_sizes: bool) {
    let size = if has_sizes { width } else { 0 };
    let slower = width / 512;
    sketch.run_for(EMBED, 1);
    for _ in 0..layers {
        sketch.run_for(NORM, 2);
        sketch.gemm([tokens, 3 * size, size], 4 * slower);
        sketch.run_for(ATTENTION, 4);
        sketch.gemm([tokens, size, size], 2 * slower);
        sketch.run_for(NORM, 2);
        sketch.gemm([tokens, 4 * size, size], 5 * slower);
        sketch.run_for(ACT, 1);
        sketch.gemm([tokens, size, 4 * size], 5 * slower);
    }
    sketch.run_for(NORM, 2);
    sketch.gemm([tokens, 50 * size, size], 9 * slower);
    sketch.run_for(SORT, 3);
}

#[test]
fn a_model_that_drafts_is_not_the_one_that_it_drafts_for() {
    for (drafts, layers) in [(1, 16), (2, 12), (3, 7), (4, 20)] {
        for has_sizes in [true, false] {
            // Without sizes, the time of a layer that has no end does not tell.
            if drafts == 1 && !has_sizes {
                continue;
            }
            let mut sketch = Sketch::default();
            for _ in 0..5 {
                (0..3).for_each(|_| pass_of(&mut sketch, drafts, (8, 512), has_sizes));
                pass_of(&mut sketch, layers, (40, 2048), has_sizes);
            }
            let found = sketch.segments().layers;
            assert_eq!(u64::from(found.count), layers, "{drafts} {has_sizes}");
            assert_eq!(lengths(&found), vec![(layers as usize, false); 5], "{drafts}");
            let others: Vec<_> = found.others.iter().map(|one| (one.layers, one.passes)).collect();
            assert_eq!(others, [(drafts as usize, 15)], "{drafts} {has_sizes}");
        }
    }
}

/// Passes of one model that nothing separates are several, whatever their sizes.
#[test]
fn passes_that_run_together_are_of_one_model() {
    for has_sizes in [true, false] {
        let mut sketch = Sketch::default();
        for (tokens, passes) in [(8, 1), (8, 1), (300, 2), (8, 1), (300, 2), (8, 1)] {
            pass_of(&mut sketch, 4 * passes, (tokens, 512), has_sizes);
        }
        let found = sketch.segments().layers;
        assert_eq!((found.count, found.others.len()), (4, 0), "{has_sizes}");
    }
}

/// An encoder before a decoder whose layers have two attentions, over the own tokens and over what
/// the encoder gave.
#[test]
fn an_encoder_is_not_its_decoder() {
    let own = [NORM, GEMM, "flash_fwd_splitkv_kernel", GEMM, ADD];
    let feed_forward = [NORM, GEMM, "gelu_kernel", GEMM, ADD];
    for (batches, encoder, decoder, steps) in [(1, 6, 8, 10), (1, 2, 4, 20), (3, 12, 12, 7)] {
        let mut sketch = Sketch::default();
        for _ in 0..batches {
            sketch.run(EMBED);
            for _ in 0..encoder {
                sketch.run_all(&[NORM, GEMM, ATTENTION, GEMM, ADD]);
                sketch.run_all(&feed_forward);
            }
            for _ in 0..steps {
                sketch.run(EMBED);
                for _ in 0..decoder {
                    sketch.run_all(&own);
                    sketch.run_all(&own);
                    sketch.run_all(&feed_forward);
                }
                sketch.run_all(&[NORM, GEMM, SORT]);
            }
        }
        let found = sketch.segments().layers;
        assert_eq!((found.count, found.marker), (decoder, Some(Marker::Attention)));
        let passes = vec![(decoder as usize, false); batches * steps];
        if encoder != decoder {
            assert_eq!(lengths(&found), passes, "{batches} {encoder} {decoder}");
            let others: Vec<_> = found.others.iter().map(|one| (one.layers, one.passes)).collect();
            assert_eq!(others, [(encoder as usize, batches)]);
        }
    }
}

/// Where activations are computed in GEMMs, one behind the layers is not part of any.
#[test]
fn an_activation_behind_the_layers_joins_none() {
    let mut sketch = Sketch::default();
    for _ in 0..4 {
        sketch.run(EMBED);
        (0..7).for_each(|_| sketch.run_all(&[NORM, GEMM, ATTENTION, GEMM, NORM, GEMM, GEMM]));
        sketch.run_all(&[GEMM, "gelu_kernel"]);
    }
    let found = sketch.segments().layers;
    assert_eq!((found.count, found.passes.len()), (7, 4));
}

#[test]
fn residual_blocks_are_counted_once_in_each_step() {
    let mut sketch = Sketch::default();
    for _ in 0..5 {
        sketch.run_all(&[CONV, BATCH_NORM, RELU]);
        for block in 0..8 {
            let begin = sketch.now;
            sketch.run_all(&[CONV, BATCH_NORM, RELU, CONV, BATCH_NORM]);
            if block == 3 {
                sketch.run_all(&[CONV, BATCH_NORM]);
            }
            sketch.run_all(&[ADD, RELU]);
            let time = (begin + 1, sketch.now - begin);
            let name = format!("nn.Module: BasicBlock_{block}");
            sketch.event("python_function", &name, (1, 1), time, "");
        }
        sketch.run_all(&["avg_pool_kernel", GEMM]);
        (0..30)
            .for_each(|_| sketch.run_all(&["MIOpenBatchNormBwdSpatial", "igemm_bwd_gtcx3", ADD]));
    }
    let layers = sketch.segments().layers;
    assert_eq!((layers.count, layers.marker), (8, Some(Marker::Module)));
    assert_eq!(lengths(&layers), [(8, false); 5]);
    assert!(layers.passes.iter().all(|pass| !pass.is_cut));
}

#[test]
fn iterations_of_a_model_without_layers_are_steps() {
    // Inference, and training.
    let forward = [GEMM, RELU, GEMM, RELU, GEMM];
    let training = [GEMM, RELU, GEMM, "mse_loss_kernel", GEMM, GEMM, GEMM, ADAM];
    for iteration in [&forward[..], &training] {
        let mut sketch = Sketch::default();
        (0..9).for_each(|_| sketch.run_all(iteration));
        let none = sketch.segments().layers.none_because;
        assert_eq!(none, Some(NoLayers::OnlySteps { steps: 9, kernels: iteration.len() }));
        assert!(none.unwrap().to_string().contains("run 9 times"));
    }
    // What the loss or the optimizer ends is a step even if something else came before.
    let mut sketch = Sketch::default();
    sketch.run_all(&[EMBED, NORM]);
    (0..9).for_each(|_| sketch.run_all(&training));
    let none = sketch.segments().layers.none_because;
    assert_eq!(none, Some(NoLayers::OnlySteps { steps: 9, kernels: 8 }));
    // Layers have something before them or behind.
    let mut sketch = Sketch::default();
    sketch.run("im2col_kernel");
    (0..9).for_each(|_| sketch.run_all(&[NORM, GEMM, RELU, GEMM, ADD]));
    sketch.run_all(&[NORM, GEMM]);
    assert_eq!(sketch.segments().layers.count, 9);
}

/// The layers of a stage of a pipeline, forward or backward.
fn stage(sketch: &mut Sketch, layers: usize, is_backward: bool) {
    for _ in 0..layers {
        if is_backward {
            sketch.run_all(&[GEMM, GEMM, "gelu_backward_kernel", GEMM, "flash_bwd_kernel", GEMM]);
        } else {
            sketch.run_all(&[NORM, GEMM, ATTENTION, GEMM, NORM, GEMM, "gelu_kernel", GEMM]);
        }
    }
}

#[test]
fn pipelines_interleave_forward_and_backward() {
    // A middle stage: two micro-batches ahead, then one forward and one backward in turn.
    for has_sends in [true, false] {
        let mut sketch = Sketch::default();
        let mut expected = Vec::new();
        for (at, backward) in
            [false, false, false, true, false, true, false, true, true, true].iter().enumerate()
        {
            if has_sends && at > 0 {
                sketch.run(SEND);
            }
            stage(&mut sketch, 4, *backward);
            expected.push((4, *backward));
        }
        let layers = sketch.segments().layers;
        assert_eq!((layers.count, lengths(&layers)), (4, expected), "{has_sends}");
        assert!(layers.others.is_empty());
        let numbers: Vec<u32> = layers.list.iter().map(|layer| layer.number).collect();
        assert_eq!(numbers[..12], [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(numbers[12..16], [3, 2, 1, 0]);
    }
    // All forward, then all backward, with what is sent on a stream of its own.
    let mut sketch = Sketch::default();
    for backward in [false, true] {
        for _ in 0..3 {
            stage(&mut sketch, 5, backward);
            let now = sketch.now;
            sketch.kernel(SEND, 20, now + 2, "");
        }
    }
    let layers = sketch.segments().layers;
    assert_eq!(layers.count, 5);
    assert_eq!(lengths(&layers), [[(5, false); 3], [(5, true); 3]].concat());
}
