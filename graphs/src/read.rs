//! Files of either form.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, ErrorKind};
use crate::graph::Graph;

impl Graph {
    /// Reads a file: the JSON of a graph if it begins with `{`, else ONNX. External weights of an
    /// ONNX file need not be there.
    ///
    /// # Errors
    ///
    /// When it cannot be read ([`Error::is_io`]), and as [`Self::from_onnx`] and
    /// [`Self::from_json`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let bytes = File::open(path)
            .and_then(read_to_limit)
            .map_err(|source| ErrorKind::Read { path: path.to_owned(), source })?;
        Self::from_bytes(bytes).map_err(|error| error.in_file(path))
    }

    /// Reads the contents of a file of either form, as [`Self::load`] does.
    ///
    /// # Errors
    ///
    /// As [`Self::from_onnx`] and [`Self::from_json`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        // In protobuf a brace would begin a group, which ONNX does not have.
        if text.trim_ascii_start().first() == Some(&b'{') {
            Self::from_json(&bytes)
        } else {
            Self::from_onnx(bytes)
        }
    }
}

/// Protobuf messages are smaller than this, and so is every ONNX file.
const MOST_BYTES: u64 = 2 << 30;

/// Not more than the limit of what never ends either.
fn read_to_limit(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == MOST_BYTES {
        let reason = "it has 2 GiB or more, which no ONNX file has";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}
