//! The survey of AMD GPUs, and opening one.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::compiler::HiprtcCompiler;
use super::device::{Listed, NoRuntime, Runtime};
use super::driver::HipDriver;
use super::products;
use crate::gpu::search::{Search, Surroundings};
use crate::gpu::{
    DeviceError, DeviceSummary, GpuOptions, Inventory, LibrarySummary, Opened, Survey,
    no_such_device,
};

/// What there is, without opening a device.
pub(crate) fn survey(options: &GpuOptions, surroundings: &Surroundings<'_>) -> Survey {
    let search = Search::rocm(&options.library_folders, surroundings);
    survey_in(&search, surroundings.root, || HiprtcCompiler::find(options))
}

pub(super) fn survey_in(
    search: &Search,
    root: &Path,
    find_compiler: impl FnOnce() -> Result<HiprtcCompiler, String>,
) -> Survey {
    let runtime = match Runtime::start(search, root) {
        Ok(runtime) => runtime,
        Err(NoRuntime::Missing(missing)) => return Survey::Missing(*missing),
        Err(NoRuntime::Failed { runtime, error }) => {
            return Survey::NoDevice { library: library(&runtime), reason: error.to_string() };
        }
    };
    let driver = library(&runtime);
    let nothing = |reason: String| Survey::NoDevice { library: driver.clone(), reason };
    let count = match runtime.count() {
        Ok(0) => return nothing("the runtime lists none".to_owned()),
        Ok(count) => count,
        Err(error) => return nothing(error.to_string()),
    };
    let devices = (0..count)
        .map(|index| match runtime.describe(index) {
            Ok(listed) => summary(index, listed, &runtime),
            Err(error) => DeviceSummary::broken(index, runtime.driver_version(), &error),
        })
        .collect();
    let compiler = find_compiler().map(|compiler| LibrarySummary {
        name: "hiprtc",
        version: compiler.number.clone(),
        path: compiler.path,
    });
    let products = match products::find(search) {
        Ok(found) => Ok(products_library(found.library.file("hipblasLtGetVersion"))),
        Err(missing) => Err(missing.to_string()),
    };
    Survey::Found(Inventory { devices, driver, compiler, products })
}

/// Only a library that is in use tells its version, but the name of its file has it: behind the
/// links is `libhipblaslt.so.0.10.60202`.
fn products_library(path: PathBuf) -> LibrarySummary {
    let file = path.canonicalize().unwrap_or_else(|_| path.clone());
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let version = match name.split_once(".so.") {
        Some((_, version)) => version.to_owned(),
        None => "of unknown version".to_owned(),
    };
    LibrarySummary { name: "hipBLASLt", version, path }
}

fn library(runtime: &Runtime) -> LibrarySummary {
    LibrarySummary {
        name: "HIP runtime",
        version: runtime.version.clone(),
        path: runtime.path.clone(),
    }
}

fn summary(index: u32, listed: Listed, runtime: &Runtime) -> DeviceSummary {
    let architecture = listed.architecture();
    DeviceSummary {
        index,
        unsupported: architecture.is_none().then(|| listed.unknown()),
        architecture: architecture
            .map_or_else(|| listed.reported.clone(), |architecture| architecture.name),
        name: listed.name,
        memory_bytes: listed.memory_bytes,
        processors: listed.processors,
        bus_id: listed.bus_id,
        driver_version: runtime.driver_version(),
    }
}

/// Opens a device with a compiler for it.
pub(crate) fn open(
    index: u32,
    options: &GpuOptions,
    surroundings: &Surroundings<'_>,
) -> Result<Opened, DeviceError> {
    let search = Search::rocm(&options.library_folders, surroundings);
    let runtime = Runtime::start(&search, surroundings.root).map_err(|error| match error {
        NoRuntime::Missing(missing) => DeviceError::Library(missing),
        NoRuntime::Failed { error, .. } => *error,
    })?;
    let count = runtime.count()?;
    if index >= count {
        return Err(no_such_device(index, count));
    }
    let driver = HipDriver::open(&runtime, index, surroundings.root)?;
    let compiler = HiprtcCompiler::find(options).map_err(DeviceError::Unsupported)?;
    Ok((Rc::new(driver), Rc::new(compiler)))
}
