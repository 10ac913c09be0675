//! Calls that fail, and libraries, functions, compilers and devices that are missing.

use std::path::PathBuf;

use fused_kernels::gpu::{Gpu, GpuOptions, Survey};
use fused_kernels::{Backend, BackendError, Expected, Inputs, Variant, survey};
use fusion_cost_model::Backend as BackendName;

use super::instance::{self, StandIn};
use super::{CUDA, HIP, NVRTC, PROBLEMS, WARM, conform, cuda, hip, options, problem};

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
            assert_eq!(alive, instance::Counts::default(), "{name}: {message}");
        }
    }
}

/// Which kernel, and how it is launched: whoever reads the message of a driver cannot look it up.
#[test]
fn a_kernel_that_is_refused_is_named_with_its_launch() {
    for (backend, stand_in) in [
        (BackendName::Cuda, cuda("flaw mma launch pointwise")),
        (BackendName::Hip, hip("flaw mfma launch pointwise")),
    ] {
        let Some(stand_in) = stand_in else { return };
        let message = failure(backend, &stand_in).unwrap();
        assert!(message.starts_with("pointwise_"), "{message}");
        for part in [" x 1 x 1 blocks of ", " threads, 0 bytes of shared memory): "] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}

/// The kernel that counts the clock is no variant's: without it the clock is not observed, and all else
/// is measured.
#[test]
fn the_clock_is_not_observed_where_its_kernel_fails() {
    for (backend, stand_in) in [
        (BackendName::Cuda, cuda("flaw mma compile stamp")),
        (BackendName::Cuda, cuda("flaw mma launch stamp")),
        (BackendName::Hip, hip("flaw mfma compile stamp")),
        (BackendName::Hip, hip("flaw mfma launch stamp")),
    ] {
        let Some(stand_in) = stand_in else { return };
        let mut gpu = Gpu::open(backend, 0, &options(&stand_in)).unwrap();
        let problem = problem(PROBLEMS[0]);
        let inputs = Inputs::random(&problem, 1);
        let mut prepared = gpu.prepare(&problem, &inputs, WARM).unwrap().unwrap();
        prepared.new_layout(1).unwrap();
        let mut running = 0;
        prepared.run_each(&mut |name| running += if name.is_some() { 1 } else { -1 }).unwrap();
        assert_eq!(running, 0, "nothing that ran is said to run still");
        let expected = Expected::compute(&problem, &inputs, u64::MAX);
        for variant in Variant::ALL {
            prepared.poison().unwrap();
            prepared.run(variant, 2).unwrap();
            assert!(expected.error(&prepared.output().unwrap()) <= expected.tolerance());
            // With a lead, and so with stamps if there were any.
            prepared.run(variant, 2).unwrap();
            assert_eq!(prepared.sensors().device_clock_mhz, None);
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
        assert_eq!(stand_in.counts(library).alive(), instance::Counts::default());
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
        assert_eq!(stand_in.counts(library).alive(), instance::Counts::default());
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
