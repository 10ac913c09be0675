//! GPU backends end to end, on stand-ins of the vendors' libraries: from the search for libraries
//! to outputs, times and errors. No GPU is involved, and nothing here says how fast one is.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "stand_in/ceilings.rs"]
mod ceilings;
#[path = "stand_in/cores.rs"]
mod cores;
#[path = "stand_in/failures.rs"]
mod failures;
#[path = "stand_in/instance.rs"]
mod instance;
#[path = "stand_in/libraries.rs"]
mod libraries;

use fused_kernels::gpu::{Gpu, GpuOptions, Survey};
use fused_kernels::worker::Program;
use fused_kernels::{
    Backend, CompileService, Expected, Inputs, Setup, Unsupported, Variant, survey,
};
use fusion_cost_model::{Backend as BackendName, CacheState, Clock, Implementation, Problem};
use instance::StandIn;

const CUDA: &str = "libcuda.so.1";
const HIP: &str = "libamdhip64.so.6";
const NVRTC: &str = "libnvrtc.so.12";

/// One problem for each kind of kernel, one of them in several phases.
const PROBLEMS: [&str; 6] = [
    "add_layernorm/f32/m7.n64",
    "linear_bias_relu/bf16/m17.k31.n13",
    "linear+bias+add+layer_norm/f16/m33.k16.n40",
    "conv_bn_relu/f32/n1.c3.h5.w7.k2.r3.s3",
    "attention_head/f16/b1.h2.q3.kv5.d7",
    "mlp/f32/m17.k13.n31.o11",
];

/// hiprtc runs in a process of its own: this test once more, which then is that process.
#[test]
#[ignore = "it is started by other tests"]
fn compile_worker_process() {
    let Err(error) = CompileService::serve();
    panic!("{error}");
}

fn options(stand_in: &StandIn) -> GpuOptions {
    let arguments = ["--ignored", "--exact", "compile_worker_process", "--nocapture"];
    let program = std::env::current_exe().unwrap();
    GpuOptions {
        library_folders: vec![stand_in.folder().to_owned()],
        cache_folder: Some(stand_in.folder().join("cache")),
        compile_worker: Some(Program::new(program, arguments.map(Into::into).to_vec())),
        ..GpuOptions::default()
    }
}

fn setup(cache: CacheState, clock: Clock) -> Setup {
    Setup { cache, clock, implementation: Implementation::Native, rewrite: None }
}

const WARM: Setup = Setup {
    cache: CacheState::Warm,
    clock: Clock::Device,
    implementation: Implementation::Native,
    rewrite: None,
};

fn cuda(settings: &str) -> Option<StandIn> {
    StandIn::new(&format!("device sm_80\nversion 12040\nruntime 12040\n{settings}"))
}

fn hip(settings: &str) -> Option<StandIn> {
    StandIn::new(&format!("device gfx90a\nversion 60200000\nruntime 9000\n{settings}"))
}

