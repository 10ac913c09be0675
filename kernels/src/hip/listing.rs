//! The survey of AMD GPUs, and opening one.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::compiler::HiprtcCompiler;
use super::device::{HipDevice, Runtime};
use super::driver::HipDriver;
use super::hipblaslt;
use crate::gpu::listing::{self, Listed, Runtime as _};
use crate::gpu::search::{Search, Surroundings};
use crate::gpu::{
    DeviceError, DeviceSummary, GpuOptions, Inventory, LibrarySummary, Opened, Survey,
};

/// The libraries and devices that exist, without opening a device.
pub(crate) fn survey(options: &GpuOptions, surroundings: &Surroundings<'_>) -> Survey {
    let search = Search::rocm(&options.library_folders, surroundings);
    survey_in(&search, surroundings.root, || HiprtcCompiler::find(options))
}

pub(super) fn survey_in(
    search: &Search,
    root: &Path,
    find_compiler: impl FnOnce() -> Result<HiprtcCompiler, String>,
) -> Survey {
    let (runtime, count) = match listing::with_devices(Runtime::start(search, root)) {
        Ok(found) => found,
        Err(survey) => return *survey,
    };
    let devices = listing::summaries(&runtime, count, |index| {
        Ok(summary(index, runtime.describe(index)?, &runtime))
    });
    let compiler = find_compiler().map(|compiler| LibrarySummary {
        name: "hiprtc",
        version: compiler.number.clone(),
        path: compiler.path,
    });
    let gemm_library = match hipblaslt::find(search) {
        Ok(found) => Ok(library_of(found.library.file("hipblasLtGetVersion"))),
        Err(missing) => Err(missing.to_string()),
    };
    Survey::Found(Inventory { devices, driver: runtime.library(), compiler, gemm_library })
}

/// Only a library that is in use reports its version, but the name of its file has it: behind the
/// links is `libhipblaslt.so.0.10.60202`.
fn library_of(path: PathBuf) -> LibrarySummary {
    let file = path.canonicalize().unwrap_or_else(|_| path.clone());
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let version = match name.split_once(".so.") {
        Some((_, version)) => version.to_owned(),
        None => "of unknown version".to_owned(),
    };
    LibrarySummary { name: "hipBLASLt", version, path }
}

fn summary(index: u32, listed: Listed<HipDevice>, runtime: &Runtime) -> DeviceSummary {
    let (architecture, unsupported) = match listed.architecture() {
        Some(architecture) => (architecture.name, None),
        None => (listed.own.reported.clone(), Some(listed.unknown())),
    };
    listed.summary(index, architecture, unsupported, runtime)
}

/// Opens a device with a compiler for it.
pub(crate) fn open(
    index: u32,
    options: &GpuOptions,
    surroundings: &Surroundings<'_>,
) -> Result<Opened, DeviceError> {
    let search = Search::rocm(&options.library_folders, surroundings);
    let runtime = listing::with_device(Runtime::start(&search, surroundings.root), index)?;
    let driver = HipDriver::open(&runtime, index, surroundings.root, options.core)?;
    let compiler = HiprtcCompiler::find(options).map_err(DeviceError::Unsupported)?;
    Ok((Rc::new(driver), Rc::new(compiler)))
}
