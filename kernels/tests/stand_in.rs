//! GPU backends end to end, on stand-ins of the vendors' libraries: from the search for libraries
//! to outputs, times and errors. No GPU is involved, and nothing here says how fast one is.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "stand_in/build.rs"]
mod build;
#[path = "stand_in/ceilings.rs"]
mod ceilings;
#[path = "stand_in/cores.rs"]
mod cores;

use std::path::PathBuf;

use build::StandIn;
use fused_kernels::gpu::{Gpu, GpuOptions, Survey};
use fused_kernels::worker::Program;
use fused_kernels::{
    Backend, BackendError, CompileService, Expected, Inputs, Setup, Unsupported, Variant, survey,
};
use fusion_cost_model::{Backend as BackendName, CacheState, Clock, Implementation, Problem};

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
                assert!(time > std::time::Duration::ZERO);
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
    assert_eq!(stand_in.counts(library).alive(), build::Counts::default());
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

/// The message of the error of opening a device, or of preparing and running a problem on it.
fn failure(backend: BackendName, stand_in: &StandIn) -> Option<String> {
    let attempt = || -> Result<(), BackendError> {
        let mut gpu = Gpu::open(backend, 0, &options(stand_in))?;
        let problem = problem(PROBLEMS[0]);
        let inputs = Inputs::random(&problem, 1);
        let mut prepared = gpu.prepare(&problem, &inputs, WARM)?.unwrap();
        prepared.new_layout(1)?;
        for variant in Variant::ALL {
            prepared.poison()?;
            prepared.run(variant, 2)?;
            prepared.run(variant, 2)?;
            prepared.output()?;
        }
        Ok(())
    };
    attempt().err().map(|error| error.to_string())
}

/// Every function that a run calls, failing at its first and its second call: one error that names
/// it, and everything is given back.
#[test]
fn every_call_that_fails_is_one_error_and_everything_is_given_back() {
    let common = [
        ("DeviceGetCount", "GetDeviceCount"),
        ("DeviceGet", "DeviceGet"),
        ("DeviceGetName", "DeviceGetName"),
        ("StreamCreate", "StreamCreateWithFlags"),
        ("MemAlloc_v2", "Malloc"),
        ("MemcpyHtoDAsync_v2", "MemcpyHtoDAsync"),
        ("MemcpyDtoHAsync_v2", "MemcpyDtoHAsync"),
        ("MemsetD32Async", "MemsetD32Async"),
        ("ModuleLoadData", "ModuleLoadData"),
        ("ModuleGetFunction", "ModuleGetFunction"),
        ("FuncGetAttribute", "FuncGetAttribute"),
        ("EventCreate", "EventCreateWithFlags"),
        ("EventRecord", "EventRecord"),
        ("StreamSynchronize", "StreamSynchronize"),
        ("GraphLaunch", "GraphLaunch"),
    ];
    for (cuda_name, hip_name) in common {
        for (backend, library, name) in [
            (BackendName::Cuda, CUDA, format!("cu{cuda_name}")),
            (BackendName::Hip, HIP, format!("hip{hip_name}")),
        ] {
            let settings = format!("fail {name} 701 1");
            let stand_in = match backend {
                BackendName::Cuda => cuda(&settings),
                _ => hip(&settings),
            };
            let Some(stand_in) = stand_in else { return };
            let message = failure(backend, &stand_in).unwrap_or_else(|| panic!("{name}: no error"));
            assert!(message.contains(&name), "{name}: {message}");
            assert!(message.contains("LaunchOutOfResources") || message.contains("LAUNCH_OUT_OF"));
            assert_eq!(message.lines().count(), 1, "{message}");
            let alive = stand_in.counts(library).alive();
            assert_eq!(alive, build::Counts::default(), "{name}: {message}");
        }
    }
}

#[test]
fn graphs_that_are_refused_are_done_without() {
    for (backend, stand_in) in [
        (BackendName::Cuda, cuda("fail cuStreamBeginCapture_v2 801")),
        (BackendName::Cuda, cuda("fail cuGraphInstantiateWithFlags 801")),
        (BackendName::Hip, hip("fail hipGraphInstantiateWithFlags 801")),
    ] {
        let Some(stand_in) = stand_in else { return };
        let mut gpu = Gpu::open(backend, 0, &options(&stand_in)).unwrap();
        conform(&mut gpu, PROBLEMS[0], WARM);
        let library = if backend == BackendName::Cuda { CUDA } else { HIP };
        let counts = stand_in.counts(library);
        assert_eq!((counts.graph_launches, counts.launches > 0), (0, true));
    }
}

#[test]
fn what_does_not_fit_into_memory_is_said_with_its_size() {
    for (backend, library, stand_in) in [
        (BackendName::Cuda, CUDA, cuda("memory 4096")),
        (BackendName::Hip, HIP, hip("memory 4096")),
    ] {
        let Some(stand_in) = stand_in else { return };
        let mut gpu = Gpu::open(backend, 0, &options(&stand_in)).unwrap();
        let problem = problem(PROBLEMS[0]);
        let inputs = Inputs::random(&problem, 1);
        let error = gpu.prepare(&problem, &inputs, WARM).err().unwrap();
        let BackendError::Memory { bytes, .. } = &error else { panic!("{error}") };
        assert_eq!(*bytes, gpu.requirements(&problem, WARM).unwrap().memory_bytes);
        assert!(error.to_string().contains("OutOfMemory") || error.to_string().contains("OUT_OF"));
        drop(gpu);
        assert_eq!(stand_in.counts(library).alive(), build::Counts::default());
    }
}

