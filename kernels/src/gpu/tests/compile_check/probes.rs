//! The probes of ceilings and clocks, which belong to no chain.

use fusion_cost_model::DType;

use super::super::emulation::device;
use super::clang::Clang;
use super::nvrtc::Nvrtc;
use super::{Facts, Toolchain, skipped};
use crate::gpu::lower::probes;
use crate::gpu::plan::KernelPlan;
use crate::gpu::tensors::{Role, TensorTable};

/// Those that a device runs.
fn probes_of(name: &str) -> Vec<KernelPlan> {
    let device = device(name);
    let mut table = TensorTable::default();
    let [a, b, c] = [(); 3].map(|()| table.add(probes::TILE_BYTES, Role::Result));
    let mut plans = vec![probes::nothing(), probes::triad([a, b, c], 1), probes::read(a, b, 1)];
    let dtypes = [DType::F32, DType::F16, DType::Bf16];
    plans.extend(dtypes.map(|dtype| probes::multiply(a, 1, dtype, &device)));
    if name.starts_with("sm_") || name.starts_with("gfx9") {
        plans.push(probes::stamp(a, 1, 1));
    }
    plans
}

/// What is in memory is not multiplied at the peak rate.
fn are_in_registers(toolchain: &dyn Toolchain, names: &[&str]) {
    for name in names {
        for plan in probes_of(name) {
            let entry = &plan.code.entry;
            let facts = toolchain.compile(&plan.code, &device(name).architecture);
            let facts = facts.unwrap_or_else(|log| panic!("{name}, {entry}:\n{log}"));
            println!("{name}, {entry}: {facts:?}");
            let Facts { spilled_bytes, stack_bytes, .. } = facts;
            assert_eq!((spilled_bytes, stack_bytes), (0, 0), "{name}, {entry}");
        }
    }
}

#[test]
fn nvidias_compiler_takes_the_probes_and_keeps_them_in_registers() {
    let Some(nvrtc) = Nvrtc::find() else { return skipped("NVRTC") };
    are_in_registers(&nvrtc, &["sm_75", "sm_80", "sm_90a"]);
    let entries: Vec<String> =
        probes_of("sm_90a").into_iter().map(|plan| plan.code.entry.clone()).collect();
    let by_wgmma = entries.iter().filter(|entry| entry.starts_with("multiply_by_wgmma_"));
    assert_eq!(by_wgmma.count(), 2, "{entries:?}");
}

#[test]
fn clang_takes_the_probes_and_keeps_them_in_registers() {
    let Some(clang) = Clang::find() else { return skipped("clang++-19") };
    are_in_registers(&clang, &["gfx90a", "gfx942", "gfx1100", "gfx1201"]);
}
