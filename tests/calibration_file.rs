//! Calibration files: whole ones come back as they were, damaged ones say what is wrong.

use proptest::prelude::*;

use fusion_cost_model::Error;
use fusion_cost_model::calibration::{
    CeilingsSpread, Fingerprint, HardwareCalibration, ReasonCode, SCHEMA_VERSION,
};

const EXAMPLE: &str = include_str!("data/example.toml");

fn read(text: &str) -> Result<HardwareCalibration, Error> {
    HardwareCalibration::from_toml(text)
}

fn message(text: &str) -> String {
    match read(text) {
        Ok(_) => panic!("it was accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_calibration_comes_back_as_it_was() {
    let calibration = read(EXAMPLE).unwrap();
    assert_eq!(calibration.records.len(), 3);
    let text = calibration.to_toml().unwrap();
    assert_eq!(read(&text).unwrap(), calibration);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.toml");
    calibration.save(&path).unwrap();
    assert_eq!(HardwareCalibration::load(&path).unwrap(), calibration);
    // Written over the old file, with nothing left next to it.
    calibration.save(&path).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn it_survives_json_too() {
    let calibration = read(EXAMPLE).unwrap();
    let json = serde_json::to_string(&calibration).unwrap();
    assert_eq!(serde_json::from_str::<HardwareCalibration>(&json).unwrap(), calibration);
}

#[test]
fn every_truncated_file_is_refused_and_never_panics() {
    for (end, _) in EXAMPLE.char_indices() {
        assert!(read(&EXAMPLE[..end]).is_err(), "accepted when cut after {end} bytes");
    }
    // Cut where only the count reveals it: between two tables, before the first record.
    let records = EXAMPLE.find("[[fusion]]").unwrap();
    let message = message(&EXAMPLE[..records]);
    let line = EXAMPLE.lines().position(|line| line.starts_with("num_records")).unwrap() + 1;
    let expected = format!("num_records at line {line} is 3, but it has 0");
    assert!(message.contains(&expected), "{message}");
}

/// Behind the number of records, which is at the top.
#[test]
fn a_file_that_was_cut_behind_a_line_is_said_to_be_incomplete() {
    let lines: Vec<&str> = EXAMPLE.split_inclusive('\n').collect();
    let number = lines.iter().position(|line| line.starts_with("num_records")).unwrap();
    for end in number + 1..lines.len() {
        let text = lines[..end].concat();
        // A list of several lines that has no end is no TOML.
        if text.parse::<toml::Table>().is_ok() {
            let message = message(&text);
            assert!(message.contains("incomplete"), "cut behind line {end}: {message}");
        }
    }
    let whole = message(&EXAMPLE.replacen("noise_floor = 0.01\n", "", 1));
    assert!(!whole.contains("incomplete"), "{whole}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever happens to a few bytes, the reader answers and does not panic; what it accepts it
    /// can also write.
    #[test]
    fn random_damage_never_panics(
        damage in proptest::collection::vec((0..EXAMPLE.len(), any::<u8>()), 1..4),
    ) {
        let mut bytes = EXAMPLE.as_bytes().to_vec();
        for (at, byte) in damage {
            bytes[at] = byte;
        }
        if let Ok(calibration) = read(&String::from_utf8_lossy(&bytes)) {
            prop_assert!(calibration.to_toml().is_ok());
        }
    }
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let text = EXAMPLE.replacen("speedup_factor", "speedup_facter", 1);
    let line = text.lines().position(|line| line.starts_with("speedup_facter")).unwrap() + 1;
    let message = message(&text);
    assert!(message.contains("unknown field `speedup_facter`"), "{message}");
    assert!(message.contains(&format!("line {line}")), "{message}");
}

#[test]
fn every_table_refuses_unknown_keys() {
    let headers = EXAMPLE.lines().filter(|line| line.starts_with('['));
    let mut checked = 0;
    for header in headers {
        let text = EXAMPLE.replacen(header, &format!("{header}\nnonsense = 1"), 1);
        assert!(read(&text).is_err(), "{header}");
        checked += 1;
    }
    assert!(checked > 20);
}

#[test]
fn versions_are_looked_at_first() {
    let newer = EXAMPLE.replacen("schema_version = 5", "schema_version = 99\nnew_key = 1", 1);
    let text = message(&newer);
    assert!(text.contains("schema_version is 99") && text.contains("newer version"), "{text}");
    // What an older version measured is missing too much to be used (see docs/calibration-file.md).
    let older = message(&EXAMPLE.replacen("schema_version = 5", "schema_version = 1", 1));
    assert!(older.contains("reads only 5; calibrate again"), "{older}");
    let without_kind = EXAMPLE.replacen("kind = \"calibration\"\n", "", 1);
    let older = message(&without_kind.replacen("schema_version = 5", "schema_version = 2", 1));
    assert!(older.contains("schema_version is 2, but this version reads only 5"), "{older}");
    assert_eq!(SCHEMA_VERSION, 5, "a new version needs a decision about files of this one");
    for (from, to, expected) in [
        ("schema_version = 5", "", "no schema_version"),
        ("schema_version = 5", "schema_version = \"1\"", "whole number"),
        ("schema_version = 5", "schema_version = 0", "schema_version is 0"),
        ("schema_version = 5", "schema_version = -5", "schema_version is -5"),
    ] {
        let message = message(&EXAMPLE.replacen(from, to, 1));
        assert!(message.contains(expected), "{message}");
    }
    assert!(message("not toml at all").contains("line 1"));
}

#[test]
fn the_kind_is_looked_at_before_all_else() {
    let with = |kind: &str| EXAMPLE.replacen("kind = \"calibration\"\n", kind, 1);
    for (text, expected) in [
        (with("kind = \"hardware\"\n"), "it is a hardware profile, not a calibration; name it"),
        (with("kind = \"shapes\"\n"), "it is a set of shapes, not a calibration; name it with"),
        (with("kind = \"recipe\"\n"), "kind at line 1 is `recipe`; expected `calibration`"),
        (with(""), "no `kind` at its top level; expected kind = \"calibration\""),
        (String::new(), "no `kind` at its top level"),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.is_wrong_file());
        assert!(error.to_string().contains(expected), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.toml");
    std::fs::write(&path, with("kind = \"hardware\"\n")).unwrap();
    let message = HardwareCalibration::load(&path).unwrap_err().to_string();
    assert!(message.starts_with(&format!("{}: it is a hardware profile", path.display())));
}

/// The code of a reason is a word of a list, and one that is not in it is refused with its line.
#[test]
fn reasons_have_a_code_and_a_text() {
    let calibration = read(EXAMPLE).unwrap();
    let reason = &calibration.records[0].reasons[0];
    assert_eq!(reason.code, ReasonCode::Undecided);
    assert!(reason.text.starts_with("the interval (half-width"), "{reason}");
    assert!(reason.to_string().starts_with("undecided: the interval"), "{reason}");
    for &code in ReasonCode::ALL {
        let json = serde_json::to_string(&code).unwrap();
        assert_eq!(json, format!("\"{code}\""));
        assert!(code.name().chars().all(|c| c.is_ascii_lowercase() || c == '-'));
    }
    let other = EXAMPLE.replacen("code = \"undecided\"", "code = \"undecidable\"", 1);
    let message = message(&other);
    assert!(message.contains("unknown variant `undecidable`"), "{message}");
    assert!(message.contains("line "), "{message}");
}

#[test]
fn the_example_is_written_as_it_is() {
    assert_eq!(read(EXAMPLE).unwrap().to_toml().unwrap(), EXAMPLE);
}

#[test]
fn two_records_with_one_key_are_refused_with_both_lines() {
    let start = EXAMPLE.find("[[fusion]]").unwrap();
    let end = start + 1 + EXAMPLE[start + 1..].find("[[fusion]]").unwrap();
    let twice = format!("{EXAMPLE}\n{}", &EXAMPLE[start..end]);
    let twice = twice.replacen("num_records = 3", "num_records = 4", 1);
    let lines: Vec<usize> = twice
        .lines()
        .zip(1..)
        .filter(|(line, _)| *line == "[[fusion]]")
        .map(|(_, number)| number)
        .collect();
    let message = message(&twice);
    assert!(message.contains(&format!("line {}", lines[3])), "{message}");
    assert!(message.contains(&format!("line {}", lines[0])), "{message}");
}

#[test]
fn impossible_values_are_refused_with_the_record() {
    for (key, value, expected) in [
        ("speedup_factor", "nan", "speedup_factor is NaN"),
        ("fused_latency_ms", "-1.0", "fused_latency_ms is -1"),
        ("speedup_low", "1e9", "outside its interval"),
        ("num_operators", "7", "operators are not those"),
        ("problem", "\"linear_bias_relu/f32/m0.k1.n1\"", "must be at least 1"),
        ("verdict", "\"GREAT\"", "unknown variant `GREAT`"),
        ("dtype", "\"f16\"", "dtype f16 is not that of"),
    ] {
        let start = EXAMPLE.find("[[fusion]]").unwrap();
        let records = &EXAMPLE[start..];
        let line = records.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
        let changed = records.replacen(line, &format!("{key} = {value}"), 1);
        let message = message(&format!("{}{changed}", &EXAMPLE[..start]));
        assert!(message.contains(expected), "{key}: {message}");
        assert!(message.contains("line "), "{key}: {message}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let message = HardwareCalibration::load("/nonexistent/x.toml").unwrap_err().to_string();
    assert!(message.contains("/nonexistent/x.toml"), "{message}");
    let calibration = read(EXAMPLE).unwrap();
    let message = calibration.save("/nonexistent/x.toml").unwrap_err().to_string();
    assert!(message.contains("cannot write /nonexistent/x.toml"), "{message}");
}

/// Times of a machine say nothing of one with another processor, other instructions or other memory.
#[test]
fn a_machine_is_the_same_by_its_processor_its_cores_and_its_memory() {
    let one = HardwareCalibration::from_toml(EXAMPLE).unwrap().fingerprint;
    assert!(one.is_same_machine(&one));
    let mut other = one.clone();
    (other.kernel, other.governor) = (Some("99.1".to_owned()), None);
    other.memory_bytes = one.memory_bytes / 100 * 97;
    assert!(one.is_same_machine(&other), "firmware keeps a little of the memory");
    let differences: [fn(&mut Fingerprint); 6] = [
        |other| other.cpu_model.push('X'),
        |other| other.cpu_family_model_stepping = Some("1/2/3".to_owned()),
        |other| drop(other.features.pop()),
        |other| other.logical_cores += 1,
        |other| other.memory_bytes *= 2,
        |other| other.physical_cores = Some(1000),
    ];
    for (index, change) in differences.iter().enumerate() {
        let mut other = one.clone();
        change(&mut other);
        assert!(!one.is_same_machine(&other) && !other.is_same_machine(&one), "change {index}");
    }
}

/// Ceilings are measured before the first pass, and at most once after each.
#[test]
fn ceilings_were_measured_once_more_than_there_were_passes_at_most() {
    let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    let most = calibration.settings.most_processes;
    let mut read = |measurements: u32| {
        let one = &mut calibration.ceilings[0];
        one.spread = Some(CeilingsSpread {
            measurements,
            lowest_peak_gflops: one.ceilings.peak_gflops,
            highest_launch_us: one.ceilings.launch_us,
            lowest_memory_gb_per_s: one.ceilings.bandwidth.last().map(|point| point.gb_per_s),
        });
        HardwareCalibration::from_toml(&calibration.to_toml().unwrap())
    };
    assert!(read(most + 1).is_ok());
    let error = read(most + 2).unwrap_err().to_string();
    assert!(error.contains("settings.most_processes"), "{error}");
}
