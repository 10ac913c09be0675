//! Files that are read whole, if they are not too large.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, ErrorKind};

/// The bytes that a file has at most: those of ten thousand records, fifty times as many as there are
/// problems in the largest set. Reading more would take seconds.
const MOST_BYTES: u64 = 20 << 20;

/// Its lines, keys, values and tables at most. A parser takes some 200 bytes for each, so that a file of
/// hardly anything else would take gigabytes. A calibration of the largest size has five million.
const MOST_PARTS: usize = 5_500_000;

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
    if parts(&text) > MOST_PARTS {
        let reason = format!("it has more than the {MOST_PARTS} keys and values that are read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// What a table takes, in keys.
const KEYS_OF_TABLE: usize = 15;

/// At least as many as a text has lines, keys, values and tables: each is behind one of these signs.
/// Tables take more: those that a line names, and what is before a dot in a key.
fn parts(text: &str) -> usize {
    let (mut parts, mut dots) = (0, 0);
    let mut before = b'\n';
    for byte in text.bytes() {
        if byte == b'[' && before == b'\n' {
            parts += KEYS_OF_TABLE;
        }
        before = byte;
        match byte {
            b'.' => {
                parts += 1;
                dots += 1;
                continue;
            }
            // Behind a key, or the name of a table.
            b'=' | b']' => parts += usize::from(byte == b'=') + dots * KEYS_OF_TABLE,
            b'\n' | b',' | b'[' | b'{' => parts += 1,
            _ => continue,
        }
        dots = 0;
    }
    parts
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

    #[test]
    fn a_file_of_too_many_parts_is_not_parsed() {
        let of_tables = parts("a = 1.5\n[[c]]\nd = [\n    1.5,\n    2.5\n]\n");
        assert_eq!(of_tables, 15 + KEYS_OF_TABLE);
        let of_tables = parts("a.b.c = 1\n[d.e]\n");
        assert_eq!(of_tables, 7 + 4 * KEYS_OF_TABLE);
        let file = tempfile::NamedTempFile::new().unwrap();
        for part in
            ["\n", "[x1234567]\n", "[x1]\na=1\n", "a.", "1.", "[", "a={", "1,", "a1.b.c.d=1\n"]
        {
            let text = part.repeat(MOST_BYTES as usize / part.len());
            std::fs::write(file.path(), text).unwrap();
            let message = read(file.path()).unwrap_err().to_string();
            assert!(message.contains("keys and values that are read"), "{part:?}: {message}");
        }
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
