//! clang for AMD's architectures, and what the object says of registers.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Facts, Toolchain};
use crate::gpu::{Architecture, Code, HEADERS};

/// The compiler with a folder for headers and objects.
#[derive(Debug)]
pub(super) struct Clang {
    folder: tempfile::TempDir,
}

const COMPILER: &str = "clang++-19";
const READER: &str = "llvm-readelf-19";

impl Clang {
    /// `None` where the compiler, its linker or the reader of objects is missing.
    pub(super) fn find() -> Option<Self> {
        for tool in [COMPILER, READER, "ld.lld-19"] {
            let run = Command::new(tool).arg("--version").stdout(Stdio::null()).status();
            run.ok().filter(std::process::ExitStatus::success)?;
        }
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in HEADERS {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Some(Self { folder })
    }
}

impl Toolchain for Clang {
    fn compile(&self, code: &Code, architecture: &Architecture) -> Result<Facts, String> {
        let source = self.folder.path().join(format!("{}.{}.hip", code.entry, architecture.name));
        let object = source.with_extension("o");
        std::fs::write(&source, &code.text).unwrap();
        let output = Command::new(COMPILER)
            .args(["-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", "-O3"])
            .args(["-std=c++17", "--no-gpu-bundle-output", "-DPORT_HIP"])
            .arg(format!("--offload-arch={}", architecture.name))
            .args(architecture.defines())
            .arg(format!("-I{}", self.folder.path().display()))
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .output()
            .unwrap();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let facts = read(&object);
        for file in [source, object] {
            std::fs::remove_file(file).unwrap();
        }
        facts
    }
}

fn read(object: &Path) -> Result<Facts, String> {
    let output = Command::new(READER).arg("--notes").arg(object).output().unwrap();
    facts(&String::from_utf8_lossy(&output.stdout))
}

/// What the metadata of a kernel's object says.
fn facts(notes: &str) -> Result<Facts, String> {
    let number = |key: &str| -> Option<u32> {
        let line = notes.lines().find(|line| line.trim_start().starts_with(key))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    let found = || {
        // Scalar registers are spilled to lanes of a vector register, which is not memory.
        Some(Facts {
            registers: number(".vgpr_count:")?,
            spilled_bytes: 4 * number(".vgpr_spill_count:")?,
            stack_bytes: number(".private_segment_fixed_size:")?,
        })
    };
    found().ok_or_else(|| format!("the object says nothing of registers:\n{notes}"))
}

#[test]
fn what_the_object_says_is_read() {
    let notes = "    .private_segment_fixed_size: 16\n    .sgpr_count:     20\n    \
                 .sgpr_spill_count: 1\n    .vgpr_count:     48\n    .vgpr_spill_count: 2\n";
    let expected = Facts { registers: 48, spilled_bytes: 8, stack_bytes: 16 };
    assert_eq!(facts(notes), Ok(expected));
    assert!(facts("").is_err());
}
