//! Files that are read whole, if they are not too large.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, ErrorKind};

/// The bytes that a file has at most: those of ten thousand records, fifty times as many as there are
/// problems in the largest set. Reading more would take seconds.
const MOST_BYTES: u64 = 20 << 20;

/// The text of a file without a byte order mark. It is read once: it can be a pipe.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let text = File::open(path).and_then(read_to_limit);
    text.map_err(|source| ErrorKind::Read { path: path.to_owned(), source }.into())
}

/// Not more than the limit also of what has no size, or never ends.
fn read_to_limit(file: File) -> io::Result<String> {
    let too_large = |has: &str| {
        let reason = format!("it has {has}more than the {} MiB that are read", MOST_BYTES >> 20);
        io::Error::new(io::ErrorKind::FileTooLarge, reason)
    };
    let bytes = file.metadata()?.len();
    if bytes > MOST_BYTES {
        return Err(too_large(&format!("{} MiB, ", bytes.div_ceil(1 << 20))));
    }
    let mut text = String::new();
    file.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(too_large(""));
    }
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(5 << 30).unwrap();
        let message = read(file.path()).unwrap_err().to_string();
        assert!(
            message.ends_with("it has 5120 MiB, more than the 20 MiB that are read"),
            "{message}"
        );
        #[cfg(unix)]
        assert!(read(Path::new("/dev/zero")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let writer = std::thread::spawn({
            let path = path.clone();
            move || std::fs::write(path, "kind = \"calibration\"\n").unwrap()
        });
        assert_eq!(read(&path).unwrap(), "kind = \"calibration\"\n");
        writer.join().unwrap();
    }
}
