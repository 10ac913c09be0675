//! What fusions gain at the sizes that a trace says, by the cost model.

use fusion_cost_model::{Chain, Clock, Evidence, FusionCostModel, Problem, Target};
use serde::Serialize;

/// What a pattern gains at the sizes in a trace: unfused time over fused time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct EstimatedSpeedup {
    /// The pattern at these sizes.
    pub problem: String,
    /// Where it was measured, as text.
    pub target: String,
    /// What the estimate rests on, such as `measured` or `interpolated`.
    pub evidence: &'static str,
    /// The speedup.
    pub speedup: f64,
    /// The lower end of its interval of 95 %.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// What patterns gain where their GEMM, convolution or attention is this problem, on each target of
/// the file. What lies beyond the measured sizes is left out: the range over all sizes says as much.
pub(super) fn estimates(
    patterns: &[&str],
    problem: Option<&str>,
    model: &FusionCostModel,
) -> Vec<EstimatedSpeedup> {
    let Some(problem) = problem.and_then(|text| text.parse::<Problem>().ok()) else {
        return Vec::new();
    };
    // A chain of another form has other sizes.
    let of_pattern = |pattern: &&str| {
        let chain = pattern.parse::<Chain>().ok()?;
        Problem::new(chain, problem.dtype(), *problem.sizes()).ok()
    };
    let problems: Vec<Problem> = patterns.iter().filter_map(of_pattern).collect();
    let targets = model.targets().iter().filter(|target| {
        target.clock != Clock::LaunchInclusive && target.implementation.is_native()
    });
    let on_target = |target: &Target| {
        let target = model.on(*target);
        problems.iter().filter_map(move |problem| {
            let estimate = target.estimate(problem);
            let evidence = estimate.evidence();
            let is_near = evidence.is_from_kernels() && evidence < Evidence::Extrapolated;
            let speedup = estimate.speedup().filter(|_| is_near)?;
            Some(EstimatedSpeedup {
                problem: problem.to_string(),
                target: target.target().to_string(),
                evidence: evidence.name(),
                speedup: speedup.value,
                low: speedup.low,
                high: speedup.high,
            })
        })
    };
    targets.flat_map(on_target).collect()
}

impl EstimatedSpeedup {
    pub(super) fn sentence(&self) -> String {
        let Self { problem, target, evidence, speedup, low, high } = self;
        format!(
            "{problem} ({target}), the size in the trace: speedup {speedup:.3} [{low:.3}, {high:.3}], \
             {evidence}"
        )
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::HardwareCalibration;

    use super::*;

    fn model() -> FusionCostModel {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../calibrate/profiles/calibrations/intel-xeon-2-threads.toml"
        );
        FusionCostModel::new(HardwareCalibration::load(path).unwrap())
    }

    #[test]
    fn the_model_is_asked_about_the_size_in_the_trace() {
        let model = model();
        let found = estimates(
            &["linear_bias_relu", "linear_bias_gelu", "mlp"],
            Some("matmul/f32/m500.k300.n400"),
            &model,
        );
        // A multi-layer perceptron has sizes of two GEMMs.
        assert!(!found.is_empty() && found.iter().all(|one| !one.problem.starts_with("mlp")));
        for one in &found {
            assert!(one.problem.ends_with("/f32/m500.k300.n400"), "{one:?}");
            assert!(one.low <= one.speedup && one.speedup <= one.high, "{one:?}");
            assert!(one.sentence().contains("the size in the trace: speedup"));
            // The same as the model says to those who ask it themselves.
            let target = model.targets().iter().find(|target| target.to_string() == one.target);
            let estimate = model.on(*target.unwrap()).estimate(&one.problem.parse().unwrap());
            assert_eq!(estimate.speedup().unwrap().value, one.speedup);
        }
    }

    #[test]
    fn nothing_is_said_of_sizes_that_are_far_from_all_or_not_known() {
        let model = model();
        for problem in [
            None,
            Some(""),
            Some("matmul/f32/m1.k1"),
            // Another form, another dtype, and larger by far than what was measured.
            Some("conv2d/f32/n1.c3.h8.w8.k4.r3.s3"),
            Some("matmul/f8/m512.k512.n512"),
            Some("matmul/f32/m9000000.k9000000.n9000000"),
        ] {
            assert_eq!(estimates(&["linear_bias_relu"], problem, &model), [], "{problem:?}");
        }
    }
}
