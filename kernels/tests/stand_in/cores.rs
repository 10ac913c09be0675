//! Kernels of every core of a device, and kernels of a core that fail.

use fused_kernels::gpu::Gpu;
use fused_kernels::{Backend, BackendError, Expected, Inputs, Variant};
use fusion_cost_model::calibration::KernelFailure;
use fusion_cost_model::{Backend as BackendName, Core};

use super::instance::StandIn;
use super::{WARM, conform, options, problem};

/// Devices with their cores, the best first.
const DEVICES: [(BackendName, &str, &[Core]); 5] = [
    (BackendName::Cuda, "sm_90", &[Core::Wgmma, Core::Mma, Core::Plain]),
    (BackendName::Cuda, "sm_80", &[Core::Mma, Core::Plain]),
    (BackendName::Hip, "gfx942", &[Core::Mfma, Core::Plain]),
    (BackendName::Hip, "gfx1100", &[Core::Wmma, Core::Plain]),
    (BackendName::Hip, "gfx1201", &[Core::Wmma, Core::Plain]),
];

/// Small, and for `wgmma` large enough for three processors.
fn gemm(core: Core) -> &'static str {
    if core == Core::Wgmma {
        "linear_bias/bf16/m256.k64.n256"
    } else {
        "linear_bias/bf16/m17.k31.n13"
    }
}

fn stand_in(backend: BackendName, device: &str, more: &str) -> Option<StandIn> {
    let versions = match backend {
        BackendName::Hip => "version 60200000\nruntime 9000",
        _ => "version 12040\nruntime 12040",
    };
    StandIn::new(&format!("device {device}\n{versions}\n{more}"))
}

fn open(backend: BackendName, stand_in: &StandIn, core: Core) -> Result<Gpu, BackendError> {
    let mut options = options(stand_in);
    options.core = Some(core);
    Gpu::open(backend, 0, &options)
}

#[test]
fn a_device_runs_kernels_of_each_of_its_cores_and_no_others() {
    for (backend, device, cores) in DEVICES {
        let Some(stand_in) = stand_in(backend, device, "") else { return };
        assert_eq!(Gpu::open(backend, 0, &options(&stand_in)).unwrap().core(), cores[0]);
        for core in Core::ALL {
            let gpu = open(backend, &stand_in, core);
            if !cores.contains(&core) {
                let error = gpu.err().unwrap().to_string();
                assert!(error.contains(&format!("has no {core} instructions; it has ")), "{error}");
                continue;
            }
            let mut gpu = gpu.unwrap();
            assert_eq!(gpu.core(), core);
            conform(&mut gpu, gemm(core), WARM);
            // What computes no product is the same on all of them.
            for other in cores.iter().copied().filter(|other| *other != core) {
                assert!(gpu.has_kernels_of(other, &problem("add_layernorm/bf16/m7.n64")));
                let is_same = gpu.has_kernels_of(other, &problem(gemm(cores[0])));
                assert!(!is_same, "{device}: {core} and {other}");
            }
        }
    }
}

/// What becomes of a GEMM: how its kernels failed, or whether its results are right.
fn outcome(gpu: &mut Gpu, core: Core) -> Result<bool, Option<KernelFailure>> {
    let problem = problem(gemm(core));
    let inputs = Inputs::random(&problem, 42);
    let expected = Expected::compute(&problem, &inputs, u64::MAX);
    let mut run = || -> Result<bool, BackendError> {
        let mut prepared = gpu.prepare(&problem, &inputs, WARM)?.unwrap();
        prepared.run_each(&mut |_| {})?;
        let mut is_right = true;
        for variant in Variant::ALL {
            prepared.poison()?;
            prepared.run(variant, 1)?;
            is_right &= expected.error(&prepared.output()?) <= expected.tolerance();
        }
        Ok(is_right)
    };
    run().map_err(|error| error.of_kernels())
}

#[test]
fn each_flaw_of_each_core_is_seen_and_spares_the_next_one() {
    for (backend, device, cores) in DEVICES {
        for (&core, flaw) in
            cores.iter().flat_map(|core| ["wrong", "launch", "compile"].map(|flaw| (core, flaw)))
        {
            let settings = format!("flaw {core} {flaw} linear");
            let Some(stand_in) = stand_in(backend, device, &settings) else { return };
            let expected = match flaw {
                "wrong" => Ok(false),
                "launch" => Err(Some(KernelFailure::Launch)),
                _ => Err(Some(KernelFailure::Compile)),
            };
            let found = outcome(&mut open(backend, &stand_in, core).unwrap(), core);
            assert_eq!(found, expected, "{device}, {settings}");
            if let Some(next) = core.next() {
                let mut gpu = open(backend, &stand_in, next).unwrap();
                assert_eq!(outcome(&mut gpu, core), Ok(true), "{device}, {settings}");
            }
        }
    }
}

/// Whoever hears a name and nothing after it knows which kernel hangs.
#[test]
fn every_kernel_is_named_before_it_runs_for_the_first_time() {
    let Some(stand_in) = stand_in(BackendName::Cuda, "sm_80", "flaw mma launch pointwise") else {
        return;
    };
    let mut gpu = open(BackendName::Cuda, &stand_in, Core::Mma).unwrap();
    let heard_of = |gpu: &mut Gpu, text: &str| {
        let problem = problem(text);
        let inputs = Inputs::random(&problem, 1);
        let mut prepared = gpu.prepare(&problem, &inputs, WARM).unwrap().unwrap();
        let mut heard = Vec::new();
        let ran = prepared.run_each(&mut |kernel| heard.push(kernel.map(str::to_owned)));
        let kernels = Variant::ALL.map(|variant| prepared.kernels(variant)).concat();
        (ran.is_ok(), heard, kernels)
    };
    let (is_done, heard, kernels) = heard_of(&mut gpu, "linear+softmax/bf16/m17.k31.n13");
    let expected: Vec<_> = kernels.into_iter().flat_map(|name| [Some(name), None]).collect();
    // And the one that counts the clock, which is not a variant's.
    let (of_variants, others) = heard.split_at(expected.len());
    assert!(is_done && of_variants == expected, "{heard:?}");
    assert!(matches!(others, [Some(name), None] if name.starts_with("stamp_")), "{heard:?}");
    let (is_done, heard, kernels) = heard_of(&mut gpu, "linear+relu/bf16/m17.k31.n13");
    assert!(!is_done);
    assert_eq!(heard, [Some(kernels[0].clone()), None, Some(kernels[1].clone())]);
}
