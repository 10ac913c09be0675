//! Ceilings of a device, to the end.

use fused_kernels::Backend;
use fused_kernels::gpu::Gpu;
use fusion_cost_model::calibration::KernelFailure;
use fusion_cost_model::{Backend as BackendName, Clock, DType};

use super::instance::{Counts, StandIn};
use super::{CUDA, HIP, cuda, hip, options};

const SM_90: &str = "device sm_90\nversion 12040\nruntime 12040";

#[test]
fn ceilings_are_measured_to_the_end() {
    for (backend, library, stand_in) in
        [(BackendName::Cuda, CUDA, cuda("")), (BackendName::Hip, HIP, hip(""))]
    {
        let Some(stand_in) = stand_in else { return };
        let mut gpu = Gpu::open(backend, 0, &options(&stand_in)).unwrap();
        let mut heard: Vec<String> = Vec::new();
        let ceilings = gpu
            .ceilings(DType::F32, Clock::Device, 1, &mut |kernel| {
                heard.extend(kernel.map(str::to_owned))
            })
            .unwrap();
        assert!(ceilings.is_some());
        for kind in ["nothing", "triad", "read", "multiply_f32"] {
            assert!(heard.iter().any(|name| name.starts_with(kind)), "{kind}: {heard:?}");
        }
        drop(gpu);
        assert_eq!(stand_in.counts(library).alive(), Counts::default());
    }
}

/// Not by a GEMM of the project's own, which would be measured against itself, nor by `mma`, which
/// is slower there.
#[test]
fn the_peak_of_hopper_is_that_of_wgmma() {
    let Some(stand_in) = StandIn::new(SM_90) else { return };
    let mut gpu = Gpu::open(BackendName::Cuda, 0, &options(&stand_in)).unwrap();
    let mut heard: Vec<String> = Vec::new();
    let ceilings = gpu
        .ceilings(DType::Bf16, Clock::Device, 1, &mut |kernel| {
            heard.extend(kernel.map(str::to_owned))
        })
        .unwrap()
        .unwrap();
    assert!(ceilings.peak_gflops > 0.0 && ceilings.peak_gflops.is_finite());
    let peak: Vec<&String> =
        heard.iter().filter(|name| !name.contains("multiply_by_wgmma_bf16")).collect();
    assert!(peak.len() < heard.len(), "{heard:?}");
    let others = ["nothing", "triad", "read"];
    assert!(peak.iter().all(|name| others.iter().any(|kind| name.starts_with(kind))), "{peak:?}");
}

#[test]
fn a_probe_that_does_nothing_is_no_ceiling() {
    let Some(stand_in) = StandIn::new(&format!("{SM_90}\nflaw wgmma wrong multiply")) else {
        return;
    };
    let mut gpu = Gpu::open(BackendName::Cuda, 0, &options(&stand_in)).unwrap();
    let error = gpu.ceilings(DType::Bf16, Clock::Device, 1, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("multiply_by_wgmma_bf16"), "{error}");
    assert_eq!(error.of_kernels(), Some(KernelFailure::Launch));
}
