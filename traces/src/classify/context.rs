//! What the launching operator and the python frame say of a kernel whose name says too little.

use super::class::{Class, ClassSet, Classification};
use super::name;

/// ATen operators by class. Operators of other libraries are named like their kernels, and go
/// through the kernels' rules.
#[rustfmt::skip]
const OPERATORS: &[(Class, &[&str])] = &[
    (Class::Gemm, &[
        "mm", "addmm", "_addmm_activation", "bmm", "baddbmm", "addbmm", "matmul", "linear",
        "einsum", "mv", "addmv",
        "dot", "vdot", "_scaled_mm", "_int_mm", "_grouped_mm", "_scaled_grouped_mm", "addr",
        "tensordot", "t_mm",
    ]),
    (Class::Conv, &[
        "conv1d", "conv2d", "conv3d", "convolution", "_convolution", "cudnn_convolution",
        "miopen_convolution", "convolution_backward", "conv_transpose2d",
        "cudnn_convolution_relu", "miopen_convolution_relu", "cudnn_convolution_add_relu",
        "miopen_convolution_add_relu", "_conv_depthwise2d", "conv_depthwise3d",
        "miopen_depthwise_convolution",
    ]),
    (Class::Pool, &[
        "max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices",
        "max_pool3d_with_indices", "max_pool2d_with_indices_backward", "avg_pool1d", "avg_pool2d",
        "avg_pool3d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d", "adaptive_max_pool2d",
    ]),
    (Class::Attn, &[
        "scaled_dot_product_attention", "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
        "_flash_attention_forward", "_flash_attention_backward", "_efficient_attention_forward",
        "_efficient_attention_backward",
    ]),
    (Class::Norm, &[
        "layer_norm", "native_layer_norm", "native_layer_norm_backward", "rms_norm",
        "_fused_rms_norm", "group_norm", "native_group_norm", "native_group_norm_backward",
        "batch_norm", "native_batch_norm", "native_batch_norm_backward", "cudnn_batch_norm",
        "miopen_batch_norm", "instance_norm",
    ]),
    (Class::Act, &[
        "gelu", "silu", "silu_", "relu", "relu_", "sigmoid", "tanh", "glu", "mish", "elu",
        "leaky_relu", "hardswish", "hardsigmoid", "hardtanh", "softplus", "gelu_backward",
        "silu_backward", "log_sigmoid",
    ]),
    (Class::Softmax, &[
        "softmax", "_softmax", "log_softmax", "_log_softmax", "_softmax_backward_data",
        "_log_softmax_backward_data", "logsumexp",
    ]),
    (Class::EmbedIndex, &[
        "embedding", "embedding_backward", "embedding_dense_backward", "_embedding_bag", "index",
        "index_select", "index_put_", "_index_put_impl_", "index_add_", "index_copy_", "gather",
        "scatter", "scatter_", "scatter_add_", "take", "nonzero", "masked_select",
    ]),
    (Class::Reduce, &[
        "sum", "mean", "max", "min", "amax", "amin", "argmax", "argmin", "any", "all", "norm",
        "linalg_vector_norm", "var", "std", "var_mean", "prod", "nll_loss_forward",
        "count_nonzero",
    ]),
    (Class::ScanSort, &[
        "sort", "argsort", "topk", "cumsum", "cumprod", "unique", "_unique2", "unique_consecutive",
        "searchsorted", "bucketize", "multinomial", "kthvalue", "median",
    ]),
    (Class::Copy, &[
        "copy_", "to", "_to_copy", "clone", "contiguous", "cat", "stack", "repeat", "roll", "flip",
        "_local_scalar_dense", "constant_pad_nd", "pad", "permute", "transpose",
    ]),
    (Class::Fill, &[
        "fill_", "zero_", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like",
        "new_zeros", "new_ones", "new_full",
    ]),
    (Class::Elementwise, &[
        "add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "pow", "sqrt", "rsqrt", "neg",
        "exp", "log", "sin", "cos", "abs", "clamp", "clamp_", "clamp_min", "where", "eq", "ne",
        "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "bitwise_and",
        "bitwise_or", "masked_fill", "masked_fill_", "arange", "tril", "triu", "dropout",
        "native_dropout", "addcmul", "addcdiv", "lerp", "addcmul_", "addcdiv_", "uniform_",
        "normal_", "exponential_", "bernoulli_", "random_",
    ]),
];

