//! A digest of the program, so that one build does not continue another one's measurements.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

/// The digest of this program's file as 16 hexadecimal digits, or `unknown` where it cannot be
/// read.
#[must_use]
pub fn binary_digest() -> String {
    let digest = path().and_then(File::open).and_then(fnv_1a);
    digest.map_or_else(|_| "unknown".to_owned(), |digest| format!("{digest:016x}"))
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

/// The 64-bit FNV-1a digest of no bytes.
pub(crate) const FNV_1A_OF_NOTHING: u64 = 0xcbf2_9ce4_8422_2325;

/// The 64-bit FNV-1a digest of what has a known digest, with more bytes after it.
pub(crate) fn fnv_1a_more(digest: u64, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(digest, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// The 64-bit FNV-1a digest. It is stable over versions and machines, which the standard library's
/// hashers are not, and it need not withstand an attack: it tells builds apart.
fn fnv_1a(bytes: impl Read) -> io::Result<u64> {
    let mut bytes = BufReader::with_capacity(1 << 16, bytes);
    let mut digest = FNV_1A_OF_NOTHING;
    loop {
        let chunk = match bytes.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            chunk => chunk?,
        };
        if chunk.is_empty() {
            return Ok(digest);
        }
        digest = fnv_1a_more(digest, chunk);
        let length = chunk.len();
        bytes.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_digests() {
        // From the reference of the FNV hash.
        for (text, expected) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fnv_1a(text.as_bytes()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn every_byte_counts_over_the_ends_of_chunks() {
        let mut bytes = vec![7; (1 << 16) * 2 + 3];
        let before = fnv_1a(bytes.as_slice()).unwrap();
        *bytes.last_mut().unwrap() = 8;
        assert_ne!(fnv_1a(bytes.as_slice()).unwrap(), before);
    }

    #[test]
    fn this_program_has_a_digest() {
        let digest = binary_digest();
        assert_eq!(digest.len(), 16, "{digest}");
        assert!(digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(binary_digest(), digest);
    }
}
