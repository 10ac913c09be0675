//! Stand-ins of the vendor's libraries, and a program that finds no others.

use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::OnceLock;
use std::time::Duration;

use assert_cmd::Command;
use tempfile::TempDir;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/tests/stand_in");
const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/gpu");
/// A setting for runs that measure the ceilings. What lies beyond the caches of some devices, half a
/// gigabyte, keeps the emulation busy for longer than a kernel may take.
pub(super) const LITTLE_MEMORY: &str = "memory 67108864";
const BUILTINS: &str = "libnvrtc-builtins.so.12.4";
const LIBRARIES: [(&str, &[&str]); 6] = [
    ("libcuda.so.1", &["cuda.cpp", "device.cpp", "settings.cpp", "fibers.cpp"]),
    ("libnvidia-ml.so.1", &["management.cpp", "device.cpp", "settings.cpp", "fibers.cpp"]),
    (
        "libnvrtc.so.12",
        &["nvrtc.cpp", "runtime_compiler.cpp", "device.cpp", "settings.cpp", "fibers.cpp"],
    ),
    (BUILTINS, &["host_port.h"]),
    ("libamdhip64.so.6", &["hip.cpp", "device.cpp", "settings.cpp", "fibers.cpp"]),
    (
        "libhiprtc.so.6",
        &["hiprtc.cpp", "runtime_compiler.cpp", "device.cpp", "settings.cpp", "fibers.cpp"],
    ),
];

/// The folder of the stand-ins; `None` where there is no compiler to build them with.
fn built() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<TempDir>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        if Process::new("c++").arg("--version").output().is_err() {
            let is_needed = std::env::var_os("CALIBRATE_NEEDS_GPU_TOOLS").is_some();
            assert!(!is_needed, "there is no c++ to build the stand-ins with");
            eprintln!("skipped: there is no c++ to build the stand-ins with");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for (library, sources) in LIBRARIES {
                let path = folder.path().join(library);
                scope.spawn(move || build(&path, library, sources));
            }
        });
        Some(folder)
    });
    folder.as_ref().map(TempDir::path)
}

fn build(path: &Path, library: &str, sources: &[&str]) {
    let mut command = Process::new("c++");
    command.args(["-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden"]);
    command.args(["-DPORT_HOST", "-DPORT_WARP=1", "-Wno-unknown-pragmas"]);
    command.arg(format!("-DSTAND_IN_FOLDER=\"{SOURCES}\""));
    command.arg(format!("-DSTAND_IN_BUILTINS=\"{BUILTINS}\""));
    command.args([format!("-I{HEADERS}"), format!("-I{SOURCES}")]);
    command.arg(format!("-Wl,-soname,{library}"));
    if library.contains("hip") {
        command.arg("-DSTAND_IN_HIP");
    }
    if library == BUILTINS {
        // Only its name matters.
        command.args(["-x", "c++", "/dev/null"]);
    } else {
        command.args(sources.iter().map(|source| format!("{SOURCES}/{source}")));
    }
    let output = command.arg("-o").arg(path).args(["-ldl", "-lpthread"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A folder to work in, with stand-ins that do what `settings` say (see `device.h` next to their
/// sources); `None` where there is no compiler to build them with.
pub(super) struct StandIns {
    pub(super) folder: TempDir,
    /// Whose libraries have devices.
    pub(super) backend: &'static str,
}

impl StandIns {
    pub(super) fn new(settings: &str) -> Option<Self> {
        let built = built()?;
        let folder = tempfile::tempdir().unwrap();
        let libraries = folder.path().join("lib");
        std::fs::create_dir(&libraries).unwrap();
        for (name, _) in LIBRARIES {
            std::fs::copy(built.join(name), libraries.join(name)).unwrap();
        }
        // What one test compiled, others find.
        let objects = built.join("objects");
        let is_amd = settings.contains("device gfx");
        let (backend, versions) = match is_amd {
            true => ("hip", "version 60200000\nruntime 9000"),
            false => ("cuda", "version 12040\nruntime 12040"),
        };
        let settings = format!("{versions}\nobjects {}\n{settings}\n", objects.display());
        std::fs::write(libraries.join("stand_in.txt"), settings).unwrap();
        Some(Self { folder, backend })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn calibrate(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
        command.current_dir(self.folder.path()).args(args).args(["--gpu-lib-dir", "lib"]);
        command.timeout(Duration::from_secs(570)).env("XDG_CACHE_HOME", "/dev/null");
        command
    }

    pub(super) fn measure(&self, args: &[&str]) -> Command {
        let always = ["--backend", self.backend, "--force", "--quick", "--code-cache", "code"];
        let output = ["--output", "t.toml"];
        self.calibrate(&[&always[..], &output, args].concat())
    }
}
