//! What a calibration looks like on pages of several widths.

use std::collections::HashSet;
use std::path::Path;

use calibrate::profiles;
use calibrate::report::page;
use cli_support::width::Width;
use fusion_cost_model::calibration::{
    FusionRecord, HardwareCalibration, Reason, ReasonCode, RuntimeUsed, Skipped, Verdict,
};
use fusion_cost_model::{CacheState, DType, Problem};
use proptest::prelude::*;

const EXAMPLE: &str = include_str!("../../tests/data/example.toml");

/// A record of another problem.
fn record(of: &FusionRecord, problem: Problem, speedup: f64, verdict: Verdict) -> FusionRecord {
    FusionRecord {
        problem,
        unfused_latency_ms: of.fused_latency_ms * speedup,
        speedup_factor: speedup,
        speedup_low: speedup * 0.98,
        speedup_high: speedup * 1.02,
        verdict,
        reasons: Vec::new(),
        ..of.clone()
    }
}

fn reason(code: ReasonCode, text: &str) -> Reason {
    Reason { code, text: text.to_owned() }
}

/// The example with problems of every family, the longest names of the built-in sets among them.
fn example() -> HardwareCalibration {
    let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    let like = calibration.records[0].clone();
    let mut records = calibration.records.clone();
    for (name, speedup, verdict) in [
        ("mlp/f32/m512.k512.n2048.o512", 0.975, Verdict::Slower),
        ("conv_bias/f32/n1.c256.h14.w14.k256.r3.s3.pad1", 1.012, Verdict::Same),
        ("conv_bias/f32/n1.c192.h56.w56.k192.r3.s3.pad1.groups192", 1.207, Verdict::Faster),
        (
            "conv_bn_relu_maxpool/f32/n1.c3.h224.w224.k64.r7.s7.stride2.pad3.pool3.pstride2.ppad1",
            1.304,
            Verdict::Faster,
        ),
        ("attention_head/f32/b1.h4.q2048.d64", 10.31, Verdict::Invalid),
        ("attention_scores/f32/b1.h8.q512.d64", 1.151, Verdict::Faster),
        ("sigmoid_mul/f32/m16.n256", 1.467, Verdict::Faster),
        ("add+relu6/f32/m4.n4", 1.0, Verdict::Ambiguous),
    ] {
        records.push(record(&like, name.parse().unwrap(), speedup, verdict));
    }
    for (index, margin) in [(3, "2.1"), (9, "3.4"), (10, "7.8")] {
        let text = format!("the interval (half-width {margin} %) is too wide; measure longer");
        records[index].reasons.push(reason(ReasonCode::Undecided, &text));
    }
    records[5].reasons.push(reason(ReasonCode::AboveCeiling, "above the ceiling of 1.25"));
    records[6].reasons.push(reason(ReasonCode::AboveCeiling, "above the ceiling of 1.25"));
    for record in &mut records {
        record.reasons.push(reason(ReasonCode::Unobserved, "this system does not show steal"));
    }
    calibration.records = records;
    calibration.skipped = vec![Skipped {
        problem: "mlp/f32/m1.k1.n1.o1".parse().unwrap(),
        reason: "mlp/f32/m1.k1.n1.o1: its process was ended by signal 11".to_owned(),
        failure: None,
    }];
    calibration
}

#[test]
fn a_page_fits_its_width() {
    for columns in [60, 80, 120, 200] {
        let text = page(&example(), Some(Path::new("q.toml")), Width::Columns(columns));
        insta::assert_snapshot!(format!("page_{columns}"), text);
    }
    let text = page(&example(), Some(Path::new("q.toml")), Width::Unlimited);
    insta::assert_snapshot!("page_unlimited", text);
}

#[test]
fn the_kernels_of_runtimes_stand_beside_each_other() {
    let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    let native = calibration.records.clone();
    for (whose, factor) in [("other@3.1", 1.25), ("tiny@1.2", 0.5)] {
        for record in &native {
            let mut record = record.clone();
            record.implementation = whose.parse().unwrap();
            record.fused_latency_ms *= factor;
            calibration.records.push(record);
        }
        let (name, version) = whose.split_once('@').unwrap();
        calibration.runtimes.push(RuntimeUsed {
            implementation: whose.parse().unwrap(),
            name: name.to_owned(),
            version: version.to_owned(),
            device: "cpu".to_owned(),
            options: [("threads".to_owned(), "2".to_owned())].into(),
        });
    }
    for record in &mut calibration.records {
        let timing = &mut record.fused_timing;
        timing.low_ms = Some(record.fused_latency_ms / 1.03);
        timing.high_ms = Some(record.fused_latency_ms * 1.03);
    }
    // What is invalid does not count, and what is missing is no reason to leave a problem out.
    let last = calibration.records.len() - 1;
    calibration.records[last].verdict = Verdict::Invalid;
    calibration.records.remove(native.len());
    let text = page(&calibration, None, Width::Columns(120));
    insta::assert_snapshot!("page_of_runtimes_120", text);
    // Independent errors of 3 % each are 4.3 % together.
    assert!(text.contains("2.000 [1.918, 2.085]"), "{text}");
    let narrow = page(&calibration, None, Width::Columns(60));
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    calibration.runtimes.clear();
    assert!(!page(&calibration, None, Width::Unlimited).contains("fastest other"));
}

