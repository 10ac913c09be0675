//! NVIDIA's runtime compiler.

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::path::{Path, PathBuf};
use std::ptr;

use cudarc::nvrtc::sys::{nvrtcProgram, nvrtcResult};

use super::functions::{Code, Nvrtc};
use crate::gpu::compiler_log::first_errors;
use crate::gpu::library::{OpenLibrary, Unusable, call, text_of};
use crate::gpu::search::{MissingLibrary, Search, Wanted};
use crate::gpu::{Architecture, Compiled, Compiler, DeviceError, Source};

const LIBRARY: Wanted<'static> = Wanted {
    what: "NVIDIA's runtime compiler NVRTC",
    names: if cfg!(windows) {
        &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"]
    } else {
        &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"]
    },
    advice: "install the CUDA toolkit or the Python package nvidia-cuda-nvrtc, of the driver's \
             CUDA version, or name the folder of the library",
};

/// The first version of NVRTC that compiles for an architecture, from the release notes of the CUDA
/// toolkits.
const KNOWN_FROM: [(&str, (u32, u32)); 14] = [
    ("sm_75", (10, 0)),
    ("sm_80", (11, 0)),
    ("sm_86", (11, 1)),
    ("sm_87", (11, 4)),
    ("sm_88", (13, 0)),
    ("sm_89", (11, 8)),
    ("sm_90", (11, 8)),
    ("sm_90a", (12, 0)),
    ("sm_100", (12, 8)),
    ("sm_101", (12, 8)),
    ("sm_103", (12, 9)),
    ("sm_110", (13, 0)),
    ("sm_120", (12, 8)),
    ("sm_121", (12, 9)),
];

/// NVRTC, in this process.
#[derive(Debug)]
pub(crate) struct NvrtcCompiler {
    nvrtc: Nvrtc,
    number: (u32, u32),
    version: String,
    /// The file of the library.
    pub(crate) path: PathBuf,
}

impl NvrtcCompiler {
    /// Finds the library. One that is newer than the driver is of no use to it, since it does not
    /// load what that compiles: `driver` is the CUDA version that the driver implements.
    pub(crate) fn find(
        search: &Search,
        driver: Option<(u32, u32)>,
    ) -> Result<Self, MissingLibrary> {
        let found = search.open(&LIBRARY, |library| {
            open_builtins(&library.opened_as);
            let nvrtc = Nvrtc::resolve(library)?;
            let number = version_of(&nvrtc)?;
            match driver {
                Some(driver) if number.0 > driver.0 => Err(Unusable::Unfit(format!(
                    "it is of CUDA {}.{}, and the driver only of {}.{}",
                    number.0, number.1, driver.0, driver.1
                ))),
                _ => Ok((nvrtc, number)),
            }
        })?;
        let (nvrtc, number) = found.table;
        let version = format!("NVRTC {}.{}", number.0, number.1);
        Ok(Self { nvrtc, number, version, path: found.library.file("nvrtcVersion") })
    }

    /// Why it does not compile for an architecture; `None` if it does, as far as is known.
    pub(crate) fn unknown(&self, architecture: &Architecture) -> Option<String> {
        let &(name, (major, minor)) =
            KNOWN_FROM.iter().find(|(name, _)| *name == architecture.name)?;
        (self.number < (major, minor)).then(|| {
            format!("{name} needs NVRTC {major}.{minor} or later, and this is {}", self.version)
        })
    }

    /// Such as `12.4`.
    pub(crate) fn number_text(&self) -> String {
        format!("{}.{}", self.number.0, self.number.1)
    }

    fn log(&self, program: &Program<'_>) -> Result<String, DeviceError> {
        let mut bytes = 0;
        // SAFETY: the program is alive, and the call writes one number.
        unsafe { call!(self.nvrtc, nvrtcGetProgramLogSize(program.handle, &raw mut bytes)) }?;
        let mut log = vec![0_u8; bytes + 1];
        // SAFETY: the buffer has as many bytes as the library asked for.
        unsafe { call!(self.nvrtc, nvrtcGetProgramLog(program.handle, log.as_mut_ptr().cast())) }?;
        Ok(text_of(&log))
    }

    fn image(&self, program: &Program<'_>) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = 0;
        // SAFETY: the program is alive, and the call writes one number.
        unsafe { call!(self.nvrtc, nvrtcGetCUBINSize(program.handle, &raw mut bytes)) }?;
        let mut image = vec![0_u8; bytes];
        // SAFETY: the buffer has as many bytes as the library asked for.
        unsafe { call!(self.nvrtc, nvrtcGetCUBIN(program.handle, image.as_mut_ptr().cast())) }?;
        Ok(image)
    }
}

impl Compiler for NvrtcCompiler {
    fn version(&self) -> &str {
        &self.version
    }

    fn options(&self, architecture: &Architecture) -> Vec<String> {
        let mut options = vec![
            format!("--gpu-architecture={}", architecture.name),
            "-std=c++17".to_owned(),
            "-default-device".to_owned(),
            "-DPORT_CUDA".to_owned(),
        ];
        options.extend(architecture.defines());
        options
    }

