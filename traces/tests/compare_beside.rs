//! Rates and idle times of both sides are those that were generated, and the sentences name the cause.

use crate::loaded::Loaded;
use crate::phases::program::{Attention, Program};
use fusion_cost_model::hardware::HardwareSpec;
use kernel_traces::Vendor;
use kernel_traces::compare::{CompareOptions, Comparison};
use kernel_traces::idle::Cause;
use kernel_traces::rates::{Bound, Machine};

const PASSES: u64 = 5;
const PAUSE_NS: u64 = 400_000;

/// Passes of a model, with a pause before each.
fn served(vendor: Vendor, slower: u64, pause_ns: u64) -> Program {
    let mut program = Program::new(vendor);
    program.slower = slower;
    for token in 0..PASSES {
        if pause_ns > 0 {
            program.pause("loader.py(7): next", pause_ns);
        }
        program.serve(Attention::Plain(64, 1, 100 + token, false), None);
    }
    program
}

fn compare([first, second]: [&Program; 2]) -> Comparison {
    let [first, second] = [first, second].map(|program| Loaded::read(program.text()));
    let sides = [first.side("a.json"), second.side("b.json")];
    Comparison::of(sides[0], sides[1], &CompareOptions::default()).unwrap()
}

/// A machine with a peak in bf16, in TFLOP/s, and more bandwidth than matters.
fn machine(tflops: f64) -> Machine {
    let text = format!(
        r#"
kind = "hardware"
schema_version = 2
id = "example"
name = "Example {tflops}"
vendor = "Example"
processor = "gpu"
architecture = "none"
detect = ["Example 1"]
cores = {{ count = 4, source = "made up" }}
memory = {{ bandwidth_gb_per_s = 90000.0, kind = "HBM", source = "made up" }}

[[peak]]
dtype = "bf16"
gflops = {:.1}
unit = "matrix"
how = "made up"
source = "made up"
"#,
        tflops * 1e3
    );
    Machine::of(&HardwareSpec::from_toml(&text).unwrap())
}

#[test]
fn rates_say_whether_the_machine_or_its_use_makes_the_difference() {
    let slow = served(Vendor::Amd, 3, 0);
    let fast = served(Vendor::Nvidia, 1, 0);
    let found = compare([&slow, &fast]);
    let gemm = found.rates.rows.iter().find(|row| row.class == "GEMM").unwrap();
    assert_eq!(gemm.dtype, Some("bf16"));
    let [first, second] = [gemm.first.unwrap(), gemm.second.unwrap()];
    assert_eq!(first.flops, second.flops);
    assert_eq!(first.known_ns, 3 * second.known_ns);
    // 2 * 64 * (3 + 1 + 4 + 4) * 512 * 512 FLOPs in six layers, and the GEMM behind them.
    let of_pass = 2.0 * 64.0 * 512.0 * (6.0 * 12.0 * 512.0 + 32_000.0);
    assert_eq!(first.flops, of_pass * PASSES as f64);
    let rate = second.tflop_per_s.unwrap();
    assert!((rate - second.flops / second.known_ns as f64 / 1e3).abs() < 1e-9);
    assert!((first.step_ns * PASSES as f64 - first.known_ns as f64).abs() < 1.0);
    let sentence = found.rates_sentence().unwrap();
    assert!(sentence.starts_with("In GEMM (bf16) MI300X reaches "), "{sentence}");
    assert!(!sentence.contains("roofline") && !sentence.contains("difference"), "{sentence}");

    // The same machine: one side makes less of it.
    let same = [machine(400.0), machine(400.0)];
    let of_use = found.clone().with_machines([Some(&same[0]), Some(&same[1])]);
    let gemm = of_use.rates.rows.iter().find(|row| row.class == "GEMM").unwrap();
    let [first, second] = [gemm.first.unwrap(), gemm.second.unwrap()];
    assert_eq!((first.bound, second.bound), (Some(Bound::Compute), Some(Bound::Compute)));
    assert!((3.0 * first.of_roofline.unwrap() - second.of_roofline.unwrap()).abs() < 1e-9);
    let sentence = of_use.rates_sentence().unwrap();
    assert!(sentence.ends_with("and not the machines' peaks"), "{sentence}");
    // A machine with a third of the peak.
    let others = [machine(100.0), machine(300.0)];
    let of_machines = found.clone().with_machines([Some(&others[0]), Some(&others[1])]);
    let sentence = of_machines.rates_sentence().unwrap();
    assert!(sentence.contains("that of the machines' peaks"), "{sentence}");
    // Half of each.
    let others = [machine(100.0), machine(173.2)];
    let of_both = found.clone().with_machines([Some(&others[0]), Some(&others[1])]);
    assert!(of_both.rates_sentence().unwrap().ends_with("both make the difference"));
    // Mirrored.
    let back = compare([&fast, &slow]).with_machines([Some(&same[0]), Some(&same[1])]);
    let sentence = back.rates_sentence().unwrap();
    assert!(sentence.ends_with("and not the machines' peaks"), "{sentence}");
    let equal = compare([&fast, &served(Vendor::Amd, 1, 0)]);
    assert!(equal.rates_sentence().unwrap().ends_with("no difference to speak of"));
}

#[test]
fn without_sizes_there_are_no_rates() {
    let mut program = Program::new(Vendor::Amd);
    program.has_sizes = false;
    program.serve(Attention::Plain(64, 1, 100, false), None);
    let found = compare([&program, &served(Vendor::Nvidia, 1, 0)]);
    assert!(found.rates.rows.iter().all(|row| row.first.is_none()));
    assert_eq!((found.rates.first_known_share, found.rates_sentence()), (0.0, None));
}

#[test]
fn idle_time_is_laid_to_what_the_host_did() {
    let waiting = served(Vendor::Amd, 1, PAUSE_NS);
    let busy = served(Vendor::Nvidia, 1, 0);
    let found = compare([&waiting, &busy]);
    let host = found.idle.rows.iter().find(|row| row.cause == Cause::Host).unwrap();
    assert_eq!(found.idle.rows[0].cause, Cause::Host);
    // There is nothing to wait for before the first pass.
    let paused = (PASSES - 1) as f64 * PAUSE_NS as f64 / PASSES as f64;
    assert!(host.first_ns > paused && host.first_ns < 1.5 * paused, "{}", host.first_ns);
    assert!(host.gap_ns > 0.9 * paused, "{}", host.gap_ns);
    assert_eq!(host.first_doing.as_deref(), Some("loader.py(7): next"));
    let sentence = found.idle_sentence().unwrap();
    assert!(sentence.starts_with("Nothing runs for "), "{sentence}");
    let cause = "the host had launched nothing on MI300X, most of it in loader.py(7): next";
    assert!(sentence.ends_with(cause), "{sentence}");
    let back = compare([&busy, &waiting]);
    assert!(back.idle_sentence().unwrap().ends_with(cause));
    assert_eq!(back.idle.rows[0].gap_ns, -host.gap_ns);
    let equal = compare([&waiting, &waiting]);
    assert!(equal.idle_sentence().unwrap().ends_with("no difference to speak of"));
}
