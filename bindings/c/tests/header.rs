//! The committed header is what cbindgen makes of the sources.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

/// In the order in which the header has them.
const SOURCES: [&str; 11] = [
    "version",
    "error",
    "constants",
    "target",
    "model",
    "problem",
    "estimate",
    "decision",
    "partition",
    "on_target",
    "coverage",
];

/// `UPDATE_HEADER=1 cargo test -p fusion-cost-model-c --test header` writes it.
#[test]
fn the_header_is_made_of_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let sources = SOURCES.map(|name| root.join("src").join(name).with_extension("rs"));
    let builder = sources.iter().fold(cbindgen::Builder::new(), cbindgen::Builder::with_src);
    let mut made = Vec::new();
    builder.with_config(config).generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();

    let path = root.join("include/fusion_cost_model.h");
    if std::env::var_os("UPDATE_HEADER").is_some() {
        fs::write(&path, &made).unwrap();
    }
    // Git may check text out with the line ends of Windows.
    let committed = fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    let differs = committed.lines().zip(made.lines()).find(|(old, new)| old != new);
    assert!(
        committed == made,
        "{} is not what its sources say, first at {differs:?}; write it with UPDATE_HEADER=1",
        path.display()
    );
}
