//! A calibration of a made-up GPU.

use fusion_cost_model::calibration::{
    Disturbed, FailedCore, GpuDetails, GpuKernel, HardwareCalibration, KernelFailure, ObservedGpu,
    Reason, ReasonCode,
};
use fusion_cost_model::hardware::Processor;
use fusion_cost_model::{Backend, Clock, Core, Implementation};

use crate::consistent::make_consistent;

const CPU: &str = include_str!("../data/example.toml");

fn kernel(name: &str) -> GpuKernel {
    GpuKernel {
        name: name.to_owned(),
        blocks: 264,
        threads: 256,
        registers: 40,
        spilled_bytes: 0,
        shared_bytes: 1024,
        resident_blocks: 6,
    }
}

/// The example as if a made-up GPU had been measured, each record by both clocks. The speedups by
/// the launch-inclusive clock are higher by a quarter, and those of the vendor's kernel, which only
/// the first problem has, by a half.
pub(crate) fn calibration() -> HardwareCalibration {
    let mut calibration = HardwareCalibration::from_toml(CPU).unwrap();
    calibration.fingerprint.gpu = Some(ObservedGpu {
        name: "A made-up GPU".to_owned(),
        architecture: "sm_90a".to_owned(),
        processors: 132,
        memory_bytes: 141 << 30,
        l2_bytes: 60 << 20,
        clock_mhz: 1980,
        bus_id: "0000:3b:00.0".to_owned(),
        driver: "550.54".to_owned(),
        runtime: "12.4".to_owned(),
        compiler: "NVRTC 12.4".to_owned(),
        libraries: vec!["cuBLASLt 12.4.5".to_owned()],
    });
    calibration.hardware.processor = Processor::Gpu;
    calibration.hardware.detect = vec!["A made-up GPU".to_owned()];
    calibration.hardware.cores.source = "made up".to_owned();
    for record in &mut calibration.records {
        record.backend = Backend::Cuda;
        record.threads = 1;
        record.clock = Clock::Device;
        record.placement.pinned = false;
        record.disturbed = Disturbed { clock_change: Some(3), ..Disturbed::default() };
        record.gpu = Some(GpuDetails {
            core: Some(Core::Mma),
            failed_cores: vec![FailedCore {
                core: Core::Wgmma,
                failure: KernelFailure::Hung,
                reason: "no answer in 60 s".to_owned(),
            }],
            lowest_clock_mhz: Some(1755),
            highest_clock_mhz: Some(1980),
            device_clock_mhz: Some([1748, 1979]),
            clock_changes: Some([1, 3]),
            throttle_reasons: Some(vec!["sw-power-cap".to_owned()]),
            unfused_kernels: vec![kernel("add"), kernel("relu")],
            fused_kernels: vec![kernel("add_relu")],
        });
        record.reasons.extend([ReasonCode::LowerCore, ReasonCode::Throttled].map(|code| {
            let text = "made up".to_owned();
            Reason { code, text }
        }));
    }
    let by = |factor: f64, clock, implementation| {
        let mut records = calibration.records.clone();
        for record in &mut records {
            record.speedup_low *= factor;
            record.speedup_factor *= factor;
            record.speedup_high *= factor;
            (record.clock, record.implementation) = (clock, implementation);
            if clock == Clock::LaunchInclusive {
                let Disturbed { involuntary_switch, run_delay, page_fault, steal, .. } =
                    &mut record.disturbed;
                for of_the_host in [involuntary_switch, run_delay, page_fault, steal] {
                    *of_the_host = Some(0);
                }
            }
        }
        records
    };
    let inclusive = by(1.25, Clock::LaunchInclusive, Implementation::Native);
    let vendors = by(1.5, Clock::Device, Implementation::Vendor);
    calibration.records.extend(inclusive);
    calibration.records.extend(vendors.into_iter().take(1));
    calibration.num_records = calibration.records.len() as u64;
    for noise in &mut calibration.noise {
        (noise.backend, noise.threads, noise.clock) = (Backend::Cuda, 1, Clock::Device);
    }
    let inclusive = calibration.noise.clone().into_iter();
    calibration.noise.extend(inclusive.map(|mut noise| {
        noise.clock = Clock::LaunchInclusive;
        noise
    }));
    for ceilings in &mut calibration.ceilings {
        (ceilings.backend, ceilings.threads, ceilings.clock) = (Backend::Cuda, 1, Clock::Device);
        ceilings.core = Some(Core::Mma);
        ceilings.failed_cores = vec![FailedCore {
            core: Core::Wgmma,
            failure: KernelFailure::Launch,
            reason: "multiply_by_wgmma left no result".to_owned(),
        }];
    }
    make_consistent(&mut calibration);
    calibration
}
