//! Files that are written.

use std::path::Path;

use anyhow::Context;

use crate::exit::UsageError;

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

/// Removes a file that may not be there.
///
/// # Errors
///
/// When it is there and cannot be removed.
pub fn remove_if_there(path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
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
