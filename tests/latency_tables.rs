//! Times between measured ones, on a published table: bf16 GEMMs of one H200.

use std::collections::HashSet;
use std::io::Read;

use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::{Chain, DType, Evidence, FusionCostModel, LinearSizes, Op, Problem};

use crate::made::{Known, Numbers, TARGET, calibration};

/// The sizes m, n, k of a GEMM and its time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    sizes: [u64; 3],
    ms: f64,
}

fn table() -> Vec<Row> {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/latency_tables/h200_gemm_bf16.csv.gz");
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let row = |line: &str| {
        let mut fields = line.split(',');
        let sizes = [(); 3].map(|()| fields.next().unwrap().parse().unwrap());
        Row { sizes, ms: fields.next().unwrap().parse().unwrap() }
    };
    text.lines().skip(1).map(row).collect()
}

fn problem([m, n, k]: [u64; 3]) -> Problem {
    let chain = Chain::new(&[Op::Linear]).unwrap();
    Problem::linear(chain, DType::Bf16, LinearSizes { m, k, n }).unwrap()
}

/// What a model that was made from some rows says of the others within their range.
#[derive(Debug, Clone, Copy)]
struct Found {
    median: f64,
    p90: f64,
    /// The share of times that are in their intervals.
    covered: f64,
    /// The median of half of an interval.
    half_width: f64,
    questions: usize,
}

fn model(known: &[Row]) -> FusionCostModel {
    FusionCostModel::new(calibration_of(known))
}

fn calibration_of(known: &[Row]) -> HardwareCalibration {
    let record = |row: &Row| Known {
        problem: problem(row.sizes),
        fused_ms: row.ms,
        speedup: 1.0,
        half_width: 0.0,
    };
    calibration(known.iter().map(record))
}

fn ask(table: &[Row], known: &[Row]) -> Found {
    ask_model(&model(known), table, known, Evidence::Interpolated)
}

/// What a model says of all rows but those that it knows, where it answers with some evidence.
fn ask_model(model: &FusionCostModel, table: &[Row], known: &[Row], evidence: Evidence) -> Found {
    let on = model.on(TARGET);
    let (mut errors, mut half_widths, mut covered) = (Vec::new(), Vec::new(), 0);
    let is_known: HashSet<[u64; 3]> = known.iter().map(|row| row.sizes).collect();
    for row in table.iter().filter(|row| !is_known.contains(&row.sizes)) {
        let estimate = on.estimate(&problem(row.sizes));
        if estimate.evidence() != evidence {
            continue;
        }
        let time = estimate.fused_ms().unwrap();
        assert_eq!(estimate.unfused_ms(), Some(time), "a single op has one time");
        errors.push((time.value / row.ms - 1.0).abs());
        half_widths.push((time.high / time.value).ln());
        covered += usize::from((time.low..=time.high).contains(&row.ms));
    }
    let quantile = |values: &mut Vec<f64>, share: f64| {
        values.sort_unstable_by(f64::total_cmp);
        values[(share * (values.len() - 1) as f64) as usize]
    };
    Found {
        median: quantile(&mut errors, 0.5),
        p90: quantile(&mut errors, 0.9),
        covered: covered as f64 / errors.len() as f64,
        half_width: quantile(&mut half_widths, 0.5),
        questions: errors.len(),
    }
}

/// Every `step`-th of the values that a size has in the table, from `offset` on.
fn thinned(table: &[Row], steps: [usize; 3], offset: usize) -> Vec<Row> {
    let kept = |size: usize| -> HashSet<u64> {
        let mut values: Vec<u64> = table.iter().map(|row| row.sizes[size]).collect();
        values.sort_unstable();
        values.dedup();
        values.into_iter().skip(offset).step_by(steps[size]).collect()
    };
    let kept = [0, 1, 2].map(kept);
    let is_kept = |row: &&Row| row.sizes.iter().zip(&kept).all(|(size, kept)| kept.contains(size));
    table.iter().filter(is_kept).copied().collect()
}

