//! Plans run on this machine: the same source of kernels, with every GPU thread as a fiber.
//!
//! `tests/stand_in/` has what takes the place of a device. What is found here is wrong on a device
//! too: results other than the reference's, missing barriers, accesses outside of tensors, warps
//! of another width than the kernel thinks. What is not: how a device's compiler translates the
//! source, its matrix instructions, the order in which it sees other threads' memory accesses.

mod compile;
mod conformance;
mod device;
mod launch;
mod memory;
mod run;

pub(crate) use compile::{Headers, Kernels, compiler};
pub(crate) use device::device;
pub(crate) use launch::{Order, launch};
pub(crate) use run::Failure;

use fusion_cost_model::Problem;

use crate::gpu::lower::lower;
use crate::gpu::{DeviceFacts, KernelPlan, Plan};

/// The orders in which the threads of every kernel run.
const ORDERS: [Order; 3] = [Order::Forward, Order::Reverse, Order::Shuffled(1)];

/// Runs both variants of a problem on an emulated device of an architecture (`sm_80`, `gfx942`),
/// and panics when something is wrong.
#[track_caller]
pub(crate) fn check(problem: &str, architecture: &str) {
    check_all(&[problem.parse().unwrap()], architecture);
}

/// The same for many problems, whose kernels are compiled together, which is quicker.
#[track_caller]
pub(crate) fn check_all(problems: &[Problem], architecture: &str) {
    check_on(problems, &device(architecture));
}

/// The same for a device that is not as it usually is: one with few processors gets kernels for
/// many tiles with few of them.
#[track_caller]
pub(crate) fn check_on(problems: &[Problem], device: &DeviceFacts) {
    let failures = failures_on(problems, device, &Headers::shipped(), &ORDERS);
    let text: String = failures.iter().take(20).map(|failure| format!("\n{failure}")).collect();
    assert!(failures.is_empty(), "{} failures{text}", failures.len());
}

/// The same for one problem with some elements of its first input replaced.
#[track_caller]
pub(crate) fn check_with(problem: &str, architecture: &str, replaced: &[(usize, f32)]) {
    if compiler().is_none() {
        return;
    }
    let problem: Problem = problem.parse().unwrap();
    let device = device(architecture);
    let plan = lower(&problem, &device).unwrap();
    let codes = plan.kernels().map(|kernel| &kernel.code);
    let kernels = Kernels::of(codes, &device.architecture, &Headers::shipped());
    let mut inputs = crate::Inputs::random(&problem, 42);
    for &(index, value) in replaced {
        inputs.tensors[0][index] = value;
    }
    let failures = run::run_on(&inputs, &problem, &plan, &kernels, &device, &ORDERS);
    let text: String = failures.iter().map(|failure| format!("\n{failure}")).collect();
    assert!(failures.is_empty(), "with {replaced:?}{text}");
}

/// What is wrong with the kernels of some problems; nothing where there is no compiler.
pub(crate) fn failures(
    problems: &[Problem],
    architecture: &str,
    headers: &Headers,
    orders: &[Order],
) -> Vec<Failure> {
    failures_on(problems, &device(architecture), headers, orders)
}

/// The same on a device.
pub(crate) fn failures_on(
    problems: &[Problem],
    device: &DeviceFacts,
    headers: &Headers,
    orders: &[Order],
) -> Vec<Failure> {
    if compiler().is_none() {
        return Vec::new();
    }
    let plans: Vec<(&Problem, Option<Plan>)> =
        problems.iter().map(|problem| (problem, lower(problem, device))).collect();
    let codes = plans.iter().filter_map(|(_, plan)| plan.as_ref()).flat_map(Plan::kernels);
    let kernels = Kernels::of(codes.map(|kernel| &kernel.code), &device.architecture, headers);
    let next = std::sync::Mutex::new(plans.iter());
    let found = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some((problem, plan)) = next.lock().unwrap().next() else { break };
                    let failed = match plan {
                        Some(plan) => run::run(problem, plan, &kernels, device, orders),
                        None => vec![Failure::new(problem, device, "there are no kernels for it")],
                    };
                    found.lock().unwrap().extend(failed);
                }
            });
        }
    });
    found.into_inner().unwrap()
}

impl Plan {
    /// The kernels of both variants.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = &KernelPlan> {
        self.unfused.iter().chain([&self.fused])
    }
}

mod hopper;
mod tests;
