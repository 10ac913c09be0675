//! Drivers that are not there or do not work, and NVRTC if it is there.

use std::path::{Path, PathBuf};

use super::functions::{Cuda, Nvrtc};
use super::listing::survey_in;
use super::nvrtc::NvrtcCompiler;
use crate::gpu::search::{Search, Surroundings};
use crate::gpu::stubs::{Stubs, skipped};
use crate::gpu::{Architecture, Compiler, DeviceError, Source, Survey};

fn survey_of(stubs: &Stubs) -> Survey {
    survey_in(&Search::only(&[stubs.path().into()]))
}

#[test]
fn without_a_driver_the_library_and_what_to_do_are_named() {
    let survey = survey_of(&Stubs::new());
    assert!(matches!(&survey, Survey::Missing(missing) if missing.unusable.is_empty()));
    let said = survey.to_string();
    for part in ["the CUDA driver", "libcuda.so.1", "not found", "install NVIDIA's driver"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn files_that_are_no_driver_are_named() {
    for contents in [&b""[..], b"no library"] {
        let stubs = Stubs::new();
        let path = stubs.write("libcuda.so.1", contents);
        let said = survey_of(&stubs).to_string();
        assert!(said.contains("cannot be used") && said.contains(path.to_str().unwrap()), "{said}");
    }
}

#[test]
fn a_driver_without_a_function_is_too_old() {
    let stubs = Stubs::new();
    let names: Vec<&str> =
        Cuda::REQUIRED.iter().copied().filter(|name| *name != "cuLaunchKernel").collect();
    if stubs.build_returning("libcuda.so.1", &names, 0, "").is_none() {
        return;
    }
    let said = survey_of(&stubs).to_string();
    assert!(said.contains("it has no function cuLaunchKernel"), "{said}");
    assert!(said.contains("R470 or later"), "{said}");
}

#[test]
fn why_there_is_no_device_is_said() {
    for (number, expected) in [
        (100, "no device: cuInit failed with an error (100): the driver does not say more"),
        (34, "no device: cuInit failed with CUDA_ERROR_STUB_LIBRARY (34): the library is the"),
        (-7, "cuInit failed with an error (4294967289)"),
    ] {
        let stubs = Stubs::new();
        let Some(path) = stubs.build_returning("libcuda.so.1", Cuda::REQUIRED, number, "") else {
            return;
        };
        let survey = survey_of(&stubs);
        let Survey::NoDevice { library, .. } = &survey else { panic!("{survey}") };
        assert_eq!(library.path, path);
        let said = survey.to_string();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_driver_that_lists_no_device_or_a_broken_one() {
    let name =
        "int cuGetErrorName(int code, const char** text) { *text = \"CUDA_OOPS\"; return 0; }
                int cuDriverGetVersion(int* version) { *version = 12040; return 0; }";
    let stubs = Stubs::new();
    if stubs.build_returning("libcuda.so.1", Cuda::REQUIRED, 0, name).is_none() {
        return;
    }
    let said = survey_of(&stubs).to_string();
    assert!(said.contains("the driver lists none") && said.contains("CUDA 12.4"), "{said}");

    let stubs = Stubs::new();
    let more = format!(
        "{name} int cuDeviceGetCount(int* count) {{ *count = 1; return 0; }}
         int cuDeviceGet(int* device, int ordinal) {{ return 999; }}"
    );
    stubs.build_returning("libcuda.so.1", Cuda::REQUIRED, 0, &more);
    let survey = survey_of(&stubs);
    let Survey::Found(inventory) = &survey else { panic!("{survey}") };
    let why = inventory.devices[0].unsupported.as_deref().unwrap();
    assert!(why.contains("cuDeviceGet failed with CUDA_OOPS (999)"), "{why}");
    // No compiler is there either, and that is said beside the device.
    let why = inventory.compiler.as_ref().unwrap_err();
    assert!(why.contains("NVRTC") && why.contains("was not found"), "{why}");
}

#[test]
fn a_compiler_that_is_newer_than_the_driver_is_of_no_use() {
    let stubs = Stubs::new();
    let version = "int nvrtcVersion(int* a, int* b) { *a = 13; *b = 1; return 0; }
                   const char* nvrtcGetErrorString(int code) { return 0; }";
    if stubs.build_returning("libnvrtc.so.13", Nvrtc::REQUIRED, 0, version).is_none() {
        return;
    }
    let search = Search::only(&[stubs.path().into()]);
    assert_eq!(NvrtcCompiler::find(&search, None).unwrap().version(), "NVRTC 13.1");
    assert!(NvrtcCompiler::find(&search, Some((13, 0))).is_ok());
    let missing = NvrtcCompiler::find(&search, Some((12, 4))).unwrap_err().to_string();
    assert!(missing.contains("it is of CUDA 13.1, and the driver only of 12.4"), "{missing}");
}

/// NVRTC where `CALIBRATE_NVRTC` says that its library is, or where it is looked for.
fn nvrtc() -> Option<NvrtcCompiler> {
    let named = std::env::var_os("CALIBRATE_NVRTC").map(PathBuf::from);
    let given: Vec<PathBuf> =
        named.iter().filter_map(|path| path.parent()).map(Path::to_owned).collect();
    let variable = |name: &str| std::env::var_os(name);
    let surroundings = Surroundings { variable: &variable, root: Path::new("/") };
    let found = NvrtcCompiler::find(&Search::cuda(&given, &surroundings), None);
    if found.is_err() {
        skipped("NVRTC (the environment variable CALIBRATE_NVRTC may name its library)");
    }
    found.ok()
}

fn source<'a>(text: &'a str, headers: &'a [(&'a str, &'a str)]) -> Source<'a> {
    Source { name: "scale", text, headers }
}

const KERNEL: &str = "#include \"factor.h\"\n\
    extern \"C\" __global__ void scale(float* x) { x[threadIdx.x] *= FACTOR + PORT_WARP; }\n";

#[test]
fn a_kernel_is_compiled_with_headers_from_memory() {
    let Some(nvrtc) = nvrtc() else { return };
    for (major, minor) in [(8, 0), (9, 0)] {
        let architecture = Architecture::of_compute_capability(major, minor).unwrap();
        let headers = [("factor.h", "#ifdef PORT_CUDA\n#define FACTOR 3\n#endif\n")];
        let compiled = nvrtc.compile(&source(KERNEL, &headers), &architecture).unwrap();
        assert_eq!(&compiled.image[..4], b"\x7fELF", "{}", architecture.name);
    }
}

#[test]
fn a_wrong_kernel_is_refused_with_its_first_errors() {
    let Some(nvrtc) = nvrtc() else { return };
    let architecture = Architecture::of_compute_capability(8, 0).unwrap();
    let headers = [("factor.h", "")];
    match nvrtc.compile(&source(KERNEL, &headers), &architecture).unwrap_err() {
        DeviceError::Compile { compiler, kernel, architecture, log } => {
            assert!(compiler.starts_with("NVRTC "), "{compiler}");
            assert_eq!((kernel.as_str(), architecture.as_str()), ("scale", "sm_80"));
            assert!(log.contains("FACTOR"), "{log}");
        }
        other => panic!("{other}"),
    }
    let zero = nvrtc.compile(&source("a\0b", &[]), &architecture).unwrap_err();
    assert!(zero.to_string().contains("zero byte"), "{zero}");
}

#[test]
fn an_architecture_that_it_does_not_know_is_an_error_that_says_so() {
    let Some(nvrtc) = nvrtc() else { return };
    let mut architecture = Architecture::of_compute_capability(8, 0).unwrap();
    architecture.name = "sm_999".to_owned();
    let error = nvrtc.compile(&source("", &[]), &architecture).unwrap_err().to_string();
    assert!(error.contains("does not know sm_999"), "{error}");
}

#[test]
fn the_version_that_an_architecture_needs_is_named() {
    let stubs = Stubs::new();
    let version = "int nvrtcVersion(int* a, int* b) { *a = 12; *b = 4; return 0; }
                   const char* nvrtcGetErrorString(int code) { return 0; }";
    if stubs.build_returning("libnvrtc.so.12", Nvrtc::REQUIRED, 0, version).is_none() {
        return;
    }
    let search = Search::only(&[stubs.path().into()]);
    let nvrtc = NvrtcCompiler::find(&search, None).unwrap();
    let unknown =
        |major, minor| nvrtc.unknown(&Architecture::of_compute_capability(major, minor).unwrap());
    assert_eq!(unknown(9, 0), None);
    assert_eq!(
        unknown(10, 0).as_deref(),
        Some("sm_100 needs NVRTC 12.8 or later, and this is NVRTC 12.4")
    );
}
