//! The stand-in libraries, built by the host's compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand_in");
const BUILTINS: &str = "libnvrtc-builtins.so.12.4";

/// A library: its file and the sources of it alone.
const LIBRARIES: [(&str, &[&str]); 7] = [
    ("libcuda.so.1", &["cuda.cpp"]),
    ("libnvidia-ml.so.1", &["management.cpp"]),
    ("libnvrtc.so.12", &["nvrtc.cpp", "runtime_compiler.cpp"]),
    ("libcublasLt.so.12", &["blaslt.cpp"]),
    ("libamdhip64.so.6", &["hip.cpp"]),
    ("libhipblaslt.so.0", &["blaslt.cpp"]),
    ("libhiprtc.so.6", &["hiprtc.cpp", "runtime_compiler.cpp"]),
];

/// The folder of all libraries; `None` where there is no compiler, which is an error only if the
/// environment says that it must be there.
pub(crate) fn libraries() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            if Command::new("c++").arg("--version").output().is_err() {
                let needed = std::env::var_os("CALIBRATE_NEEDS_GPU_TOOLS").is_some();
                assert!(!needed, "there is no c++ to build the stand-in libraries with");
                eprintln!("skipped: there is no c++ to build the stand-in libraries with");
                return None;
            }
            let folder = tempfile::Builder::new()
                .prefix("stand-in-")
                .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
                .unwrap()
                .keep();
            std::thread::scope(|scope| {
                for (library, sources) in LIBRARIES {
                    let folder = &folder;
                    scope.spawn(move || build(folder, library, sources));
                }
            });
            std::fs::write(folder.join("empty.cpp"), "").unwrap();
            compile(
                Command::new("c++")
                    .args(["-shared", "-fPIC", "-o"])
                    .args([folder.join(BUILTINS), folder.join("empty.cpp")])
                    .arg(format!("-Wl,-soname,{BUILTINS}")),
            );
            Some(folder)
        })
        .as_deref()
}

fn build(folder: &Path, library: &str, sources: &[&str]) {
    let gpu = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/gpu");
    let mut command = Command::new("c++");
    command.args(["-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", gpu]);
    command.args(["-DPORT_HOST", "-DPORT_WARP=1", "-Wno-unknown-pragmas"]);
    command.arg(format!("-I{SOURCES}"));
    command.arg(format!("-DSTAND_IN_FOLDER=\"{SOURCES}\""));
    command.arg(format!("-DSTAND_IN_BUILTINS=\"{BUILTINS}\""));
    if library.contains("hip") {
        command.arg("-DSTAND_IN_HIP");
    }
    let common = ["device.cpp", "settings.cpp", "fibers.cpp"];
    command.args(sources.iter().chain(&common).map(|name| format!("{SOURCES}/{name}")));
    // Such as those of a sanitizer.
    let more = std::env::var("CALIBRATE_STAND_IN_FLAGS").unwrap_or_default();
    command.args(more.split_whitespace());
    command.arg("-o").arg(folder.join(library)).args(["-ldl", "-lpthread"]);
    compile(&mut command);
}

fn compile(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A folder with libraries of one test's own, which share nothing with those of other tests.
pub(crate) struct StandIn {
    folder: tempfile::TempDir,
}

/// What lives in a stand-in, and what was done, in the order of `Counts` in `device.h`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Counts {
    pub(crate) allocations: i64,
    pub(crate) bytes: i64,
    pub(crate) modules: i64,
    pub(crate) events: i64,
    pub(crate) graphs: i64,
    pub(crate) streams: i64,
    pub(crate) contexts: i64,
    pub(crate) launches: i64,
    pub(crate) graph_launches: i64,
    pub(crate) programs: i64,
    pub(crate) compilations: i64,
}

impl Counts {
    /// Only what must be given back.
    pub(crate) fn alive(self) -> Self {
        Self { launches: 0, graph_launches: 0, compilations: 0, ..self }
    }
}

impl StandIn {
    /// Libraries that do what `settings` say, see `device.h`; `None` where none can be built.
    pub(crate) fn new(settings: &str) -> Option<Self> {
        let libraries = libraries()?;
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in LIBRARIES.map(|(name, _)| name).iter().chain(&[BUILTINS]) {
            std::fs::copy(libraries.join(name), folder.path().join(name)).unwrap();
        }
        let objects = libraries.join("objects");
        let settings = format!("objects {}\n{settings}\n", objects.display());
        std::fs::write(folder.path().join("stand_in.txt"), settings).unwrap();
        Some(Self { folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Takes a library away.
    pub(crate) fn without(self, library: &str) -> Self {
        std::fs::remove_file(self.folder().join(library)).unwrap();
        self
    }

    /// Takes a function out of a library: its name becomes another one.
    pub(crate) fn without_function(self, library: &str, function: &str) -> Self {
        let path = self.folder().join(library);
        let mut bytes = std::fs::read(&path).unwrap();
        let name = format!("\0{function}\0").into_bytes();
        let mut found = 0;
        for at in 0..bytes.len() - name.len() {
            if bytes[at..].starts_with(&name) {
                bytes[at + 1] = b'_';
                found += 1;
            }
        }
        assert!(found > 0, "{library} has no {function}");
        std::fs::write(path, bytes).unwrap();
        self
    }

    /// What one of the libraries counted in this process.
    pub(crate) fn counts(&self, library: &str) -> Counts {
        let mut counts = Counts::default();
        // SAFETY: `device.h` declares the function so, and it writes as many numbers as there are.
        unsafe {
            let library = libloading::Library::new(self.folder().join(library)).unwrap();
            let function =
                library.get::<unsafe extern "C" fn(*mut Counts, i32)>(c"stand_in_counts").unwrap();
            function(&raw mut counts, i32::try_from(size_of::<Counts>() / 8).unwrap());
        }
        counts
    }
}
