//! Where results go: stdout, or a file that is there only when it is whole.

use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::NamedTempFile;

use crate::output;

/// Results on their way.
pub(super) enum Destination {
    Stdout(BufWriter<Stdout>),
    File { writer: BufWriter<NamedTempFile>, path: PathBuf },
}

impl Destination {
    /// The file, else stdout.
    pub(super) fn new(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Self::Stdout(BufWriter::new(io::stdout())));
        };
        output::check_writable(path)?;
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

    /// The results are whole.
    pub(super) fn finish(self) -> anyhow::Result<()> {
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