#[test]
fn a_kernel_that_fails_while_it_runs_is_an_error_of_the_run() {
    for (backend, library, stand_in) in
        [(BackendName::Cuda, CUDA, cuda("fault 2")), (BackendName::Hip, HIP, hip("fault 2"))]
    {
        let Some(stand_in) = stand_in else { return };
        let message = failure(backend, &stand_in).unwrap();
        assert!(message.contains("an illegal memory access was encountered"), "{message}");
        assert_eq!(stand_in.counts(library).alive(), build::Counts::default());
    }
}

#[test]
fn no_device_and_old_drivers_are_said() {
    let cases = [
        (BackendName::Cuda, StandIn::new("version 12040"), "no capable device is detected"),
        (BackendName::Hip, StandIn::new("version 60200000"), "invalid device ordinal"),
        (BackendName::Cuda, cuda("fail cuInit 35"), "driver version is insufficient"),
        (BackendName::Hip, hip("fail hipInit 35"), "driver version is insufficient"),
    ];
    for (backend, stand_in, expected) in cases {
        let Some(stand_in) = stand_in else { return };
        let survey = survey(backend, &options(&stand_in));
        assert!(matches!(survey, Survey::NoDevice { .. }), "{survey}");
        assert!(survey.to_string().contains(expected), "{survey}");
        let message = failure(backend, &stand_in).unwrap();
        assert!(message.contains(expected), "{message}");
    }
}

/// Whether the search for a library does not end with the stand-ins.
fn has_others(backend: BackendName) -> bool {
    let options = GpuOptions::default();
    !matches!(survey(backend, &options), Survey::Missing(_))
}

#[test]
fn a_compiler_that_is_missing_too_new_or_broken_is_said() {
    let newer = StandIn::new("device sm_80\nversion 12040\nruntime 13000");
    let cases: [(BackendName, Option<StandIn>, &[&str]); 5] = [
        (BackendName::Cuda, cuda("").map(|it| it.without(NVRTC)), &["NVRTC"]),
        (BackendName::Cuda, newer, &["13.0", "12.4"]),
        (
            BackendName::Cuda,
            cuda("").map(|it| it.without("libnvrtc-builtins.so.12.4")),
            &["BUILTIN_OPERATION_FAILURE"],
        ),
        (BackendName::Hip, hip("").map(|it| it.without("libhiprtc.so.6")), &["hiprtc"]),
        (BackendName::Hip, hip("abort hiprtcCompileProgram"), &["ended while it compiled"]),
    ];
    for (backend, stand_in, expected) in cases {
        let Some(stand_in) = stand_in else { return };
        if expected == ["hiprtc"] && has_others(BackendName::Hip) {
            eprintln!("skipped: there is another library of HIP");
            continue;
        }
        let message = failure(backend, &stand_in).unwrap_or_else(|| panic!("{expected:?}"));
        for part in expected {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}

#[test]
fn functions_that_are_missing_are_named_unless_there_is_another_way() {
    for (backend, stand_in, library, function) in [
        (BackendName::Cuda, cuda(""), CUDA, "cuGraphLaunch"),
        (BackendName::Cuda, cuda(""), NVRTC, "nvrtcGetCUBIN"),
        (BackendName::Hip, hip(""), HIP, "hipGraphLaunch"),
    ] {
        let Some(stand_in) = stand_in else { return };
        if has_others(backend) {
            eprintln!("skipped: there is another library of {backend}");
            continue;
        }
        let stand_in = stand_in.without_function(library, function);
        let message = failure(backend, &stand_in).unwrap_or_else(|| panic!("{function}"));
        assert!(message.contains(function), "{function}: {message}");
    }
    for (backend, stand_in, library, function) in [
        (BackendName::Cuda, cuda(""), CUDA, "cuEventElapsedTime_v2"),
        (BackendName::Cuda, cuda(""), CUDA, "cuGraphUpload"),
        (BackendName::Hip, hip(""), HIP, "hipGraphUpload"),
    ] {
        let Some(stand_in) = stand_in else { return };
        let stand_in = stand_in.without_function(library, function);
        assert_eq!(failure(backend, &stand_in), None, "{function}");
    }
}

#[test]
fn a_program_that_does_not_compile_is_an_error_with_the_compilers_words() {
    // A compiler for the host that is given an option which it does not know.
    for (backend, stand_in) in [
        (BackendName::Cuda, cuda("fail nvrtcCompileProgram 6")),
        (BackendName::Hip, hip("fail hiprtcCompileProgram 6")),
    ] {
        let Some(stand_in) = stand_in else { return };
        let message = failure(backend, &stand_in).unwrap();
        assert!(message.contains("does not compile"), "{message}");
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

#[test]
fn folders_that_are_not_there_are_named() {
    let folder = PathBuf::from("/no/such/folder");
    let options = GpuOptions { library_folders: vec![folder.clone()], ..GpuOptions::default() };
    for backend in [BackendName::Cuda, BackendName::Hip] {
        if let Survey::Missing(missing) = survey(backend, &options) {
            assert!(missing.to_string().contains(folder.to_str().unwrap()), "{missing}");
        }
    }
}
