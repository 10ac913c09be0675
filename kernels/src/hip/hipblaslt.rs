//! hipBLASLt. Its numbers are those of its headers from release 0.6 on, which came with ROCm 6.0;
//! before, dtypes had others.

use std::ffi::c_int;
use std::rc::Rc;

use crate::gpu::library::Unusable;
use crate::gpu::lt::{Code, Flavour, Functions, Handle, LtLibrary};
use crate::gpu::search::{Found, MissingLibrary, Search, Surroundings, Wanted};
use crate::gpu::{Driver, GemmLibrary, GpuOptions};

const LIBRARY: Wanted<'static> = Wanted {
    what: "AMD's GEMM library hipBLASLt",
    names: &["libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so"],
    advice: "install ROCm's package hipblaslt, of version 6 or later, or name the folder of the \
             library",
};

const HIPBLASLT: Flavour = Flavour {
    name: "hipBLASLt",
    prefix: "hipblasLt",
    // HIPBLAS_COMPUTE_32F
    compute_f32: 2,
    // HIPBLASLT_MATMUL_DESC_EPILOGUE, _BIAS_POINTER, _BIAS_DATA_TYPE
    desc_epilogue: 2,
    desc_bias_pointer: 3,
    desc_bias_type: 4,
    // HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
    pref_workspace: 1,
};

/// The first release with these numbers, as the library gives it: 0.6.0.
const FIRST_VERSION: c_int = 600;

pub(super) type GetVersion = unsafe extern "C" fn(Handle, *mut c_int) -> Code;

/// hipBLASLt for the device of a driver; `None` where there is none that can be used, which takes
/// away no more than the vendor's side of the records.
pub(crate) fn gemm_library(
    options: &GpuOptions,
    surroundings: &Surroundings<'_>,
    driver: &Rc<dyn Driver>,
) -> Option<Rc<dyn GemmLibrary>> {
    let search = Search::rocm(&options.library_folders, surroundings);
    let (functions, get_version) = find(&search).ok()?.table;
    let mut version = 0;
    let library = LtLibrary::new(
        HIPBLASLT,
        functions,
        |handle| {
            // SAFETY: the handle was just opened, and the call writes one number.
            let code = unsafe { get_version(handle, &raw mut version) };
            if code != 0 {
                version = 0;
            }
            // 1207 is 0.12.7.
            format!("{}.{}.{}", version / 100_000, version / 100 % 1000, version % 100)
        },
        driver,
    );
    let library = library.ok()?;
    (version >= FIRST_VERSION).then(|| Rc::new(library) as Rc<dyn GemmLibrary>)
}

/// The library's functions, and the one that gives its version.
pub(super) fn find(search: &Search) -> Result<Found<(Functions, GetVersion)>, MissingLibrary> {
    search.open(&LIBRARY, |library| {
        let functions = Functions::resolve(library, &HIPBLASLT)?;
        // SAFETY: the type is that of the header.
        let version = unsafe { library.function::<GetVersion>("hipblasLtGetVersion") };
        Ok((functions, version.ok_or(Unusable::Symbol("hipblasLtGetVersion"))?))
    })
}
