//! Steps that the ceilings of their own file do not allow.

use fusion_cost_model::calibration::{HardwareCalibration, StepTime, Verdict};

/// Files of one run, whose ceilings are those of all records.
const FILES: [&str; 2] = ["amd-epyc-zen5-2-threads", "intel-xeon-2-threads"];

/// Exchanges the times of two steps, but not the ops.
fn exchange(steps: &mut [StepTime], first: usize, second: usize) {
    steps.swap(first, second);
    let (earlier, later) = steps.split_at_mut(second);
    std::mem::swap(&mut earlier[first].op, &mut later[0].op);
}

/// The sum stays as it is, so that nothing else of the record contradicts it. A product in the time of
/// its bias would be the record of a product ten times as fast as the machine.
#[test]
fn the_time_of_a_product_is_not_that_of_its_bias() {
    for file in FILES {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/calibrate/profiles/calibrations");
        let good = HardwareCalibration::load(format!("{folder}/{file}.toml")).unwrap();
        let mut refused = 0;
        for (index, record) in good.records.iter().enumerate() {
            let steps = &record.steps;
            let is_valid = record.verdict != Verdict::Invalid;
            let longer = steps.len() > 1 && steps[0].ms > 20.0 * steps[1].ms;
            let gflops = record.unfused_gflops;
            // A product that is near the peak cannot take a twentieth.
            if !(is_valid && longer && gflops > 0.2 * good.ceilings[0].ceilings.peak_gflops) {
                continue;
            }
            let mut wrong = good.clone();
            exchange(&mut wrong.records[index].steps, 0, 1);
            let text = wrong.to_toml().unwrap();
            let error = HardwareCalibration::from_toml(&text).unwrap_err().to_string();
            let expected = format!("step.ms at line {}: it is {}", line(&text, index), steps[1].ms);
            assert!(error.contains(&expected), "{file}: {}: {error}\n{expected}", record.problem);
            refused += 1;
        }
        assert!(refused > 5, "{file}: {refused}");
    }
}

/// The line with the time of the first step of a record.
fn line(text: &str, record: usize) -> usize {
    let mut lines = text.lines().zip(1..).skip_while({
        let mut seen = 0;
        move |(line, _)| {
            seen += usize::from(*line == "[[fusion]]");
            seen <= record
        }
    });
    let step = lines.by_ref().find(|(line, _)| *line == "[[fusion.step]]");
    assert!(step.is_some(), "record {record} has no step");
    lines.find(|(line, _)| line.starts_with("ms = ")).unwrap().1
}
