//! Ceilings of a device, to the end.

use fused_kernels::Backend;
use fused_kernels::gpu::Gpu;
use fusion_cost_model::{Backend as BackendName, Clock, DType};

use super::build::Counts;
use super::{CUDA, HIP, cuda, hip, options};

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
        for kind in ["nothing", "triad", "read", "multiply", "linear"] {
            assert!(heard.iter().any(|name| name.contains(kind)), "{kind}: {heard:?}");
        }
        drop(gpu);
        assert_eq!(stand_in.counts(library).alive(), Counts::default());
    }
}
