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

/// A pipe or device may never end, and says no size before. Models without their weights are smaller.
const MOST_BYTES_OF_A_PIPE: u64 = 256 << 20;

/// The contents of a file, unless it is larger than any that is read.
fn read_to_limit(file: File) -> io::Result<Vec<u8>> {
    let about = file.metadata()?;
    let (limit, reason) = if about.is_file() {
        (MOST_BYTES, "it has 2 GiB or more, which no ONNX file has")
    } else {
        (MOST_BYTES_OF_A_PIPE, "256 MiB came, and it is no regular file; write it to one first")
    };
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, reason);
    // Before anything is read of it.
    if about.len() >= limit {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == limit {
        return Err(too_large());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_too_large_is_refused_before_it_is_read() {
        let name = format!("model-graphs-huge-{}.onnx", std::process::id());
        let path = std::env::temp_dir().join(name);
        // It has no blocks, only a size.
        File::create(&path).unwrap().set_len(MOST_BYTES).unwrap();
        let message = Graph::load(&path).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(message.contains("it has 2 GiB or more"), "{message}");
        let message = Graph::load("/dev/zero").unwrap_err().to_string();
        assert!(message.contains("256 MiB came, and it is no regular file"), "{message}");
    }
}