fn problem(text: &str) -> Problem {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Runs a problem in both variants, and holds the outputs against the reference.
fn conform(gpu: &mut Gpu, text: &str, setup: Setup) {
    let problem = problem(text);
    let inputs = Inputs::random(&problem, 42);
    let expected = Expected::compute(&problem, &inputs, u64::MAX);
    let mut prepared = gpu
        .prepare(&problem, &inputs, setup)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .unwrap_or_else(|| panic!("{text}: {:?}", setup));
    for layout in 1..=2 {
        prepared.new_layout(layout).unwrap();
        for variant in Variant::ALL {
            for iterations in 1..=3 {
                prepared.poison().unwrap();
                prepared.run(variant, iterations).unwrap();
                let error = expected.error(&prepared.output().unwrap());
                assert!(error <= expected.tolerance(), "{text}, {variant}, {setup:?}: {error:e}");
                // Once more, with a lead.
                let time = prepared.run(variant, iterations).unwrap();
                // From the device's clock, the start of a graph is taken off. What it takes here, where
                // a host runs the kernels, can be more than one to three runs on another day.
                let is_whole = setup.clock == Clock::LaunchInclusive;
                assert!(!is_whole || time > std::time::Duration::ZERO);
                assert!(expected.error(&prepared.output().unwrap()) <= expected.tolerance());
            }
        }
    }
    let steps = prepared.run_steps(3).unwrap();
    let kernels = prepared.kernels(Variant::Unfused).len();
    assert_eq!(steps.map(|steps| steps.len()), (setup.clock == Clock::Device).then_some(kernels));
    for variant in Variant::ALL {
        let facts = prepared.kernel_facts(variant);
        assert_eq!(facts.len(), prepared.kernels(variant).len());
        assert!(facts.iter().all(|facts| facts.registers == 40 && facts.resident_blocks > 0));
    }
}

/// All problems with both clocks and both states of the caches, and then nothing may be left.
fn conform_all(backend: BackendName, library: &str, stand_in: &StandIn) {
    let mut gpu = Gpu::open(backend, 0, &options(stand_in)).unwrap();
    for text in PROBLEMS {
        conform(&mut gpu, text, WARM);
    }
    let opened = stand_in.counts(library);
    assert!(opened.graph_launches > 0, "{opened:?}");
    conform(&mut gpu, PROBLEMS[0], setup(CacheState::Warm, Clock::LaunchInclusive));
    // A set must be so large that caches of 64 KiB forget it within some sets.
    let large = "add_layernorm/f32/m64.n64";
    for clock in [Clock::Device, Clock::LaunchInclusive] {
        conform(&mut gpu, large, setup(CacheState::Cold, clock));
    }
    drop(gpu);
    assert_eq!(stand_in.counts(library).alive(), instance::Counts::default());
}

#[test]
fn cuda_conforms() {
    if let Some(stand_in) = cuda("") {
        conform_all(BackendName::Cuda, CUDA, &stand_in);
        let compiler = stand_in.counts(NVRTC);
        assert_eq!(compiler.programs, 0);
        assert!(compiler.compilations > 0);
    }
}

#[test]
fn hip_conforms() {
    if let Some(stand_in) = hip("") {
        conform_all(BackendName::Hip, HIP, &stand_in);
    }
}

#[test]
fn tma_and_wgmma_of_sm_90a_conform() {
    let Some(stand_in) = StandIn::new("device sm_90\nversion 12040\nruntime 12040\n") else {
        return;
    };
    let mut gpu = Gpu::open(BackendName::Cuda, 0, &options(&stand_in)).unwrap();
    conform(&mut gpu, "linear_bias_relu/bf16/m256.k64.n256", WARM);
}

/// The vendor's GEMM with an epilogue against its plain one and the project's kernels after it.
#[test]
fn gemms_of_the_vendors_libraries_conform() {
    for (backend, stand_in, name) in
        [(BackendName::Cuda, cuda(""), "cuBLASLt"), (BackendName::Hip, hip(""), "hipBLASLt")]
    {
        let Some(stand_in) = stand_in else { return };
        let mut gpu = Gpu::open(backend, 0, &options(&stand_in)).unwrap();
        let vendor = |cache, clock| Setup {
            cache,
            clock,
            implementation: Implementation::Vendor,
            rewrite: None,
        };
        for (text, cache, clock) in [
            ("linear_bias/f32/m17.k31.n13", CacheState::Warm, Clock::Device),
            ("linear_bias_relu/bf16/m33.k16.n40", CacheState::Warm, Clock::LaunchInclusive),
            ("linear+bias+gelu_tanh/f16/m7.k64.n9", CacheState::Warm, Clock::Device),
            ("linear+relu/f32/m64.k64.n64", CacheState::Cold, Clock::Device),
            ("linear+gelu_tanh/bf16/m1.k1.n1", CacheState::Warm, Clock::Device),
        ] {
            let problem = problem(text);
            let inputs = Inputs::random(&problem, 42);
            let expected = Expected::compute(&problem, &inputs, u64::MAX);
            let setup = vendor(cache, clock);
            assert!(gpu.requirements(&problem, setup).is_ok(), "{text}");
            let mut prepared = gpu.prepare(&problem, &inputs, setup).unwrap().unwrap();
            for layout in 1..=2 {
                prepared.new_layout(layout).unwrap();
                for variant in Variant::ALL {
                    prepared.poison().unwrap();
                    prepared.run(variant, 3).unwrap();
                    let error = expected.error(&prepared.output().unwrap());
                    assert!(error <= expected.tolerance(), "{text}, {variant}: {error:e}");
                }
            }
            let kernels = Variant::ALL.map(|variant| prepared.kernels(variant));
            assert_eq!([kernels[0].len(), kernels[1].len()], [problem.chain().len(), 1]);
            assert!(kernels.iter().all(|of| of[0].starts_with(name)), "{kernels:?}");
            assert!(kernels[1][0].contains('+') && !kernels[0][0].contains('+'), "{kernels:?}");
        }
        // The exact GELU is not the library's, and neither is anything but a linear layer.
        for text in ["linear_bias_gelu/f32/m4.k4.n4", "add_relu/f32/m4.n4"] {
            let setup = vendor(CacheState::Warm, Clock::Device);
            let requirements = gpu.requirements(&problem(text), setup);
            assert_eq!(requirements, Err(Unsupported::NoVendor), "{text}");
        }
    }
}

#[test]
fn what_was_compiled_is_found_again() {
    let Some(stand_in) = cuda("") else { return };
    let mut compilations = Vec::new();
    for _ in 0..2 {
        let mut gpu = Gpu::open(BackendName::Cuda, 0, &options(&stand_in)).unwrap();
        conform(&mut gpu, PROBLEMS[0], WARM);
        compilations.push(stand_in.counts(NVRTC).compilations);
    }
    assert!(compilations[0] > 0);
    assert_eq!(compilations[0], compilations[1]);
}

#[test]
fn surveys_name_devices_as_stand_ins() {
    let cases = [
        (BackendName::Cuda, cuda("device sm_70"), "sm_80", "compute capability 7.0"),
        (BackendName::Hip, hip("device gfx803"), "gfx90a", "no kernels for gfx803"),
    ];
    for (backend, stand_in, architecture, old) in cases {
        let Some(stand_in) = stand_in else { return };
        let survey = survey(backend, &options(&stand_in));
        let Survey::Found(inventory) = &survey else { panic!("{survey}") };
        let [first, second] = &inventory.devices[..] else { panic!("{survey}") };
        assert_eq!(first.name, format!("Stand-in for {architecture} (no GPU)"));
        assert_eq!(first.architecture, architecture);
        assert_eq!((first.index, first.bus_id.as_str()), (0, "0000:01:00.0"));
        assert_eq!(first.unsupported, None);
        assert!(second.unsupported.as_ref().unwrap().contains(old), "{survey}");
        assert!(inventory.compiler.is_ok(), "{survey}");
        // Opening the one that is too old, or one that is not there, is an error and no more.
        for index in [1, 2] {
            assert!(Gpu::open(backend, index, &options(&stand_in)).is_err());
        }
        assert!(Gpu::open(backend, 0, &options(&stand_in)).is_ok());
    }
}

/// Two devices of two vendors at once, each on a thread of its own.
#[test]
fn backends_do_not_disturb_each_other() {
    let (Some(cuda), Some(hip)) = (cuda(""), hip("")) else { return };
    std::thread::scope(|scope| {
        for (backend, stand_in) in [(BackendName::Cuda, &cuda), (BackendName::Hip, &hip)] {
            scope.spawn(move || {
                let mut gpu = Gpu::open(backend, 0, &options(stand_in)).unwrap();
                for _ in 0..3 {
                    conform(&mut gpu, PROBLEMS[0], WARM);
                }
            });
        }
    });
}
