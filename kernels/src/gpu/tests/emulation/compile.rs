//! Kernels compiled for this machine, and a cache of them.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Condvar, LazyLock, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use libloading::Library;
use twox_hash::XxHash3_64;

use crate::gpu::architecture::MatrixCore;
use crate::gpu::headers::HEADERS;
use crate::gpu::{Architecture, Code};

/// What takes the place of a device.
const STAND_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand_in");

/// Kernels in one translation unit: the headers are read once for all of them, and a change of
/// one kernel compiles no more than its neighbours again.
const KERNELS_AT_ONCE: usize = 8;

/// What most kernels include. To read these is a quarter of the work on a translation unit, and more of
/// a short one, so they are read once for each architecture.
const PRECOMPILED: &[&str] = &["gemm.h", "rows.h", "pointwise.h"];

/// How long compiled kernels are kept.
const KEPT: Duration = Duration::from_hours(24);

/// The headers of kernels, perhaps changed.
#[derive(Debug, Clone)]
pub(crate) struct Headers {
    files: Vec<(String, String)>,
    digest: u64,
    /// Whether enough is compiled with them to be worth precompiling.
    precompiled: bool,
}

impl Headers {
    /// Those that are shipped.
    pub(crate) fn shipped() -> Self {
        let files = HEADERS.iter().map(|&(name, text)| (name.to_owned(), text.to_owned()));
        Self { precompiled: true, ..Self::new(files.collect()) }
    }

    pub(crate) fn new(mut files: Vec<(String, String)>) -> Self {
        for entry in std::fs::read_dir(STAND_IN).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "h") {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                files.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
        files.sort();
        let all: String = files.iter().map(|(name, text)| format!("{name}\0{text}\0")).collect();
        Self { files, digest: XxHash3_64::oneshot(all.as_bytes()), precompiled: false }
    }

    /// The folder that they are in.
    fn folder(&self) -> PathBuf {
        let folder = cache().join(format!("headers-{:016x}", self.digest));
        for (name, text) in &self.files {
            let path = folder.join(name);
            if !path.exists() {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                write_at_once(&path, text.as_bytes());
            }
        }
        folder
    }

    /// A header that includes [`PRECOMPILED`], beside which is what the compiler made of it with the same
    /// options. A compiler that finds nothing it can use there reads the header.
    fn precompiled(&self, options: &[String]) -> Option<PathBuf> {
        static MADE: Mutex<BTreeMap<PathBuf, Arc<OnceLock<()>>>> = Mutex::new(BTreeMap::new());
        if !self.precompiled {
            return None;
        }
        let key = XxHash3_64::oneshot(options.join("\0").as_bytes());
        let header = self.folder().join(format!("precompiled-{key:016x}.h"));
        let made = Arc::clone(MADE.lock().unwrap().entry(header.clone()).or_default());
        made.get_or_init(|| {
            let object = header.with_extension("h.gch");
            if object.exists() {
                return;
            }
            let lines = PRECOMPILED.iter().map(|name| format!("#include \"{name}\"\n"));
            write_at_once(&header, lines.collect::<String>().as_bytes());
            let options = [options, &[String::from("-xc++-header")]].concat();
            run_compiler(&header, &options, &object).unwrap();
        });
        Some(header)
    }

    /// A digest of the headers that a text includes, and of those that these include: a kernel is
    /// compiled again when one of them changes, and not when another one does.
    fn digest_for(&self, text: &str) -> u64 {
        let mut names: Vec<&str> = included(text).collect();
        let mut at = 0;
        while let Some(&name) = names.get(at) {
            for name in included(self.text(name)) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            at += 1;
        }
        names.sort_unstable();
        names.dedup();
        let all: String =
            names.iter().map(|name| format!("{name}\0{}\0", self.text(name))).collect();
        XxHash3_64::oneshot(all.as_bytes())
    }

    fn text(&self, name: &str) -> &str {
        let found = self.files.iter().find(|(other, _)| other == name);
        found.map_or_else(|| panic!("{name} is included, and is not a header"), |(_, text)| text)
    }
}

/// The names in `#include "..."`.
fn included(text: &str) -> impl Iterator<Item = &str> {
    let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("#include \""));
    names.filter_map(|rest| rest.split('"').next())
}

