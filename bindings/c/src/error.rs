//! How a call says that it failed.

use std::any::Any;
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fusion_cost_model as fcm;

/// The status of a call: `FCM_OK`, or the kind of the error.
pub type Status = u32;

/// Success.
pub const FCM_OK: Status = 0;
/// An argument is NULL, is not UTF-8, or is not one of the allowed numbers.
pub const FCM_INVALID_ARGUMENT: Status = 1;
/// A name is unknown; the message suggests the nearest ones.
pub const FCM_UNKNOWN_NAME: Status = 2;
/// The ops, or the two neighbours, cannot be one kernel.
pub const FCM_NOT_ONE_KERNEL: Status = 3;
/// Sizes do not belong to their chain, or no tensor can have them.
pub const FCM_INVALID_SIZES: Status = 4;
/// Something else of a question is wrong: the text of a problem, or the order of a graph's nodes.
pub const FCM_INVALID_QUESTION: Status = 5;
/// A file cannot be read.
pub const FCM_CANNOT_READ: Status = 6;
/// A file is damaged, incomplete, or has impossible values.
pub const FCM_INVALID_FILE: Status = 7;
/// A file is of another kind, such as a data sheet in the place of a calibration.
pub const FCM_WRONG_FILE: Status = 8;
/// A file was written by a version with another format.
pub const FCM_OTHER_VERSION: Status = 9;
/// A calibration is of another machine than was expected.
pub const FCM_HARDWARE_MISMATCH: Status = 10;
/// Nothing is known, and the policy is not to guess.
pub const FCM_UNDECIDED: Status = 11;
/// A bug in this library; please report the message.
pub const FCM_BUG: Status = 12;

/// What went wrong, where, and what to do about it.
#[derive(Debug)]
pub struct Error {
    status: Status,
    message: CString,
}

/// Where a call puts its error, if the caller wants to have it.
pub(crate) type Slot<'a> = Option<&'a mut MaybeUninit<Option<Box<Error>>>>;

impl Error {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        // A message may quote a file, and C's strings end at a NUL.
        let message = message.into().replace('\0', "\u{fffd}");
        Self { status, message: CString::new(message).unwrap_or_default() }
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(FCM_INVALID_ARGUMENT, message)
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::argument(format!("{what} is NULL"))
    }

    fn panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self::new(FCM_BUG, format!("a bug: {}", text.unwrap_or("a panic without a message")))
    }
}

impl From<fcm::Error> for Error {
    fn from(error: fcm::Error) -> Self {
        let status = if error.is_unknown_name() {
            FCM_UNKNOWN_NAME
        } else if error.is_not_one_kernel() {
            FCM_NOT_ONE_KERNEL
        } else if error.is_invalid_sizes() {
            FCM_INVALID_SIZES
        } else if error.is_invalid_question() {
            FCM_INVALID_QUESTION
        } else if error.is_io() {
            FCM_CANNOT_READ
        } else if error.is_invalid_file() {
            FCM_INVALID_FILE
        } else if error.is_wrong_file() {
            FCM_WRONG_FILE
        } else if error.is_other_version() {
            FCM_OTHER_VERSION
        } else if error.is_hardware_mismatch() {
            FCM_HARDWARE_MISMATCH
        } else if error.is_undecided() {
            FCM_UNDECIDED
        } else {
            FCM_BUG
        };
        Self::new(status, error.to_string())
    }
}

/// The object behind a pointer that may be null.
pub(crate) fn given<'a, T>(pointer: Option<&'a T>, what: &str) -> Result<&'a T, Error> {
    pointer.ok_or_else(|| Error::null(what))
}

/// Runs what may fail, and gives out its result.
pub(crate) fn call<T>(
    result: Option<&mut MaybeUninit<T>>,
    error: Slot<'_>,
    body: impl FnOnce() -> Result<T, Error>,
) -> Status {
    // Nothing is left half done: objects do not change, and the result is written when it is whole.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let result = result.ok_or_else(|| Error::null("the place of the result"))?;
        result.write(body()?);
        Ok(())
    }));
    let failed = ended.unwrap_or_else(|payload| Err(Error::panic(&*payload))).err();
    let status = failed.as_ref().map_or(FCM_OK, |failed| failed.status);
    if let Some(error) = error {
        error.write(failed.map(Box::new));
    }
    status
}

/// Runs what makes an object, and gives that out.
pub(crate) fn make<T>(
    mut object: Option<&mut MaybeUninit<Option<Box<T>>>>,
    error: Slot<'_>,
    body: impl FnOnce() -> Result<T, Error>,
) -> Status {
    if let Some(object) = &mut object {
        object.write(None);
    }
    call(object, error, || Ok(Some(Box::new(body()?))))
}

/// Runs what cannot fail but for a bug, which it answers with `otherwise`.
pub(crate) fn ask<T>(otherwise: T, body: impl FnOnce() -> Option<T>) -> T {
    catch_unwind(AssertUnwindSafe(body)).ok().flatten().unwrap_or(otherwise)
}

/// Which kind of error it is; `FCM_OK` of NULL.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_error_status(error: Option<&Error>) -> Status {
    error.map_or(FCM_OK, |error| error.status)
}

/// What was wrong, where, and what to do, for people. Belongs to the error; empty of NULL.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_error_message(error: Option<&Error>) -> *const c_char {
    error.map_or(c"", |error| error.message.as_c_str()).as_ptr()
}

/// Frees an error.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_error_free(error: Option<Box<Error>>) {
    drop(error);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::read;

    #[test]
    fn a_panic_is_an_error() {
        let (mut result, mut error) = (MaybeUninit::new(7), MaybeUninit::uninit());
        let status = call(Some(&mut result), Some(&mut error), || panic!("number {}", 3));
        assert_eq!(status, FCM_BUG);
        // SAFETY: `call` wrote one.
        let error = unsafe { error.assume_init() }.unwrap();
        assert_eq!(read(fcm_error_message(Some(&error))), "a bug: number 3");
        // SAFETY: it was initialised above, and is as it was.
        assert_eq!(unsafe { result.assume_init() }, 7);
        assert_eq!(ask(5, || panic!("quietly")), 5);
        fcm_error_free(Some(error));
    }

    #[test]
    fn a_message_with_a_nul_is_whole() {
        let error = Error::argument("one\0two");
        assert_eq!(read(fcm_error_message(Some(&error))), "one\u{fffd}two");
        assert_eq!(read(fcm_error_message(None)), "");
        assert_eq!(fcm_error_status(None), FCM_OK);
    }

    #[test]
    fn a_result_needs_a_place() {
        let mut error = MaybeUninit::uninit();
        let status = make::<u8>(None, Some(&mut error), || Ok(1));
        assert_eq!(status, FCM_INVALID_ARGUMENT);
        // SAFETY: `make` wrote one.
        let error = unsafe { error.assume_init() };
        assert_eq!(read(fcm_error_message(error.as_deref())), "the place of the result is NULL");
    }
}
