//! Single edits of calibration files that make them contradict themselves: each is refused with the
//! key and its line.

use fusion_cost_model::Implementation;
use fusion_cost_model::calibration::{
    Addition, HardwareCalibration, MachineState, NoiseFloor, Reason, ReasonCode, RuntimeUsed,
    StateSpeedup,
};

const EXAMPLE: &str = include_str!("data/example.toml");

/// A measured file, with the times of each process.
const MEASURED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/calibrate/profiles/calibrations/intel-xeon-2-threads.toml"
);

/// The same over two states of the machine.
const OF_STATES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/calibrate/profiles/calibrations/amd-epyc-2-threads.toml");

fn message(text: &str) -> String {
    match HardwareCalibration::from_toml(text) {
        Ok(_) => panic!("it was accepted"),
        Err(error) => error.to_string(),
    }
}

/// A value of the first record that cannot be true together with the others, and the key that is
/// named for it.
const CONTRADICTIONS: &[(&str, &str, &str)] = &[
    ("speedup_factor", "1.101", "speedup_factor"),
    ("unfused_latency_ms", "0.5", "speedup_factor"),
    ("fused_latency_ms", "0.5", "speedup_factor"),
    ("speedup_high", "3.0", "speedup_high"),
    ("efficiency_improvement", "0.5", "efficiency_improvement"),
    ("unfused_memory_bytes", "1", "unfused_memory_bytes"),
    ("fused_memory_bytes", "1", "fused_memory_bytes"),
    ("unfused_gflops", "1.0", "unfused_gflops"),
    ("fused_gflops", "1.0", "fused_gflops"),
    ("memory_reduction", "0.01", "memory_reduction"),
    ("ceiling_speedup", "9.0", "ceiling_speedup"),
    ("bottleneck_unfused", "\"launch\"", "bottleneck_unfused"),
    ("bottleneck_fused", "\"launch\"", "bottleneck_fused"),
    ("arithmetic_intensity_unfused", "1.0", "arithmetic_intensity_unfused"),
    ("arithmetic_intensity_fused", "-1.0", "arithmetic_intensity_fused"),
    ("fusion_pattern", "\"mlp\"", "fusion_pattern"),
    ("num_operators", "4", "num_operators"),
    ("verdict", "\"SLOWER\"", "verdict"),
    ("verdict", "\"SINGLE\"", "verdict"),
    ("verdict", "\"INVALID\"", "verdict"),
    ("noise_floor", "nan", "noise_floor"),
    ("order_sensitivity", "inf", "order_sensitivity"),
    ("processes", "0", "processes"),
    ("pairs_kept", "1000000", "pairs_kept"),
    ("median_ms", "1e9", "unfused_timing.median_ms"),
    ("q1_ms", "-1.0", "unfused_timing.q1_ms"),
    ("q3_ms", "nan", "unfused_timing.q3_ms"),
    ("huge_page_share", "1.1", "placement.huge_page_share"),
    ("unfused_error", "1.0", "verification.unfused_error"),
    ("fused_error", "nan", "verification.fused_error"),
    ("tolerance", "0.0", "verification.tolerance"),
    ("tolerance", "0.9", "verification.tolerance"),
    ("tolerance", "1e-3", "verification.tolerance"),
    ("reference_rows", "1000000", "verification.reference_rows"),
    ("reference_rows", "0", "verification.reference_rows"),
    ("sample_ticks", "0", "sample_ticks"),
    ("threads", "0", "threads"),
    ("threads", "64", "threads"),
    ("rows", "511", "verification.rows"),
    ("code", "\"mostly-disturbed\"", "verdict"),
    ("code", "\"few-processes\"", "verdict"),
];

