//! Whole files in memory: what people and models write is small compared to traces.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::PredictedError;
use crate::load::GZIP;

/// The bytes of a file, without a byte-order mark.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, PredictedError> {
    let failure = |source| PredictedError::Read { path: path.to_owned(), source };
    let bytes = File::open(path).and_then(read_to_limit).map_err(failure)?;
    if !bytes.starts_with(&GZIP) {
        return Ok(without_mark(bytes));
    }
    let plain = read_to_limit(MultiGzDecoder::new(bytes.as_slice())).map_err(failure)?;
    Ok(without_mark(plain))
}

/// The most bytes of a prediction, packed and unpacked.
const MOST_BYTES: u64 = 1 << 30;

/// Not more than the limit of what never ends either.
fn read_to_limit(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MOST_BYTES).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it has 1 GiB or more"));
    }
    Ok(bytes)
}

/// The first bytes of a file, without a byte-order mark.
pub(super) fn head(path: &Path) -> Result<Vec<u8>, PredictedError> {
    let failure = |source| PredictedError::Read { path: path.to_owned(), source };
    let mut head = Vec::new();
    let file = File::open(path).map_err(failure)?;
    file.take(HEAD).read_to_end(&mut head).map_err(failure)?;
    Ok(without_mark(head))
}

/// Enough to distinguish JSON from a table.
const HEAD: u64 = 4096;

/// The bytes without the mark that some programs put before UTF-8.
pub(super) fn without_mark(mut bytes: Vec<u8>) -> Vec<u8> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    if bytes.starts_with(MARK) {
        bytes.drain(..MARK.len());
    }
    bytes
}

/// The same as text.
pub(super) fn text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(without_mark(bytes)).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is not UTF-8, from byte {at} on")
    })
}
