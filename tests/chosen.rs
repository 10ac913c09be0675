//! Twenty records that are chosen, the least certain first, against twenty at random.

use crate::made::{Known, Numbers, TARGET, calibration};
use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Verdict};
use fusion_cost_model::{Family, FusionCostModel, Problem, Target};

/// How many records a model is made of.
const RECORDS: usize = 20;

/// The median and the 90 % quantile of the errors of the logarithm of the speedup.
type Off = [f64; 2];

/// All records of a target.
struct Pool {
    calibration: HardwareCalibration,
    target: Target,
}

impl Pool {
    /// Those of a family, or of all.
    fn of(calibration: &HardwareCalibration, target: Target, family: Option<Family>) -> Self {
        let mut calibration = calibration.clone();
        let backend = |record: &FusionRecord| {
            (record.backend, record.threads, record.clock)
                == (target.backend, target.threads, target.clock)
                && record.implementation == target.implementation
                && record.cache_state == target.cache_state
        };
        calibration.records.retain(|record| {
            let of = Family::of(record.problem.chain().form());
            backend(record)
                && record.verdict != Verdict::Invalid
                && record.rewrite.is_none()
                && family.is_none_or(|family| family == of)
        });
        Self { calibration, target }
    }

    fn model(&self, known: &[usize]) -> FusionCostModel {
        let mut calibration = self.calibration.clone();
        calibration.records =
            known.iter().map(|&index| self.calibration.records[index].clone()).collect();
        FusionCostModel::new(calibration)
    }

    /// The records that are least certain, one after the other.
    fn chosen(&self) -> Vec<usize> {
        let mut known = vec![self.calibration.records.len() / 2];
        while known.len() < RECORDS {
            let model = self.model(&known);
            let on = model.on(self.target);
            let width = |&index: &usize| {
                let speedup = on.estimate(&self.calibration.records[index].problem).speedup();
                speedup.map_or(f64::INFINITY, |speedup| (speedup.high / speedup.low).ln())
            };
            let others = (0..self.calibration.records.len()).filter(|index| !known.contains(index));
            let widest = others.max_by(|a, b| width(a).total_cmp(&width(b)));
            known.push(widest.unwrap());
        }
        known
    }

    fn drawn(&self, seed: u64) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.calibration.records.len()).collect();
        let mut numbers = Numbers(seed);
        for index in 0..RECORDS {
            let other = index + numbers.below(all.len() - index);
            all.swap(index, other);
        }
        all.truncate(RECORDS);
        all
    }

    /// What a model of some records says of the speedups of the others; nothing known is a speedup
    /// of 1.
    fn off(&self, known: &[usize]) -> Off {
        let model = self.model(known);
        let others = self.calibration.records.iter().enumerate();
        let others = others.filter(|(index, record)| {
            !known.contains(index) && !record.problem.chain().is_single()
        });
        let off = others.map(|(_, record)| {
            let estimate = model.on(self.target).estimate(&record.problem);
            let found = estimate.speedup().map_or(1.0, |speedup| speedup.value);
            (found / record.speedup_factor).ln().abs()
        });
        let mut off: Vec<f64> = off.collect();
        off.sort_unstable_by(f64::total_cmp);
        [0.5, 0.9].map(|share| off[(share * (off.len() - 1) as f64) as usize])
    }

    /// Both, those at random as the mean of some draws.
    fn compared(&self) -> [Off; 2] {
        const DRAWS: u64 = 12;
        let random: Vec<Off> = (0..DRAWS).map(|seed| self.off(&self.drawn(seed))).collect();
        let mean = |at: usize| random.iter().map(|off| off[at]).sum::<f64>() / DRAWS as f64;
        [self.off(&self.chosen()), [mean(0), mean(1)]]
    }
}

fn in_percent([chosen, random]: [Off; 2]) -> String {
    let [chosen, random] = [chosen, random].map(|off| off.map(|one| 100.0 * one));
    format!(
        "chosen {:.2} / {:.2} %, at random {:.2} / {:.2} %",
        chosen[0], chosen[1], random[0], random[1]
    )
}

/// GEMMs whose tails weigh more the less depth they have.
fn gemms() -> HardwareCalibration {
    let mut numbers = Numbers(21);
    let mut known = Vec::new();
    for m in [16, 100, 512, 3000] {
        for k in [16, 100, 512, 3000] {
            for n in [16, 100, 512, 3000] {
                let text = format!("linear_bias_relu/f32/m{m}.k{k}.n{n}");
                let problem: Problem = text.parse().unwrap();
                let [m, k, n] = [m, k, n].map(f64::from);
                let fused_ms = 0.005 + 2.0 * m * k * n / 300e6 + 4.0 * (m * k + k * n) / 20e6;
                let tails_ms = 2.0 * (0.002 + 8.0 * m * n / 20e6);
                let noise = (0.01 * numbers.normal()).exp();
                known.push(Known {
                    problem,
                    fused_ms: fused_ms * (0.03 * numbers.normal()).exp(),
                    speedup: (1.0 + tails_ms / fused_ms) * noise,
                    half_width: 0.02,
                });
            }
        }
    }
    calibration(known)
}

#[test]
fn the_least_certain_first_is_better_than_at_random() {
    let pool = Pool::of(&gemms(), TARGET, None);
    let [chosen, random] = pool.compared();
    println!("{}", in_percent([chosen, random]));
    assert!(chosen[0] < random[0] && chosen[1] < random[1], "{chosen:?} {random:?}");
}

/// The same of a standard calibration of a real machine.
#[test]
fn on_a_real_machine_they_are_better_too() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/calibrate/profiles/calibrations/intel-xeon-2-threads.toml"
    );
    let calibration = HardwareCalibration::load(file).unwrap();
    let target = FusionCostModel::new(calibration.clone()).targets()[0];
    for family in [None, Some(Family::Elementwise)] {
        let [chosen, random] = Pool::of(&calibration, target, family).compared();
        println!("{family:?}: {}", in_percent([chosen, random]));
        assert!(chosen[0] < random[0] && chosen[1] < random[1], "{chosen:?} {random:?}");
    }
}
