//! A digest of the program, so that one build does not continue another one's measurements.

use std::fs::File;
use std::hash::Hasher as _;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use twox_hash::XxHash3_64;

/// The digest of this program's file as 16 hexadecimal digits, or `unknown` where it cannot be
/// read.
#[must_use]
pub fn binary_digest() -> String {
    let found = path().and_then(File::open).and_then(digest);
    found.map_or_else(|_| "unknown".to_owned(), |digest| format!("{digest:016x}"))
}

/// The file that runs.
fn path() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        // It leads to the file that was started, even when a new build has taken its place since.
        Ok(PathBuf::from("/proc/self/exe"))
    } else {
        std::env::current_exe()
    }
}

/// The XXH3 digest of all that is read. It is the same in all versions and on all machines, which
/// the standard library's hashers do not promise.
fn digest(mut bytes: impl Read) -> io::Result<u64> {
    let mut hasher = Hasher(XxHash3_64::new());
    io::copy(&mut bytes, &mut hasher)?;
    Ok(hasher.0.finish())
}

/// Takes what is written to it into a digest.
struct Hasher(XxHash3_64);

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_digest() {
        // From the reference implementation of XXH3, for no bytes.
        assert_eq!(digest(io::empty()).unwrap(), 0x2d06_8005_38d3_94c2);
    }

    #[test]
    fn every_byte_counts_over_the_ends_of_chunks() {
        let mut bytes = vec![7; (1 << 16) * 2 + 3];
        let before = digest(bytes.as_slice()).unwrap();
        assert_eq!(before, XxHash3_64::oneshot(&bytes));
        *bytes.last_mut().unwrap() = 8;
        assert_ne!(digest(bytes.as_slice()).unwrap(), before);
    }

    #[test]
    fn this_program_has_a_digest() {
        let digest = binary_digest();
        assert_eq!(digest.len(), 16, "{digest}");
        assert!(digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(binary_digest(), digest);
    }
}
