//! Where results go: stdout, or a file that is there only when it is whole.

use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::exit::UsageError;

/// Results on their way.
#[derive(Debug)]
pub enum Destination {
    /// To stdout.
    Stdout(BufWriter<Stdout>),
    /// To a file.
    File {
        /// The temporary file next to it.
        writer: BufWriter<NamedTempFile>,
        /// The name it gets at the end.
        path: PathBuf,
    },
}

impl Destination {
    /// The file, else stdout.
    ///
    /// # Errors
    ///
    /// When no file can be written there.
    pub fn new(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Self::Stdout(BufWriter::new(io::stdout())));
        };
        check_writable(path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut builder = tempfile::Builder::new();
        // As for any other new file: temporary ones are for their owner alone.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self::File { writer: BufWriter::new(file), path: path.to_owned() })
    }

    /// The results are whole: gives the file its name.
    ///
    /// # Errors
    ///
    /// When the last of them cannot be written.
    pub fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Stdout(mut out) => Ok(out.flush()?),
            Self::File { writer, path } => {
                let cannot = || format!("cannot write {}", path.display());
                let file = writer.into_inner().map_err(io::Error::from).with_context(cannot)?;
                file.persist(&path).map_err(io::Error::from).with_context(cannot)?;
                eprintln!("wrote {}", path.display());
                Ok(())
            }
        }
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::File { writer, .. } => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::File { writer, .. } => writer.flush(),
        }
    }
}

/// Writes a value as JSON, on several lines.
///
/// # Errors
///
/// When it cannot be written.
pub fn write_json(out: &mut Destination, value: &impl Serialize) -> anyhow::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// Checks before the first measurement that a file can be written there: nobody wants to learn
/// that after ten minutes.
///
/// # Errors
///
/// [`UsageError`] with the reason.
pub fn check_writable(path: &Path) -> Result<(), UsageError> {
    let refuse = |reason: String| UsageError(format!("cannot write {}: {reason}", path.display()));
    if path.is_dir() {
        return Err(refuse("it is a folder; name a file in it".to_owned()));
    }
    if path.file_name().is_none() {
        return Err(refuse("it names no file".to_owned()));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(refuse(format!("the folder {} does not exist", folder.display())));
    }
    // Writing is the only test that knows of permissions, read-only file systems and quotas.
    tempfile::NamedTempFile::new_in(folder).map(drop).map_err(|error| refuse(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_said_before() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_writable(&folder.path().join("x.toml")).is_ok());
        let message = check_writable(&folder.path().join("no/x.toml")).unwrap_err().to_string();
        assert!(message.contains("does not exist"), "{message}");
        let message = check_writable(folder.path()).unwrap_err().to_string();
        assert!(message.contains("is a folder"), "{message}");
    }
}
