//! Where the calibration file goes.

use std::path::{Path, PathBuf};

use anyhow::Context;
pub use cli_support::output::check_writable;

/// The file to write: the one that was named, else one named after the observed machine.
#[must_use]
pub fn path(named: Option<&Path>, machine_id: &str) -> PathBuf {
    named.map_or_else(|| PathBuf::from(format!("calibration-{machine_id}.toml")), Path::to_owned)
}

/// Where an interrupted run writes when there already is a whole calibration: beside it, so that
/// the whole one is not lost.
#[must_use]
pub fn partial(path: &Path) -> PathBuf {
    path.with_extension("partial.toml")
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
    fn the_file_is_named_after_the_observed_machine() {
        assert_eq!(path(None, "i7-12700k"), Path::new("calibration-i7-12700k.toml"));
        assert_eq!(path(Some(Path::new("a/b.toml")), "x"), Path::new("a/b.toml"));
        assert_eq!(partial(Path::new("a/b.toml")), Path::new("a/b.partial.toml"));
    }
}
