//! A comparison as one object of JSON: the project's own keys, and those of older comparisons.

use kernel_traces::compare::{Comparison, LayerKind, Part, Ratio, SideSummary, Slot, Which};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{CompareReport, kept, words};
use crate::fusion_records::FusionRecords;
use crate::report::RankSurvey;

/// The version of the form of the JSON. A key that changes its meaning, or goes, makes a new one.
pub const COMPARISON_SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'c> {
    schema_version: u32,
    verdict: String,
    #[serde(flatten)]
    comparison: &'c Comparison,
    fusion_records: &'c [FusionRecords],
    ranks: RanksOfSides<'c>,
    // Under the keys of older comparisons.
    metadata: Value,
    operations: Vec<Value>,
    layer_totals: Vec<Value>,
    layer_alignments: Vec<Value>,
    fusion_opportunities: Vec<Value>,
    fusion_mappings: Vec<Value>,
    fusion_analysis: Value,
    same_kernel_analysis: Value,
    architecture: Value,
}

/// All ranks of each side, where there are several.
#[derive(Serialize)]
struct RanksOfSides<'c> {
    first: Option<&'c RankSurvey>,
    second: Option<&'c RankSurvey>,
}

/// The object. Numbers that are infinite, or none, are null.
///
/// # Errors
///
/// When it cannot be written as JSON, which no comparison is.
pub fn trace_compare_json(report: CompareReport<'_>) -> serde_json::Result<String> {
    let comparison = report.comparison;
    let document = Document {
        schema_version: COMPARISON_SCHEMA_VERSION,
        verdict: words::verdict(comparison),
        comparison,
        fusion_records: report.records,
        ranks: RanksOfSides { first: report.ranks[0], second: report.ranks[1] },
        metadata: metadata(comparison),
        operations: operations(comparison),
        layer_totals: layer_totals(comparison),
        layer_alignments: comparison
            .layers
            .kinds
            .iter()
            .map(|kind| layer_alignment(comparison, kind))
            .collect(),
        fusion_opportunities: fusion_opportunities(comparison),
        fusion_mappings: fusion_mappings(comparison),
        fusion_analysis: fusion_analysis(comparison),
        same_kernel_analysis: same_kernel_analysis(comparison),
        architecture: architecture(comparison),
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

fn metadata(comparison: &Comparison) -> Value {
    let mut object = Map::new();
    for (at, side) in kept::sides(comparison).into_iter().enumerate() {
        let SideSummary { name, vendor, gpu, device, kernels, total_ns, layers, .. } = side;
        let values = [
            ("name", json!(name)),
            ("platform", json!(vendor)),
            ("gpu", json!(gpu)),
            ("device", json!(device)),
            ("kernels", json!(kernels)),
            ("total_ms", json!(kept::ms(*total_ns))),
            ("layers", json!(layers)),
        ];
        for (key, value) in values {
            object.insert(format!("trace{}_{key}", at + 1), value);
        }
    }
    let phase = comparison.phase.map_or("all", |phase| phase.name());
    object.insert("phase".to_owned(), json!(phase));
    Value::Object(object)
}

fn operations(comparison: &Comparison) -> Vec<Value> {
    let of = |row: kept::Operation<'_>| {
        let kernels = |side: Which| {
            let rows = comparison
                .kernels
                .iter()
                .filter(|kernel| kernel.side == side && kernel.class == row.operation);
            rows.map(|kernel| {
                let amount = kernel.amount;
                json!({
                    "name": kernel.kernel,
                    "count": amount.count,
                    "total_us": kept::ms(amount.total_ns) * 1e3,
                    "avg_us": kept::avg_us(amount.count, amount.total_ns),
                })
            })
            .collect::<Vec<Value>>()
        };
        let [first, second] = row.kernel.map(|row| row.map(|row| row.kernel.as_str()));
        json!({
            "operation": row.operation,
            "trace1_count": row.sums.count[0],
            "trace2_count": row.sums.count[1],
            "trace1_avg_us": row.sums.avg_us[0],
            "trace2_avg_us": row.sums.avg_us[1],
            "trace1_total_ms": row.sums.total_ms[0],
            "trace2_total_ms": row.sums.total_ms[1],
            "ratio": row.ratio,
            "gap_ms": row.sums.gap_ms,
            "status": row.status,
            "trace1_kernel": first,
            "trace2_kernel": second,
            "trace1_kernels": kernels(Which::First),
            "trace2_kernels": kernels(Which::Second),
        })
    };
    kept::operations(comparison).into_iter().map(of).collect()
}

fn layer_totals(comparison: &Comparison) -> Vec<Value> {
    let of = |row: kept::LayerRow<'_>| {
        json!({
            "layer": row.number.layer,
            "is_backward": row.number.is_backward,
            "trace1_kernels": row.sums.count[0],
            "trace2_kernels": row.sums.count[1],
            "trace1_total_ms": row.sums.total_ms[0],
            "trace2_total_ms": row.sums.total_ms[1],
            "ratio": row.ratio,
            "gap_ms": row.sums.gap_ms,
            "status": row.status,
            "in_both": row.in_both,
        })
    };
    kept::layers(comparison).into_iter().map(of).collect()
}