fn drawn(table: &[Row], count: usize, seed: u64) -> Vec<Row> {
    let mut rows = table.to_vec();
    let mut numbers = Numbers(seed);
    for index in 0..count {
        let other = index + numbers.below(rows.len() - index);
        rows.swap(index, other);
    }
    rows.truncate(count);
    rows
}

fn assert_within(found: &Found, median: f64, p90: f64) {
    println!("{found:.4?}");
    assert!(found.median <= median && found.p90 <= p90, "{found:?}");
    assert!((0.90..=0.98).contains(&found.covered), "{found:?}");
}

/// The mean over several ways to choose what is known.
fn mean(found: &[Found]) -> Found {
    let mean = |of: fn(&Found) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
    Found {
        median: mean(|found| found.median),
        p90: mean(|found| found.p90),
        covered: mean(|found| found.covered),
        half_width: mean(|found| found.half_width),
        questions: found.iter().map(|found| found.questions).sum(),
    }
}

#[test]
#[ignore = "needs the table in ../shared/latency_tables"]
fn a_grid_of_a_quarter_of_each_size() {
    let table = table();
    let from = |offset: usize| {
        let grid = thinned(&table, [4, 4, 4], offset);
        let found = ask(&table, &grid);
        println!("{} rows: {found:.4?}", grid.len());
        found
    };
    assert_within(&mean(&[0, 1, 2, 3].map(from)), 0.035, 0.105);
}

/// What powers of two say about the sizes between them: as much in the median, but the intervals that
/// are made from them alone are too narrow.
#[test]
#[ignore = "needs the table in ../shared/latency_tables"]
fn powers_of_two() {
    let table = table();
    let is_kept = |row: &&Row| row.sizes.iter().all(|size| size.is_power_of_two());
    let powers: Vec<Row> = table.iter().filter(is_kept).step_by(3).copied().collect();
    let found = ask(&table, &powers);
    println!("{} rows: {found:.4?}", powers.len());
    assert!(found.median <= 0.035 && found.p90 <= 0.105, "{found:.4?}");
    assert!((0.85..0.93).contains(&found.covered), "{found:.4?}");
}

#[test]
#[ignore = "needs the table in ../shared/latency_tables"]
fn sixty_rows_at_random() {
    let table = table();
    let draws: Vec<Found> = (0..12).map(|seed| ask(&table, &drawn(&table, 60, seed))).collect();
    assert_within(&mean(&draws), 0.055, 0.17);
}

#[test]
#[ignore = "needs the table in ../shared/latency_tables"]
fn a_thousand_rows_at_random() {
    let table = table();
    assert_within(&ask(&table, &drawn(&table, 1000, 1)), 0.03, 0.09);
}

/// The table as an older version of the software might have had it. There is one public table here,
/// so the drift is made up as tables of two versions differ: a factor that all have in common, some
/// that depends on the sizes, and 4 % that belongs to each GEMM alone.
fn older_version(table: &[Row]) -> Vec<Row> {
    let mut numbers = Numbers(7);
    let older = |row: &Row| {
        let [m, n, k] = row.sizes.map(|size| (size as f64).log2());
        let by_size = 0.05 * (0.5 * m).sin() - 0.015 * (k - 11.0) + 0.01 * (n - 11.0);
        Row { ms: row.ms * (0.08 + by_size + 0.04 * numbers.normal()).exp(), ..*row }
    };
    table.iter().map(older).collect()
}

/// Thirty rows and the table of an older version, against thirty rows by themselves.
#[test]
#[ignore = "needs the table in ../shared/latency_tables"]
fn thirty_rows_and_a_prior() {
    let table = table();
    let older = calibration_of(&older_version(&table));
    let (mut alone, mut with_prior) = (Vec::new(), Vec::new());
    for seed in 0..6 {
        let known = drawn(&table, 30, seed);
        alone.push(ask(&table, &known));
        let refreshed = model(&known).with_prior(older.clone()).unwrap();
        with_prior.push(ask_model(&refreshed, &table, &known, Evidence::Prior));
    }
    let [alone, with_prior] = [mean(&alone), mean(&with_prior)];
    println!("alone {alone:.4?}");
    assert_within(&with_prior, 0.04, 0.1);
    assert!(with_prior.median < 0.65 * alone.median, "{alone:.4?}");
}
