//! The strings and arrays of callers.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::slice;
use std::str;

use crate::error::Error;

/// The text of a caller.
///
/// # Safety
///
/// `text` is null, or ends with a NUL and stays as it is for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Error> {
    // SAFETY: what the caller of this function promises.
    let text = unsafe { c_str(text, what) }?;
    text.to_str().map_err(|error| Error::argument(format!("{what} is not UTF-8: {error}")))
}

/// The path of a file, of any bytes where the system allows that.
///
/// # Safety
///
/// As [`text`].
pub(crate) unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path, Error> {
    #[cfg(unix)]
    {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        // SAFETY: what the caller of this function promises.
        let path = unsafe { c_str(path, "path") }?;
        Ok(Path::new(OsStr::from_bytes(path.to_bytes())))
    }
    #[cfg(not(unix))]
    {
        // SAFETY: what the caller of this function promises.
        let path = unsafe { text(path, "path") }?;
        Ok(Path::new(path))
    }
}

unsafe fn c_str<'a>(text: *const c_char, what: &str) -> Result<&'a CStr, Error> {
    if text.is_null() {
        return Err(Error::null(what));
    }
    // SAFETY: it is not null, and ends with a NUL as the callers of this module promise.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// A text with a length, which may be large and has no NUL.
///
/// # Safety
///
/// As [`array`].
pub(crate) unsafe fn text_of_length<'a>(
    text: *const c_char,
    length: usize,
    what: &str,
) -> Result<&'a str, Error> {
    // SAFETY: what the caller of this function promises.
    let bytes = unsafe { array(text.cast::<u8>(), length, what) }?;
    str::from_utf8(bytes).map_err(|error| Error::argument(format!("{what} is not UTF-8: {error}")))
}

/// The array of a caller. One without elements may be null.
///
/// # Safety
///
/// `first` is null, or leads to `count` elements that stay as they are for `'a`.
pub(crate) unsafe fn array<'a, T>(
    first: *const T,
    count: usize,
    what: &str,
) -> Result<&'a [T], Error> {
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(Error::null(what));
    }
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Error::argument(format!("{what} cannot have {count} elements")));
    }
    // SAFETY: it is not null, has `count` elements as the caller promises, and is not too large.
    Ok(unsafe { slice::from_raw_parts(first, count) })
}

/// A text of this library for C. None of them has a NUL.
pub(crate) fn c_string(text: String) -> CString {
    CString::new(text).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ptr::null;

    use super::*;

    /// A text that this library gave out.
    pub(crate) fn read(text: *const c_char) -> String {
        assert!(!text.is_null());
        // SAFETY: this library ends its texts with a NUL, and a test keeps the object that owns it.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn texts_are_checked() {
        // SAFETY: all of them are null or end with a NUL.
        unsafe {
            assert_eq!(text(c"relu".as_ptr(), "op").unwrap(), "relu");
            assert!(text(null(), "op").is_err());
            assert!(text(c"\xff".as_ptr(), "op").is_err());
        }
    }

    #[test]
    fn arrays_are_checked() {
        let three = [1_u64, 2, 3];
        // SAFETY: all of them are null or have three elements, but for the last, which is refused.
        unsafe {
            assert_eq!(array(three.as_ptr(), 3, "numbers").unwrap(), three);
            assert!(array::<u64>(null(), 0, "numbers").unwrap().is_empty());
            assert!(array::<u64>(null(), 3, "numbers").is_err());
            assert!(array(three.as_ptr(), usize::MAX, "numbers").is_err());
        }
    }
}