#[test]
fn each_contradiction_is_refused_with_its_key_and_line() {
    let start = EXAMPLE.find("[[fusion]]").unwrap();
    let (head, records) = EXAMPLE.split_at(start);
    for (key, value, named) in CONTRADICTIONS {
        let given = records.lines().find(|line| line.starts_with(&format!("{key} = ")));
        let given = given.unwrap_or_else(|| panic!("the example has no {key}"));
        // At the beginning of a line: `unfused_error` ends with another key.
        let changed = records.replacen(&format!("\n{given}"), &format!("\n{key} = {value}"), 1);
        let text = format!("{head}{changed}");
        let message = message(&text);
        let key = named.rsplit('.').next().unwrap();
        let line = text.lines().zip(1..).skip(head.lines().count());
        let line = line.into_iter().find(|(line, _)| line.starts_with(&format!("{key} = ")));
        let expected = format!("{named} at line {}: ", line.unwrap().1);
        assert!(message.contains(&expected), "{key} = {value}: {message}\n{expected}");
    }
    let sizes = "[fusion.extra_params]\n";
    let other = message(&EXAMPLE.replacen(sizes, &format!("{sizes}z = 1\n"), 1));
    assert!(other.contains("extra_params are not the sizes"), "{other}");
}

/// A text with another value of a key behind the `nth` header of its kind, from 0, and its line.
fn edited(text: &str, header: &str, nth: usize, key: &str, value: &str) -> (String, usize) {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let headers = lines.iter().enumerate().filter(|(_, line)| *line == header);
    let (start, _) = headers.into_iter().nth(nth).unwrap();
    let is_key = |line: &String| line.starts_with(&format!("{key} = "));
    let at = start + lines[start..].iter().position(is_key).unwrap();
    lines[at] = format!("{key} = {value}");
    (lines.join("\n") + "\n", at + 1)
}

#[test]
fn what_is_not_in_a_record_is_refused_with_its_key_and_line() {
    for (header, nth, key, value, named) in [
        ("[settings]", 0, "processes", "0", "settings.processes"),
        ("[settings]", 0, "most_processes", "1", "settings.most_processes"),
        ("[settings]", 0, "spread_s", "-1.0", "settings.spread_s"),
        ("[settings]", 0, "spread_s", "9e18", "settings.spread_s"),
        ("[settings]", 0, "hardware_matches", "false", "settings.hardware_matches"),
        ("[hardware]", 0, "id", "\"Not a slug\"", "hardware.id"),
        ("[hardware]", 0, "name", "\"Another\"", "hardware.name"),
        ("[hardware]", 0, "processor", "\"gpu\"", "hardware.processor"),
        ("[hardware]", 0, "detect", "[\"Another\"]", "hardware.detect"),
        ("[hardware.cores]", 0, "count", "64", "hardware.cores.threads"),
        ("[hardware.cores]", 0, "threads", "64", "hardware.cores.threads"),
        (
            "[hardware.memory]",
            0,
            "bandwidth_gb_per_s",
            "1e30",
            "hardware.memory.bandwidth_gb_per_s",
        ),
        ("[[hardware.cache]]", 0, "instances", "0", "hardware.cache.instances"),
        ("[[hardware.cache]]", 1, "bytes", "4096", "hardware.cache 2, bytes"),
        ("[[hardware.peak]]", 0, "gflops", "-1.0", "hardware.peak.gflops"),
        ("[[hardware.peak]]", 0, "gflops", "1e30", "hardware.peak.gflops"),
        ("[[ceilings]]", 0, "peak_gflops", "nan", "peak_gflops"),
        ("[[ceilings]]", 0, "peak_gflops", "1e30", "peak_gflops"),
        ("[[ceilings]]", 0, "threads", "0", "threads"),
        ("[[ceilings]]", 0, "threads", "64", "threads"),
        ("[[ceilings]]", 0, "launch_us", "-1.0", "launch_us"),
        ("[[ceilings.bandwidth]]", 1, "gb_per_s", "0.0", "bandwidth 2, gb_per_s"),
        ("[[ceilings.bandwidth]]", 2, "working_set_bytes", "1", "bandwidth 3, working_set_bytes"),
        ("[[noise]]", 1, "ratio", "0.9985", "ratio_high"),
        ("[[noise]]", 1, "ratio", "2.0", "ratio"),
        ("[[noise]]", 1, "ratio_low", "0.98", "ratio_high"),
        ("[[noise]]", 1, "ratio_high", "1.2", "ratio_high"),
        ("[[noise]]", 1, "standard_error", "0.02", "standard_error"),
        ("[[noise]]", 1, "standard_error", "nan", "standard_error"),
        ("[[noise]]", 1, "processes", "0", "processes"),
        ("[[noise]]", 1, "threads", "64", "threads"),
        ("[[noise]]", 1, "problem", "\"add_relu/f32/m64.n1024\"", "problem"),
    ] {
        let (text, line) = edited(EXAMPLE, header, nth, key, value);
        let message = message(&text);
        // Where two values contradict each other, either may be named.
        let named_line = if named.ends_with(key) {
            line
        } else {
            let other = named.rsplit('.').next().unwrap();
            edited(EXAMPLE, header, nth, other, "0").1
        };
        let expected = format!("{named} at line {named_line}: ");
        assert!(message.contains(&expected), "{key} = {value}: {message}\n{expected}");
        if header.starts_with("[[noise") || header.starts_with("[[ceilings") {
            assert!(message.contains("]] at line "), "which of several: {message}");
        }
    }
}