    fn compile(
        &self,
        source: &Source<'_>,
        architecture: &Architecture,
    ) -> Result<Compiled, DeviceError> {
        if let Some(why) = self.unknown(architecture) {
            return Err(DeviceError::Unsupported(why));
        }
        let program = Program::new(&self.nvrtc, source)?;
        let options = self
            .options(architecture)
            .into_iter()
            .map(|option| c_string(&option, "an option"))
            .collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or_default();
        // SAFETY: the program is alive, and there are that many C strings.
        let code =
            unsafe { (self.nvrtc.nvrtcCompileProgram)(program.handle, count, pointers.as_ptr()) };
        let log = self.log(&program)?;
        match code {
            _ if code == nvrtcResult::NVRTC_SUCCESS as Code => {
                Ok(Compiled { image: self.image(&program)?, log })
            }
            _ if code == nvrtcResult::NVRTC_ERROR_COMPILATION as Code => {
                Err(DeviceError::Compile {
                    compiler: self.version.clone(),
                    kernel: source.name.to_owned(),
                    architecture: architecture.name.clone(),
                    log: first_errors(&log),
                })
            }
            _ if code == nvrtcResult::NVRTC_ERROR_INVALID_OPTION as Code => {
                Err(DeviceError::Unsupported(format!(
                    "{} does not know {}, and another version is needed: {}",
                    self.version,
                    architecture.name,
                    first_errors(&log)
                )))
            }
            _ => Err(self.nvrtc.error("nvrtcCompileProgram", code)),
        }
    }
}

/// A program of NVRTC's.
struct Program<'a> {
    nvrtc: &'a Nvrtc,
    handle: nvrtcProgram,
}

impl<'a> Program<'a> {
    fn new(nvrtc: &'a Nvrtc, source: &Source<'_>) -> Result<Self, DeviceError> {
        let text = c_string(source.text, source.name)?;
        let name = c_string(source.name, "a kernel's name")?;
        let mut names = Vec::new();
        let mut texts = Vec::new();
        for (name, text) in source.headers {
            names.push(c_string(name, "a header's name")?);
            texts.push(c_string(text, name)?);
        }
        let pointers =
            |strings: &[CString]| strings.iter().map(|text| text.as_ptr()).collect::<Vec<_>>();
        let (name_pointers, text_pointers) = (pointers(&names), pointers(&texts));
        let count = c_int::try_from(names.len()).unwrap_or_default();
        let mut handle = ptr::null_mut();
        // SAFETY: all are C strings, as many as the count says, and the library copies them.
        unsafe {
            call!(
                nvrtc,
                nvrtcCreateProgram(
                    &raw mut handle,
                    text.as_ptr(),
                    name.as_ptr(),
                    count,
                    text_pointers.as_ptr(),
                    name_pointers.as_ptr(),
                )
            )
        }?;
        Ok(Self { nvrtc, handle })
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is alive, and nothing else owns its handle.
        unsafe { (self.nvrtc.nvrtcDestroyProgram)(&raw mut self.handle) };
    }
}

impl Nvrtc {
    fn check(&self, function: &'static str, code: Code) -> Result<(), DeviceError> {
        match code == nvrtcResult::NVRTC_SUCCESS as Code {
            true => Ok(()),
            false => Err(self.error(function, code)),
        }
    }

    fn error(&self, function: &'static str, code: Code) -> DeviceError {
        // SAFETY: the call returns a constant string for every number, or null.
        let text = unsafe { (self.nvrtcGetErrorString)(code) };
        let name = match text.is_null() {
            true => "an error".to_owned(),
            // SAFETY: it is a constant string of the library's.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        };
        let meaning = "the runtime compiler does not say more".to_owned();
        DeviceError::Call { function, code: i64::from(code), name, meaning }
    }
}

fn version_of(nvrtc: &Nvrtc) -> Result<(u32, u32), Unusable> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the call writes two numbers.
    unsafe { call!(nvrtc, nvrtcVersion(&raw mut major, &raw mut minor)) }
        .map_err(|error| Unusable::Unfit(error.to_string()))?;
    Ok((u32::try_from(major).unwrap_or_default(), u32::try_from(minor).unwrap_or_default()))
}

/// NVRTC opens its built-in headers by name, for which the loader does not look in NVRTC's folder.
/// Open by then, they are found. Where that folder has none, the loader may know one.
fn open_builtins(library: &Path) {
    let Some(folder) = library.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return;
    };
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let prefix = if cfg!(windows) { "nvrtc-builtins" } else { "libnvrtc-builtins.so." };
        if name.to_string_lossy().starts_with(prefix) {
            let path = entry.path();
            // One that cannot be opened shows when a program is compiled.
            let _ = OpenLibrary::open(OsStr::new(&path));
        }
    }
}

fn c_string(text: &str, what: &str) -> Result<CString, DeviceError> {
    CString::new(text).map_err(|_| DeviceError::Unsupported(format!("{what} contains a zero byte")))
}
