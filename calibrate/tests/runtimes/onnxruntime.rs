//! ONNX Runtime, where it is installed.

use std::path::Path;

use assert_cmd::Command;

use super::{assert_nothing_is_left, calibrate, folder, is_installed, load, shortest};

/// Asserts that a command writes nothing for the user but what calibrate says that it keeps.
fn assert_keeps_to_itself(mut command: Command, folder: &Path) {
    let cache = folder.join("cache");
    std::fs::create_dir_all(&cache).unwrap();
    command.env_remove("ORT_DISABLE_TELEMETRY").assert().success();
    let entries = std::fs::read_dir(cache).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.retain(|name| name != "fusion-cost-model");
    assert!(names.is_empty(), "{names:?}");
    assert_nothing_is_left(folder);
}

#[test]
fn it_is_proved_and_measured_and_writes_nothing_else() {
    if !is_installed("onnxruntime") {
        return;
    }
    let folder = folder(&[]);
    let problems = [
        "conv_bn_relu/f32/n1.c8.h10.w9.k16.r3.s3.pad1",
        "attention_head/f32/b1.h2.q16.d8",
        "mul+silu/f32/m16.n16",
    ];
    let mut command = shortest(folder.path());
    command.args(["--runtime", "onnxruntime"]);
    for problem in problems {
        command.args(["--problem", problem]);
    }
    assert_keeps_to_itself(command, folder.path());
    let calibration = load(folder.path());
    assert_eq!(calibration.records.len(), problems.len());
    for record in &calibration.records {
        assert!(record.verification.fused_error <= record.verification.tolerance);
        assert!(record.implementation.runtime().is_some_and(|id| id.name() == "onnxruntime"));
    }
    // Whether it reorders the image as well depends on the processor.
    let convolution = &calibration.records[0].fused_kernel;
    assert!(convolution.contains("Conv") && !convolution.contains("Relu"), "{convolution}");
    // Each op is as fast as users get it: of the two nodes that a SiLU is written with it makes one.
    assert_eq!(calibration.records[2].unfused_kernels, ["Mul", "QuickGelu"]);
}

#[test]
fn to_be_listed_it_writes_nothing_either() {
    if !is_installed("onnxruntime") {
        return;
    }
    let folder = folder(&[]);
    let mut command = calibrate(folder.path());
    command.args(["list", "runtimes"]);
    assert_keeps_to_itself(command, folder.path());
}
