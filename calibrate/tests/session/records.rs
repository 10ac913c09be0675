//! Records of single ops and of steps.

use calibrate::measure::Procedure;
use calibrate::plan::Comparison;
use calibrate::run::RunSettings;
use calibrate::worker::{MeasureAnswer, MeasureTask, Workers};
use fusion_cost_model::Problem;
use fusion_cost_model::calibration::{FusionRecord, Verdict};

use super::scripted::{SETTINGS, Scripted, processes, records_of, run, single, subjects};

/// Between its copies nothing is decided, so that it gets no more processes however wide the ratio.
#[test]
fn a_single_op_is_measured_against_its_copy_in_the_planned_processes() {
    let wide = |problem: &Problem| if problem.chain().is_single() { 0.3 } else { 0.001 };
    let mut workers = Scripted { spread: wide, ..Scripted::new() };
    let all = [subjects(1), vec![single("relu/f32/m3.n8"), single("softmax/f32/m3.n8")]].concat();
    let outcome = run(&mut workers, SETTINGS, &all);
    assert_eq!(processes(&outcome.measured), [10, 10, 10]);
    let asked = workers.measured();
    let of_single = asked.iter().filter(|(problem, _)| problem.chain().is_single());
    assert!(of_single.clone().all(|(_, what)| *what == Comparison::UnfusedCopy));
    assert_eq!(of_single.count(), 20);
    // They are A/A runs like the two that every run begins with.
    let noise: Vec<String> = outcome.noise.iter().map(|one| one.problem.to_string()).collect();
    assert_eq!(noise[2..], ["relu/f32/m3.n8", "softmax/f32/m3.n8"]);
    let records = records_of(&outcome);
    assert_eq!(records[0].verdict, Verdict::Same);
    for record in &records[1..] {
        assert_eq!(record.verdict, Verdict::Single, "{:?}", record.reasons);
        let FusionRecord { speedup_factor, speedup_low, speedup_high, .. } = *record;
        assert_eq!([speedup_factor, speedup_low, speedup_high], [1.0; 3]);
        assert_eq!(record.unfused_latency_ms, record.fused_latency_ms);
        let [unfused, fused] = [&record.unfused_timing, &record.fused_timing];
        assert_eq!(unfused, fused);
        assert_eq!(unfused.process_ms.len(), 10);
        assert!(unfused.low_ms.unwrap() < record.unfused_latency_ms);
        assert_eq!((record.ceiling_speedup, record.memory_reduction), (Some(1.0), 0.0));
        assert!(record.steps.is_empty() && record.by_state.is_empty());
    }
}

/// One whose copies differ says nothing, and spoils no other record.
#[test]
fn a_single_op_with_unequal_copies_is_invalid_by_itself() {
    let answer = |task: &MeasureTask| {
        let answer = Scripted::new().measure(task.clone(), None);
        let Ok(MeasureAnswer::Measured(mut report)) = answer else { return None };
        if task.subject.problem.chain().is_single() {
            let pairs = report.samples.rounds.iter_mut().flat_map(|round| &mut round.pairs);
            pairs.for_each(|pair| pair.seconds[0] *= 1.2);
        }
        Some(Ok(MeasureAnswer::Measured(report)))
    };
    let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
    let all = [subjects(1), vec![single("relu/f32/m3.n8")]].concat();
    let records = records_of(&run(&mut workers, SETTINGS, &all));
    assert_ne!(records[0].verdict, Verdict::Invalid, "{:?}", records[0].reasons);
    assert_eq!(records[1].verdict, Verdict::Invalid);
    assert_eq!(records[1].reasons[0].code.name(), "control-off");
}

#[test]
fn the_steps_of_the_unfused_variant_are_medians_over_processes() {
    let answer = |task: &MeasureTask| {
        let answer = Scripted::new().measure(task.clone(), None);
        let Ok(MeasureAnswer::Measured(mut report)) = answer else { return None };
        let late = (task.process_seed % 7) as f64 * 1e-6;
        report.steps.iter_mut().for_each(|seconds| *seconds += late);
        Some(Ok(MeasureAnswer::Measured(report)))
    };
    let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(1));
    let record = &records_of(&outcome)[0];
    let [add, relu] = &record.steps[..] else { panic!("{:?}", record.steps) };
    assert_eq!([&add.op[..], &relu.op], ["add", "relu"]);
    for (step, least) in [(add, 0.6), (relu, 0.3)] {
        let (low, high) = (step.low_ms.unwrap(), step.high_ms.unwrap());
        assert!(least <= low && low <= step.ms && step.ms <= high && high <= least + 0.006);
    }
    let outside = 1.0 - (add.ms + relu.ms) / record.unfused_latency_ms;
    assert!((record.share_outside_steps.unwrap() - outside).abs() < 1e-5);
    assert_eq!((record.unfused_scratch_bytes, record.fused_scratch_bytes), (Some(64), Some(128)));
    let quick = RunSettings { procedure: Procedure::QUICK, ..SETTINGS };
    let outcome = run(&mut Scripted::new(), quick, &subjects(1));
    let record = &records_of(&outcome)[0];
    assert_eq!((record.steps[0].ms, record.steps[0].low_ms), (0.6, None), "too few processes");
}
