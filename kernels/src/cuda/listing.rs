//! The survey of NVIDIA GPUs, and opening one.

use std::rc::Rc;

use super::cublaslt;
use super::device::{Listed, NoRuntime, Runtime};
use super::driver::CudaDriver;
use super::nvrtc::NvrtcCompiler;
use crate::gpu::search::{Search, Surroundings};
use crate::gpu::{
    DeviceError, DeviceSummary, GpuOptions, Inventory, LibrarySummary, Opened, Survey,
    no_such_device,
};

/// What there is, without opening a device.
pub(crate) fn survey(options: &GpuOptions, surroundings: &Surroundings<'_>) -> Survey {
    survey_in(&Search::cuda(&options.library_folders, surroundings))
}

pub(super) fn survey_in(search: &Search) -> Survey {
    let runtime = match Runtime::start(search) {
        Ok(runtime) => runtime,
        Err(NoRuntime::Missing(missing)) => return Survey::Missing(*missing),
        Err(NoRuntime::Failed { path, error }) => {
            let library = LibrarySummary {
                name: "CUDA driver",
                version: "of unknown version".to_owned(),
                path,
            };
            return Survey::NoDevice { library, reason: error.to_string() };
        }
    };
    let driver = LibrarySummary {
        name: "CUDA driver",
        version: runtime.driver_version(),
        path: runtime.path.clone(),
    };
    let nothing = |reason: String| Survey::NoDevice { library: driver.clone(), reason };
    let count = match runtime.count() {
        Ok(0) => return nothing("the driver lists none".to_owned()),
        Ok(count) => count,
        Err(error) => return nothing(error.to_string()),
    };
    let compiler = NvrtcCompiler::find(search, Some(runtime.version));
    let devices = (0..count)
        .map(|index| match runtime.describe(index) {
            Ok(listed) => summary(index, listed, &runtime, compiler.as_ref().ok()),
            Err(error) => DeviceSummary::broken(index, runtime.driver_version(), &error),
        })
        .collect();
    let compiler = match compiler {
        Ok(compiler) => Ok(LibrarySummary {
            name: "NVRTC",
            version: compiler.number_text(),
            path: compiler.path,
        }),
        Err(missing) => Err(missing.to_string()),
    };
    let gemm_library = match cublaslt::find(search, &runtime) {
        Ok(found) => Ok(LibrarySummary {
            name: "cuBLASLt",
            version: found.table.1,
            path: found.library.file("cublasLtGetVersion"),
        }),
        Err(missing) => Err(missing.to_string()),
    };
    Survey::Found(Inventory { devices, driver, compiler, gemm_library })
}

fn summary(
    index: u32,
    listed: Listed,
    runtime: &Runtime,
    compiler: Option<&NvrtcCompiler>,
) -> DeviceSummary {
    let (major, minor) = listed.capability;
    let architecture = listed.architecture();
    let unsupported = match (&architecture, compiler) {
        (None, _) => Some(listed.too_old()),
        (Some(architecture), Some(compiler)) => compiler.unknown(architecture),
        // That there is no compiler is said for all devices at once.
        (Some(_), None) => None,
    };
    DeviceSummary {
        index,
        architecture: architecture
            .map_or_else(|| format!("sm_{major}{minor}"), |architecture| architecture.name),
        name: listed.name,
        memory_bytes: listed.memory_bytes,
        processors: listed.processors,
        bus_id: listed.bus_id,
        driver_version: runtime.driver_version(),
        unsupported,
    }
}

/// Opens a device with a compiler for it.
pub(crate) fn open(
    index: u32,
    options: &GpuOptions,
    surroundings: &Surroundings<'_>,
) -> Result<Opened, DeviceError> {
    let search = Search::cuda(&options.library_folders, surroundings);
    let runtime = Runtime::start(&search).map_err(|error| match error {
        NoRuntime::Missing(missing) => DeviceError::Library(missing),
        NoRuntime::Failed { error, .. } => *error,
    })?;
    let count = runtime.count()?;
    if index >= count {
        return Err(no_such_device(index, count));
    }
    let compiler = NvrtcCompiler::find(&search, Some(runtime.version))
        .map_err(|missing| DeviceError::Library(Box::new(missing)))?;
    let driver = CudaDriver::open(&runtime, index)?;
    Ok((Rc::new(driver), Rc::new(compiler)))
}
