//! One problem: its tensors, its launches, and what they leave.

use std::fmt;

use fusion_cost_model::Problem;

use super::compile::Kernels;
use super::launch::{Failed, Order, launch};
use super::memory::Tensor;
use crate::gpu::{Argument, DeviceFacts, KernelPlan, Plan};
use crate::numbers::{decode, encode};
use crate::{Expected, InputSpec, Inputs, Variant};

/// Multiply-adds of the reference at most.
const BUDGET: u64 = 20_000_000;

/// Something that a kernel does wrong, and how to see it again.
#[derive(Debug)]
pub(crate) struct Failure {
    problem: Problem,
    architecture: String,
    what: String,
}

impl Failure {
    pub(super) fn new(problem: &Problem, device: &DeviceFacts, what: impl Into<String>) -> Self {
        let architecture = device.architecture.name.clone();
        Self { problem: *problem, architecture, what: what.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { problem, architecture, what } = self;
        write!(f, "emulation::check(\"{problem}\", \"{architecture}\"): {what}")
    }
}

/// Runs both variants in every order.
pub(super) fn run(
    problem: &Problem,
    plan: &Plan,
    kernels: &Kernels,
    device: &DeviceFacts,
    orders: &[Order],
) -> Vec<Failure> {
    run_on(&Inputs::random(problem, 42), problem, plan, kernels, device, orders)
}

/// The same on some inputs.
pub(super) fn run_on(
    inputs: &Inputs,
    problem: &Problem,
    plan: &Plan,
    kernels: &Kernels,
    device: &DeviceFacts,
    orders: &[Order],
) -> Vec<Failure> {
    let expected = Expected::compute(problem, inputs, BUDGET);
    assert!(expected.can_prove(), "{problem}");
    let mut emulation = Emulation::new(problem, plan, inputs, kernels, device);
    let mut failures = Vec::new();
    for variant in Variant::ALL {
        let launches = match variant {
            Variant::Unfused => plan.unfused.as_slice(),
            Variant::Fused => std::slice::from_ref(&plan.fused),
        };
        for &order in orders {
            let result = emulation.run(launches, order).and_then(|output| {
                let error = expected.error(&output);
                if error <= expected.tolerance() {
                    return Ok(());
                }
                let wrong = output.iter().filter(|y| y.is_nan()).count();
                let names: Vec<&str> = launches.iter().map(|it| it.code.entry.as_str()).collect();
                Err(format!(
                    "error {error:.3e} above {:.3e}, {wrong} of {} are NaN; kernels {}",
                    expected.tolerance(),
                    output.len(),
                    names.join(", ")
                ))
            });
            if let Err(what) = result {
                let what = format!("{variant}, {order:?}: {what}");
                failures.push(Failure::new(problem, device, what));
                break;
            }
        }
    }
    failures
}

/// A problem's tensors in memory.
struct Emulation<'e> {
    problem: &'e Problem,
    plan: &'e Plan,
    kernels: &'e Kernels,
    device: &'e DeviceFacts,
    tensors: Vec<Tensor>,
    inputs: Vec<Vec<u8>>,
}

impl<'e> Emulation<'e> {
    fn new(
        problem: &'e Problem,
        plan: &'e Plan,
        inputs: &Inputs,
        kernels: &'e Kernels,
        device: &'e DeviceFacts,
    ) -> Self {
        let mut tensors: Vec<Tensor> =
            plan.table.specs.iter().map(|&spec| Tensor::new(spec)).collect();
        for tensor in &mut tensors {
            // Counters are zero before the first launch, and nothing is reset after it.
            tensor.bytes_mut().fill(0);
        }
        let inputs: Vec<Vec<u8>> =
            inputs.tensors.iter().map(|tensor| encode(problem.dtype(), tensor)).collect();
        for (id, bytes) in plan.inputs.iter().zip(&inputs) {
            tensors[id.0].bytes_mut().copy_from_slice(bytes);
        }
        Self { problem, plan, kernels, device, tensors, inputs }
    }

