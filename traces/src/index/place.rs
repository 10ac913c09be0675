//! Where indexes are, and how they get there.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read};
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

use super::IndexPolicy;
use super::layout::MAGIC;

/// What the names of indexes end with: none that [`trace_files`](crate::trace_files) takes for a
/// trace.
const SUFFIX: &str = ".ktindex";

/// Where the index of a trace is; none if there is to be none, or the file is missing.
///
/// In a folder for all, its name begins with a hash of the absolute path of the trace, as many
/// folders have a `rank0.json`.
#[must_use]
pub fn path_of(trace: &Path, policy: &IndexPolicy) -> Option<PathBuf> {
    // The columns in a file are little-endian, and are used as they are.
    if cfg!(target_endian = "big") {
        return None;
    }
    match policy {
        IndexPolicy::Beside => {
            let mut name = trace.file_name()?.to_owned();
            name.push(SUFFIX);
            Some(trace.with_file_name(name))
        }
        IndexPolicy::In(folder) => {
            let trace = fs::canonicalize(trace).ok()?;
            let hash = XxHash3_64::oneshot(trace.as_os_str().as_encoded_bytes());
            let mut name = OsString::from(format!("{hash:016x}-"));
            name.push(trace.file_name()?);
            name.push(SUFFIX);
            Some(folder.join(name))
        }
        IndexPolicy::Off => None,
    }
}

/// Refuses a place where there is something that is not an index, whole or damaged: it is not for a
/// program that reads traces to take away.
fn may_replace(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let is_index = || -> io::Result<bool> {
        let mut beginning = Vec::new();
        File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut beginning)?;
        Ok(MAGIC.starts_with(&beginning))
    };
    if metadata.is_file() && is_index()? {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "what has this name is not an index"))
}

/// Writes a file that has its name only when it is whole: until then it is another one in the same
/// folder. Whoever may read the trace may read it.
pub(super) fn store(
    path: &Path,
    trace: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<u64>,
) -> io::Result<u64> {
    may_replace(path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // The system lets some users write there all the same; whoever closed the folder did not mean
    // that.
    if fs::metadata(folder)?.permissions().readonly() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the folder is read-only"));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ktindex-");
    #[cfg(unix)]
    let permissions = {
        use std::os::unix::fs::PermissionsExt;
        fs::Permissions::from_mode(fs::metadata(trace)?.permissions().mode() & 0o666)
    };
    #[cfg(unix)]
    builder.permissions(permissions);
    #[cfg(not(unix))]
    let _ = trace;
    let file = builder.tempfile_in(folder)?;
    let bytes = write(&mut BufWriter::new(file.as_file()))?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(bytes)
}
