//! Where results go: stdout, or a file that is there only when it is whole.
//!
//! What is there already is dealt with by rule:
//!
//! | at the path | what happens |
//! |---|---|
//! | nothing, or an empty file | the file is written |
//! | an earlier result of the same kind, where that can be known | it is replaced, and keeps its mode |
//! | any other file | refused, unless the user says `--overwrite` |
//! | a file that the command reads, by the command line, a list, a folder or the environment | refused |
//! | a write-protected file | refused |
//! | a file with other names (hard links) | the same; the other names keep what it was |
//! | a symbolic link | the same for the file that it leads to; the link stays |
//! | a character device, such as `/dev/null` | written through |
//! | a folder, FIFO, socket or block device; a link that leads nowhere | refused |

mod destination;

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::NamedTempFile;

pub use destination::{Destination, write_json};

use crate::exit::UsageError;
use crate::input;

/// Which files may be replaced.
#[derive(Debug, Clone, Copy)]
pub enum Replace {
    /// Those that this function knows as earlier results.
    Known(fn(&Path) -> bool),
    /// Any: the user said so.
    Any,
}

impl Replace {
    /// No file, unless the user said `--overwrite`.
    #[must_use]
    pub fn if_told(overwrite: bool) -> Self {
        Self::known(overwrite, |_| false)
    }

    /// What a function knows, unless the user said `--overwrite`.
    #[must_use]
    pub fn known(overwrite: bool, is_known: fn(&Path) -> bool) -> Self {
        if overwrite { Self::Any } else { Self::Known(is_known) }
    }
}

/// Whether a line near the beginning of a file is what a function looks for, such as the kind of an
/// earlier result.
#[must_use]
pub fn begins_with_line(path: &Path, is_it: impl Fn(&str) -> bool) -> bool {
    const BEGINNING: u64 = 4096;
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut text));
    read.is_ok() && String::from_utf8_lossy(&text).lines().any(|line| is_it(line.trim()))
}

/// A place where a file can be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// As the user named it.
    named: PathBuf,
    /// Without symbolic links.
    path: PathBuf,
    found: Found,
}

/// What is at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    File,
    Device,
}

impl Target {
    /// Checks that a file can be written at a path, and may be. To be called before the work
    /// begins: nobody wants to learn that after ten minutes.
    ///
    /// # Errors
    ///
    /// [`UsageError`] with the reason.
    pub fn new(named: &Path, replace: Replace) -> Result<Self, UsageError> {
        let refuse =
            |reason: String| UsageError(format!("cannot write {}: {reason}", named.display()));
        if named.file_name().is_none() && !named.is_dir() {
            return Err(refuse("it names no file".to_owned()));
        }
        let path = without_links(named).map_err(&refuse)?;
        let found = match fs::metadata(&path) {
            Ok(metadata) => found(&metadata).map_err(|what| refuse(what.to_owned()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Found::Nothing,
            Err(error) => return Err(refuse(error.to_string())),
        };
        let target = Self { named: named.to_owned(), path, found };
        target.check_not_read()?;
        if found == Found::Device {
            return Ok(target);
        }
        if found == Found::File && !target.may_go(replace) {
            return Err(refuse(
                "it is there already; name another file, or replace it with --overwrite".to_owned(),
            ));
        }
        let is_told = matches!(replace, Replace::Any);
        if is_told && found == Found::File && is_named_twice(&target.path, std::env::args_os()) {
            return Err(refuse(
                "the command line names it twice, so it is read, too; name another output"
                    .to_owned(),
            ));
        }
        // Writing is the only test that knows of permissions, read-only file systems and quotas.
        NamedTempFile::new_in(target.folder()).map_err(|error| refuse(cause(&error)))?;
        Ok(target)
    }

    /// What a command reads would be gone when its result takes the place, and `--overwrite` is meant
    /// for earlier results. Some commands learn only while they run what they read.
    fn check_not_read(&self) -> Result<(), UsageError> {
        if self.found != Found::File || !input::is_read(&self.path) {
            return Ok(());
        }
        let named = self.named.display();
        Err(UsageError(format!("cannot write {named}: this command reads it; name another output")))
    }

    fn may_go(&self, replace: Replace) -> bool {
        let is_empty = || fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() == 0);
        match replace {
            Replace::Any => true,
            Replace::Known(is_known) => is_empty() || is_known(&self.path),
        }
    }

    /// The path without symbolic links: two targets are the same file where these are equal.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// As the user named it.
    #[must_use]
    pub fn named(&self) -> &Path {
        &self.named
    }

    /// What [`Self::path`] of a target with this name is.
    #[must_use]
    pub fn place_of(named: &Path) -> PathBuf {
        without_links(named).unwrap_or_else(|_| named.to_owned())
    }

    /// Whether it is a device, which keeps nothing.
    #[must_use]
    pub fn is_device(&self) -> bool {
        self.found == Found::Device
    }

    /// An error of writing, which names no file, or a temporary one that says nothing to a user.
    fn unwritten(&self, error: &io::Error) -> io::Error {
        let named = self.named.display();
        io::Error::new(error.kind(), format!("cannot write {named}: {error}"))
    }

    fn folder(&self) -> &Path {
        let parent = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        parent.unwrap_or(Path::new("."))
    }

    /// Begins to write the file: next to its place, under a name that nobody can foresee.
    ///
    /// # Errors
    ///
    /// When no file can be written there.
    pub fn create(self) -> anyhow::Result<OutputFile> {
        self.check_not_read()?;
        let cannot = || format!("cannot write {}", self.named.display());
        if self.is_device() {
            let device = File::options().write(true).open(&self.path).with_context(cannot)?;
            return Ok(OutputFile::Device { device, target: self });
        }
        let mut builder = tempfile::Builder::new();
        // As for any other new file: temporary ones are for their owner alone.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(self.folder()).with_context(cannot)?;
        Ok(OutputFile::File { file, target: self })
    }
}

/// Whether more than one of the words of a command line is the file with this path, so that it is read
/// too: see [`Target::check_not_read`].
fn is_named_twice(path: &Path, words: impl IntoIterator<Item = OsString>) -> bool {
    let is_it = |name: &Path| name.canonicalize().is_ok_and(|found| found == path);
    let names_it = |word: &OsString| {
        let text = word.to_string_lossy();
        // `--output=FILE`, `-oFILE`, and lists such as `--profile ONE,OTHER`.
        let value = text.split_once('=').map_or(&*text, |(_, value)| value);
        let mut letters = text.strip_prefix('-').unwrap_or_default().chars();
        let behind_letter = letters.next().map(|_| letters.as_str());
        is_it(Path::new(word))
            || value.split(',').any(|name| is_it(Path::new(name)))
            || behind_letter.is_some_and(|name| is_it(Path::new(name)))
    };
    words.into_iter().skip(1).filter(names_it).count() > 1
}

/// Why a temporary file cannot be made, without its name, which says nothing to a user.
fn cause(error: &io::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at path \"").map(|(cause, _)| cause.to_owned()).unwrap_or(text)
}