/// Puts a value of each side under its prefix.
fn both(object: &mut Map<String, Value>, comparison: &Comparison, key: &str, values: [Value; 2]) {
    for (prefix, value) in kept::prefixes(comparison).into_iter().zip(values) {
        object.insert(format!("{prefix}_{key}"), value);
    }
}

fn sums(object: &mut Map<String, Value>, comparison: &Comparison, part: &Part) {
    let sums = kept::Sums::of(part);
    both(object, comparison, "count", sums.count.map(|count| json!(count)));
    both(object, comparison, "avg_us", sums.avg_us.map(|avg| json!(avg)));
    both(object, comparison, "total_us", sums.total_ms.map(|ms| json!(ms * 1e3)));
}

/// A kind of layer, with the places where it is aligned. Times are of one layer.
fn layer_alignment(comparison: &Comparison, kind: &LayerKind) -> Value {
    let mut object = Map::new();
    let means = [kind.first_mean_ns, kind.second_mean_ns];
    object.insert("layer".to_owned(), json!(kind.kind));
    object.insert("layers".to_owned(), json!(kind.numbers));
    object.insert("phase".to_owned(), json!(kind.phase));
    both(&mut object, comparison, "total_us", means.map(|ns| json!(ns / 1e3)));
    let ratio = (means[1] > 0.0 && means[0] > 0.0).then(|| means[0] / means[1]);
    object.insert("ratio".to_owned(), json!(ratio));
    object.insert("gap_us".to_owned(), json!((means[0] - means[1]) / 1e3));
    let operations: Vec<Value> =
        kind.slots.iter().map(|slot| slot_operation(comparison, slot)).collect();
    object.insert("operations".to_owned(), json!(operations));
    Value::Object(object)
}

fn slot_operation(comparison: &Comparison, slot: &Slot) -> Value {
    let mut object = Map::new();
    let kernels = [&slot.first, &slot.second];
    let name = |at: usize| kernels[at].as_ref().map(|kernel| kernel.kernel.as_str());
    let class = kernels.into_iter().flatten().next().map(|kernel| kernel.class.as_str());
    object.insert("operation".to_owned(), json!(class));
    object.insert("operation_detail".to_owned(), json!(slot.role));
    object.insert("position".to_owned(), json!(slot.slot));
    both(&mut object, comparison, "kernel", [json!(name(0)), json!(name(1))]);
    sums(&mut object, comparison, &slot.part);
    object.insert("ratio".to_owned(), json!(slot.ratio.map(|ratio| ratio.value)));
    let [first, second] = kernels.map(|kernel| kernel.as_ref().map(|kernel| kernel.mean_ns));
    let gap_us = first.zip(second).map(|(first, second)| (first - second) / 1e3);
    object.insert("gap_us".to_owned(), json!(gap_us));
    object.insert("is_same_kernel".to_owned(), json!(name(0).is_some() && name(0) == name(1)));
    let note = slot.fusion.and_then(|index| comparison.fusions.get(index));
    let note = note.map(|fusion| words::fusion(comparison, fusion));
    object.insert("fusion_note".to_owned(), json!(note));
    Value::Object(object)
}

