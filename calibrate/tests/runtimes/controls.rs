//! The A/A runs of runtimes, which lack what those of other kernels need.

use fusion_cost_model::calibration::ReasonCode;

use super::{assert_nothing_is_left, calibrate, folder, load};

/// The tiny ones have no `add`, and one of them no f32 either.
#[test]
fn the_noise_of_a_runtime_is_that_of_its_own_problems() {
    for (flaw, dtype) in [("none", "f32"), ("bf16-only", "bf16")] {
        let folder = folder(&[flaw]);
        let mut command = calibrate(folder.path());
        command.args(["--quick", "--processes", "2", "--rounds", "2", "--threads", "1", "--force"]);
        command.args(["--output", "r.toml", "--runtime", &format!("./{flaw}.toml")]);
        let problems = ["m2.n10", "m2.n20"].map(|sizes| format!("mul+relu/{dtype}/{sizes}"));
        for problem in &problems {
            command.args(["--problem", problem]);
        }
        command.assert().success();
        let calibration = load(folder.path());
        assert_eq!(calibration.records.len(), problems.len());
        let of: Vec<String> =
            calibration.noise.iter().map(|noise| noise.problem.to_string()).collect();
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
}
