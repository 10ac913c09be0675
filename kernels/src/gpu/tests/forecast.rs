//! What docs/gpu.md says of every family of kernels, held against the families that there are.

use std::collections::BTreeSet;

use fusion_cost_model::{DType, Problem};

use super::emulation::device;
use super::problems::problems;
use crate::gpu::lower::lower;

/// Sizes that only large problems have kernels for.
const LARGE: [&str; 8] = [
    "linear_bias_relu/bf16/m8192.k8192.n8192",
    "linear+bias/bf16/m2048.k512.n1024",
    "mlp/bf16/m4096.k1024.n4096.o1024",
    "attention_head/bf16/b8.h16.q1024.kv1024.d64",
    "attention_scores/bf16/b8.h16.q1024.kv1024.d64",
    "multihead_linear/bf16/b8.h16.q1024.kv1024.d64.n1024",
    "layer_norm/f32/m64.n131072",
    "add_relu/bf16/m4096.n4096",
];

const ARCHITECTURES: [&str; 7] =
    ["sm_75", "sm_80", "sm_90a", "gfx90a", "gfx942", "gfx1100", "gfx1201"];

/// The families of the phases of a kernel, such as `linear_wgmma` of `linear_0_wgmma_128x256x64_pairs`:
/// its name without sizes, numbers and how its tiles are read.
fn families(entry: &str) -> impl Iterator<Item = String> {
    let (names, _digest) = entry.rsplit_once('_').unwrap();
    let family = |name: &str| {
        let is_kind = |word: &&str| {
            word.chars().all(|letter| letter.is_ascii_lowercase())
                && !["pairs", "wide"].contains(word)
        };
        name.split('_').filter(is_kind).collect::<Vec<_>>().join("_")
    };
    names.split("__").map(family)
}

/// The names in the second column of the table of forecasts.
fn forecast() -> Option<BTreeSet<String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/gpu.md");
    let Ok(text) = std::fs::read_to_string(path) else {
        eprintln!("skipped: there are no documents beside this crate");
        return None;
    };
    let table = text.split("\n## Forecast\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = rows.map(|row| row.split('|').nth(2).unwrap().to_owned());
    let names = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>());
    Some(names.collect())
}

#[test]
fn each_family_of_kernels_has_a_forecast() {
    let Some(forecast) = forecast() else { return };
    let mut families_found = BTreeSet::new();
    let large = LARGE.map(|text| text.parse::<Problem>().unwrap());
    for architecture in ARCHITECTURES {
        let device = device(architecture);
        for dtype in [DType::F32, DType::Bf16] {
            for problem in problems(dtype).iter().chain(&large) {
                let Some(plan) = lower(problem, &device) else { continue };
                for kernel in plan.kernels() {
                    families_found.extend(families(&kernel.code.entry));
                }
            }
        }
    }
    assert_eq!(families_found, forecast, "kernels on the left, docs/gpu.md on the right");
}