/// Writes a file so that no reader sees half of it.
fn write_at_once(path: &Path, bytes: &[u8]) {
    let file = tempfile::NamedTempFile::new_in(path.parent().unwrap()).unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    file.persist(path).unwrap();
}

/// `target/tmp/kernels`.
fn cache() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let test = std::env::current_exe().unwrap();
        let folder = test.ancestors().nth(3).unwrap().join("tmp").join("kernels");
        std::fs::create_dir_all(&folder).unwrap();
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            let age =
                modified.ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
            if age.is_some_and(|age| age > KEPT) {
                // Somebody else may have done it.
                let _ = std::fs::remove_file(entry.path());
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        folder
    });
    &FOLDER
}

/// The host's compiler; `None` where there is none, which is an error only if the environment says
/// that it must be there.
pub(crate) fn compiler() -> Option<&'static str> {
    static COMPILER: LazyLock<Option<&'static str>> = LazyLock::new(|| {
        let found = Command::new("c++").arg("--version").output().is_ok();
        let needed = std::env::var_os("CALIBRATE_NEEDS_GPU_TOOLS").is_some();
        assert!(found || !needed, "there is no c++ to compile kernels for this machine with");
        if !found {
            eprintln!("skipped: there is no c++ to compile kernels for this machine with");
        }
        found.then_some("c++")
    });
    *COMPILER
}

fn options() -> Vec<&'static str> {
    let mut options = vec![
        "-std=c++17",
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        "-fno-exceptions",
        "-fno-rtti",
        // Or a fused multiply-add could take the place of what a kernel wants to be rounded.
        "-ffp-contract=off",
        "-DPORT_HOST",
    ];
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("fma") {
        options.push("-mfma");
    }
    options
}

fn compile(source: &str, options: &[String], object: &Path) -> Result<(), String> {
    let text = object.with_extension("cpp");
    write_at_once(&text, source.as_bytes());
    run_compiler(&text, options, object)
}

fn run_compiler(text: &Path, options: &[String], object: &Path) -> Result<(), String> {
    let unfinished = tempfile::NamedTempFile::new_in(cache()).unwrap();
    let output = Command::new(compiler().unwrap())
        .args(options)
        .arg(text)
        .arg("-o")
        .arg(unfinished.path())
        .output()
        .unwrap();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let first: String = said
            .lines()
            .filter(|line| line.contains("rror"))
            .take(8)
            .collect::<Vec<_>>()
            .join("\n");
        return Err(format!("{} does not compile:\n{first}", text.display()));
    }
    unfinished.persist(object).unwrap();
    Ok(())
}

/// Where the object of a kernel is.
fn object_of(code: &Code, architecture: &Architecture, headers: &Headers) -> PathBuf {
    let key = format!(
        "{}\0{}\0{}\0{:?}",
        code.text,
        headers.digest_for(&code.text),
        architecture.defines().join(" "),
        options()
    );
    cache().join(format!("{:016x}.so", XxHash3_64::oneshot(key.as_bytes())))
}

/// The library that launches kernels.
pub(super) fn fibers() -> &'static Library {
    static FIBERS_LIBRARY: OnceLock<Library> = OnceLock::new();
    FIBERS_LIBRARY.get_or_init(|| {
        let headers = Headers::shipped();
        let text = std::fs::read_to_string(Path::new(STAND_IN).join("fibers.cpp")).unwrap();
        let code = Code { entry: String::from("fibers"), text };
        let architecture = Architecture::new(String::from("host"), 1, MatrixCore::Plain);
        let object = object_of(&code, &architecture, &headers);
        if !object.exists() {
            let mut options: Vec<String> = options().into_iter().map(str::to_owned).collect();
            options.extend(architecture.defines());
            options.extend([String::from("-O2"), format!("-I{}", headers.folder().display())]);
            compile(&code.text, &options, &object).unwrap();
        }
        // SAFETY: it has no initialisers that do anything but set up its own memory.
        unsafe { Library::new(&object) }.unwrap()
    })
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The right to run a compiler: all tests together have one for each processor.
struct Turn;

static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

impl Turn {
    fn wait() -> Self {
        let running = RUNNING.lock().unwrap();
        *ENDED.wait_while(running, |running| *running >= processors()).unwrap() += 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap() -= 1;
        ENDED.notify_one();
    }
}

/// Compiled kernels, by their entry points.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    loaded: HashMap<String, Result<Arc<Library>, String>>,
}

