//! NVIDIA's runtime compiler, asked for what its assembler says of registers.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr;

use libloading::Library;

use super::{Facts, Toolchain};
use crate::gpu::{Architecture, Code, HEADERS};

type Program = *mut c_void;

/// The library with the functions that are needed.
#[derive(Debug)]
pub(super) struct Nvrtc {
    library: Library,
    _builtins: Option<Library>,
}

impl Nvrtc {
    /// Finds it at `CALIBRATE_NVRTC`, else by its name where the loader looks.
    pub(super) fn find() -> Option<Self> {
        let mut paths: Vec<PathBuf> =
            ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"].map(PathBuf::from).into();
        if let Some(path) = std::env::var_os("CALIBRATE_NVRTC") {
            paths = vec![PathBuf::from(path)];
        }
        for path in paths {
            // The library opens its other half by name, and finds it if that is open by then.
            let beside = path.parent().and_then(|folder| std::fs::read_dir(folder).ok());
            let builtins = beside.into_iter().flatten().flatten().find(|entry| {
                entry.file_name().to_string_lossy().starts_with("libnvrtc-builtins.so.")
            });
            // SAFETY: NVIDIA's libraries have no initialisers that a test could not bear.
            let builtins = builtins.and_then(|entry| unsafe { Library::new(entry.path()) }.ok());
            // SAFETY: likewise.
            if let Ok(library) = unsafe { Library::new(&path) } {
                return Some(Self { library, _builtins: builtins });
            }
        }
        None
    }

    /// A text or an image that the library makes of a program, by the functions that say how long it is
    /// and that write it.
    fn part(&self, program: Program, size: &[u8], write: &[u8]) -> Vec<u8> {
        type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
        type Write = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
        let mut length = 0;
        // SAFETY: the types are those of NVRTC's header, the program is alive, and the buffer is
        // as long as the library says.
        unsafe {
            let size = self.library.get::<Size>(size).unwrap();
            let write = self.library.get::<Write>(write).unwrap();
            size(program, &raw mut length);
            let mut bytes = vec![0_u8; length + 1];
            write(program, bytes.as_mut_ptr().cast());
            bytes.truncate(length);
            bytes
        }
    }

    /// The machine code of a kernel, and what was said of it.
    fn build(&self, code: &Code, architecture: &Architecture) -> Result<Built, String> {
        type Create = unsafe extern "C" fn(
            *mut Program,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> c_int;
        type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
        type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;

        let c_strings = |texts: Vec<String>| -> Vec<CString> {
            texts.into_iter().map(|text| CString::new(text).unwrap()).collect()
        };
        let pointers =
            |strings: &[CString]| strings.iter().map(|text| text.as_ptr()).collect::<Vec<_>>();
        let text = CString::new(code.text.as_str()).unwrap();
        let names = c_strings(HEADERS.iter().map(|(name, _)| (*name).to_owned()).collect());
        let texts = c_strings(HEADERS.iter().map(|(_, text)| (*text).to_owned()).collect());
        let mut options = vec![
            format!("--gpu-architecture={}", architecture.name),
            String::from("-std=c++17"),
            String::from("-default-device"),
            String::from("--ptxas-options=-v"),
            String::from("-DPORT_CUDA"),
        ];
        options.extend(architecture.defines());
        let options = c_strings(options);
        let mut program = ptr::null_mut();
        // SAFETY: the types are those of NVRTC's header, all strings outlive the calls, and there
        // are as many as the counts say.
        let (result, built) = unsafe {
            let create = self.library.get::<Create>(b"nvrtcCreateProgram\0").unwrap();
            let compile = self.library.get::<Compile>(b"nvrtcCompileProgram\0").unwrap();
            let destroy = self.library.get::<Destroy>(b"nvrtcDestroyProgram\0").unwrap();
            let (names, texts) = (pointers(&names), pointers(&texts));
            let created = create(
                &raw mut program,
                text.as_ptr(),
                c"kernel.cu".as_ptr(),
                names.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            );
            assert_eq!(created, 0);
            let result = compile(program, options.len() as c_int, pointers(&options).as_ptr());
            let log = self.part(program, b"nvrtcGetProgramLogSize\0", b"nvrtcGetProgramLog\0");
            let log = String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned();
            let image = if result == 0 {
                self.part(program, b"nvrtcGetCUBINSize\0", b"nvrtcGetCUBIN\0")
            } else {
                Vec::new()
            };
            destroy(&raw mut program);
            (result, Built { log, image })
        };
        if result == 0 { Ok(built) } else { Err(built.log) }
    }

    /// The machine code of a kernel.
    pub(super) fn image(
        &self,
        code: &Code,
        architecture: &Architecture,
    ) -> Result<Vec<u8>, String> {
        self.build(code, architecture).map(|built| built.image)
    }
}

/// What became of a kernel.
struct Built {
    log: String,
    image: Vec<u8>,
}

impl Toolchain for Nvrtc {
    fn compile(&self, code: &Code, architecture: &Architecture) -> Result<Facts, String> {
        let log = self.build(code, architecture)?.log;
        // Or the compiler makes every `wgmma` wait for the one before (C7510 and others), or does
        // without the registers that a warpgroup asks for (C7508).
        let ignored = log.contains("serialized") || log.contains("setmaxnreg");
        if ignored { Err(log) } else { facts(&log) }
    }
}

/// What `ptxas -v` says of a kernel.
fn facts(log: &str) -> Result<Facts, String> {
    let before = |unit: &str| -> Option<u32> {
        let end = log.find(unit)?;
        log[..end].rsplit([' ', '\n', '\t']).next()?.parse().ok()
    };
    let found = || {
        Some(Facts {
            registers: before(" registers")?,
            spilled_bytes: before(" bytes spill stores")?,
            stack_bytes: before(" bytes stack frame")?,
        })
    };
    found().ok_or_else(|| format!("the assembler says nothing of registers:\n{log}"))
}

#[test]
fn what_the_assembler_says_is_read() {
    let log = "ptxas info    : 16 bytes gmem\nptxas info    : Function properties for entry\n    48 \
               bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\nptxas info    : Used \
               57 registers, 384 bytes cmem[0]\n";
    let expected = Facts { registers: 57, spilled_bytes: 8, stack_bytes: 48 };
    assert_eq!(facts(log), Ok(expected));
    assert!(facts("").is_err());
}
