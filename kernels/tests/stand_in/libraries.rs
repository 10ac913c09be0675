//! The stand-in libraries, built by the host's compiler once for all test programs.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// Seen from every crate of the workspace.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/tests/stand_in");
const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/gpu");

pub(crate) const BUILTINS: &str = "libnvrtc-builtins.so.12.4";

/// A library: its file and the sources of it alone.
pub(crate) const LIBRARIES: [(&str, &[&str]); 8] = [
    ("libcuda.so.1", &["cuda.cpp"]),
    ("libnvidia-ml.so.1", &["management.cpp"]),
    ("libnvrtc.so.12", &["nvrtc.cpp", "runtime_compiler.cpp"]),
    // Only its name matters.
    (BUILTINS, &[]),
    ("libcublasLt.so.12", &["blaslt.cpp"]),
    ("libamdhip64.so.6", &["hip.cpp"]),
    ("libhipblaslt.so.0", &["blaslt.cpp"]),
    ("libhiprtc.so.6", &["hiprtc.cpp", "runtime_compiler.cpp"]),
];

/// What every library has.
const COMMON: [&str; 3] = ["device.cpp", "settings.cpp", "fibers.cpp"];

/// How long libraries of other sources are kept.
const KEPT: Duration = Duration::from_hours(24);

/// The folder of all libraries, in which there is also one, `objects`, for compiled kernels; `None`
/// where there is no compiler, which is an error only if the environment says that it must be there.
pub(crate) fn libraries() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOLDER.get_or_init(|| {
        if Command::new("c++").arg("--version").output().is_err() {
            let needed = std::env::var_os("CALIBRATE_NEEDS_GPU_TOOLS").is_some();
            assert!(!needed, "there is no c++ to build the stand-in libraries with");
            eprintln!("skipped: there is no c++ to build the stand-in libraries with");
            return None;
        }
        let all = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = all.join(format!("stand-in-{:016x}", digest()));
        if !folder.exists() {
            remove_old(all);
            let unfinished = tempfile::Builder::new().prefix("stand-in-").tempdir_in(all).unwrap();
            build(unfinished.path());
            // Another program may have been first, whose libraries are as good.
            if std::fs::rename(unfinished.path(), &folder).is_ok() {
                let _ = unfinished.keep();
            }
        }
        Some(folder)
    });
    found.as_deref()
}

/// More options for the compiler, such as those of a sanitizer.
fn more_options() -> String {
    std::env::var("CALIBRATE_STAND_IN_FLAGS").unwrap_or_default()
}

/// Of all that libraries are made of.
fn digest() -> u64 {
    fn add(folder: &Path, hasher: &mut DefaultHasher) {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        for path in entries.collect::<BTreeSet<_>>() {
            if path.is_dir() {
                add(&path, hasher);
            } else {
                (path.file_name(), std::fs::read(&path).unwrap()).hash(hasher);
            }
        }
    }
    let mut hasher = DefaultHasher::new();
    more_options().hash(&mut hasher);
    for folder in [SOURCES, HEADERS] {
        add(Path::new(folder), &mut hasher);
    }
    hasher.finish()
}

/// Removes libraries of other sources that nobody will ask for again.
fn remove_old(all: &Path) {
    for entry in std::fs::read_dir(all).unwrap().flatten() {
        let age = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let age = age.and_then(|modified| modified.elapsed().ok());
        let is_ours = entry.file_name().to_string_lossy().starts_with("stand-in-");
        if is_ours && age.is_some_and(|age| age > KEPT) {
            // Another program may have done it.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Sources of one vendor's libraries differ from those of the other's.
fn object(folder: &Path, source: &str, is_hip: bool) -> PathBuf {
    folder.join(format!("{}-{source}.o", if is_hip { "hip" } else { "cuda" }))
}

fn build(folder: &Path) {
    let objects: BTreeSet<(&str, bool)> = LIBRARIES
        .iter()
        .flat_map(|(library, sources)| {
            let is_hip = library.contains("hip");
            sources.iter().chain(&COMMON).map(move |&source| (source, is_hip))
        })
        .collect();
    let objects = Mutex::new(objects.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some((source, is_hip)) = objects.lock().unwrap().next() else { break };
                    compile(folder, source, is_hip);
                }
            });
        }
    });
    for (library, sources) in LIBRARIES {
        let mut command = Command::new("c++");
        command.args(["-shared", "-o"]).arg(folder.join(library));
        if sources.is_empty() {
            command.arg(format!("-Wl,-soname,{library}"));
        } else {
            let is_hip = library.contains("hip");
            let all = sources.iter().chain(&COMMON);
            command.args(all.map(|source| object(folder, source, is_hip)));
        }
        command.args(more_options().split_whitespace()).args(["-ldl", "-lpthread"]);
        run(&mut command);
    }
}

fn compile(folder: &Path, source: &str, is_hip: bool) {
    let mut command = Command::new("c++");
    command.args(["-c", "-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden"]);
    command.args(["-DPORT_HOST", "-DPORT_WARP=1", "-Wno-unknown-pragmas"]);
    command.args([format!("-I{HEADERS}"), format!("-I{SOURCES}")]);
    command.arg(format!("-DSTAND_IN_FOLDER=\"{SOURCES}\""));
    command.arg(format!("-DSTAND_IN_BUILTINS=\"{BUILTINS}\""));
    if is_hip {
        command.arg("-DSTAND_IN_HIP");
    }
    command.args(more_options().split_whitespace());
    command.arg(format!("{SOURCES}/{source}"));
    run(command.arg("-o").arg(object(folder, source, is_hip)));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
