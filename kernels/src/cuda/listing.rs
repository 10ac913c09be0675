//! The survey of NVIDIA GPUs, and opening one.

use std::rc::Rc;

use super::cublaslt;
use super::device::{CudaDevice, Runtime};
use super::driver::CudaDriver;
use super::nvrtc::NvrtcCompiler;
use crate::gpu::listing::{self, Listed, Runtime as _};
use crate::gpu::search::{Search, Surroundings};
use crate::gpu::{
    DeviceError, DeviceSummary, GpuOptions, Inventory, LibrarySummary, Opened, Survey,
};

/// The libraries and devices that exist, without opening a device.
pub(crate) fn survey(options: &GpuOptions, surroundings: &Surroundings<'_>) -> Survey {
    survey_in(&Search::cuda(&options.library_folders, surroundings))
}

pub(super) fn survey_in(search: &Search) -> Survey {
    let (runtime, count) = match listing::with_devices(Runtime::start(search)) {
        Ok(found) => found,
        Err(survey) => return *survey,
    };
    let compiler = NvrtcCompiler::find(search, Some(runtime.version));
    let devices = listing::summaries(&runtime, count, |index| {
        Ok(summary(index, runtime.describe(index)?, &runtime, compiler.as_ref().ok()))
    });
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
    Survey::Found(Inventory { devices, driver: runtime.library(), compiler, gemm_library })
}

fn summary(
    index: u32,
    listed: Listed<CudaDevice>,
    runtime: &Runtime,
    compiler: Option<&NvrtcCompiler>,
) -> DeviceSummary {
    let (major, minor) = listed.own.capability;
    let architecture = listed.architecture();
    let unsupported = match (&architecture, compiler) {
        (None, _) => Some(listed.too_old()),
        (Some(architecture), Some(compiler)) => compiler.unknown(architecture),
        // A missing compiler is reported once for all devices.
        (Some(_), None) => None,
    };
    let architecture = match architecture {
        Some(architecture) => architecture.name,
        None => format!("sm_{major}{minor}"),
    };
    listed.summary(index, architecture, unsupported, runtime)
}

/// Opens a device with a compiler for it.
pub(crate) fn open(
    index: u32,
    options: &GpuOptions,
    surroundings: &Surroundings<'_>,
) -> Result<Opened, DeviceError> {
    let search = Search::cuda(&options.library_folders, surroundings);
    let runtime = listing::with_device(Runtime::start(&search), index)?;
    let compiler = NvrtcCompiler::find(&search, Some(runtime.version))
        .map_err(|missing| DeviceError::Library(Box::new(missing)))?;
    let driver = CudaDriver::open(&runtime, index, options.core)?;
    Ok((Rc::new(driver), Rc::new(compiler)))
}
