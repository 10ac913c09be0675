//! Compiled kernels on disk.
//!
//! The key of a kernel is a digest of everything that its machine code depends on: its source and
//! all headers, the options, the compiler with its version, and the architecture. A file that
//! cannot be read, or is not what was written, counts as not there. So does one that another user
//! could have written, since it is code that runs. Nothing here is an error: at worst, a kernel is
//! compiled once more.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use twox_hash::{XxHash3_64, XxHash3_128};

use super::architecture::Architecture;
use super::driver::{Compiled, Compiler, DeviceError, Source};

/// The first bytes of a file, with the version of its format.
const MAGIC: &[u8; 8] = b"FCMCODE1";

/// A separate folder that only its owner may use, even if others may write to its parent.
const FOLDER: &str = "kernels";

/// This project's folder among the user's caches; `None` where the user has none.
#[must_use]
pub fn user_cache_folder() -> Option<PathBuf> {
    cache_folder(&|name| std::env::var_os(name))
}

/// The same with these variables. Code that is run comes from there, so that no folder counts that
/// depends on the current one.
fn cache_folder(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = folder("XDG_CACHE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".cache")))
        .or_else(|| folder("LOCALAPPDATA"));
    Some(caches?.join("fusion-cost-model"))
}

/// Makes a folder that only this user may use.
///
/// # Errors
///
/// When it cannot be made, or is there and others may write to it.
pub fn make_own_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)?;
    if !is_own_folder(folder) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may write there"));
    }
    Ok(())
}

/// A folder of compiled kernels, or none.
#[derive(Debug, Clone, Default)]
pub(crate) struct CodeCache {
    folder: Option<PathBuf>,
}

impl CodeCache {
    /// A cache below a folder, which is made when something is to be kept there.
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder: folder.map(|folder| folder.join(FOLDER)) }
    }

    /// A cache in the folder of the user's caches, where there is one.
    pub(crate) fn of_user() -> Self {
        Self::new(user_cache_folder())
    }

    /// The machine code of a kernel: from the folder, else from the compiler.
    pub(crate) fn compile(
        &self,
        compiler: &dyn Compiler,
        source: &Source<'_>,
        architecture: &Architecture,
    ) -> Result<Vec<u8>, DeviceError> {
        let path = self
            .folder
            .as_ref()
            .map(|folder| folder.join(format!("{:032x}.bin", key(compiler, source, architecture))));
        if let Some(image) = path.as_deref().and_then(read_compiled) {
            return Ok(image);
        }
        let Compiled { image, .. } = compiler.compile(source, architecture)?;
        if let Some(path) = path {
            // The next run compiles it again where it cannot be kept.
            let _ = write(&path, &image);
        }
        Ok(image)
    }
}

/// A digest of everything that the machine code depends on.
fn key(compiler: &dyn Compiler, source: &Source<'_>, architecture: &Architecture) -> u128 {
    let mut digest = XxHash3_128::new();
    // The length before each text, or two texts could share their boundary in several ways.
    let mut add = |text: &str| {
        digest.write(&(text.len() as u64).to_le_bytes());
        digest.write(text.as_bytes());
    };
    add(compiler.version());
    add(&architecture.name);
    for option in compiler.options(architecture) {
        add(&option);
    }
    for (name, text) in source.headers {
        add(name);
        add(text);
    }
    add(source.text);
    digest.finish_128()
}

/// The machine code in a file; `None` unless it is whole, and of this user alone.
#[must_use]
pub fn read_compiled(path: &Path) -> Option<Vec<u8>> {
    // A FIFO would keep whoever opens it waiting.
    fs::metadata(path).ok().filter(Metadata::is_file)?;
    let mut opened = File::open(path).ok()?;
    let is_own_folder = path.parent().is_some_and(is_own_folder);
    if !is_own_folder || !opened.metadata().is_ok_and(|metadata| is_own(&metadata)) {
        return None;
    }
    let mut file = Vec::new();
    opened.read_to_end(&mut file).ok()?;
    let head = file.get(..16)?;
    let (magic, digest) = head.split_at(8);
    let digest = u64::from_le_bytes(digest.try_into().ok()?);
    if magic != MAGIC || XxHash3_64::oneshot(&file[16..]) != digest {
        return None;
    }
    file.drain(..16);
    Some(file)
}