#[test]
fn the_times_of_the_processes_are_held_against_the_time() {
    let measured = std::fs::read_to_string(MEASURED).unwrap();
    let measured = measured.as_str();
    assert!(HardwareCalibration::from_toml(measured).is_ok());
    let (head, times) = measured.split_once("process_ms = [\n    ").unwrap();
    let (first, rest) = times.split_once(",\n").unwrap();
    let slower = 1.01 * first.parse::<f64>().unwrap();
    let text = format!("{head}process_ms = [\n    {slower},\n{rest}");
    let line = head.lines().count() + 1;
    let expected = format!("unfused_timing.process_ms at line {line}: the time is ");
    assert!(message(&text).contains(&expected), "{}", message(&text));
    for (key, factor, named) in [("high_ms", 1.01, "high_ms"), ("low_ms", 0.99, "high_ms")] {
        let header = "[fusion.unfused_timing]";
        let value = value_of(measured, header, key);
        let (text, _) = edited(measured, header, 0, key, &(factor * value).to_string());
        let (_, line) = edited(measured, header, 0, named, "0");
        let expected = format!("unfused_timing.{named} at line {line}: ");
        assert!(message(&text).contains(&expected), "{}", message(&text));
    }
    let (text, line) = edited(measured, "[[fusion]]", 3, "process_correlation", "0.1");
    let expected = format!("process_correlation at line {line}: it is 0.1, and ");
    assert!(message(&text).contains(&expected), "{}", message(&text));
}

/// The correlation of a run is that of all its records, but for those that change slowly.
#[test]
fn a_record_that_changes_slowly_has_a_correlation_of_its_own() {
    let measured = std::fs::read_to_string(MEASURED).unwrap();
    let measured = HardwareCalibration::from_toml(&measured).unwrap();
    let with = |correlation: f64, code: Option<ReasonCode>| {
        let mut calibration = measured.clone();
        for (index, record) in calibration.records.iter_mut().enumerate() {
            // More of them than the file has runs, or one.
            let own = f64::from(u32::try_from(index).unwrap()) / 1000.0;
            record.process_correlation = Some(if code.is_none() { own } else { 0.3 });
        }
        let record = calibration.records.last_mut().unwrap();
        record.process_correlation = Some(correlation);
        let reasons = code.map(|code| Reason { code, text: "it drifts".to_owned() });
        record.reasons.extend(reasons);
        let text = calibration.to_toml().unwrap();
        HardwareCalibration::from_toml(&text).map(drop).map_err(|error| error.to_string())
    };
    let message = |correlation, code| with(correlation, code).unwrap_err();
    let slow = Some(ReasonCode::SlowChange);
    assert!(with(0.8, slow).is_ok());
    assert!(message(0.8, None).contains("the records of one run share it"));
    assert!(message(0.2, slow).contains("and a reason says slow-change"));
}

