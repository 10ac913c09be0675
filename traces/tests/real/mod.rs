//! Real traces, which are not part of the repository.

use std::path::{Path, PathBuf};

/// The folder `shared/traces` above the crate, which the tests marked with `ignore` need.
pub(crate) fn folder() -> PathBuf {
    shared("traces")
}

/// The folder `shared/more_traces`, likewise.
pub(crate) fn more() -> PathBuf {
    shared("more_traces")
}

#[allow(clippy::expect_used, reason = "a test fails by panicking")]
fn shared(name: &str) -> PathBuf {
    let start = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = start.ancestors().map(|folder| folder.join("shared").join(name));
    let found = found.into_iter().find(|folder| folder.is_dir());
    found.expect("a folder with the public traces above the crate")
}
