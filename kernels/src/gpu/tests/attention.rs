//! Attention as kernels have it: every place for pointwise steps, every way to share rows out.

use fusion_cost_model::Problem;

use super::emulation::check_all;

/// Warps of 32 and 64, every matrix instruction, every format.
const DEVICES: &[(&str, &str)] = &[
    ("sm_75", "f16"),
    ("sm_80", "f32"),
    ("sm_80", "f16"),
    ("sm_80", "bf16"),
    ("gfx90a", "bf16"),
    ("gfx942", "f32"),
    ("gfx942", "f16"),
    ("gfx1100", "f16"),
    ("gfx1100", "bf16"),
    ("gfx1201", "f16"),
    ("gfx1201", "bf16"),
];

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
    "b2.h6.q3.kv5.d7.kvh2.causal1",
    "b1.h4.q1.kv96.d64.kvh2",
    "b1.h3.q150.kv151.d33.kvh1.causal1",
    "b1.h2.q70.kv200.d128.causal1",
    "b1.h2.q9.kv17.d260.kvh1.causal1",
];

const PROJECTED: &[&str] = &["qk+softmax+pv+linear+bias", "softmax+dropout+pv+add+linear+relu"];
const PROJECTED_SIZES: &[&str] = &[
    "b1.h1.q1.kv1.d1.n1",
    "b2.h3.q5.kv7.d4.n9",
    "b1.h2.q65.kv33.d16.n37",
    "b2.h4.q150.kv40.d8.n64",
    "b1.h1.q5.kv7.d260.n8",
    "b2.h4.q65.kv70.d16.kvh2.causal1.n9",
];

/// Each chain with other sizes on every device, so that after `CHAINS.len()` devices each has met
/// all sizes.
fn problems(chains: &[&str], sizes: &[&str], device: usize) -> Vec<Problem> {
    let (_, dtype) = DEVICES[device];
    let pairs = sizes.iter().enumerate().map(|(index, sizes)| {
        let chain = chains[(index + device) % chains.len()];
        format!("{chain}/{dtype}/{sizes}").parse().unwrap()
    });
    pairs.collect()
}

/// All problems of a device, those with a projection among them.
fn all(device: usize) -> Vec<Problem> {
    let mut all = problems(CHAINS, SIZES, device);
    all.extend(problems(PROJECTED, PROJECTED_SIZES, device));
    all
}

/// Every second problem of each device, and the others of the next one.
#[test]
fn attention_of_any_size_on_every_core_and_with_a_projection() {
    for (device, (architecture, _)) in DEVICES.iter().enumerate() {
        let dealt = all(device).into_iter().skip(device % 2).step_by(2);
        check_all(&dealt.collect::<Vec<_>>(), architecture);
    }
}

#[test]
#[ignore = "takes minutes: ALL_ARCHITECTURES=1 .ci/run runs it, and so does the workflow"]
fn attention_of_every_size_on_every_core() {
    for (device, (architecture, _)) in DEVICES.iter().enumerate() {
        check_all(&all(device), architecture);
    }
}
