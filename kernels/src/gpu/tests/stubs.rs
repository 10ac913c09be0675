//! Small C libraries that tests build in place of vendors'.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A folder of libraries.
pub(crate) struct Stubs(TempDir);

impl Stubs {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file with any contents.
    pub(crate) fn write(&self, name: &str, contents: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, contents).unwrap();
        path
    }

    /// A library of a C source; `None` where there is no compiler.
    pub(crate) fn build(&self, name: &str, source: &str) -> Option<PathBuf> {
        let text = self.write(&format!("{name}.c"), source.as_bytes());
        let path = self.path().join(name);
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-w", "-o"]).arg(&path).arg(&text);
        let Ok(output) = compiler.output() else {
            skipped("a C compiler");
            return None;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(path)
    }

    /// A library with these functions, all of which return a number, and with some more source,
    /// which has those that do not.
    pub(crate) fn build_returning(
        &self,
        name: &str,
        functions: &[&str],
        number: i32,
        more: &str,
    ) -> Option<PathBuf> {
        let mut source = format!("#include <stddef.h>\n#include <string.h>\n{more}\n");
        for function in functions.iter().filter(|name| !more.contains(&format!("{name}("))) {
            writeln!(source, "int {function}() {{ return {number}; }}").unwrap();
        }
        self.build(name, &source)
    }
}

/// Says that a test did nothing, which is a failure where everything should be there.
pub(crate) fn skipped(tool: &str) {
    let needed = std::env::var_os("CALIBRATE_NEEDS_GPU_TOOLS").is_some();
    assert!(!needed, "{tool} is missing");
    eprintln!("skipped: {tool} is missing");
}
