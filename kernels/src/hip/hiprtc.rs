//! AMD's runtime compiler itself. Some versions end the process on an architecture or a program
//! that they cannot handle, so it only runs in the compile worker.

use std::ffi::{CString, c_char, c_int};
use std::path::PathBuf;
use std::ptr;

use super::raw::{HIPRTC_ERROR_COMPILATION, HIPRTC_SUCCESS, Hiprtc, hiprtcProgram};
use crate::gpu::library::{call, text_of};
use crate::gpu::search::{MissingLibrary, Search, Wanted};
use crate::gpu::{Compiled, DeviceError, Source};

/// From ROCm 7 on it is only a library of its own; before ROCm 5.3, only a part of the runtime.
const LIBRARY: Wanted<'static> = Wanted {
    what: "AMD's runtime compiler hiprtc",
    names: &[
        "libhiprtc.so.8",
        "libhiprtc.so.7",
        "libhiprtc.so.6",
        "libhiprtc.so.5",
        "libhiprtc.so",
        "libamdhip64.so.6",
        "libamdhip64.so.5",
        "libamdhip64.so",
    ],
    advice: "install ROCm's package hip-runtime-amd, or name the folder of the library",
};

/// hiprtc, in this process.
#[derive(Debug)]
pub(crate) struct HiprtcLibrary {
    hiprtc: Hiprtc,
    /// The name with the version of the file, since the number that the library reports is the
    /// same for many releases.
    pub(crate) version: String,
    /// The file of the library.
    pub(crate) path: PathBuf,
}

/// What came of a program.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Machine code.
    Compiled(Compiled),
    /// The program is wrong, as the log says.
    Refused(String),
}

impl HiprtcLibrary {
    /// Finds the library.
    pub(crate) fn find(search: &Search) -> Result<Self, MissingLibrary> {
        let found = search.open(&LIBRARY, Hiprtc::resolve)?;
        let hiprtc = found.table;
        let path = found.library.file("hiprtcVersion");
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the call writes two numbers.
        let code = unsafe { call!(hiprtc, hiprtcVersion(&raw mut major, &raw mut minor)) };
        let number = match code {
            Ok(()) => format!("{major}.{minor}"),
            Err(_) => "of unknown version".to_owned(),
        };
        // Behind the link that the loader followed is the name with the whole version.
        let file = path.canonicalize().unwrap_or_else(|_| path.clone());
        let file = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { hiprtc, version: format!("{number} ({file})"), path })
    }

    /// Compiles a program with options.
    pub(crate) fn compile(
        &self,
        source: &Source<'_>,
        options: &[String],
    ) -> Result<Outcome, DeviceError> {
        let program = Program::new(&self.hiprtc, source)?;
        let options =
            options.iter().map(|option| c_string(option)).collect::<Result<Vec<_>, _>>()?;
        let mut pointers: Vec<*const c_char> = options.iter().map(|text| text.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or_default();
        // SAFETY: the program is alive, and there are `count` C strings.
        let code = unsafe {
            (self.hiprtc.hiprtcCompileProgram)(program.handle, count, pointers.as_mut_ptr())
        };
        let log = self.log(&program)?;
        match code {
            HIPRTC_SUCCESS => Ok(Outcome::Compiled(Compiled { image: self.image(&program)?, log })),
            HIPRTC_ERROR_COMPILATION => Ok(Outcome::Refused(log)),
            _ => {
                self.hiprtc.check("hiprtcCompileProgram", code)?;
                Ok(Outcome::Refused(log))
            }
        }
    }

    fn log(&self, program: &Program<'_>) -> Result<String, DeviceError> {
        let mut bytes = 0;
        // SAFETY: the program is alive, and the call writes one number.
        unsafe { call!(self.hiprtc, hiprtcGetProgramLogSize(program.handle, &raw mut bytes)) }?;
        if bytes == 0 {
            return Ok(String::new());
        }
        let mut log = vec![0_u8; bytes + 1];
        let to = log.as_mut_ptr().cast();
        // SAFETY: the buffer has as many bytes as the library asked for.
        unsafe { call!(self.hiprtc, hiprtcGetProgramLog(program.handle, to)) }?;
        Ok(text_of(&log))
    }

    fn image(&self, program: &Program<'_>) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = 0;
        // SAFETY: the program is alive, and the call writes one number.
        unsafe { call!(self.hiprtc, hiprtcGetCodeSize(program.handle, &raw mut bytes)) }?;
        let mut image = vec![0_u8; bytes];
        let to = image.as_mut_ptr().cast();
        // SAFETY: the buffer has as many bytes as the library asked for.
        unsafe { call!(self.hiprtc, hiprtcGetCode(program.handle, to)) }?;
        Ok(image)
    }
}

/// A program of hiprtc's.
struct Program<'a> {
    hiprtc: &'a Hiprtc,
    handle: hiprtcProgram,
}

impl<'a> Program<'a> {
    fn new(hiprtc: &'a Hiprtc, source: &Source<'_>) -> Result<Self, DeviceError> {
        let text = c_string(source.text)?;
        let name = c_string(source.name)?;
        let mut names = Vec::new();
        let mut texts = Vec::new();
        for (name, text) in source.headers {
            names.push(c_string(name)?);
            texts.push(c_string(text)?);
        }
        let pointers =
            |strings: &[CString]| strings.iter().map(|text| text.as_ptr()).collect::<Vec<_>>();
        let (mut name_pointers, mut text_pointers) = (pointers(&names), pointers(&texts));
        let count = c_int::try_from(names.len()).unwrap_or_default();
        let mut handle = ptr::null_mut();
        // SAFETY: all are C strings, as many as the count says, and the library copies them.
        unsafe {
            call!(
                hiprtc,
                hiprtcCreateProgram(
                    &raw mut handle,
                    text.as_ptr(),
                    name.as_ptr(),
                    count,
                    text_pointers.as_mut_ptr(),
                    name_pointers.as_mut_ptr(),
                )
            )
        }?;
        Ok(Self { hiprtc, handle })
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is alive, and nothing else owns its handle.
        unsafe { (self.hiprtc.hiprtcDestroyProgram)(&raw mut self.handle) };
    }
}

fn c_string(text: &str) -> Result<CString, DeviceError> {
    CString::new(text)
        .map_err(|_| DeviceError::Unsupported("a program contains a zero byte".to_owned()))
}