impl Kernels {
    /// Compiles what is in no cache, on all processors, and loads all of it.
    pub(crate) fn of<'c>(
        codes: impl IntoIterator<Item = &'c Code>,
        architecture: &Architecture,
        headers: &Headers,
    ) -> Self {
        let mut distinct: Vec<(&Code, PathBuf)> = Vec::new();
        for code in codes {
            if !distinct.iter().any(|(other, _)| other.entry == code.entry) {
                distinct.push((code, object_of(code, architecture, headers)));
            }
        }
        let missing: Vec<&(&Code, PathBuf)> =
            distinct.iter().filter(|(_, object)| !object.exists()).collect();
        let errors = Mutex::new(HashMap::new());
        let batches = Mutex::new(missing.chunks(KERNELS_AT_ONCE));
        std::thread::scope(|scope| {
            for _ in 0..processors().min(missing.len().div_ceil(KERNELS_AT_ONCE)) {
                scope.spawn(|| {
                    loop {
                        let Some(batch) = batches.lock().unwrap().next() else { break };
                        let turn = Turn::wait();
                        // Another test may have compiled some of it by now.
                        let batch: Vec<_> =
                            batch.iter().copied().filter(|(_, object)| !object.exists()).collect();
                        let failed = compile_batch(&batch, architecture, headers);
                        drop(turn);
                        errors.lock().unwrap().extend(failed);
                    }
                });
            }
        });
        let errors = errors.into_inner().unwrap();
        let loaded = distinct.into_iter().map(|(code, object)| {
            let library = match errors.get(&code.entry) {
                Some(error) => Err(String::clone(error)),
                None => load(&object),
            };
            (code.entry.clone(), library)
        });
        Self { loaded: loaded.collect() }
    }

    pub(super) fn get(&self, entry: &str) -> Result<&Library, String> {
        match self.loaded.get(entry) {
            Some(Ok(library)) => Ok(library),
            Some(Err(error)) => Err(error.clone()),
            None => Err(format!("{entry} was not compiled")),
        }
    }
}

fn load(object: &Path) -> Result<Arc<Library>, String> {
    // SAFETY: what the compiler made of a kernel has no initialisers.
    unsafe { Library::new(object) }.map(Arc::new).map_err(|error| error.to_string())
}

/// Compiles some kernels together; if that fails, each by itself, to find which of them is wrong.
fn compile_batch(
    batch: &[&(&Code, PathBuf)],
    architecture: &Architecture,
    headers: &Headers,
) -> Vec<(String, String)> {
    let mut options: Vec<String> = options().into_iter().map(str::to_owned).collect();
    options.extend(architecture.defines());
    // Compiling takes longer than running what is compiled: this takes a third less of it than `-O1`,
    // and `-O0` makes the other longer than it saves.
    options.extend([String::from("-Og"), format!("-I{}", headers.folder().display())]);
    if let Some(header) = headers.precompiled(&options) {
        options.extend([String::from("-include"), header.display().to_string()]);
    }
    let Some((code, first)) = batch.first().copied() else { return Vec::new() };
    let source = together(batch.iter().map(|(code, _)| *code));
    match compile(&source, &options, first) {
        Ok(()) => {
            for (_, object) in &batch[1..] {
                // It may be there from another test's thread or process, which is as good.
                let _ = std::fs::hard_link(first, object);
            }
            Vec::new()
        }
        Err(error) if batch.len() == 1 => vec![(code.entry.clone(), error)],
        Err(_) => {
            let alone = |kernel| compile_batch(std::slice::from_ref(kernel), architecture, headers);
            batch.iter().flat_map(alone).collect()
        }
    }
}

/// Kernels in one text: every one in a namespace of its own, behind what all of them include.
fn together<'c>(codes: impl Iterator<Item = &'c Code>) -> String {
    let mut includes = String::new();
    let mut bodies = String::new();
    for (index, code) in codes.enumerate() {
        let is_include = |line: &&str| line.trim_start().starts_with("#include");
        for line in code.text.lines().filter(is_include) {
            let _ = writeln!(includes, "{line}");
        }
        let _ = writeln!(bodies, "namespace kernel_{index} {{");
        for line in code.text.lines().filter(|line| !is_include(line)) {
            let _ = writeln!(bodies, "{line}");
        }
        let _ = writeln!(bodies, "}}");
    }
    includes + &bodies
}
