//! Libraries that are found while the program runs, and tables of the functions that are used.
//!
//! Nothing here panics or ends the process: a library that is missing, is none, is for another
//! machine or lacks a function is an error that says which and what to do.

use std::error::Error as _;
use std::ffi::{CStr, OsStr, c_char};
use std::fmt;
use std::path::{Path, PathBuf};

/// A library that is open.
///
/// It stays open until the process ends. Vendors' libraries start threads and have work to do at
/// exit, so that closing one is not safe, and so function pointers of a table are always valid.
#[derive(Debug, Clone)]
pub(crate) struct OpenLibrary {
    handle: &'static libloading::Library,
    /// What it was opened as: a path, or a name for the system's loader.
    pub(crate) opened_as: PathBuf,
}

/// Why a library cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// The system does not load it.
    Load(String),
    /// It lacks a function that is needed.
    Symbol(&'static str),
    /// It does not fit the rest, for this reason.
    Unfit(String),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(why) | Self::Unfit(why) => f.write_str(why),
            Self::Symbol(symbol) => write!(f, "it has no function {symbol}"),
        }
    }
}

impl OpenLibrary {
    /// Opens a path, or a name that the system's loader looks for.
    pub(crate) fn open(name: &OsStr) -> Result<Self, Unusable> {
        // The loader looks for a bare name in its own folders, and never in the current one.
        let file = Path::new(name);
        if file.is_absolute() && super::elf::is_cut(file) {
            return Err(Unusable::Load("the file is not whole".to_owned()));
        }
        let handle = load(name).map_err(|error| {
            // The outer error only names the function that failed.
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            Unusable::Load(why)
        })?;
        Ok(Self { handle: Box::leak(Box::new(handle)), opened_as: name.into() })
    }

    /// A function, if there is one with this name.
    ///
    /// # Safety
    ///
    /// `F` must be a function pointer, and the type of the function.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: the caller knows the type.
        let found = unsafe { self.handle.get::<F>(name) };
        found.ok().map(|symbol| *symbol)
    }

    /// The file that it is, given one of its functions.
    pub(crate) fn file(&self, function: &'static str) -> PathBuf {
        // SAFETY: the pointer is not called.
        let address = unsafe { self.function::<*const std::ffi::c_void>(function) };
        address.and_then(file_of).unwrap_or_else(|| self.opened_as.clone())
    }
}

/// All of the symbols of a library are bound when it is loaded, so that one that is missing is an
/// error here and not the end of the process at the first call.
#[cfg(unix)]
fn load(name: &OsStr) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: the initialisers of vendors' libraries have no preconditions.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

#[cfg(not(unix))]
fn load(name: &OsStr) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: the initialisers of vendors' libraries have no preconditions.
    unsafe { libloading::Library::new(name) }
}

/// The file that the loader took a function from.
#[cfg(unix)]
fn file_of(address: *const std::ffi::c_void) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the call takes any address, and writes one `Dl_info`.
    let found = unsafe { libc::dladdr(address, info.as_mut_ptr()) } != 0;
    // SAFETY: zeros are a valid `Dl_info`.
    let info = unsafe { info.assume_init() };
    if !found || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: it is a C string that lives as long as the library, which is not closed.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(Path::new(OsStr::from_bytes(name.to_bytes())).to_owned())
}

#[cfg(not(unix))]
fn file_of(_address: *const std::ffi::c_void) -> Option<PathBuf> {
    None
}

/// Declares a table of a library's functions: a struct of function pointers, with those that not
/// every version has as `Option`s, and `resolve`, which fills it.
macro_rules! function_table {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Table:ident {
            required {
                $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;)*
            }
            optional {
                $(fn $extra:ident($($extra_argument:ident: $extra_type:ty),* $(,)?)
                    -> $extra_result:ty;)*
            }
        }
    ) => {
        $(#[$meta])*
        #[allow(non_snake_case, reason = "these are the names in the vendor's headers")]
        #[derive(Debug, Clone, Copy)]
        $vis struct $Table {
            $(pub(crate) $name: unsafe extern "C" fn($($argument: $type),*) -> $result,)*
            $(pub(crate) $extra:
                Option<unsafe extern "C" fn($($extra_argument: $extra_type),*) -> $extra_result>,)*
        }

        impl $Table {
            /// The functions that must be there.
            #[cfg(test)]
            #[allow(dead_code, reason = "tests only build some of the libraries")]
            $vis const REQUIRED: &[&str] = &[$(stringify!($name)),*];

            /// Finds the functions in a library that is open.
            $vis fn resolve(
                library: &$crate::gpu::library::OpenLibrary,
            ) -> Result<Self, $crate::gpu::library::Unusable> {
                use $crate::gpu::library::Unusable;
                Ok(Self {
                    // SAFETY: the types are those of the vendor's headers, of all versions that
                    // are supported.
                    $($name: unsafe { library.function(stringify!($name)) }
                        .ok_or(Unusable::Symbol(stringify!($name)))?,)*
                    // SAFETY: as above.
                    $($extra: unsafe { library.function(stringify!($extra)) },)*
                })
            }
        }
    };
}

/// Calls a function of a table and turns its code into a `Result`, with the table's `check`.
macro_rules! call {
    ($table:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let code = ($table.$function)($($argument),*);
        $table.check(stringify!($function), code)
    }};
}

pub(crate) use {call, function_table};

/// Bytes of a library's text that are read. What it has to say is a sentence.
const MOST_TEXT: usize = 1000;

/// The text of a C string that a library keeps, cut where it is very long; `None` for a null pointer.
///
/// # Safety
///
/// The pointer must be null, or that of a string that ends with a zero and is not freed.
pub(crate) unsafe fn constant_text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's guarantee.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    let read = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_TEXT)]);
    Some(if bytes.len() > MOST_TEXT { format!("{read}...") } else { read.into_owned() })
}

/// The text that a C function left in a buffer, up to its zero.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}

#[cfg(test)]
mod tests;
