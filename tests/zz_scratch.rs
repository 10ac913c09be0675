#![allow(clippy::unwrap_used)]
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::*;
use std::collections::BTreeMap;

#[test]
fn leave_one_out() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/calibrate/profiles/calibrations/intel-xeon-2-threads.toml");
    let whole = HardwareCalibration::load(path).unwrap();
    let started = std::time::Instant::now();
    let _ = FusionCostModel::new(whole.clone());
    println!("fit {:?}", started.elapsed());
    let mut by: BTreeMap<String, Vec<(f64, f64, bool, bool, f64, String)>> = BTreeMap::new();
    for index in 0..whole.records.len() {
        let mut without = whole.clone();
        let record = without.records.remove(index);
        let model = FusionCostModel::new(without);
        let on = model.on(model.targets()[0]);
        let estimate = on.estimate(&record.problem);
        let (s, t) = (estimate.speedup().unwrap(), estimate.fused_ms().unwrap());
        let off_s = (s.value / record.speedup_factor).ln().abs();
        let off_t = (t.value / record.fused_latency_ms).ln().abs();
        let row = (off_s, off_t, (s.low..=s.high).contains(&record.speedup_factor), (t.low..=t.high).contains(&record.fused_latency_ms), (s.high / s.value).ln(), estimate.evidence().to_string());
        println!("{:55} {:24} s {:.3} true {:.3} [{:.3} {:.3}] t {:.4} true {:.4} [{:.4} {:.4}]", record.problem.to_string(), row.5, s.value, record.speedup_factor, s.low, s.high, t.value, record.fused_latency_ms, t.low, t.high);
        for key in [record.fusion_pattern.clone(), "all".into(), format!("evidence {}", row.5)] {
            by.entry(key).or_default().push(row.clone());
        }
    }
    for (key, rows) in by {
        let q = |f: &dyn Fn(&(f64, f64, bool, bool, f64, String)) -> f64, share: f64| { let mut v: Vec<f64> = rows.iter().map(f).collect(); v.sort_by(f64::total_cmp); v[(share * (v.len() - 1) as f64) as usize] };
        println!("{key:30} n {:3} speedup {:.3}/{:.3} covered {:.2} half {:.3}  time {:.3}/{:.3} covered {:.2}", rows.len(), q(&|r| r.0, 0.5), q(&|r| r.0, 0.9), rows.iter().filter(|r| r.2).count() as f64 / rows.len() as f64, q(&|r| r.4, 0.5), q(&|r| r.1, 0.5), q(&|r| r.1, 0.9), rows.iter().filter(|r| r.3).count() as f64 / rows.len() as f64);
    }
}
