use fusion_cost_model::Problem;

use crate::gpu::emulation::check_all;

/// Warps of 32 and 64, and every matrix instruction.
const ARCHITECTURES: &[&str] = &["sm_75", "sm_80", "gfx90a", "gfx942", "gfx1100", "gfx1201"];
const DTYPES: [&str; 3] = ["f32", "f16", "bf16"];

/// Every place for pointwise steps, with what commutes with a division and what does not.
const CHAINS: &[&str] = &[
    "qk+softmax+pv",
    "qk+scale+softmax",
    "qk+scale+add+softmax+dropout+pv+add",
    "qk+softmax+bias+pv+bias",
    "qk+add+softmax+add+relu",
    "softmax+dropout+mul+pv",
    "softmax+add+pv+bias+gelu",
];
/// With and without a rest in every direction; one query, one key, and more keys than a step has.
const SIZES: &[&str] = &[
    "b1.h1.q1.kv1.d1",
    "b1.h2.q3.kv5.d7",
    "b2.h3.q17.kv13.d8",
    "b1.h1.q65.kv131.d16",
    "b2.h1.q150.kv70.d33",
    "b1.h2.q1.kv96.d64",
    "b1.h2.q64.kv64.d64",
    "b1.h1.q130.kv36.d80",
    "b1.h1.q33.kv72.d128",
    "b1.h1.q20.kv40.d160",
    "b1.h1.q9.kv17.d256",
    "b1.h2.q9.kv17.d260",
];

const PROJECTED: &[&str] = &["qk+softmax+pv+linear+bias", "softmax+dropout+pv+add+linear+relu"];
const PROJECTED_SIZES: &[&str] = &[
    "b1.h1.q1.kv1.d1.n1",
    "b2.h3.q5.kv7.d4.n9",
    "b1.h2.q65.kv33.d16.n37",
    "b2.h4.q150.kv40.d8.n64",
    "b1.h1.q5.kv7.d260.n8",
];

fn problems(chains: &[&str], dtype: &str, sizes: &[&str]) -> Vec<Problem> {
    let all = chains.iter().flat_map(|chain| sizes.iter().map(move |sizes| (chain, sizes)));
    all.map(|(chain, sizes)| format!("{chain}/{dtype}/{sizes}").parse().unwrap()).collect()
}

#[test]
fn attention_of_any_size_on_every_core() {
    for architecture in ARCHITECTURES {
        for dtype in DTYPES {
            check_all(&problems(CHAINS, dtype, SIZES), architecture);
        }
    }
}

#[test]
fn projections_follow_in_the_same_kernel() {
    for architecture in ARCHITECTURES {
        for dtype in DTYPES {
            check_all(&problems(PROJECTED, dtype, PROJECTED_SIZES), architecture);
        }
    }
}
