//! The checked layer: the codes of HIP's functions as errors with their names.

use std::ffi::c_char;

use super::raw::{HIPRTC_SUCCESS, Hip, Hiprtc, hipError_t, hipSuccess, hiprtcResult};
use crate::gpu::DeviceError;
use crate::gpu::library::constant_text;

impl Hip {
    /// The code of a call as a `Result`.
    pub(super) fn check(
        &self,
        function: &'static str,
        code: hipError_t,
    ) -> Result<(), DeviceError> {
        if code == hipSuccess {
            return Ok(());
        }
        // SAFETY: the calls return constant strings for every number, or null.
        let (name, meaning) =
            unsafe { (text((self.hipGetErrorName)(code)), text((self.hipGetErrorString)(code))) };
        Err(DeviceError::Call { function, code: i64::from(code), name, meaning })
    }
}

impl Hiprtc {
    /// The code of a call as a `Result`.
    pub(super) fn check(
        &self,
        function: &'static str,
        code: hiprtcResult,
    ) -> Result<(), DeviceError> {
        if code == HIPRTC_SUCCESS {
            return Ok(());
        }
        // SAFETY: the call returns a constant string for every number, or null.
        let name = unsafe { text((self.hiprtcGetErrorString)(code)) };
        let meaning = "the runtime compiler does not say more".to_owned();
        Err(DeviceError::Call { function, code: i64::from(code), name, meaning })
    }
}

/// The text of an error.
///
/// # Safety
///
/// The pointer must be null or that of a constant string.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: the caller's guarantee.
    unsafe { constant_text(text) }.unwrap_or_else(|| "an unknown error".to_owned())
}
