//! Achieved rates, and the problems of a model.

use std::fs;
use std::path::Path;

use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;

use super::program::{json, one, stdout, trace};

/// A data sheet of the device below: 1 TFLOP/s in bf16, and 100 GB/s.
const SPEC: &str = r#"kind = "hardware"
schema_version = 2
id = "example"
name = "Example"
vendor = "Example"
processor = "gpu"
architecture = "none"
detect = ["Example 1"]
cores = { count = 4, source = "made up" }
memory = { bandwidth_gb_per_s = 100.0, kind = "HBM", source = "made up" }
peak = [{ dtype = "bf16", gflops = 1000.0, unit = "matrix", how = "made up", source = "made up" }]
"#;

/// A trace `t.json` of a GEMM, an addition and a GEMM with a bias, and a data sheet `example.toml`.
fn model() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let ops = [
        ("aten::mm", "[[1000, 500], [500, 1000]]", "ampere_bf16_s16816gemm_bf16_128x64", 2000),
        (
            "aten::add",
            "[[1000, 500], [1000, 500]]",
            "void vectorized_elementwise_kernel<add>()",
            40,
        ),
        ("aten::addmm", "[[64], [16, 32], [32, 64]]", "gemm </script> bf16", 10),
    ];
    let mut events = Vec::new();
    for (id, (op, dims, kernel, duration)) in (1..).zip(ops) {
        let time = 10_000 * id;
        events.push(format!(
            "{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{op}\", \"pid\": 1, \"tid\": 1, \
             \"ts\": {time}, \"dur\": 5, \"args\": {{\"External id\": {id}, \"Input Dims\": {dims}, \
             \"Input type\": [\"c10::BFloat16\", \"c10::BFloat16\", \"c10::BFloat16\"]}}}}"
        ));
        events.push(format!(
            "{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{kernel}\", \"pid\": 0, \"tid\": 7, \
             \"ts\": {time}, \"dur\": {duration}, \"args\": {{\"External id\": {id}, \"device\": 0, \
             \"stream\": 7}}}}"
        ));
    }
    let text = format!(
        "{{\"deviceProperties\": [{{\"id\": 0, \"name\": \"Example 1\"}}], \"traceEvents\": [{}]}}",
        events.join(",")
    );
    fs::write(folder.path().join("t.json"), text).unwrap();
    fs::write(folder.path().join("example.toml"), SPEC).unwrap();
    folder
}

const RATES: [&str; 4] = ["rates", "t.json", "--hardware", "example.toml"];

fn csv(folder: &Path) -> String {
    stdout(trace(folder).args(RATES).args(["--format", "csv"]))
}

#[test]
fn rates_read_as_they_should() {
    let folder = model();
    insta::assert_snapshot!("trace_rates", stdout(trace(folder.path()).args(RATES)));
    for command in ["rates", "problems"] {
        let help = stdout(trace(folder.path()).args([command, "--help"]));
        insta::assert_snapshot!(format!("trace_{command}_help"), help);
    }
    let all = json(trace(folder.path()).args(RATES).arg("--json"));
    let gemm = &all["ranks"][0]["by_class"][0];
    assert_eq!((&gemm["class"], &gemm["bound"]), (&"GEMM".into(), &"compute".into()));
    let csv = csv(folder.path());
    assert!(csv.starts_with("file,rank,by,name,class,dtype,count,total_ns,known_ns,flops,bytes,"));
    let page = stdout(trace(folder.path()).args(RATES).args(["--format", "html"]));
    assert!(page.contains("<svg class=\"roofline\"") && page.contains("FLOP per byte"));
    assert!(page.contains("gemm &lt;/script&gt; bf16") && !page.contains("</script>"));
}

#[test]
fn without_a_data_sheet_rates_have_no_peaks() {
    let folder = model();
    let told = trace(folder.path()).args(["rates", "t.json"]).assert().success();
    told.stderr(contains("no data sheet of Example 1 is built in"))
        .stdout(contains("rates without peaks").and(contains("0.50")));
    trace(folder.path())
        .args(["rates", "t.json", "--hardware", "h100"])
        .assert()
        .code(2)
        .stderr(contains("no machine is called h100; no data sheet is built in; name a file"));
    let folder = one();
    trace(folder.path())
        .args(["problems", "t.json"])
        .assert()
        .code(1)
        .stderr(contains("says no sizes of GEMMs"));
}

#[test]
fn problems_are_a_set_of_sizes() {
    let folder = model();
    let set = stdout(trace(folder.path()).args(["problems", "t.json"]));
    insta::assert_snapshot!("trace_problems", set);
    let one = stdout(trace(folder.path()).args(["problems", "t.json", "--top", "1"]));
    assert!(one.contains("\n# Left out: 1 shorter problem.\n"), "{one}");
    assert!(one.contains("matmul") && !one.contains("linear_bias"));
    let all = json(trace(folder.path()).args(["problems", "t.json", "--json"]));
    assert_eq!(all["problems"][0]["problem"], "linear/bf16/m1000.k500.n1000");
}

#[test]
fn what_is_no_problem_is_said_with_its_reason() {
    let folder = model();
    let file = folder.path().join("t.json");
    let text = fs::read_to_string(&file).unwrap();
    let several = text
        .replace("aten::mm", "aten::bmm")
        .replace("[[1000, 500], [500, 1000]]", "[[4, 100, 50], [4, 50, 100]]")
        .replace("aten::addmm", "my::own");
    fs::write(&file, several).unwrap();
    trace(folder.path()).args(["problems", "t.json"]).assert().code(1).stderr(contains(
        "no operator of t.json is a problem that can be measured: aten::bmm (several GEMMs at once)",
    ));
    let all = json(trace(folder.path()).args(["problems", "t.json", "--json"]));
    assert_eq!(all["left_out"][0]["reason"], "several GEMMs at once");
}

#[test]
fn a_slice_of_a_gpu_has_no_peaks() {
    let folder = model();
    let file = folder.path().join("t.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("Example 1", "NVIDIA H100 80GB HBM3 MIG 1g.10gb")).unwrap();
    let told = trace(folder.path()).args(["rates", "t.json"]).assert().success();
    told.stderr(contains("MIG 1g.10gb is a slice of a GPU, and the data sheets are of whole ones"))
        .stdout(contains("rates without peaks"));
}

/// Names in every table of records, as a terminal must not see them.
#[test]
fn records_have_no_control_characters() {
    let folder = model();
    let file = folder.path().join("t.json");
    let text = fs::read_to_string(&file).unwrap();
    let text = text.replace("gemm </script> bf16", "gemm \\u001b[2J\\u0000\\u0007\\u009b1m bf16");
    fs::write(&file, text).unwrap();
    for args in [
        &["rates", "t.json", "--format", "csv"][..],
        &["kernels", "t.json", "--format", "csv"],
        &["kernels", "t.json", "--rows", "--format", "csv"],
        &["kernels", "t.json", "--rows", "--format", "csv", "--raw-cells"],
        &["kernels", "t.json", "--rows", "--stream", "--format", "csv"],
    ] {
        let records = stdout(trace(folder.path()).args(args));
        let is_plain = |character: char| !character.is_control() || "\r\n".contains(character);
        assert!(records.chars().all(is_plain), "{args:?}: {records:?}");
        let name = "gemm \\u{1b}[2J\\u{0}\\u{7}\\u{9b}1m bf16";
        assert!(records.contains(name), "{args:?}: {records}");
    }
}
