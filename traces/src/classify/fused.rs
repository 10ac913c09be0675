//! What else a kernel does besides its main class, where its name proves it.
//!
//! Two things that look like proof are not taken for it: `relu` in the name of a cuBLAS or CUTLASS
//! GEMM (the library uses those kernels for plain GEMMs too), and a GEMM in the name of
//! an Inductor pointwise or reduction kernel (such kernels contain none: the name lists the
//! operators whose results are read). An `add` in an Inductor norm is read as it is listed, though
//! it may be that of the epsilon: a comparison calls it a fusion only where the other side has an
//! addition of its own that is missing here.

use super::class::{Class, ClassSet};
use super::name::Parts;
use super::rules::{ACTIVATIONS, has_word};

/// The other classes of a kernel whose main class is known.
pub(super) fn others(parts: &Parts, main: Class) -> ClassSet {
    let any = |list: &[&str]| list.iter().any(|word| has_word(&parts.words, word));
    let has = |list: &[&str]| list.iter().any(|item| parts.base.contains(item));
    let inductor = parts.base.starts_with("triton_") && parts.base.contains("_fused_");
    let quantises = has(&["quant"]) && !has(&["dequant", "unquantized"]);
    let norm = has(&["rmsnorm", "rms_norm", "layernorm", "layer_norm", "qknorm", "qk_norm"]);
    let gate = has(&["swiglu", "silu", "gelu", "geglu"]);
    let rope = has(&["rotary"]) || any(&["rope"]);
    let cache =
        has(&["reshape_and_cache", "kv_cache_write", "set_kv", "store_kv", "concat_and_cache"]);
    let mut also = ClassSet::EMPTY;
    let mut add = |class: Class, proven: bool| {
        if proven && class != main {
            also = also.with(class);
        }
    };
    match main {
        Class::Norm if parts.base == "add_rmsnorm_quant_kernel" => {
            let (residual, quant) = add_rmsnorm_quant(parts);
            add(Class::Elementwise, residual);
            add(Class::Quant, quant);
        }
        Class::Norm => {
            let residual = any(&["add", "residual", "residual_add", "resadd"]);
            let switch = |name: &str| {
                parts.args.contains(name) && !parts.args.contains(&format!("{name}=0"))
            };
            add(Class::Elementwise, residual || switch("fusedaddenum"));
            add(Class::Quant, quantises || switch("fusedquantenum"));
            add(Class::Rope, rope || inductor && any(&["cos"]) && any(&["sin"]));
            add(Class::EmbedIndex, inductor && any(&["embedding"]));
            add(Class::Act, gate || inductor && any(&["relu"]));
            add(Class::KvCache, cache);
        }
        Class::Act => {
            // `act_and_mul`, `silu_mul`, `swiglu`: it multiplies what it gives by a gate. A GELU that
            // is written out multiplies as well.
            let is_written_out = inductor && (any(&["erf"]) || any(&["tanh"]) && any(&["pow"]));
            let of_gate = any(&["mul"]) && !is_written_out
                || any(&["gated", "glu", "swiglu", "geglu", "reglu", "swigluoai"]);
            let in_arguments = ["swiglu", "geglu", "glu_kernel"];
            let is_gated = of_gate || in_arguments.iter().any(|word| parts.args.contains(word));
            add(Class::Elementwise, is_gated);
            add(Class::Quant, quantises);
        }
        Class::Gemm | Class::MoeGemm => {
            // `gemm_swiglu`, `_matmul_ogs_..._swiglu`, `bmm_..._swiGlu_dynBatch`.
            let template = parts.base.starts_with("triton_tem_");
            add(Class::Act, gate || template && any(&["relu", "tanh", "sigmoid"]));
            add(Class::Norm, norm);
        }
        Class::Rope => {
            add(Class::Norm, norm);
            add(Class::KvCache, cache);
            add(Class::Quant, quantises);
        }
        Class::KvCache => {
            add(Class::Rope, rope);
            add(Class::Norm, norm);
            add(Class::Quant, quantises);
        }
        Class::Comm => {
            // TensorRT-LLM and FlashInfer number what is fused: nothing, residual and RMS norm,
            // and from two on quantisation too.
            let pattern = parts.args.split_once("allreducefusionpattern=").map(|(_, after)| after);
            let pattern = pattern.and_then(|after| after.bytes().next()).unwrap_or(b'0');
            add(Class::Norm, norm || any(&["rms"]) || pattern > b'0');
            add(Class::Elementwise, has(&["residual"]) || pattern > b'0');
            add(Class::Quant, quantises || pattern > b'1');
            add(Class::Gemm, has(&["gemm", "matmul"]));
        }
        Class::Attn => add(Class::Rope, rope),
        _ => {}
    }
    also
}

/// What the words of a GEMM, or of an operator around one, say that is done with its result.
pub(super) fn epilogues(words: &str) -> ClassSet {
    let any = |list: &[&str]| list.iter().any(|word| has_word(words, word));
    let mut found = ClassSet::EMPTY;
    for (class, list) in [
        (Class::Act, ACTIVATIONS),
        (Class::Elementwise, &["bias", "residual", "add"]),
        (Class::Norm, &["norm", "rmsnorm", "rms_norm", "layernorm", "layer_norm"]),
        (Class::Rope, &["rope", "rotary"]),
        (Class::Softmax, &["softmax"]),
    ] {
        found = if any(list) { found.with(class) } else { found };
    }
    found
}

/// Whether this kernel adds a residual and whether it quantises. Its template arguments say so, in
/// spite of its name: the first two switches. Its older form had one, for quantisation.
fn add_rmsnorm_quant(parts: &Parts) -> (bool, bool) {
    let mut switches = parts.args.split(' ').filter_map(|word| word.parse::<bool>().ok());
    match (switches.next(), switches.next()) {
        (Some(residual), Some(quant)) => (residual, quant),
        (Some(quant), None) => (true, quant),
        _ => (false, false),
    }
}
