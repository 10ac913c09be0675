//! Drivers that are not there or do not work, and NVRTC if it is there.

#![cfg(unix)]

use std::path::{Path, PathBuf};

use super::device::Runtime;
use super::driver::CudaDriver;
use super::functions::{Cuda, Nvrtc};
use super::listing::survey_in;
use super::nvrtc::NvrtcCompiler;
use crate::backend::Sensors;
use crate::gpu::search::{Search, Surroundings};
use crate::gpu::tests::stubs::{Stubs, skipped};
use crate::gpu::{
    Address, Architecture, Compiler, DeviceError, Driver, Event, Source, Survey, TensorId,
    TensorMap,
};

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
    // No compiler is there either, and that is said in addition to the device.
    let why = inventory.compiler.as_ref().unwrap_err();
    assert!(why.contains("NVRTC") && why.contains("was not found"), "{why}");
    let why = inventory.gemm_library.as_ref().unwrap_err();
    assert!(why.contains("cuBLASLt") && why.contains("was not found"), "{why}");
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

/// Stand-ins for a machine with one device, of compute capability 9.0.
const DEVICE: &str = r#"
int cuDeviceGetCount(int* count) { *count = 1; return 0; }
int cuDeviceGetName(char* name, int len, int device) { strcpy(name, "Stub"); return 0; }
int cuDeviceGetPCIBusId(char* id, int len, int device) { strcpy(id, "0000:3B:00.0"); return 0; }
int cuDeviceTotalMem_v2(size_t* bytes, int device) { *bytes = 8ul << 30; return 0; }
int cuDeviceGetAttribute(int* value, int which, int device) {
    *value = which == 75 ? 9 : which == 76 ? 0 : which; return 0; }
int cuMemAlloc_v2(void* to, size_t bytes) { return bytes > 100 ? 2 : 0; }
int cuEventElapsedTime(float* ms, void* start, void* end) { *ms = 1.5f; return 0; }
"#;

fn driver_over(stubs: &Stubs, more: &str) -> Option<CudaDriver> {
    stubs.build_returning("libcuda.so.1", Cuda::REQUIRED, 0, &format!("{DEVICE}{more}"))?;
    let runtime = Runtime::start(&Search::only(&[stubs.path().into()])).unwrap();
    Some(CudaDriver::open(&runtime, 0, None).unwrap())
}

#[test]
fn a_device_is_what_the_driver_says() {
    let stubs = Stubs::new();
    let Some(driver) = driver_over(&stubs, "") else { return };
    let facts = driver.facts();
    assert_eq!((facts.name.as_str(), facts.architecture.name.as_str()), ("Stub", "sm_90a"));
    assert_eq!((facts.bus_id.as_str(), facts.memory_bytes), ("0000:3b:00.0", 8 << 30));
    // The numbers of the attributes in CUDA's headers.
    assert_eq!((facts.processors, facts.l2_bytes, facts.shared_bytes_per_block), (16, 38, 97));
    assert_eq!(driver.sensors(), Sensors::default());
    let error = driver.allocate(101).unwrap_err();
    assert!(matches!(error, DeviceError::OutOfMemory { bytes: 101, .. }), "{error}");
}

#[test]
fn times_come_from_the_finer_function_where_there_is_one() {
    let newer = "int cuEventElapsedTime_v2(float* ms, void* a, void* b) { *ms = 2.5f; return 0; }";
    for (more, expected) in [("", 1.5), (newer, 2.5)] {
        let stubs = Stubs::new();
        let Some(driver) = driver_over(&stubs, more) else { return };
        // SAFETY: the driver does nothing with the events.
        let ms = unsafe { driver.elapsed_ms(Event(0), Event(0)) }.unwrap();
        assert!((ms - expected).abs() < 1e-9, "{ms}");
    }
}

#[test]
fn tensor_maps_are_asked_for_as_the_driver_wants_them() {
    let map = TensorMap {
        tensor: TensorId(0),
        bf16: true,
        batches: 3,
        rows: 5,
        cols: 64,
        box_rows: 4,
        box_cols: 64,
    };
    let stubs = Stubs::new();
    let Some(driver) = driver_over(&stubs, "") else { return };
    // SAFETY: nothing is accessed.
    let error = unsafe { driver.tensor_map(&map, Address(256)) }.unwrap_err();
    assert!(error.to_string().contains("CUDA 12.0"), "{error}");

    // Writes what it is asked for, in the order of its parameters.
    let encode = "int cuTensorMapEncodeTiled(unsigned long* map, int type, int rank, void* at,
        unsigned long* dims, unsigned long* strides, unsigned* box, unsigned* steps,
        int interleave, int swizzle, int promotion, int fill) {
        unsigned long said[16] = {type, rank, (unsigned long)at, dims[0], dims[1], dims[2],
            strides[0], strides[1], box[0], box[1], box[2], steps[0] + steps[1] + steps[2],
            interleave, swizzle, promotion, fill};
        memcpy(map, said, 128); return 0; }";
    let stubs = Stubs::new();
    let driver = driver_over(&stubs, encode).unwrap();
    // SAFETY: nothing is accessed.
    let bytes = unsafe { driver.tensor_map(&map, Address(256)) }.unwrap();
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
    // 9 is bf16, swizzle 3 is 128 bytes, promotion 3 is 256 bytes: cuda.h.
    let expected = [9, 3, 256, 64, 5, 3, 128, 640, 64, 4, 1, 3, 0, 3, 3, 0];
    assert_eq!(words, expected);
}

/// Where the documents say what cudarc's loader cannot do, they name the version in which that was read.
/// Whoever updates cudarc reads its loader again (`culib` in `driver/sys/mod.rs`).
#[test]
fn what_the_documents_say_of_cudarc_is_of_the_version_in_use() {
    let read = |name: &str| {
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../").to_owned() + name)
    };
    let (Ok(lock), Ok(readme), Ok(page)) =
        (read("Cargo.lock"), read("README.md"), read("docs/gpu.md"))
    else {
        eprintln!("skipped: there are no documents beside this crate");
        return;
    };
    let entry = lock.split("name = \"cudarc\"\nversion = \"").nth(1).unwrap();
    let version = entry.split('"').next().unwrap();
    for (name, text) in [("README.md", readme), ("docs/gpu.md", page)] {
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        assert!(text.contains(&format!("as of {version}")), "{name} does not name {version}");
        assert!(text.contains("loader") && text.contains("panics"), "{name}");
    }
}
