//! clang for AMD's architectures, and what the object says of registers.

use std::path::{Path, PathBuf};
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

impl Clang {
    /// Takes another text for a header from here on.
    pub(super) fn replace(&self, header: &str, text: &str) {
        std::fs::write(self.folder.path().join(header), text).unwrap();
    }

    /// Compiles a kernel, as far as `more` options say, to the file of this name.
    fn run(
        &self,
        code: &Code,
        architecture: &Architecture,
        more: &[&str],
        made: &Path,
    ) -> Result<(), String> {
        let source = made.with_extension("hip");
        std::fs::write(&source, &code.text).unwrap();
        let output = Command::new(COMPILER)
            .args(["-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", "-O3"])
            .args(["-std=c++17", "--no-gpu-bundle-output", "-DPORT_HIP"])
            .arg(format!("--offload-arch={}", architecture.name))
            .args(architecture.defines())
            .arg(format!("-I{}", self.folder.path().display()))
            .args(more)
            .arg(&source)
            .arg("-o")
            .arg(made)
            .output()
            .unwrap();
        std::fs::remove_file(source).unwrap();
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    fn file(&self, code: &Code, architecture: &Architecture, ending: &str) -> PathBuf {
        self.folder.path().join(format!("{}.{}.{ending}", code.entry, architecture.name))
    }

    /// The text of the machine code of a kernel.
    pub(super) fn assembly(
        &self,
        code: &Code,
        architecture: &Architecture,
    ) -> Result<String, String> {
        let file = self.file(code, architecture, "s");
        self.run(code, architecture, &["-S"], &file)?;
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(file).unwrap();
        Ok(text)
    }
}

impl Toolchain for Clang {
    fn compile(&self, code: &Code, architecture: &Architecture) -> Result<Facts, String> {
        let object = self.file(code, architecture, "o");
        self.run(code, architecture, &[], &object)?;
        let facts = read(&object);
        std::fs::remove_file(object).unwrap();
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