/// The file that a path leads to, or a new one in an existing folder.
fn without_links(named: &Path) -> Result<PathBuf, String> {
    match named.canonicalize() {
        Ok(path) => return Ok(path),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.to_string()),
        Err(_) => {}
    }
    if named.is_symlink() {
        // `/dev/stdout` leads to whatever it is, which may have no name.
        return Err(match fs::metadata(named).map(|metadata| found(&metadata)) {
            Ok(Err(what)) => what.to_owned(),
            Ok(Ok(_)) => "it has no name in any folder; name a file".to_owned(),
            Err(_) => "it is a link to a file that does not exist; name that file".to_owned(),
        });
    }
    let folder = match named.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(format!("the folder {} does not exist", folder.display()));
    }
    let folder = folder.canonicalize().map_err(|error| error.to_string())?;
    Ok(folder.join(named.file_name().unwrap_or_default()))
}

/// What the existing path is, if it can be written to; else the reason why it cannot.
fn found(metadata: &Metadata) -> Result<Found, &'static str> {
    if metadata.is_dir() {
        return Err("it is a folder; name a file in it");
    }
    if metadata.is_file() {
        // A folder lets its files be replaced, whatever their own modes are.
        let is_protected = metadata.permissions().readonly();
        return if is_protected { Err("it is write-protected") } else { Ok(Found::File) };
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if metadata.file_type().is_char_device() {
            return Ok(Found::Device);
        }
        if metadata.file_type().is_fifo() {
            // Opening it waits for a reader, and a file takes its place when it is whole.
            return Err("it is a FIFO; leave --output out and redirect stdout there");
        }
    }
    Err("it is neither a file nor a character device")
}

/// A file that is being written.
#[derive(Debug)]
pub enum OutputFile {
    /// A temporary file next to its place.
    File {
        /// It.
        file: NamedTempFile,
        /// Its place.
        target: Target,
    },
    /// A device, which has all that was written.
    Device {
        /// It.
        device: File,
        /// Its place.
        target: Target,
    },
}

impl OutputFile {
    /// The file is whole: gives it its name.
    ///
    /// # Errors
    ///
    /// When the disk does not take it, or another file is there meanwhile.
    pub fn finish(self) -> anyhow::Result<()> {
        let Self::File { file, target } = self else { return Ok(()) };
        target.check_not_read()?;
        let cannot = || format!("cannot write {}", target.named.display());
        if let Ok(replaced) = fs::metadata(&target.path) {
            file.as_file().set_permissions(replaced.permissions()).with_context(cannot)?;
        }
        file.as_file().sync_all().with_context(cannot)?;
        let named = match target.found {
            Found::Nothing => file.persist_noclobber(&target.path),
            _ => file.persist(&target.path),
        };
        named.map_err(io::Error::from).map_err(meanwhile).with_context(cannot)?;
        crate::say!("wrote {}", target.named.display());
        Ok(())
    }
}

/// Says why a file is there that was not when the work began.
fn meanwhile(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::AlreadyExists {
        return error;
    }
    let text = "another program has made a file there meanwhile; name another one";
    io::Error::new(error.kind(), text)
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { file, target } => {
                file.as_file_mut().write(bytes).map_err(|error| target.unwritten(&error))
            }
            Self::Device { device, target } => {
                device.write(bytes).map_err(|error| target.unwritten(&error))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File { file, target } => {
                file.as_file_mut().flush().map_err(|error| target.unwritten(&error))
            }
            Self::Device { device, target } => {
                device.flush().map_err(|error| target.unwritten(&error))
            }
        }
    }
}

#[cfg(test)]
mod tests;