/// Under a name of its own first, so that no process ever reads half of it.
fn write(path: &Path, image: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_own_folder(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(MAGIC)?;
    file.write_all(&XxHash3_64::oneshot(image).to_le_bytes())?;
    file.write_all(image)?;
    file.persist(path)?;
    Ok(())
}

/// Whether a folder is one that only this user writes to, and no link to another one.
fn is_own_folder(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir() && is_own(&metadata))
}

/// Whether a file or folder belongs to this user, and nobody else may write to it.
#[cfg(unix)]
fn is_own(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    // SAFETY: it has no arguments, and always succeeds.
    let user = unsafe { libc::geteuid() };
    metadata.uid() == user && metadata.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_own(_: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Gives the text back, and counts how often it was asked.
    struct Echo {
        version: &'static str,
        option: &'static str,
        calls: Cell<u32>,
    }

    impl Compiler for Echo {
        fn version(&self) -> &str {
            self.version
        }
        fn options(&self, _: &Architecture) -> Vec<String> {
            vec![self.option.to_owned()]
        }
        fn compile(&self, source: &Source<'_>, _: &Architecture) -> Result<Compiled, DeviceError> {
            self.calls.set(self.calls.get() + 1);
            Ok(Compiled { image: source.text.as_bytes().to_vec(), log: String::new() })
        }
    }

    const SOURCE: Source<'_> = Source { name: "k", text: "text", headers: &[("a.h", "b")] };

    fn echo() -> Echo {
        Echo { version: "1", option: "-O3", calls: Cell::new(0) }
    }

    fn sm_80() -> Architecture {
        Architecture::of_compute_capability(8, 0).unwrap()
    }

    #[cfg(unix)]
    #[test]
    fn no_code_comes_from_a_folder_that_depends_on_the_current_one() {
        let of = |variables: &[(&str, &str)]| {
            let found = |name: &str| variables.iter().find(|(known, _)| *known == name);
            cache_folder(&|name| found(name).map(|(_, value)| OsString::from(value)))
        };
        let home = Some(PathBuf::from("/home/ada/.cache/fusion-cost-model"));
        assert_eq!(of(&[("XDG_CACHE_HOME", "/c")]), Some(PathBuf::from("/c/fusion-cost-model")));
        for relative in ["", ".", "cache", "../cache"] {
            assert_eq!(of(&[("XDG_CACHE_HOME", relative)]), None, "{relative}");
            assert_eq!(of(&[("XDG_CACHE_HOME", relative), ("HOME", "/home/ada")]), home);
            assert_eq!(of(&[("HOME", relative)]), None, "{relative}");
        }
    }

    #[test]
    fn what_was_compiled_is_not_compiled_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CodeCache::new(Some(folder.path().join("not/there/yet")));
        let compiler = echo();
        for _ in 0..3 {
            assert_eq!(cache.compile(&compiler, &SOURCE, &sm_80()).unwrap(), b"text");
        }
        assert_eq!(compiler.calls.get(), 1);
    }

    #[test]
    fn whatever_changes_the_code_changes_the_key() {
        let mut keys = vec![key(&echo(), &SOURCE, &sm_80())];
        keys.push(key(&Echo { version: "2", ..echo() }, &SOURCE, &sm_80()));
        keys.push(key(&Echo { option: "-O2", ..echo() }, &SOURCE, &sm_80()));
        keys.push(key(&echo(), &Source { text: "txet", ..SOURCE }, &sm_80()));
        keys.push(key(&echo(), &Source { headers: &[("a.h", "c")], ..SOURCE }, &sm_80()));
        keys.push(key(&echo(), &Source { headers: &[("a.hb", "")], ..SOURCE }, &sm_80()));
        let sm_90 = Architecture::of_compute_capability(9, 0).unwrap();
        keys.push(key(&echo(), &SOURCE, &sm_90));
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }

    #[test]
    fn damaged_files_are_compiled_again_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CodeCache::new(Some(folder.path().to_owned()));
        let compiler = echo();
        cache.compile(&compiler, &SOURCE, &sm_80()).unwrap();
        let kernels = folder.path().join(FOLDER);
        let path = fs::read_dir(kernels).unwrap().next().unwrap().unwrap().path();
        let whole = fs::read(&path).unwrap();
        let mut calls = 1;
        for damaged in (0..whole.len()).map(|at| {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            damaged
        }) {
            fs::write(&path, damaged).unwrap();
            assert_eq!(cache.compile(&compiler, &SOURCE, &sm_80()).unwrap(), b"text");
            calls += 1;
            assert_eq!(compiler.calls.get(), calls);
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(cache.compile(&compiler, &SOURCE, &sm_80()).unwrap(), b"text");
        }
        // A FIFO keeps nobody waiting.
        #[cfg(unix)]
        {
            fs::remove_file(&path).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
            assert_eq!(cache.compile(&compiler, &SOURCE, &sm_80()).unwrap(), b"text");
        }
    }

    #[cfg(unix)]
    #[test]
    fn code_that_others_could_have_written_is_not_run() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let kernels = folder.path().join(FOLDER);
        let cache = CodeCache::new(Some(folder.path().to_owned()));
        let compiler = echo();
        let compile = || {
            assert_eq!(cache.compile(&compiler, &SOURCE, &sm_80()).unwrap(), b"text");
            compiler.calls.get()
        };
        assert_eq!([compile(), compile()], [1, 1]);
        let file = fs::read_dir(&kernels).unwrap().next().unwrap().unwrap().path();
        assert_eq!(fs::metadata(&kernels).unwrap().permissions().mode() & 0o777, 0o700);
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        // A file of others is compiled once more and replaced; a folder of others keeps nothing.
        set(&file, 0o666);
        assert_eq!([compile(), compile()], [2, 2]);
        set(&kernels, 0o777);
        assert_eq!([compile(), compile()], [3, 4]);
        set(&kernels, 0o700);
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&kernels, &elsewhere).unwrap();
        symlink(&elsewhere, &kernels).unwrap();
        assert_eq!([compile(), compile()], [5, 6]);
    }

    /// Only the administrator can give files away.
    #[cfg(unix)]
    #[test]
    fn code_of_another_user_is_not_run() {
        use std::os::unix::fs::{chown, symlink};
        /// Whoever that is: nobody runs tests as this user.
        const ANOTHER: u32 = 54_321;
        let folder = tempfile::tempdir().unwrap();
        let kernels = folder.path().join(FOLDER);
        let cache = CodeCache::new(Some(folder.path().to_owned()));
        let compiler = echo();
        let compile = || {
            assert_eq!(cache.compile(&compiler, &SOURCE, &sm_80()).unwrap(), b"text");
            compiler.calls.get()
        };
        assert_eq!([compile(), compile()], [1, 1]);
        let file = fs::read_dir(&kernels).unwrap().next().unwrap().unwrap().path();
        if chown(&file, Some(ANOTHER), None).is_err() {
            println!("SKIPPED: this needs root");
            return;
        }
        assert!(read_compiled(&file).is_none());
        // It is replaced by one's own, which is read.
        assert_eq!([compile(), compile()], [2, 2]);
        // A link leads to what another user can still change.
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&file, &elsewhere).unwrap();
        symlink(&elsewhere, &file).unwrap();
        chown(&elsewhere, Some(ANOTHER), None).unwrap();
        assert_eq!([compile(), compile()], [3, 3]);
        assert!(!file.is_symlink() && elsewhere.exists());
        chown(&kernels, Some(ANOTHER), None).unwrap();
        assert!(read_compiled(&file).is_none());
        assert_eq!([compile(), compile()], [4, 5], "nothing is kept there");
    }

    #[test]
    fn a_folder_that_cannot_be_is_no_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for folder in [None, Some(file.path().join("below a file"))] {
            let cache = CodeCache::new(folder);
            assert_eq!(cache.compile(&echo(), &SOURCE, &sm_80()).unwrap(), b"text");
        }
    }
}