#[test]
fn samples_of_few_ticks_have_their_reason_and_others_have_not() {
    let (text, line) = edited(EXAMPLE, "[[fusion]]", 0, "sample_ticks", "999");
    let expected = format!("sample_ticks at line {line}: it is 999; below 1000");
    assert!(message(&text).contains(&expected), "{}", message(&text));
    let (text, _) = edited(EXAMPLE, "[[fusion]]", 0, "sample_ticks", "1000");
    assert!(HardwareCalibration::from_toml(&text).is_ok());
}

/// The example with an A/A run that is further from 1 than its error, which all three records were
/// judged by.
fn noisier() -> String {
    let quiet = "ratio = 0.996132\nratio_low = 0.985781\nratio_high = 1.00659\n";
    let noisy = "ratio = 0.99\nratio_low = 0.98\nratio_high = 1.0001\n";
    assert!(EXAMPLE.contains(quiet));
    EXAMPLE.replacen(quiet, noisy, 1).replace("noise_floor = 0.01\n", "noise_floor = 0.0130185\n")
}

#[test]
fn noise_floors_are_those_of_the_runs_against_themselves() {
    assert!(HardwareCalibration::from_toml(&noisier()).is_ok());
    for (nth, floor) in [(0, "0.01"), (0, "0.009"), (1, "0.011"), (2, "0.0131"), (2, "0.03")] {
        let (text, line) = edited(&noisier(), "[[fusion]]", nth, "noise_floor", floor);
        let expected =
            format!("noise_floor at line {line}: it is {floor}, and the A/A runs give 0.013018");
        assert!(message(&text).contains(&expected), "{}", message(&text));
    }
    let mut calibration = HardwareCalibration::from_toml(&noisier()).unwrap();
    calibration.noise[0].disturbed = true;
    let text = calibration.to_toml().unwrap();
    assert!(message(&text).contains("the A/A runs give 0.01"), "{}", message(&text));
}

/// Which A/A runs were whose is not to be seen.
#[test]
fn the_records_of_several_runs_share_as_many_noise_floors() {
    let mut calibration = HardwareCalibration::from_toml(&noisier()).unwrap();
    calibration.additions.push(Addition {
        started_at: "2026-11-25T00:00:00Z".to_owned(),
        shapes: "standard".to_owned(),
        seed: 1,
        quick: false,
        forced: false,
        records: 1,
    });
    let text = calibration.to_toml().unwrap();
    // The third record is of the family of the first one.
    let (two, _) = edited(&text, "[[fusion]]", 2, "noise_floor", "0.011");
    assert!(HardwareCalibration::from_toml(&two).is_ok());
    for floor in ["0.009", "0.03"] {
        let (text, line) = edited(&text, "[[fusion]]", 1, "noise_floor", floor);
        let expected =
            format!("noise_floor at line {line}: it is {floor}, and the A/A runs give from 0.01");
        assert!(message(&text).contains(&expected), "{}", message(&text));
    }
}

