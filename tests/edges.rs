//! Answers beyond the measured sizes, on real machines: a third of the sizes is left out at one end.

use std::collections::BTreeSet;

use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Verdict};
use fusion_cost_model::{Evidence, FusionCostModel, Target};

const FILES: [&str; 3] = ["amd-epyc-2-threads", "amd-epyc-zen5-2-threads", "intel-xeon-2-threads"];

fn is_used(record: &&FusionRecord) -> bool {
    record.verdict != Verdict::Invalid && record.rewrite.is_none()
}

/// The sizes that a problem has, which are those of its form.
fn form(record: &FusionRecord) -> Vec<&'static str> {
    record.problem.sizes().iter().map(|(key, _)| key.key).collect()
}

fn size(record: &FusionRecord, key: &str) -> Option<u64> {
    record.problem.sizes().iter().find(|(one, _)| one.key == key).map(|(_, size)| size)
}

/// How many answers hold what was measured: of times, of speedups, and of how many.
#[derive(Debug, Default)]
struct Held {
    times: usize,
    speedups: usize,
    asked: usize,
}

/// Leaves out the records of a form with a size at one end, and the single ops at these sizes, from which
/// they could be composed; asks about them, and counts by whether they are two octaves away.
fn leave_out(
    whole: &HardwareCalibration,
    form_of_all: &[&str],
    is_out: impl Fn(u64) -> bool,
    key: &str,
    held: &mut [Held; 2],
) {
    let is_out = |record: &FusionRecord| {
        form(record) == form_of_all && size(record, key).is_some_and(&is_out)
    };
    let out: Vec<&FusionRecord> =
        whole.records.iter().filter(is_used).filter(|record| is_out(record)).collect();
    let firsts: Vec<_> = out.iter().filter_map(|record| record.problem.slice(0..1)).collect();
    let mut without = whole.clone();
    without.records.retain(|record| !is_out(record) && !firsts.contains(&record.problem));
    let model = FusionCostModel::new(without);
    let on = model.on(Target::cpu(2));
    for record in out {
        let estimate = on.estimate(&record.problem);
        if estimate.evidence() != Evidence::Extrapolated {
            continue;
        }
        let held = &mut held[usize::from(estimate.octaves_beyond() > 2.0)];
        let (time, speedup) = (estimate.fused_ms().unwrap(), estimate.speedup().unwrap());
        held.asked += 1;
        held.times += usize::from(time.contains(record.fused_latency_ms));
        held.speedups += usize::from(speedup.contains(record.speedup_factor));
    }
}

#[test]
fn intervals_beyond_the_measured_sizes_hold_what_was_measured_there() {
    let mut held = [[Held::default(), Held::default()], [Held::default(), Held::default()]];
    for file in FILES {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/calibrate/profiles/calibrations");
        let whole = HardwareCalibration::load(format!("{folder}/{file}.toml")).unwrap();
        let of_record = |record: &FusionRecord| {
            let form = form(record);
            form.iter().map(|key| (form.clone(), *key)).collect::<Vec<_>>()
        };
        let keys: BTreeSet<(Vec<&str>, &str)> =
            whole.records.iter().filter(is_used).flat_map(of_record).collect();
        for (form_of_all, key) in &keys {
            let of_form =
                whole.records.iter().filter(is_used).filter(|one| form(one) == *form_of_all);
            let sizes: BTreeSet<u64> = of_form.filter_map(|record| size(record, key)).collect();
            let sizes: Vec<u64> = sizes.into_iter().collect();
            if sizes.len() < 4 {
                continue;
            }
            let third = sizes.len() / 3;
            let (least, most) = (sizes[third], sizes[sizes.len() - 1 - third]);
            leave_out(&whole, form_of_all, |size| size < least, key, &mut held[0]);
            leave_out(&whole, form_of_all, |size| size > most, key, &mut held[1]);
        }
    }
    for (end, held) in ["smaller", "larger"].iter().zip(&held) {
        for (distance, Held { times, speedups, asked }) in ["near", "far"].iter().zip(held) {
            let text = format!("{end} and {distance}: {times} and {speedups} of {asked}");
            println!("{text}");
            assert!(
                *asked > 50 && 20 * times >= 18 * asked && 20 * speedups >= 18 * asked,
                "{text}"
            );
        }
    }
}
