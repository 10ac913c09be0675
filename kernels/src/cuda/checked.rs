//! The checked layer: the codes of CUDA's functions as errors with their names.

use std::ffi::c_char;
use std::ptr;

use cudarc::driver::sys::CUresult;

use super::functions::{Code, Cuda};
use crate::gpu::DeviceError;
use crate::gpu::library::constant_text;

impl Cuda {
    /// The code of a call as a `Result`.
    pub(super) fn check(&self, function: &'static str, code: Code) -> Result<(), DeviceError> {
        if code == CUresult::CUDA_SUCCESS as Code {
            return Ok(());
        }
        let (name, meaning) = match code == CUresult::CUDA_ERROR_STUB_LIBRARY as Code {
            // All functions of a stub return this, also those that name errors.
            true => (
                Some("CUDA_ERROR_STUB_LIBRARY".to_owned()),
                Some("the library is the toolkit's stub for linking, and no driver".to_owned()),
            ),
            false => (self.text(self.cuGetErrorName, code), self.text(self.cuGetErrorString, code)),
        };
        Err(DeviceError::Call {
            function,
            code: i64::from(code),
            name: name.unwrap_or_else(|| "an error".to_owned()),
            meaning: meaning.unwrap_or_else(|| "the driver does not say more".to_owned()),
        })
    }

    fn text(
        &self,
        function: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
        code: Code,
    ) -> Option<String> {
        let mut text = ptr::null();
        // SAFETY: the call writes a pointer to a constant string of the driver's, or null.
        unsafe {
            let done = function(code, &raw mut text) == CUresult::CUDA_SUCCESS as Code;
            if done { constant_text(text) } else { None }
        }
    }
}
