//! Files of either form.

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
        let bytes = std::fs::read(path)
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