/// The class of a launching operator: `aten::mm`, `_C::rms_norm`,
/// `autograd::engine::evaluate_function: MmBackward0`.
pub(super) fn of_op(op: &str) -> Option<Classification> {
    let op = op.rsplit(": ").next().unwrap_or(op).trim();
    let base = op.rsplit("::").next().unwrap_or(op);
    let base = base.split(['.', '(', ' ']).next().unwrap_or(base);
    // It launches routing, GEMMs and finalisation alike.
    if base.starts_with("moe_forward") {
        return None;
    }
    let known = |base: &str| {
        OPERATORS.iter().find(|(_, names)| names.contains(&base)).map(|&(class, _)| class)
    };
    if let Some(at) = base.find("Backward") {
        let words = name::words(&base[..at]);
        return known(words.trim_matches('_')).map(|main| by(main, "op"));
    }
    if op.starts_with("aten::") {
        return known(base).map(|main| by(main, "op"));
    }
    // A guess says no more than the name of the kernel, which many of these operators are called by.
    let (mut found, is_guess) = super::by_name(op)?;
    found.why = "op";
    (!is_guess).then_some(found)
}

/// What an operator's name proves that its kernel does, whatever that is called: the operators of
/// `aten` that add a bias, or compute an activation, in their GEMM, and others by their words.
pub(super) fn proven(op: &str) -> ClassSet {
    let base = op.rsplit("::").next().unwrap_or(op);
    match base {
        "addmm" | "baddbmm" | "addmv" if op.starts_with("aten::") => {
            ClassSet::of(&[Class::Elementwise])
        }
        "_addmm_activation" => ClassSet::of(&[Class::Elementwise, Class::Act]),
        "cudnn_convolution_relu" | "miopen_convolution_relu" => ClassSet::of(&[Class::Act]),
        "cudnn_convolution_add_relu" | "miopen_convolution_add_relu" => {
            ClassSet::of(&[Class::Elementwise, Class::Act])
        }
        _ if op.starts_with("aten::") => ClassSet::EMPTY,
        _ => super::fused::epilogues(&name::words(base)),
    }
}

/// The class of a python frame: `nn.Module: Qwen2RMSNorm_3`,
/// `vllm/model_executor/layers/layernorm.py(98): forward_cuda`. The function says more than the
/// file; folders say nothing.
pub(super) fn of_frame(frame: &str) -> Option<Classification> {
    // Names, and whether they are of one operation: modules and files of attention hold its
    // GEMMs and norms too.
    let mut names = Vec::new();
    if let Some(module) = frame.trim().strip_prefix("nn.Module: ") {
        names.push((module.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_'), false));
    } else {
        if let Some((_, function)) = frame.rsplit_once(": ") {
            names.push((function, true));
        }
        if let Some((path, _)) = frame.split_once(".py") {
            names.push((path.rsplit(['/', '\\']).next().unwrap_or(path), false));
        }
    }
    names.into_iter().find_map(|(name, is_one_operation)| {
        let (mut found, weak) = super::by_name(name)?;
        if !is_one_operation && COMPOSITE.contains(found.main) {
            return None;
        }
        found.why = "frame";
        // `Qwen2DecoderLayer` and `qwen2.py` are not kernels: only unambiguous classes count.
        let clear = !weak
            && !matches!(
                found.main,
                Class::Elementwise | Class::Copy | Class::Fill | Class::EmbedIndex | Class::Reduce
            );
        clear.then_some(found)
    })
}

/// Modules and files with these names hold several operations.
const COMPOSITE: ClassSet = ClassSet::of(&[
    Class::Attn,
    Class::Ssm,
    Class::KvCache,
    Class::MoeRouting,
    Class::MoeGemm,
    Class::MoeFinalize,
]);

const fn by(main: Class, why: &'static str) -> Classification {
    Classification { main, why, ..Classification::UNCLASSIFIED }
}