fn fusion_opportunities(comparison: &Comparison) -> Vec<Value> {
    let of = |(index, fusion): (usize, &kernel_traces::compare::Fusion)| {
        json!({
            "kernel_type": fusion.operation,
            "layer": kept::layers_of_fusion(comparison, index),
            "fused_by": kept::platform(comparison, fusion.fused_by),
            "fused_kernel": fusion.fused_kernel,
            "unfused_kernels": kept::unfused(fusion),
            "count": fusion.count,
            "evidence": fusion.evidence,
        })
    };
    comparison.fusions.iter().enumerate().map(of).collect()
}

fn fusion_mappings(comparison: &Comparison) -> Vec<Value> {
    let of = |(index, fusion): (usize, &kernel_traces::compare::Fusion)| {
        json!({
            "fused_platform": kept::platform(comparison, fusion.fused_by),
            "fused_kernel_type": fusion.operation,
            "fused_kernel_name": fusion.fused_kernel,
            "unfused_platform": kept::platform(comparison, words::other(fusion.fused_by)),
            "unfused_sequence": fusion.separate,
            "pattern_count": fusion.count,
            "evidence": fusion.evidence,
            "layer": kept::layers_of_fusion(comparison, index),
        })
    };
    comparison.fusions.iter().enumerate().map(of).collect()
}

fn fusion_analysis(comparison: &Comparison) -> Value {
    let patterns: Vec<Value> = comparison
        .fusions
        .iter()
        .enumerate()
        .map(|(index, fusion)| {
            json!({
                "layer": kept::layers_of_fusion(comparison, index),
                "operation": fusion.operation,
                "fused_platform": kept::platform(comparison, fusion.fused_by),
                "fused_kernel": fusion.fused_kernel,
                "unfused_kernels": fusion.separate,
                "count": fusion.count,
                "evidence": fusion.evidence,
                "confidence": fusion.confidence,
            })
        })
        .collect();
    let by = |which| comparison.fusions.iter().filter(|fusion| fusion.fused_by == which).count();
    let mut summary = Map::new();
    both(&mut summary, comparison, "fuses", [json!(by(Which::First)), json!(by(Which::Second))]);
    summary.insert("total_fusion_opportunities".to_owned(), json!(comparison.fusions.len()));
    json!({ "patterns": patterns, "summary": summary })
}

fn same_kernel_analysis(comparison: &Comparison) -> Value {
    let kernels: Vec<Value> = comparison
        .same_kernels
        .iter()
        .map(|same| {
            let mut object = Map::new();
            object.insert("kernel".to_owned(), json!(same.kernel));
            object.insert("operation".to_owned(), json!(same.class));
            sums(&mut object, comparison, &same.part);
            object.insert("ratio".to_owned(), json!(same.ratio.value));
            let gap_us = (same.first_mean_ns - same.second_mean_ns) / 1e3;
            object.insert("gap_us".to_owned(), json!(gap_us));
            Value::Object(object)
        })
        .collect();
    let ratios: Vec<f64> = comparison
        .same_kernels
        .iter()
        .map(|same| same.ratio)
        .map(|Ratio { value, .. }| value)
        .filter(|ratio| ratio.is_finite())
        .collect();
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    let mean = (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64);
    let faster = [
        ratios.iter().filter(|ratio| **ratio < 1.0).count(),
        ratios.iter().filter(|ratio| **ratio > 1.0).count(),
    ];
    let mut summary = Map::new();
    summary.insert("total".to_owned(), json!(kernels.len()));
    summary.insert("mean_ratio".to_owned(), json!(mean));
    both(&mut summary, comparison, "faster", faster.map(|count| json!(count)));
    json!({ "kernels": kernels, "summary": summary })
}

fn architecture(comparison: &Comparison) -> Value {
    let [first, second] = kept::sides(comparison).map(|side| {
        let markers: Vec<_> = side.marker.into_iter().collect();
        json!({ "type": side.family, "markers": markers })
    });
    json!({ "trace1": first, "trace2": second })
}
