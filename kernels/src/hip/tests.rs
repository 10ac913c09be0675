//! Runtimes that are not there or do not work, and Debian's, which is there without a device.

#![cfg(unix)]

use std::path::Path;

use super::compiler::HiprtcCompiler;
use super::device::Runtime;
use super::driver::HipDriver;
use super::listing::survey_in;
use super::raw::Hip;
use crate::gpu::compile_worker::CompileWorker;
use crate::gpu::search::{Search, Surroundings};
use crate::gpu::tests::stubs::{Stubs, skipped};
use crate::gpu::{
    Architecture, Compiler, DeviceError, Driver, Function, LaunchShape, Source, Survey,
};

fn survey_of(stubs: &Stubs) -> Survey {
    let search = Search::only(&[stubs.path().into()]);
    survey_in(&search, stubs.path(), || Err("no compiler was looked for".to_owned()))
}

#[test]
fn without_a_runtime_the_library_and_what_to_do_are_named() {
    let survey = survey_of(&Stubs::new());
    assert!(matches!(&survey, Survey::Missing(missing) if missing.unusable.is_empty()));
    let said = survey.to_string();
    for part in ["HIP runtime", "libamdhip64.so.6", "not found", "install ROCm"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_library_of_another_kind_lacks_a_function() {
    let stubs = Stubs::new();
    if stubs.build("libamdhip64.so.6", "int cuInit(int x) { return x; }").is_none() {
        return;
    }
    let said = survey_of(&stubs).to_string();
    assert!(said.contains("cannot be used") && said.contains("it has no function hip"), "{said}");
}

/// What all runtimes of these tests have.
const COMMON: &str = r#"
const char* hipGetErrorName(int code) { return code == 101 ? "hipErrorInvalidDevice" : 0; }
const char* hipGetErrorString(int code) { return code == 101 ? "invalid device ordinal" : 0; }
int hipRuntimeGetVersion(int* version) { *version = 60241134; return 0; }
"#;

#[test]
fn why_there_is_no_device_is_said() {
    let stubs = Stubs::new();
    if stubs.build_returning("libamdhip64.so.6", Hip::REQUIRED, 101, COMMON).is_none() {
        return;
    }
    let survey = survey_of(&stubs);
    assert!(matches!(&survey, Survey::NoDevice { .. }));
    let said = survey.to_string();
    let expected = "hipInit failed with hipErrorInvalidDevice (101): invalid device ordinal";
    assert!(said.contains(expected) && said.contains("HIP runtime 6.2.41134"), "{said}");
}

/// A runtime with one device, which writes its architecture where a layout has it.
fn runtime_with(properties: &str) -> String {
    format!(
        r#"{COMMON}
int hipGetDeviceCount(int* count) {{ *count = 1; return 0; }}
int hipDeviceTotalMem(size_t* bytes, int device) {{ *bytes = 64ul << 30; return 0; }}
int hipDeviceGetName(char* name, int len, int device) {{ strcpy(name, "Stub"); return 0; }}
int hipDeviceGetPCIBusId(char* id, int len, int device) {{ strcpy(id, "0000:C1:00.0"); return 0; }}
int hipDeviceGetAttribute(int* value, int which, int device) {{ *value = which; return 0; }}
{properties}"#
    )
}

#[test]
fn the_architecture_is_read_from_the_layout_of_the_version() {
    let old = "int hipGetDeviceProperties(char* p, int device) {
        memset(p, 1, 792); strcpy(p + 396, \"gfx90a:sramecc+:xnack-\"); return 0; }";
    let new = "int hipGetDevicePropertiesR0600(char* p, int device) {
        memset(p, 1, 1472); strcpy(p + 1160, \"gfx942:sramecc+:xnack-\"); return 0; }";
    let unknown = "int hipGetDeviceProperties(char* p, int device) {
        strcpy(p + 396, \"gfx803\"); return 0; }";
    for (properties, architecture, supported) in [
        (old.to_owned(), "gfx90a", true),
        (new.to_owned(), "gfx942", true),
        // From ROCm 6 on, both are there, and the old one is not what it was.
        (
            format!("{new} int hipGetDeviceProperties(char* p, int device) {{ return 1; }}"),
            "gfx942",
            true,
        ),
        (unknown.to_owned(), "gfx803", false),
        (String::new(), "unknown", false),
    ] {
        let stubs = Stubs::new();
        let source = runtime_with(&properties);
        if stubs.build_returning("libamdhip64.so.6", Hip::REQUIRED, 0, &source).is_none() {
            return;
        }
        let survey = survey_of(&stubs);
        let Survey::Found(inventory) = &survey else { panic!("{survey}") };
        let [device] = inventory.devices.as_slice() else { panic!("{survey}") };
        assert_eq!(device.architecture, architecture);
        assert_eq!(device.unsupported.is_none(), supported, "{survey}");
        if supported {
            assert_eq!((device.name.as_str(), device.bus_id.as_str()), ("Stub", "0000:c1:00.0"));
            // The number of the attribute that was asked for.
            assert_eq!((device.processors, device.memory_bytes), (63, 64 << 30));
        }
    }
}

fn surroundings() -> Surroundings<'static> {
    Surroundings { variable: &|name| std::env::var_os(name), root: Path::new("/") }
}

#[test]
fn an_installed_runtime_without_a_device_gives_its_reason() {
    let survey = super::survey(&crate::gpu::GpuOptions::default(), &surroundings());
    match survey {
        Survey::NoDevice { reason, library } => {
            assert!(reason.contains("(101)") || reason.contains("(100)"), "{reason}");
            assert!(library.path.is_absolute(), "{library}");
        }
        Survey::Missing(_) => skipped("AMD's runtime (on Debian, libamdhip64-5)"),
        // There is a device.
        Survey::Found(_) => {}
        Survey::NotBuilt(_) => panic!("{survey}"),
    }
}

/// The compiler in this test program, started once more.
fn hiprtc() -> Option<HiprtcCompiler> {
    match HiprtcCompiler::of(CompileWorker::in_this_test_program()) {
        Ok(compiler) => Some(compiler),
        Err(why) => {
            assert!(why.contains("was not found"), "{why}");
            skipped("AMD's runtime compiler (on Debian, libamdhip64-5)");
            None
        }
    }
}

const KERNEL: &str = "#include \"factor.h\"\n\
    extern \"C\" __global__ void scale(float* x) { x[threadIdx.x] *= FACTOR + PORT_WARP; }\n";
const HEADERS: &[(&str, &str)] = &[("factor.h", "#ifdef PORT_HIP\n#define FACTOR 3\n#endif\n")];

#[test]
fn kernels_are_compiled_refused_or_end_the_worker_and_never_this_process() {
    let Some(hiprtc) = hiprtc() else { return };
    assert!(hiprtc.version().starts_with("hiprtc "), "{}", hiprtc.version());
    let source = Source { name: "scale", text: KERNEL, headers: HEADERS };
    let known = Architecture::of_gfx("gfx90a").unwrap();
    let compiled = hiprtc.compile(&source, &known).unwrap();
    assert!(compiled.image.len() > 500, "{}", compiled.image.len());

    let wrong = Source { headers: &[("factor.h", "// nothing\n")], ..source };
    match hiprtc.compile(&wrong, &known).unwrap_err() {
        DeviceError::Compile { kernel, architecture, log, .. } => {
            assert_eq!((kernel.as_str(), architecture.as_str()), ("scale", "gfx90a"));
            assert!(log.contains("FACTOR"), "{log}");
        }
        other => panic!("{other}"),
    }

    // ROCm 5.2's aborts on these, and later ones know them.
    for name in ["gfx942", "gfx1100"] {
        let architecture = Architecture::of_gfx(name).unwrap();
        match hiprtc.compile(&source, &architecture) {
            Ok(compiled) => assert!(compiled.image.len() > 500),
            Err(DeviceError::CompilerEnded { kernel, architecture, how, .. }) => {
                assert_eq!((kernel.as_str(), architecture.as_str()), ("scale", name));
                assert!(how.contains("signal"), "{how}");
            }
            Err(DeviceError::Compile { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        // Whatever came of it, the next kernel is compiled.
        assert_eq!(hiprtc.compile(&source, &known).unwrap().image, compiled.image);
    }
}

/// A driver over a runtime that does nothing, with more functions than all versions have.
fn driver_over(stubs: &Stubs, more: &str) -> Option<HipDriver> {
    let properties = format!(
        "{more} int hipGetDeviceProperties(char* p, int device) {{
            strcpy(p + 396, \"gfx90a\"); return 0; }}"
    );
    let source = runtime_with(&properties);
    stubs.build_returning("libamdhip64.so.5", Hip::REQUIRED, 0, &source)?;
    let search = Search::only(&[stubs.path().into()]);
    let runtime = Runtime::start(&search, stubs.path()).unwrap();
    Some(HipDriver::open(&runtime, 0, stubs.path(), None).unwrap())
}

const COOPERATIVE: LaunchShape =
    LaunchShape { grid: [2, 1, 1], threads: 64, shared_bytes: 0, cooperative: true, cluster: 1 };

#[test]
fn cooperative_kernels_are_refused_while_it_records_and_by_old_runtimes() {
    let launch = |driver: &HipDriver, cooperative| {
        let shape = LaunchShape { cooperative, ..COOPERATIVE };
        // SAFETY: the runtime does nothing.
        unsafe { driver.launch(Function(0), &shape, &[0; 64]) }
    };
    let stubs = Stubs::new();
    let function = "int hipModuleLaunchCooperativeKernel() { return 0; }";
    let Some(driver) = driver_over(&stubs, function) else { return };
    assert_eq!(launch(&driver, true), Ok(()));
    driver.begin_capture().unwrap();
    assert_eq!(launch(&driver, false), Ok(()));
    assert!(matches!(launch(&driver, true), Err(DeviceError::Unsupported(_))));
    driver.end_capture().unwrap();
    assert_eq!(launch(&driver, true), Ok(()));

    let stubs = Stubs::new();
    let old = driver_over(&stubs, "").unwrap();
    assert_eq!(launch(&old, false), Ok(()));
    let error = launch(&old, true).unwrap_err().to_string();
    assert!(error.contains("ROCm 5.5"), "{error}");
}

#[test]
fn limits_of_memory_are_errors_that_name_them() {
    let stubs = Stubs::new();
    let full = "int hipMalloc(void** to, size_t bytes) { return bytes > 100 ? 2 : 0; }";
    let Some(driver) = driver_over(&stubs, full) else { return };
    assert!(driver.allocate(100).is_ok());
    let error = driver.allocate(101).unwrap_err();
    assert!(matches!(error, DeviceError::OutOfMemory { bytes: 101, .. }), "{error}");
    // The runtime says 74 of the attribute with this number.
    assert_eq!(driver.facts().shared_bytes_per_block, 74);
    // SAFETY: the runtime does nothing.
    unsafe {
        assert_eq!(driver.allow_shared(Function(0), 74), Ok(()));
        assert!(driver.allow_shared(Function(0), 75).is_err());
    }
}
