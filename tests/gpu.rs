//! Calibrations of a GPU: what only they have in the file, and questions about one clock.

use crate::on_a_gpu::calibration;
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::{
    Backend, Clock, Decision, Evidence, FusionCostModel, Implementation, Policy, Problem, Target,
    WhenUnknown,
};

const CPU: &str = include_str!("data/example.toml");
const MEASURED: &str = "add_relu/f32/m4096.n1024";

fn problem(text: &str) -> Problem {
    text.parse().unwrap()
}

#[test]
fn it_comes_back_as_it_was() {
    let calibration = calibration();
    let text = calibration.to_toml().unwrap();
    assert_eq!(HardwareCalibration::from_toml(&text).unwrap(), calibration);
    for key in [
        "[fingerprint.gpu]",
        "clock = \"device\"",
        "clock = \"launch-inclusive\"",
        "implementation = \"vendor\"",
        "[fusion.gpu]",
        "core = \"mma\"",
        "[[fusion.gpu.failed_core]]\ncore = \"wgmma\"\nfailure = \"hung\"\n",
        "[[ceilings.failed_core]]\ncore = \"wgmma\"\nfailure = \"launch\"\n",
        "[[fusion.gpu.unfused_kernel]]",
        "[[fusion.gpu.fused_kernel]]",
        "lowest_clock_mhz = 1755",
        "device_clock_mhz = [\n    1748,\n    1979,\n]",
        "clock_changes = [\n    1,\n    3,\n]",
        "throttle_reasons = [\"sw-power-cap\"]",
        "clock_change = 3",
        "libraries = [\"cuBLASLt 12.4.5\"]",
    ] {
        assert!(text.contains(key), "{key}");
    }
    let json = serde_json::to_string(&calibration).unwrap();
    assert_eq!(serde_json::from_str::<HardwareCalibration>(&json).unwrap(), calibration);
}

#[test]
fn nothing_of_it_is_in_the_file_of_a_cpu() {
    let cpu = HardwareCalibration::from_toml(CPU).unwrap();
    assert!(cpu.records.iter().all(|record| record.clock == Clock::Host && record.gpu.is_none()));
    let text = cpu.to_toml().unwrap();
    for key in ["clock = ", "gpu", "clock_change"] {
        assert!(!text.contains(key), "{key}");
    }
}

#[test]
fn a_key_that_the_tables_do_not_have_is_refused() {
    let text = calibration().to_toml().unwrap();
    for header in [
        "[fingerprint.gpu]",
        "[fusion.gpu]",
        "[[fusion.gpu.unfused_kernel]]",
        "[[fusion.gpu.failed_core]]",
    ] {
        let with = |line: &str| text.replacen(header, &format!("{header}\n{line}"), 1);
        let message = HardwareCalibration::from_toml(&with("nonsense = 1")).unwrap_err();
        assert!(message.to_string().contains("unknown field `nonsense`"), "{header}: {message}");
    }
    let other = text.replacen("clock = \"device\"", "clock = \"sundial\"", 1);
    let message = HardwareCalibration::from_toml(&other).unwrap_err().to_string();
    assert!(message.contains("unknown variant `sundial`"), "{message}");
}

#[test]
fn a_gpu_has_no_host_clock_and_a_cpu_no_other() {
    let mut gpu = calibration();
    gpu.records[0].clock = Clock::Host;
    let message = HardwareCalibration::from_toml(&gpu.to_toml().unwrap()).unwrap_err().to_string();
    assert!(message.contains("there is no host clock on cuda"), "{message}");
    let mut cpu = HardwareCalibration::from_toml(CPU).unwrap();
    cpu.records[0].clock = Clock::Device;
    let message = HardwareCalibration::from_toml(&cpu.to_toml().unwrap()).unwrap_err().to_string();
    assert!(message.contains("there is no device clock on cpu"), "{message}");
}

#[test]
fn two_records_by_one_clock_are_refused() {
    let mut twice = calibration();
    twice.records.push(twice.records[0].clone());
    twice.num_records += 1;
    let message =
        HardwareCalibration::from_toml(&twice.to_toml().unwrap()).unwrap_err().to_string();
    assert!(message.contains("the device clock and native kernels"), "{message}");
}

/// Each clock has its own answer, and none is given for the other.
#[test]
fn a_question_about_one_clock_is_never_answered_by_the_other() {
    let speedup = |calibration: HardwareCalibration, target: Target| {
        let model = FusionCostModel::new(calibration);
        let estimate = model.on(target).estimate(&problem(MEASURED));
        estimate.record().and(estimate.speedup()).map(|speedup| speedup.value)
    };
    let device = Target::gpu(Backend::Cuda, Clock::Device);
    let inclusive = Target::gpu(Backend::Cuda, Clock::LaunchInclusive);
    let by_device = speedup(calibration(), device).unwrap();
    let by_host = speedup(calibration(), inclusive).unwrap();
    assert!((by_host / by_device - 1.25).abs() < 1e-9);
    for (kept, target, other) in
        [(Clock::Device, device, inclusive), (Clock::LaunchInclusive, inclusive, device)]
    {
        let mut one = calibration();
        one.records.retain(|record| record.clock == kept);
        assert!(speedup(one.clone(), target).is_some());
        assert_eq!(speedup(one, other), None);
    }
    for target in [
        Target::cpu(1),
        Target::gpu(Backend::Hip, Clock::Device),
        Target::gpu(Backend::Cuda, Clock::Host),
    ] {
        assert_eq!(speedup(calibration(), target), None, "{target:?}");
    }
}

#[test]
fn a_vendors_kernels_are_asked_for_by_name() {
    let model = FusionCostModel::new(calibration());
    let native = Target::gpu(Backend::Cuda, Clock::Device);
    let vendor = native.with_implementation(Implementation::Vendor);
    let first = model.calibration().records[0].problem;
    let value = |target| model.on(target).estimate(&first).speedup().unwrap().value;
    assert!((value(vendor) / value(native) - 1.5).abs() < 1e-9);
    assert_eq!(model.on(vendor).estimate(&problem(MEASURED)).evidence(), Evidence::Roofline);
}

/// The roofline stands in for what was not measured, but only by the clock that it was measured by.
#[test]
fn ceilings_belong_to_a_clock() {
    let model = FusionCostModel::new(calibration());
    let unknown = problem("conv_bn/f32/n1.c3.h8.w8.k4.r3.s3");
    let device = Target::gpu(Backend::Cuda, Clock::Device);
    assert!(model.on(device).roofline_speedup(&unknown).is_some());
    let inclusive = Target::gpu(Backend::Cuda, Clock::LaunchInclusive);
    assert_eq!(model.on(inclusive).roofline_speedup(&unknown), None);
    let policy = Policy::new(WhenUnknown::Roofline);
    let decision = model.on(inclusive).decide(&unknown, &policy).unwrap();
    assert!(matches!(decision, Decision::Unknown { .. }) && !decision.should_fuse());
}
