//! Real traces, which are not part of the repository.

use std::path::{Path, PathBuf};

use assert_cmd::Command;

use super::json;

/// The folder `shared/traces` above the crate.
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
fn folder() -> PathBuf {
    let start = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = start.ancestors().map(|folder| folder.join("shared/traces")).find(|f| f.is_dir());
    found.expect("a folder shared/traces above the crate")
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn pairs_are_written_in_every_format() {
    let folder = folder();
    for (first, second) in [
        ("mi300x_qwen1.5-0.5b_eager", "h100_qwen1.5-0.5b_eager"),
        ("h100_bert-small_eager", "mi300x_bert-small_eager"),
        ("mi300x_timesformer_eager", "h100_timesformer_eager"),
        ("mi300x_gpt-oss-20b_vllm_prefilldecode", "mi300x_qwen3-8b_sglang_decode_graph"),
        ("a100_dlrm_train_control", "v100_dlrm_train_test"),
    ] {
        let written = |format: &str| {
            let files = [first, second].map(|name| folder.join(format!("{name}.json.gz")));
            let mut command = Command::new(env!("CARGO_BIN_EXE_trace-tool"));
            command.args(["compare", "--no-index", "--format", format]).args(files);
            let output = command.assert().success();
            String::from_utf8(output.get_output().stdout.clone()).unwrap()
        };
        let value = json::check(&written("json"));
        let sum = |list: &str| {
            let parts = value["gap"][list].as_array().unwrap();
            parts.iter().map(|part| part["gap_ns"].as_f64().unwrap()).sum::<f64>()
        };
        let gap = value["gap"]["gap_ns"].as_f64().unwrap();
        for list in ["causes", "classes"] {
            assert!((sum(list) - gap).abs() < 10.0, "{first} {list}: {} {gap}", sum(list));
        }
        let page = written("html");
        assert!(page.len() < 1_000_000 && page.ends_with("</html>"), "{first}: {}", page.len());
        let text = written("text");
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{first}: {text}");
        assert!(written("csv").lines().count() > 5, "{first}");
    }
}