    /// The output after some launches.
    fn run(&mut self, launches: &[KernelPlan], order: Order) -> Result<Vec<f32>, String> {
        self.tensors.iter_mut().for_each(Tensor::poison);
        for kernel in launches {
            self.check_limits(kernel)?;
            let arguments = self.arguments(&kernel.arguments);
            let blocks = blocks(kernel, order);
            launch(self.kernels, &kernel.code, &kernel.shape, blocks, &arguments, order)
                .map_err(|failed| self.explain(failed))?;
            self.check_tensors()
                .map_err(|what| format!("{}, {blocks} blocks: {what}", kernel.code.entry))?;
        }
        let output = self.tensors[self.plan.output.0].bytes();
        Ok(decode(self.problem.dtype(), output))
    }

    fn check_limits(&self, kernel: &KernelPlan) -> Result<(), String> {
        let most = self.device.shared_bytes_per_block;
        if kernel.shape.shared_bytes > most {
            return Err(format!(
                "{} wants {} bytes of shared memory, but there are {most}",
                kernel.code.entry, kernel.shape.shared_bytes
            ));
        }
        Ok(())
    }

    fn arguments(&self, arguments: &[Argument]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for argument in arguments {
            match argument {
                Argument::Tensor(id) => bytes.extend(self.tensors[id.0].address().to_ne_bytes()),
                Argument::Size(size) => bytes.extend(size.to_ne_bytes()),
                Argument::Map(map) => {
                    let words = [
                        self.tensors[map.tensor.0].address(),
                        map.batches,
                        map.rows,
                        map.cols,
                        u64::from(map.box_rows),
                        u64::from(map.box_cols),
                    ];
                    for index in 0..16 {
                        bytes.extend(words.get(index).copied().unwrap_or(0).to_ne_bytes());
                    }
                }
            }
        }
        if arguments.iter().any(|argument| matches!(argument, Argument::Map(_))) {
            // The struct is as long as a multiple of what maps are aligned to.
            bytes.resize(bytes.len().next_multiple_of(64), 0);
        }
        bytes
    }

    /// Inputs must be as they were, and what lies around tensors too.
    fn check_tensors(&self) -> Result<(), String> {
        for (index, tensor) in self.tensors.iter().enumerate() {
            if let Some(offset) = tensor.written_outside() {
                return Err(format!(
                    "something was written at byte {offset} of {}, which has {}",
                    self.name(index),
                    tensor.len()
                ));
            }
        }
        for (id, bytes) in self.plan.inputs.iter().zip(&self.inputs) {
            if self.tensors[id.0].bytes() != bytes {
                return Err(format!("{} was overwritten", self.name(id.0)));
            }
        }
        Ok(())
    }

    fn name(&self, tensor: usize) -> String {
        let specs = InputSpec::of(self.problem);
        match self.plan.inputs.iter().position(|id| id.0 == tensor) {
            Some(input) => format!("the input `{}` (tensor {tensor})", specs[input].name),
            None if tensor == self.plan.output.0 => format!("the output (tensor {tensor})"),
            None => format!("tensor {tensor}, {:?}", self.plan.table.specs[tensor].role),
        }
    }

    /// Adds the tensor that an access was close to.
    fn explain(&self, failed: Failed) -> String {
        let Some(address) = failed.fault_address else { return failed.what };
        for (index, tensor) in self.tensors.iter().enumerate() {
            if let Some(offset) = tensor.offset_of(address) {
                return format!(
                    "{}: byte {offset} of {}, which has {}",
                    failed.what,
                    self.name(index),
                    tensor.len()
                );
            }
        }
        failed.what
    }
}

/// How many blocks run: all that the plan wants, and in other orders fewer, so that blocks do
/// several tiles, one after the other.
fn blocks(kernel: &KernelPlan, order: Order) -> u64 {
    let planned = kernel.shape.grid.iter().map(|&blocks| u64::from(blocks)).product::<u64>();
    let most = match (order, kernel.shape.cooperative) {
        (Order::Forward, false) => u64::MAX,
        (Order::Forward, true) => 5,
        (Order::Reverse, _) => 2,
        (Order::Shuffled(_), _) => 3,
    };
    let cluster = u64::from(kernel.shape.cluster);
    planned.min((most / cluster).max(1).saturating_mul(cluster))
}
