//! Which version a program has loaded.

use std::ffi::{CStr, c_char};

/// The version of this interface. It rises when a call or a struct changes; calls that are added leave
/// it as it is.
pub const FCM_ABI_VERSION: u32 = 2;

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };

/// The `FCM_ABI_VERSION` that the library was built with. A program that loads the library while it
/// runs compares it with that of its header.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_abi_version() -> u32 {
    FCM_ABI_VERSION
}

/// The version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_version() -> *const c_char {
    VERSION.as_ptr()
}