/// A problem with warm caches and with cold ones: whatever names one of the two says which.
#[test]
fn records_of_cold_caches_are_named_so() {
    let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    calibration.records.iter_mut().for_each(|record| record.reasons.clear());
    let mut cold = calibration.records[0].clone();
    cold.cache_state = CacheState::Cold;
    cold.reasons = vec![reason(ReasonCode::Undecided, "made up")];
    let problem = cold.problem.to_string();
    calibration.records.push(cold.clone());
    let text = page(&calibration, None, Width::Unlimited);
    assert!(text.contains(&format!("undecided, 1 record ({problem} cold): made up")), "{text}");
    let row = format!("{problem} cold ");
    assert_eq!(
        text.lines().filter(|line| line.trim_start().starts_with(&row)).count(),
        1,
        "{text}"
    );
    let (heading, sizes) = problem.rsplit_once('/').unwrap();
    let narrow = page(&calibration, None, Width::Columns(100));
    assert!(narrow.contains(&format!("    {heading}: {sizes} cold\n")), "{narrow}");
    assert_eq!(narrow.matches(&format!("{sizes} cold")).count(), 2, "{narrow}");

    // A time with cold caches is not held against one with warm caches.
    let implementation = "other@3.1".parse().unwrap();
    calibration.records.last_mut().unwrap().implementation = implementation;
    calibration.runtimes.push(RuntimeUsed {
        implementation,
        name: "other".to_owned(),
        version: "3.1".to_owned(),
        device: "cpu".to_owned(),
        options: [].into(),
    });
    let text = page(&calibration, None, Width::Unlimited);
    assert!(text.contains("fastest other") && !text.contains("times as long"), "{text}");
    assert!(text.contains(&format!("({problem} cold (other@3.1))")), "{text}");
}

/// Every problem of the built-in sets.
fn problems() -> Vec<Problem> {
    let of_set = |name: &str| -> Vec<Problem> {
        let set = profiles::find_shapes(name).unwrap();
        set.all_chains().iter().flat_map(|chain| set.problems(chain, DType::F32)).collect()
    };
    // Some are in several sets, and a calibration has each once.
    let mut seen = HashSet::new();
    let all = profiles::shape_names().into_iter().flat_map(of_set);
    all.filter(|problem| seen.insert(*problem)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// No line is wider than the page, and every problem is on it: its sizes whole, below its
    /// heading.
    #[test]
    fn names_are_whole_and_no_line_is_too_wide(
        columns in 60_usize..220,
        chosen in proptest::sample::subsequence(problems(), 1..40),
        speedups in proptest::collection::vec(0.01_f64..200.0, 40),
    ) {
        let mut calibration = example();
        let like = calibration.records[0].clone();
        let verdicts = [Verdict::Faster, Verdict::Same, Verdict::Ambiguous, Verdict::Invalid];
        let verdicts = verdicts.into_iter().cycle();
        calibration.records = chosen
            .iter()
            .zip(&speedups)
            .zip(verdicts)
            .map(|((problem, speedup), verdict)| record(&like, *problem, *speedup, verdict))
            .collect();
        for (index, record) in calibration.records.iter_mut().enumerate() {
            let code = ReasonCode::ALL[index % 3];
            record.reasons.push(reason(code, "of no use; measure on a quieter machine"));
        }
        let file = Path::new("calibration-intel-xeon-processor.toml");
        let text = page(&calibration, Some(file), Width::Columns(columns));
        for line in text.lines() {
            // A command can be copied, whatever its length.
            let is_command = line.trim_start().starts_with("--problem ");
            prop_assert!(line.chars().count() <= columns || is_command, "{line}\n{text}");
        }
        let mut heading = "";
        let mut seen = Vec::new();
        for line in text.lines() {
            let Some(word) = line.split_whitespace().next() else { continue };
            if line.starts_with("  ") && word.contains('/') && !line.starts_with("   ") {
                heading = line.trim();
            } else if !heading.is_empty() {
                seen.push(format!("{heading}/{word}"));
            }
        }
        for problem in &chosen {
            prop_assert!(seen.contains(&problem.to_string()), "{problem}\n{text}");
        }
        let whole = page(&calibration, Some(file), Width::Unlimited);
        for problem in &chosen {
            let row = format!("  {problem} ");
            prop_assert_eq!(whole.lines().filter(|line| line.starts_with(&row)).count(), 1);
        }
    }
}
