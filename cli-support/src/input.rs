//! Files that are read from their beginning to their end, which may be pipes.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::say;

/// The text of a file with at most this many bytes, without a byte order mark. It is read once, so that
/// it can be a pipe; what is larger is refused before it is read, where it has a size.
///
/// # Errors
///
/// When it cannot be read, is no UTF-8, or is too large.
pub fn text(path: &Path, most_bytes: u64) -> io::Result<String> {
    let too_large = |has: &str| {
        let reason = format!("it has {has}more than the {} that are read", binary(most_bytes));
        io::Error::new(io::ErrorKind::FileTooLarge, reason)
    };
    let file = open(path)?;
    let bytes = file.metadata()?.len();
    if bytes > most_bytes {
        return Err(too_large(&format!("{}, ", binary(bytes))));
    }
    let mut text = String::new();
    file.take(most_bytes + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most_bytes {
        return Err(too_large(""));
    }
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// A size in whole units, rounded up.
fn binary(bytes: u64) -> String {
    if bytes < 1 << 20 {
        format!("{} KiB", bytes.div_ceil(1 << 10))
    } else {
        format!("{} MiB", bytes.div_ceil(1 << 20))
    }
}

/// The files that this process reads, without symbolic links.
static READ: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Remembers a file that is read, so that no result takes its place. What [`text`] and [`open`] read
/// is remembered already.
pub fn remember(path: &Path) {
    if let Ok(path) = path.canonicalize() {
        READ.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }
}

/// Whether this process reads the file at a path without symbolic links.
pub(crate) fn is_read(path: &Path) -> bool {
    READ.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|read| read == path)
}

/// Remembers the file that stdin is, if it is one.
pub fn remember_stdin() {
    remember(Path::new("/dev/stdin"));
}

/// A file that others are about to open and read. A pipe opens when somebody writes into it, so it is
/// said that this waits; and no result takes the file's place.
pub fn expect(path: &Path) -> &Path {
    remember(path);
    announce(path)
}

/// The same of a file that is written later, too.
pub fn announce(path: &Path) -> &Path {
    if is_pipe(path) {
        say!("note: {} is a pipe; waiting for what is written into it", path.display());
    }
    path
}

/// Opens a file to be read, as [`expect`] says.
///
/// # Errors
///
/// When it cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    File::open(expect(path))
}

/// Whether it is a pipe, such as `<(zcat trace.json.gz)`.
#[cfg(unix)]
#[must_use]
pub fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// Whether it is a pipe: none has a path here.
#[cfg(not(unix))]
#[must_use]
pub fn is_pipe(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_without_its_mark_and_a_large_one_not_at_all() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "\u{feff}{}\n").unwrap();
        assert_eq!(text(file.path(), 1 << 20).unwrap(), "{}\n");
        assert_eq!(text(file.path(), 2).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        file.as_file().set_len(5 << 30).unwrap();
        let message = text(file.path(), 20 << 20).unwrap_err().to_string();
        assert_eq!(message, "it has 5120 MiB, more than the 20 MiB that are read");
        assert!(text(Path::new("/nonexistent"), 1).is_err());
        #[cfg(unix)]
        {
            let message = text(Path::new("/dev/zero"), 1 << 16).unwrap_err().to_string();
            assert_eq!(message, "it has more than the 64 KiB that are read");
        }
    }
}
