//! One phase, in every command that reads a trace whole.

use predicates::str::contains;
use serde_json::Value;

use super::program::{json, served, trace};

const PHASES: [&str; 2] = ["prefill", "decode"];

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn phases_are_parts_of_the_whole_everywhere() {
    let folder = served();
    let with = |command: &str, phase: Option<&str>| {
        let phase: Vec<&str> = phase.map_or_else(Vec::new, |phase| vec!["--phase", phase]);
        json(trace(folder.path()).args([command, "served.json", "--json"]).args(phase))
    };
    let whole = with("kernels", None);
    let known = whole["ranks"][0]["phases"].as_array().unwrap();
    for (phase, known) in PHASES.into_iter().zip(known) {
        let info = &with("info", Some(phase))["ranks"][0];
        assert_eq!(
            number(&info["kernels"]) + number(&info["copies"]),
            number(&known["count"]),
            "{phase}"
        );
        assert_eq!(info["total_ns"], known["total_ns"], "{phase}");
        let layers = &with("layers", Some(phase))["ranks"][0];
        assert_eq!(layers["phases"].as_array().unwrap().len(), 1, "{phase}");
        assert_eq!(layers["phases"][0], *known, "{phase}");
        let steps = layers["steps"].as_array().unwrap();
        assert!(steps.iter().all(|step| step["phase"] == phase), "{phase}");
    }
    let layers = |phase| -> u64 {
        let found = with("layers", phase);
        let patterns = found["ranks"][0]["patterns"].as_array().unwrap().clone();
        patterns.iter().map(|pattern| number(&pattern["layers"])).sum()
    };
    assert_eq!(layers(None), PHASES.map(|phase| layers(Some(phase))).iter().sum::<u64>());
    // Of copies no rate is known, and some kernels are of no phase.
    let rates = |phase| number(&with("rates", phase)["ranks"][0]["total_ns"]);
    assert!(PHASES.map(|phase| rates(Some(phase))).iter().sum::<u64>() <= rates(None));
    let idle = |phase| number(&with("idle", phase)["ranks"][0]["devices"][0]["idle_ns"]);
    let of_phases = PHASES.map(|phase| idle(Some(phase)));
    assert!(of_phases.iter().all(|ns| *ns > 0) && of_phases.iter().sum::<u64>() <= idle(None));
}

#[test]
fn a_phase_that_is_not_there_is_a_mistake() {
    let folder = served();
    for command in ["info", "kernels", "layers", "rates", "idle", "problems"] {
        trace(folder.path())
            .args([command, "served.json", "--phase", "backward"])
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains("no kernel is of phase backward; there are: prefill, decode"));
    }
    trace(folder.path())
        .args(["info", "served.json", "--phase", "decode", "--stream"])
        .assert()
        .code(2)
        .stderr(contains("cannot be used with"));
    trace(folder.path())
        .args(["kernels", "served.json", "--phase", "decode", "--rows"])
        .assert()
        .code(2)
        .stderr(contains("cannot be used with"));
}
