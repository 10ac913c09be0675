//! Real traces, which are not part of the repository.

use std::path::{Path, PathBuf};

/// The folder `shared/traces` above the crate, which the tests marked with `ignore` need.
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
pub(crate) fn folder() -> PathBuf {
    let start = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = start.ancestors().map(|folder| folder.join("shared/traces")).find(|f| f.is_dir());
    found.expect("a folder shared/traces above the crate")
}