fn value_of(text: &str, header: &str, key: &str) -> f64 {
    let (_, line) = edited(text, header, 0, key, "0");
    let line = text.lines().nth(line - 1).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// The example, whose second record was measured in two states of the machine that differ.
fn in_two_states() -> String {
    let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    let state = |id| MachineState {
        id,
        handoff_us: Some(0.5),
        triad_gb_per_s: 10.0,
        triad_range: [9.0, 11.0],
        processes: 5,
    };
    calibration.states = vec![state(1), state(2)];
    let record = &mut calibration.records[1];
    let in_state = |state, processes, speedup: f64| StateSpeedup {
        state,
        processes,
        speedup_factor: speedup,
        speedup_low: speedup / 1.05,
        speedup_high: speedup * 1.05,
    };
    let speedup = record.speedup_factor;
    record.states = vec![1, 2];
    record.by_state = vec![in_state(1, 3, speedup * 1.1), in_state(2, 2, speedup / 1.1)];
    record.speedup_low = speedup / 1.1 / 1.05;
    record.speedup_high = speedup * 1.1 * 1.05;
    record.interval_method =
        "95 % t intervals over processes, over states of the machine".to_owned();
    record.reasons.push(Reason { code: ReasonCode::StateChanged, text: "by a test".to_owned() });
    calibration.to_toml().unwrap()
}

#[test]
fn the_states_of_a_record_are_held_against_it() {
    let text = in_two_states();
    assert!(HardwareCalibration::from_toml(&text).is_ok());
    let by_state = "[[fusion.by_state]]";
    for (header, nth, key, value, expected) in [
        (by_state, 0, "speedup_factor", "1.45", "by_state.speedup_factor at line"),
        (by_state, 1, "speedup_factor", "1.3", "by_state 2, speedup_factor at line"),
        (by_state, 0, "speedup_high", "1.9", "by_state.speedup_factor at line"),
        (by_state, 0, "processes", "2", "by_state.processes at line"),
        (by_state, 1, "state", "1", "by_state.state at line"),
        ("[[fusion]]", 1, "speedup_low", "1.1", "speedup_low at line"),
        ("[[fusion]]", 1, "speedup_high", "1.6", "speedup_high at line"),
        ("[[state]]", 1, "id", "3", "[[state]] at line"),
        ("[[state]]", 1, "triad_gb_per_s", "-1.0", "triad_gb_per_s at line"),
    ] {
        let (changed, _) = edited(&text, header, nth, key, value);
        let message = message(&changed);
        assert!(message.contains(expected), "{key} = {value}: {message}");
    }
    let other = text.replacen("states = [\n    1,\n    2,\n]", "states = [\n    1,\n    3,\n]", 1);
    assert!(message(&other).contains("state 3 is named, and there are 2 states"));
}

/// The example with two versions of a runtime; its third record and last A/A run are of one of them.
fn with_runtimes() -> String {
    let mut calibration = HardwareCalibration::from_toml(&noisier()).unwrap();
    let tiny: Implementation = "tiny@1.2".parse().unwrap();
    let of_version = |version: &str| RuntimeUsed {
        implementation: format!("tiny@{version}").parse().unwrap(),
        name: "tiny".to_owned(),
        version: version.to_owned(),
        device: "cpu".to_owned(),
        options: std::iter::once(("threads".to_owned(), "2".to_owned())).collect(),
    };
    calibration.runtimes = ["1.2", "1.3"].map(of_version).to_vec();
    let noise = NoiseFloor { implementation: tiny, ..calibration.noise[0].clone() };
    calibration.noise.push(noise);
    let record = &mut calibration.records[2];
    // Of its A/A run alone.
    (record.implementation, record.noise_floor) = (tiny, 0.0188772);
    calibration.to_toml().unwrap()
}

#[test]
fn each_runtime_is_described_once_and_so_are_all_that_were_measured() {
    let text = with_runtimes();
    let calibration = HardwareCalibration::from_toml(&text).unwrap();
    let last_noise = calibration.noise.len() - 1;
    let runtime = "[[runtime]]";
    for (header, nth, key, value, expected) in [
        (runtime, 0, "name", "\"other\"", "name at line {}: it is other, and "),
        (runtime, 1, "version", "\"1.4\"", "version at line {}: it is 1.4, and "),
        (runtime, 1, "implementation", "\"native\"", "implementation at line {}: it is native; "),
        ("[[fusion]]", 2, "implementation", "\"tiny@1.4\"", "line {}: no [[runtime]] describes"),
        ("[[noise]]", last_noise, "implementation", "\"a@1\"", "line {}: no [[runtime]] describes"),
    ] {
        let (changed, line) = edited(&text, header, nth, key, value);
        let message = message(&changed);
        let expected = expected.replace("{}", &line.to_string());
        assert!(message.contains(&expected), "{key} = {value}: {message}");
        assert!(message.contains(&format!("{header} at line ")), "which of several: {message}");
    }
    let (twice, line) = edited(&text, runtime, 1, "implementation", "\"tiny@1.2\"");
    let (twice, _) = edited(&twice, runtime, 1, "version", "\"1.2\"");
    let expected = format!("implementation at line {line}: tiny@1.2 is described twice");
    assert!(message(&twice).contains(&expected), "{}", message(&twice));
}

#[test]
fn reasons_are_held_against_the_record() {
    let with = |code: &str| {
        let reason = format!("\n[[fusion.reason]]\ncode = \"{code}\"\ntext = \"by hand\"\n");
        EXAMPLE.replacen("\n[[fusion.reason]]", &format!("{reason}\n[[fusion.reason]]"), 1)
    };
    let codes = ["within-process", "few-processes", "above-ceiling", "throttled"];
    let others = ["clock-changed", "lower-core", "neighbour", "unobserved"];
    for code in codes.into_iter().chain(others) {
        let text = with(code);
        let at = format!("code = \"{code}\"");
        let line = text.lines().zip(1..).find(|(line, _)| *line == at).unwrap().1;
        let message = message(&text);
        let expected = format!("reason.code at line {line}: it is {code}, but ");
        assert!(message.contains(&expected), "{message}");
    }
    assert!(message(&with("mostly-disturbed")).contains("verdict at line"));
    let few = EXAMPLE.replacen("pairs_kept = 501", "pairs_kept = 301", 1);
    assert!(message(&few).contains("pairs_kept at line"), "{}", message(&few));
}

/// Nobody may take away what a reader should know.
#[test]
fn what_a_record_shows_has_its_reason() {
    let unseen = EXAMPLE.replacen("\nsteal = 0\n", "\n", 1);
    assert_ne!(unseen, EXAMPLE);
    let expected = "disturbed.steal: it has no number, and there is no reason unobserved";
    assert!(message(&unseen).contains(expected), "{}", message(&unseen));
    let calibration = HardwareCalibration::load(OF_STATES).unwrap();
    let without = |code: ReasonCode| {
        let mut calibration = calibration.clone();
        for record in &mut calibration.records {
            record.reasons.retain(|reason| reason.code != code);
        }
        message(&calibration.to_toml().unwrap())
    };
    let states = without(ReasonCode::StateChanged);
    assert!(states.contains("there is no reason state-changed"), "{states}");
    let above = without(ReasonCode::AboveCeiling);
    assert!(above.contains("is above it, and there is no reason above-ceiling"), "{above}");
}

/// Processes that all lie within a short time have a reason, and others have none.
#[test]
fn a_short_span_has_its_reason() {
    let text = std::fs::read_to_string(MEASURED).unwrap();
    let (changed, line) = edited(&text, "[[fusion]]", 0, "span_s", "12.0");
    let message = message(&changed);
    assert!(message.contains(&format!("span_s at line {line}: it is 12 s")), "{message}");
    let limit = fusion_cost_model::calibration::FusionRecord::SHORT_SPAN_S;
    let (changed, _) = edited(&text, "[[fusion]]", 0, "span_s", &format!("{:?}", limit + 1.0));
    assert!(HardwareCalibration::from_toml(&changed).is_ok());
}

/// Threads that are bound have a processor each.
#[test]
fn bound_threads_have_a_processor_each() {
    let (with_two, with_one) = ("processors = [\n    0,\n    1,\n]", "processors = [1]");
    let changed = EXAMPLE.replacen(with_two, with_one, 1);
    assert_ne!(changed, EXAMPLE);
    let message = message(&changed);
    assert!(message.contains("placement.pinned at line"), "{message}");
    assert!(message.contains("2 threads are bound to 1 of the processors"), "{message}");
}
