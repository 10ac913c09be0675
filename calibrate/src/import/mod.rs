//! Profiles of other calibrators, brought into the project's words.
//!
//! One format is read: the JSON of branes-ai/graphs. Nothing of it is believed that can be computed:
//! ratios, rates and efficiencies follow from times, sizes and the peaks that it states. What is
//! impossible, missing or assumed becomes a line of [`ImportedProfile::notes`], and entries that are
//! no chain here are listed by name.

mod chain;
mod distinct;
mod graphs;
mod notes;

use std::path::Path;

use anyhow::{Context, bail};
use cli_support::input;
use fusion_cost_model::imported::{
    IMPORTED_SCHEMA_VERSION, ImportSource, ImportedMachine, ImportedProfile, ImportedRates,
    ImportedRecord, LeftOut,
};
use fusion_cost_model::{Backend, FileKind};

use crate::digits::rounded;
use crate::profiles;

use graphs::Profile;

/// The bytes of such a profile at most; the largest one that is known has 100 kB.
const MOST_BYTES: u64 = 20 << 20;

/// Reads a profile of branes-ai/graphs.
///
/// # Errors
///
/// When the file cannot be read, is not such a profile, or has nothing that can be imported.
pub fn import(path: &Path) -> anyhow::Result<ImportedProfile> {
    let file = path.display();
    let text = input::text(path, MOST_BYTES).with_context(|| format!("cannot read {file}"))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    from_json(&text, &name).with_context(|| file.to_string())
}

/// The profile in a text, which came from a file of this name.
///
/// # Errors
///
/// When it is not such a profile, or has nothing that can be imported.
pub fn from_json(text: &str, file: &str) -> anyhow::Result<ImportedProfile> {
    let profile = graphs::read(text)?;
    let imported = convert(&profile, file)?;
    if imported.records.is_empty() {
        bail!(
            "nothing can be imported: it has {} fusion records, and its {} operations are no \
             fused chains",
            profile.fusion_profiles.len(),
            profile.operation_profiles.len()
        );
    }
    Ok(imported)
}

fn convert(profile: &Profile, file: &str) -> anyhow::Result<ImportedProfile> {
    let mut notes = notes::of_machine(profile);
    let (mut records, mut left_out) = (Vec::new(), Vec::new());
    for (name, fusion) in &profile.fusion_profiles {
        match chain::problem(fusion) {
            Ok(found) => {
                let [unfused, fused] = [fusion.unfused_latency_ms, fusion.fused_latency_ms];
                let [unfused, fused] = [unfused, fused].map(rounded);
                let record = ImportedRecord::of(found.problem, name.clone(), unfused, fused);
                notes.extend(found.notes.into_iter().map(|note| format!("{name}: {note}")));
                notes.extend(notes::of_record(name, fusion, &record, profile));
                records.push(six_digits(record));
            }
            Err(reason) => left_out.push(LeftOut { name: name.clone(), reason }),
        }
    }
    left_out.extend(profile.operation_profiles.keys().map(|name| LeftOut {
        name: name.clone(),
        reason: "an operation by itself, not a fused chain".to_owned(),
    }));
    let metadata = &profile.metadata;
    let unknown = || "unknown".to_owned();
    let framework = metadata.pytorch_version.as_ref().map(|version| format!("PyTorch {version}"));
    let is_gpu = metadata.device_type.as_deref() == Some("cuda");
    Ok(ImportedProfile {
        kind: FileKind::Imported,
        schema_version: IMPORTED_SCHEMA_VERSION,
        num_records: records.len() as u64,
        notes,
        source: ImportSource {
            project: "branes-ai/graphs".to_owned(),
            licence: "MIT, Copyright (c) 2025 branes.ai".to_owned(),
            file: file.to_owned(),
            tool_version: metadata.calibration_tool_version.clone().unwrap_or_else(unknown),
            measured_at: metadata.calibration_date.clone().unwrap_or_else(unknown),
            framework: framework.unwrap_or_else(unknown),
        },
        machine: ImportedMachine {
            id: id(&metadata.hardware_name)?,
            name: metadata.hardware_name.clone(),
            backend: if is_gpu { Backend::Cuda } else { Backend::Cpu },
            processors: metadata.processors(),
            memory_gib: rounded(metadata.total_memory_gb.unwrap_or_default()),
        },
        rates: rates(profile),
        left_out,
        records,
    })
}

