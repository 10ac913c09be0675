//! The A/A runs of runtimes, which lack what those of other kernels need.

use fusion_cost_model::calibration::ReasonCode;

use super::{assert_nothing_is_left, calibrate, folder, load};

/// One that has neither f32 nor `add`.
#[test]
fn the_noise_of_a_runtime_is_that_of_its_own_problems() {
    let folder = folder(&["bf16-only"]);
    let mut command = calibrate(folder.path());
    command.args(["--quick", "--processes", "3", "--rounds", "2", "--threads", "1", "--force"]);
    command.args(["--output", "r.toml", "--runtime", "./bf16-only.toml"]);
    let problems = ["mul+relu/bf16/m2.n10", "mul+relu/bf16/m2.n20"];
    for problem in problems {
        command.args(["--problem", problem]);
    }
    command.assert().success();
    let calibration = load(folder.path());
    assert_eq!(calibration.records.len(), problems.len());
    let of: Vec<String> = calibration.noise.iter().map(|one| one.problem.to_string()).collect();
    assert_eq!(of, problems);
    let whose = calibration.records[0].implementation;
    assert!(whose.runtime().is_some());
    assert!(calibration.noise.iter().all(|noise| noise.implementation == whose));
    // A machine that is busy enough disturbs most of any run.
    let is_usable = calibration.noise.iter().any(|noise| !noise.disturbed);
    for record in &calibration.records {
        let lacks = record.reasons.iter().any(|one| one.code == ReasonCode::NoControl);
        assert_eq!(lacks, !is_usable, "{record:?}");
    }
    assert_nothing_is_left(folder.path());
}
