//! The problems that every backend is held against: all patterns and some more chains, in tiny,
//! odd, prime and ordinary sizes.

use fusion_cost_model::kernel::Form;
use fusion_cost_model::{Chain, DType, Op, PATTERNS, Problem};

/// Sizes for each form: ones, primes around the vector widths, tiles with and without a rest.
pub(crate) fn sizes(form: Form) -> &'static [&'static str] {
    match form {
        Form::Rows => &["m1.n1", "m1.n17", "m3.n5", "m7.n64", "m13.n129", "m31.n333", "m1.n5000"],
        Form::Linear => &[
            "m1.k1.n1",
            "m1.k7.n300",
            "m2.k3.n5",
            "m17.k31.n13",
            "m3.k2.n64",
            "m130.k65.n67",
            "m64.k64.n64",
            "m33.k129.n519",
            "m300.k5.n70",
        ],
        Form::Mlp => &[
            "m1.k1.n1.o1",
            "m3.k5.n7.o2",
            "m17.k13.n31.o11",
            "m65.k33.n129.o17",
            "m200.k16.n300.o33",
        ],
        Form::Conv => &[
            "n1.c1.h1.w1.k1.r1.s1",
            "n1.c3.h5.w7.k2.r3.s3",
            "n2.c3.h5.w7.k5.r3.s3.pad1",
            "n2.c5.h9.w8.k7.r3.s2.stride2.pad1",
            "n2.c16.h11.w13.k33.r1.s1",
            "n1.c16.h11.w13.k17.r1.s1.stride2",
            "n1.c6.h9.w9.k9.r3.s3.pad1.groups3",
            "n2.c35.h7.w7.k35.r3.s3.pad1.groups35",
            "n2.c19.h8.w9.k19.r5.s3.stride2.pad2.groups19",
            "n1.c8.h6.w6.k16.r3.s3.pad1.groups8",
            "n2.c33.h9.w12.k33.r3.s3.pad2.groups33",
            "n1.c32.h3.w3.k300.r3.s3.pad1",
            "n1.c2.h40.w37.k19.r7.s7.stride2.pad3",
        ],
        Form::Pool => &[
            "n1.c1.h2.w2",
            "n2.c18.h7.w9",
            "n1.c17.h13.w10.pool3.pstride2.ppad1",
            "n1.c300.h4.w4.pool3.pstride1",
        ],
        Form::ConvPool => &[
            "n1.c1.h2.w2.k1.r1.s1",
            "n2.c3.h7.w6.k5.r3.s3.stride2.pad1",
            "n2.c3.h9.w11.k18.r3.s3.pad1",
            "n1.c2.h13.w10.k17.r3.s3.pad1.pool3.pstride2.ppad1",
            "n1.c3.h33.w31.k67.r7.s7.stride2.pad3.pool3.pstride2.ppad1",
            "n1.c4.h9.w9.k4.r3.s3.pad1.groups4.pool3.pstride1",
            "n1.c32.h6.w6.k300.r3.s3.pad1",
        ],
        Form::Attention => &[
            "b1.h1.q1.kv1.d1",
            "b1.h2.q3.kv5.d7",
            "b2.h3.q17.kv13.d8",
            "b1.h1.q65.kv131.d16",
            "b1.h2.q1.kv33.d64",
            "b2.h1.q150.kv70.d33",
            "b1.h6.q1.kv33.d7.kvh2",
            "b2.h18.q1.kv40.d5.kvh2",
            "b2.h3.q17.kv40.d9.kvh1",
            "b1.h1.q3.kv63.d8",
            "b1.h1.q9.kv10.d514",
        ],
        Form::MultiheadLinear => &[
            "b1.h1.q1.kv1.d1.n1",
            "b2.h3.q5.kv7.d4.n9",
            "b1.h2.q65.kv33.d16.n37",
            "b2.h4.q150.kv40.d8.n65",
            "b2.h6.q1.kv7.d3.kvh2.n9",
            "b1.h4.q17.kv33.d7.kvh2.n11",
            "b2.h16.q10.kv33.d6.n40",
        ],
    }
}

/// The same with a causal mask, for chains with a softmax: one query, as many queries as keys and
/// fewer, of heads that share keys and of others.
pub(crate) fn causal_sizes(form: Form) -> &'static [&'static str] {
    match form {
        Form::Attention => &[
            "b1.h2.q2.kv2.d1.causal1",
            "b2.h3.q7.kv19.d5.causal1",
            "b1.h1.q2.kv64.d16.causal1",
            "b1.h6.q1.kv35.d9.kvh2.causal1",
            "b2.h6.q17.kv17.d7.kvh2.causal1",
            "b1.h4.q67.kv131.d16.kvh1.causal1",
            "b1.h1.q150.kv151.d33.causal1",
        ],
        Form::MultiheadLinear => {
            &["b2.h6.q5.kv7.d3.kvh2.causal1.n9", "b1.h2.q131.kv131.d5.kvh1.causal1.n17"]
        }
        _ => &[],
    }
}

/// Chains that no pattern names, so that the tails and stages meet in other orders.
pub(crate) const CHAINS: &[&str] = &[
    "conv2d+bias+hardswish",
    "conv2d+batch_norm+add+relu",
    "conv2d+bias+relu6+max_pool+add+tanh",
    "linear+bias+silu+mul",
    "linear+bias+gelu_tanh+dropout+add",
    "linear+bias+add+layer_norm",
    "linear+softmax",
    "linear+bias+gelu+linear+bias+add+layer_norm",
    "linear+rms_norm+silu+linear+dropout+softmax+relu",
    "qk+scale+add+softmax+dropout+pv+add",
    "qk+softmax+pv+linear+bias+dropout+add",
    "softmax+dropout+pv+linear+bias",
    "add+rms_norm",
    "add+layer_norm+bias+relu",
    "layer_norm+sigmoid",
    "softmax+scale",
    "bias+leaky_relu+dropout+add+rms_norm+mul",
    "batch_norm+relu",
    "scale+hardsigmoid+mul+dropout+tanh",
    "onnx_hardsigmoid",
    "linear",
    "conv2d",
    "max_pool",
    "qk",
    "qk+scale",
    "pv",
    "pv+add+linear+bias",
    "softmax",
    "layer_norm",
    "rms_norm",
    "batch_norm",
    "relu",
];

/// All of them in a dtype.
pub(crate) fn problems(dtype: DType) -> Vec<Problem> {
    let patterns = PATTERNS.iter().map(|pattern| pattern.name);
    patterns
        .chain(CHAINS.iter().copied())
        .flat_map(|name| {
            let chain: Chain = name.parse().unwrap();
            let causal =
                if chain.contains(&Op::Softmax) { causal_sizes(chain.form()) } else { &[] };
            let sizes = sizes(chain.form()).iter().chain(causal);
            sizes.map(move |sizes| format!("{name}/{dtype}/{sizes}"))
        })
        .map(|text| text.parse().unwrap_or_else(|error| panic!("{text}: {error}")))
        .collect()
}