fn six_digits(record: ImportedRecord) -> ImportedRecord {
    ImportedRecord {
        speedup_factor: rounded(record.speedup_factor),
        memory_reduction: rounded(record.memory_reduction),
        fused_gflops: rounded(record.fused_gflops),
        ..record
    }
}

/// The shares are those of the peaks that stand in the same file. A profile whose peaks were changed
/// by hand keeps the shares of others.
fn rates(profile: &Profile) -> ImportedRates {
    let share = |reached: f64, stated: f64| if stated > 0.0 { reached / stated } else { 0.0 };
    let (peak, bandwidth) = (profile.theoretical_peak_gflops, profile.theoretical_bandwidth_gbps);
    let (best, measured) = (profile.best_measured_gflops, profile.measured_bandwidth_gbps);
    ImportedRates {
        stated_peak_gflops: rounded(peak),
        best_gflops: rounded(best),
        efficiency: rounded(share(best, peak)),
        stated_gb_per_s: rounded(bandwidth),
        measured_gb_per_s: rounded(measured),
        bandwidth_efficiency: rounded(share(measured, bandwidth)),
    }
}

/// The id of the machine's data sheet, or its name as one.
fn id(name: &str) -> anyhow::Result<String> {
    let known = profiles::hardware()?;
    if let Some(spec) = known.iter().find(|spec| spec.is_called(name) || spec.is_detected_as(name))
    {
        return Ok(spec.id.clone());
    }
    let slug = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let words: String = name.chars().map(slug).collect();
    let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    Ok(words.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile with one record of each kind, in the oldest form.
    const EXAMPLE: &str = r#"{
      "metadata": {
        "hardware_name": "i7-12700K-test", "calibration_date": "2025-11-05T20:58:12",
        "calibration_tool_version": "1.0.0", "cpu_model": "x86_64", "cpu_count": 12,
        "total_memory_gb": 31.09, "pytorch_version": "2.7.1"
      },
      "theoretical_peak_gflops": 1280.0, "theoretical_bandwidth_gbps": 89.6,
      "best_measured_gflops": 772.4, "measured_bandwidth_gbps": 51.96,
      "bandwidth_efficiency": 1.039, "best_efficiency": 0.7724,
      "operation_profiles": {"matmul_1024": {"operation_type": "matmul"}},
      "fusion_profiles": {
        "Linear_Bias": {
          "fusion_pattern": "Linear_Bias", "operators": ["Linear", "Bias"],
          "unfused_latency_ms": 2.0, "unfused_gflops": 537.1330, "unfused_memory_bytes": 12587008,
          "fused_latency_ms": 1.6, "fused_gflops": 671.4163, "fused_memory_bytes": 8392704,
          "speedup_factor": 1.5, "input_shape": [512, 1024, 1024]
        },
        "Conv3d_ReLU": {
          "fusion_pattern": "Conv3d_ReLU", "operators": ["Conv3d", "ReLU"],
          "unfused_latency_ms": 0.11, "unfused_gflops": 305.0, "unfused_memory_bytes": 3670016,
          "fused_latency_ms": 0.10, "fused_gflops": 335.0, "fused_memory_bytes": 1572864,
          "speedup_factor": 1.1, "input_shape": [4, 256, 64]
        }
      }
    }"#;

    #[test]
    fn what_can_be_computed_is() {
        let imported = convert(&graphs::read(EXAMPLE).unwrap(), "a.json").unwrap();
        assert_eq!(imported.machine.id, "i7-12700k");
        assert!((imported.rates.efficiency - 0.603).abs() < 1e-3);
        assert!((imported.rates.bandwidth_efficiency - 0.580).abs() < 1e-3);
        let [record] = &imported.records[..] else { panic!("{imported:?}") };
        assert_eq!(record.problem.to_string(), "linear_bias/f32/m512.k1024.n1024");
        assert!((record.speedup_factor - 1.25).abs() < 1e-9);
        assert_eq!(record.unfused_memory_bytes, 12_587_008);
        let left: Vec<&str> = imported.left_out.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(left, ["Conv3d_ReLU", "matmul_1024"]);
        let text = imported.to_toml().unwrap();
        assert_eq!(ImportedProfile::from_toml(&text).unwrap(), imported);
        for part in ["threads", "0.603", "stored speedup is 1.5", "x86_64"] {
            assert!(imported.notes.iter().any(|note| note.contains(part)), "{part}");
        }
    }

    /// Every stored figure that cannot be has its line, and so has everything that is not used.
    #[test]
    fn what_is_impossible_missing_or_not_used_is_said() {
        let said = |from: &str, to: &str| {
            assert!(EXAMPLE.contains(from), "{from}");
            let text = EXAMPLE.replacen(from, to, 1);
            convert(&graphs::read(&text).unwrap(), "a.json").unwrap().notes.join("\n")
        };
        for (from, to, expected) in [
            (
                "\"speedup_factor\": 1.5",
                "\"speedup_factor\": 1.25, \"memory_reduction\": 1.9",
                "Linear_Bias: memory_reduction is 1.9, but 0.3332",
            ),
            ("671.4163", "99999", "Linear_Bias: fused_gflops is 99999, but 671.4"),
            (
                "\"speedup_factor\": 1.5",
                "\"speedup_factor\": 1.25",
                "Linear_Bias: memory_reduction is missing",
            ),
            ("[\"Linear\", \"Bias\"]", "[\"Conv2d\", \"ReLU\"]", "not the stored Conv2d, ReLU"),
            (
                "[\"Linear\", \"Bias\"]",
                "[\"Linear\", \"Bias\"], \"num_operators\": 7",
                "num_operators is 7, and there are 2",
            ),
            (
                "\"input_shape\": [512, 1024, 1024]",
                "\"input_shape\": [512, 1024, 1024], \"mood\": 1",
                "Linear_Bias: not taken over: mood",
            ),
            ("\"best_measured_gflops\": 772.4,", "", "there is no measured rate in GFLOP/s"),
            ("1280.0", "0", "there is no stated rate in GFLOP/s"),
            (
                "\"cpu_count\": 12",
                "\"cpu_count\": 0",
                "how many processors the machine has is missing",
            ),
            (
                "\"best_efficiency\"",
                "\"precision_matrix\": {}, \"best_efficiency\"",
                "not taken over: precision_matrix",
            ),
        ] {
            let notes = said(from, to);
            assert!(notes.contains(expected), "{expected}: {notes}");
            assert!(!notes.contains("inf") && !notes.contains("NaN"), "{notes}");
        }
        let profile = EXAMPLE.replacen("\"cpu_count\": 12,", "", 1);
        let imported = from_json(&profile, "a.json").unwrap();
        assert_eq!(imported.machine.processors, None);
        assert!(!imported.to_toml().unwrap().contains("\nprocessors = "));
        let twice = EXAMPLE.replacen("\"Conv3d_ReLU\": {", "\"Linear_Bias\": {", 1);
        let message = graphs::read(&twice).unwrap_err().to_string();
        assert!(message.contains("Linear_Bias is there twice"), "{message}");
        let twice = "\"operation_type\": \"matmul\",\n\"operation_type\": \"add\"";
        let twice = EXAMPLE.replacen("\"operation_type\": \"matmul\"", twice, 1);
        let message = graphs::read(&twice).unwrap_err().to_string();
        let expected = "operation_type is there twice; keep one at line 11";
        assert!(message.contains(expected), "{message}");
        let endless =
            EXAMPLE.replacen("\"unfused_latency_ms\": 2.0", "\"unfused_latency_ms\": 1e308", 1);
        let message = from_json(&endless, "a.json").unwrap_err().to_string();
        assert!(message.contains("nothing can be imported"), "{message}");
    }

    /// Notes of the example with some texts in place of others.
    fn notes_with(changes: &[[&str; 2]]) -> String {
        let mut text = EXAMPLE.to_owned();
        for [from, to] in changes {
            assert!(text.contains(from), "{from}");
            text = text.replacen(from, to, 1);
        }
        convert(&graphs::read(&text).unwrap(), "a.json").unwrap().notes.join("\n")
    }

    #[test]
    fn rates_are_held_against_the_problem_and_its_times() {
        let right = notes_with(&[]);
        assert!(!right.contains("flops are counted") && !right.contains("gflops is"), "{right}");
        let both = notes_with(&[["537.1330", "53713.30"], ["671.4163", "67141.63"]]);
        for expected in [
            "flops are counted as here, 1074266112; the rates of the file are of 107426600000",
            "unfused_gflops is 53713.3, more than the 1280.0 GFLOP/s",
            "fused_gflops is 67141.63, more than the 1280.0 GFLOP/s",
        ] {
            assert!(both.contains(&format!("Linear_Bias: {expected}")), "{both}");
        }
        for (wrong, right) in
            [(["537.1330", "53713.30"], "fused"), (["671.4163", "6.7"], "unfused")]
        {
            let one = notes_with(&[wrong]);
            let blamed = if right == "fused" { "unfused" } else { "fused" };
            let [from, to] = wrong.map(|rate| rate.trim_end_matches('0'));
            let expected = format!("{blamed}_gflops is {to}, but {}", &from[..5]);
            assert!(one.contains(&format!("Linear_Bias: {expected}")), "{one}");
            assert!(!one.contains(&format!(" {right}_gflops")), "{one}");
            assert!(!one.contains("flops are counted"), "{one}");
        }
    }

    #[test]
    fn what_follows_from_nothing_is_no_number() {
        let shares = r#""gflops_improvement": 0.25, "memory_reduction": 0.33, "speedup_factor""#;
        let notes =
            notes_with(&[[r#""speedup_factor""#, shares], ["537.1330", "0"], ["12587008", "0"]]);
        for expected in
            ["memory_reduction is 0.33, but no share follows", "unfused_gflops is 0, but 537.13"]
        {
            assert!(notes.contains(&format!("Linear_Bias: {expected}")), "{notes}");
        }
        for wrong in ["NaN", "inf", "gflops_improvement", " fused_gflops"] {
            assert!(!notes.contains(wrong), "{wrong}: {notes}");
        }
    }

    #[test]
    fn what_nothing_reads_is_named_wherever_it_stands() {
        let metadata = r#""device": "cuda", "cpu_clock": {"governor": "x"}, "cpu_count""#;
        let params = r#""num_trials": 5, "extra_params": {"dtype": "bf16", "m": 7}, "operators""#;
        let notes = notes_with(&[[r#""cpu_count""#, metadata], [r#""operators""#, params]]);
        for expected in [
            "not taken over: metadata.device, metadata.cpu_clock.governor",
            "Linear_Bias: not taken over: extra_params.dtype, extra_params.m",
        ] {
            assert!(notes.contains(expected), "{notes}");
        }
        let empty = notes_with(&[[r#""operators""#, r#""extra_params": {}, "operators""#]]);
        assert!(!empty.contains("not taken over"), "{empty}");
    }

    #[test]
    fn what_is_no_such_profile_is_refused() {
        let message = |text: &str| graphs::read(text).unwrap_err().to_string();
        assert!(message(r#"{"curves": {}, "hardware_id": "x"}"#).contains("no `metadata`"));
        assert!(message("[]").contains("not a calibration profile"));
        assert!(message("{").contains("JSON"));
        let message = message("{\"metadata\": {\n}}");
        assert!(message.contains("hardware_name") && message.contains("line 2"), "{message}");
    }
}
