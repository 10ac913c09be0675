//! The tables of CSV.

use clap::ValueEnum;
use kernel_traces::compare::Comparison;
use trace_tool::report::{CompareReport, CompareTable, trace_compare_csv};

use super::example;

fn csv(comparison: &Comparison, table: CompareTable) -> String {
    String::from_utf8(trace_compare_csv(example::report(comparison), table).unwrap()).unwrap()
}

fn header(comparison: &Comparison, table: CompareTable) -> String {
    csv(comparison, table).lines().next().unwrap().to_owned()
}

fn records(text: &str) -> Vec<::csv::StringRecord> {
    ::csv::Reader::from_reader(text.as_bytes()).into_records().map(Result::unwrap).collect()
}

#[test]
fn operations_have_the_columns_of_older_tools() {
    let comparison = example::comparison();
    let text = csv(&comparison, CompareTable::Operations);
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(
        lines[0],
        "operation,amd_count,nvidia_count,amd_avg_us,nvidia_avg_us,amd_total_ms,nvidia_total_ms,\
         ratio,gap_ms,status,amd_kernel,nvidia_kernel,amd_cpu_op,nvidia_cpu_op,first_step_ns,\
         second_step_ns,gap_step_ns"
    );
    assert_eq!(
        lines[1],
        "GEMM,230,460,310,200,71.3,92,1.55,-20.700000000000003,faster,Cijk_Alik_Bljk_up,\
         nvjet_tst_up,,,7130000,4600000,2530000"
    );
    assert_eq!(lines[2], "NORM,230,0,70,,16.1,0,,16.1,slower,rms_norm_kernel,,,,1610000,0,1610000");
    // Idle time is not an operation.
    assert_eq!(lines.iter().filter(|line| line.starts_with("IDLE")).count(), 0);
    assert_eq!(lines.len(), 7, "{text}");
}

#[test]
fn prefixes_follow_the_sides() {
    let mut comparison = example::comparison();
    (comparison.first.vendor, comparison.second.vendor) = ("NVIDIA", "AMD");
    let start = header(&comparison, CompareTable::Operations);
    assert!(start.starts_with("operation,nvidia_count,amd_count,nvidia_avg_us,"), "{start}");
    for vendors in [("AMD", "AMD"), ("unknown", "AMD"), ("NVIDIA", "NVIDIA")] {
        (comparison.first.vendor, comparison.second.vendor) = vendors;
        let start = header(&comparison, CompareTable::Operations);
        assert!(start.starts_with("operation,trace1_count,trace2_count,"), "{start}");
        assert!(csv(&comparison, CompareTable::Fusion).contains(",trace2,"));
    }
}

#[test]
fn layers_have_the_columns_of_older_tools() {
    let text = csv(&example::comparison(), CompareTable::Layers);
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(
        lines[0],
        "layer,amd_kernels,nvidia_kernels,amd_total_ms,nvidia_total_ms,ratio,gap_ms,status,in_both,\
         is_backward,first_layers,second_layers,first_step_ns,second_step_ns,gap_step_ns"
    );
    assert!(lines[1].starts_with("0,80,160,6.94,9.68,0.71"), "{}", lines[1]);
    assert!(lines[1].contains(",faster,true,false,10,20,694000,484000,210000"), "{}", lines[1]);
    assert!(lines[3].starts_with("2,80,0,6.94,9.68,,"), "{}", lines[3]);
    assert!(lines[3].contains(",trace1_only,false,"), "{}", lines[3]);
}

#[test]
fn fusions_have_the_columns_of_older_tools() {
    let comparison = example::comparison();
    let found = example::records(&comparison);
    let report = CompareReport { records: &found, ..example::report(&comparison) };
    let text = String::from_utf8(trace_compare_csv(report, CompareTable::Fusion).unwrap()).unwrap();
    assert!(
        text.starts_with(
            "kernel_type,layer,fused_by,fused_kernel,unfused_kernels,count,evidence,fused_side,"
        ),
        "{text}"
    );
    let rows = records(&text);
    assert_eq!(rows.len(), 1);
    let cells: Vec<&str> = rows[0].iter().collect();
    assert_eq!(&cells[..3], ["ADD+NORM", "0-22", "NVIDIA"]);
    assert_eq!(&cells[4..6], ["ELEMENTWISE+NORM", "460"]);
    assert!(cells.last().unwrap().contains("add_layernorm"), "{cells:?}");
}

#[test]
fn the_gap_adds_up_by_cause() {
    let comparison = example::comparison();
    let rows = records(&csv(&comparison, CompareTable::Gap));
    let gap = |row: &::csv::StringRecord| row[11].parse::<f64>().unwrap();
    let header = header(&comparison, CompareTable::Gap);
    assert_eq!(header.split(',').nth(11), Some("gap_ns"));
    let whole = gap(rows.iter().find(|row| &row[0] == "gap").unwrap());
    let causes: f64 = rows.iter().filter(|row| &row[0] == "cause").map(gap).sum();
    assert!((whole - causes).abs() < 1.0 && whole == 1_705_000.0, "{whole} {causes}");
}

#[test]
fn every_table_is_csv_whatever_the_names_are() {
    let mut comparison = example::comparison();
    let hostile = "a,\"b\"\r\nc;\t'\u{1f4a3}";
    comparison.kernels[0].kernel = hostile.to_owned();
    comparison.same_kernels[0].kernel = hostile.to_owned();
    comparison.fusions[0].fused_kernel = hostile.to_owned();
    comparison.implementation[0].kernel = hostile.to_owned();
    comparison.layers.kinds[0].slots[0].first.as_mut().unwrap().kernel = hostile.to_owned();
    comparison.gap.causes[0].name = hostile.to_owned();
    comparison.same_work.questions[0].evidence = hostile.to_owned();
    comparison.same_work.matched.operators[0].operator = hostile.to_owned();
    comparison.rates.rows[0].class = hostile.to_owned();
    comparison.idle.rows[0].first_doing = Some(hostile.to_owned());
    comparison.same_kernels[0].ratio.value = f64::INFINITY;
    for table in CompareTable::value_variants() {
        let text = csv(&comparison, *table);
        let rows = records(&text);
        assert!(!rows.is_empty(), "{table:?}");
        assert!(!text.contains("inf") && !text.contains("NaN"), "{table:?}: {text}");
        let has = rows.iter().any(|row| row.iter().any(|cell| cell == hostile));
        assert_eq!(has, *table != CompareTable::Layers, "{table:?}");
    }
}

#[test]
fn tables_have_a_header_where_there_is_nothing() {
    let mut comparison = example::comparison();
    comparison.kernels.clear();
    comparison.same_kernels.clear();
    comparison.fusions.clear();
    comparison.implementation.clear();
    comparison.layers.kinds.clear();
    comparison.layers.numbers.clear();
    comparison.gap.classes.clear();
    comparison.same_work.matched.operators.clear();
    comparison.rates.rows.clear();
    comparison.idle.rows.clear();
    for table in CompareTable::value_variants() {
        let full = header(&example::comparison(), *table);
        let text = csv(&comparison, *table);
        assert_eq!(text.lines().next().unwrap(), full, "{table:?}");
        let has_rows = matches!(table, CompareTable::Gap | CompareTable::Work);
        assert_eq!(text.lines().count() > 1, has_rows, "{table:?}");
    }
}
