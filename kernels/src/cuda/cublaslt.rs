//! cuBLASLt.

use std::rc::Rc;

use cudarc::cublaslt::sys::{
    cublasComputeType_t, cublasLtMatmulDescAttributes_t as Attribute,
    cublasLtMatmulPreferenceAttributes_t as Preference,
};

use super::device::Runtime;
use crate::gpu::library::Unusable;
use crate::gpu::lt::{Flavour, Functions, LtLibrary};
use crate::gpu::search::{Found, MissingLibrary, Search, Surroundings, Wanted};
use crate::gpu::{Driver, GemmLibrary, GpuOptions};

const LIBRARY: Wanted<'static> = Wanted {
    what: "NVIDIA's GEMM library cuBLASLt",
    names: if cfg!(windows) {
        &["cublasLt64_13.dll", "cublasLt64_12.dll", "cublasLt64_11.dll"]
    } else {
        &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"]
    },
    advice: "install the CUDA toolkit or the Python package nvidia-cublas, of the driver's CUDA \
             version, or name the folder of the library",
};

const CUBLASLT: Flavour = Flavour {
    name: "cuBLASLt",
    prefix: "cublasLt",
    compute_f32: cublasComputeType_t::CUBLAS_COMPUTE_32F as u32,
    desc_epilogue: Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE as u32,
    desc_bias_pointer: Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER as u32,
    desc_bias_type: Attribute::CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE as u32,
    pref_workspace: Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES as u32,
};

type GetVersion = unsafe extern "C" fn() -> usize;

/// cuBLASLt for the device of a driver; `None` where there is none that can be used, which takes
/// away no more than the vendor's side of the records.
pub(crate) fn gemm_library(
    options: &GpuOptions,
    surroundings: &Surroundings<'_>,
    driver: &Rc<dyn Driver>,
) -> Option<Rc<dyn GemmLibrary>> {
    let search = Search::cuda(&options.library_folders, surroundings);
    let runtime = Runtime::start(&search).ok()?;
    let (functions, version) = find(&search, &runtime).ok()?.table;
    let library = LtLibrary::new(CUBLASLT, functions, |_| version, driver).ok()?;
    Some(Rc::new(library))
}

/// The library's functions and its version.
pub(super) fn find(
    search: &Search,
    runtime: &Runtime,
) -> Result<Found<(Functions, String)>, MissingLibrary> {
    search.open(&LIBRARY, |library| {
        let functions = Functions::resolve(library, &CUBLASLT)?;
        // SAFETY: the type is that of the header, in all versions.
        let version = unsafe { library.function::<GetVersion>("cublasLtGetVersion") };
        let version = version.ok_or(Unusable::Symbol("cublasLtGetVersion"))?;
        // SAFETY: the call takes nothing.
        let version = unsafe { version() };
        // 120803 is 12.8.3.
        let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
        if major > runtime.version.0 as usize {
            return Err(Unusable::Unfit(format!(
                "it is of CUDA {major}, and the driver only of {}",
                runtime.version.0
            )));
        }
        Ok((functions, format!("{major}.{minor}.{patch}")))
    })
}
