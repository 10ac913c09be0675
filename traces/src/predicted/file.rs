//! Whole files in memory: what people and models write is small compared to traces.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::PredictedError;
use crate::load::GZIP;

/// The bytes of a file, without a byte-order mark.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, PredictedError> {
    let failure = |source| PredictedError::Read { path: path.to_owned(), source };
    let bytes = fs::read(path).map_err(failure)?;
    if !bytes.starts_with(&GZIP) {
        return Ok(without_mark(bytes));
    }
    let mut plain = Vec::new();
    MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).map_err(failure)?;
    Ok(without_mark(plain))
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
