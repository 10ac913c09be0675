//! Stand-ins of the vendor's libraries, and a program that finds no others.

use std::path::PathBuf;
use std::time::Duration;

use assert_cmd::Command;
use tempfile::TempDir;

use super::libraries::{BUILTINS, libraries};

/// A setting for runs that measure the ceilings. What lies beyond the caches of some devices, half a
/// gigabyte, keeps the emulation busy for longer than a kernel may take.
pub(super) const LITTLE_MEMORY: &str = "memory 67108864";
/// The vendors' libraries of kernels have none here.
const LIBRARIES: [&str; 6] = [
    "libcuda.so.1",
    "libnvidia-ml.so.1",
    "libnvrtc.so.12",
    BUILTINS,
    "libamdhip64.so.6",
    "libhiprtc.so.6",
];

/// A folder to work in, with stand-ins that do what `settings` say (see `device.h` next to their
/// sources); `None` where there is no compiler to build them with.
pub(super) struct StandIns {
    pub(super) folder: TempDir,
    /// Whose libraries have devices.
    pub(super) backend: &'static str,
}

impl StandIns {
    pub(super) fn new(settings: &str) -> Option<Self> {
        let built = libraries()?;
        let folder = tempfile::tempdir().unwrap();
        let libraries = folder.path().join("lib");
        std::fs::create_dir(&libraries).unwrap();
        for name in LIBRARIES {
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
