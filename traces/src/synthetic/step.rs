//! What one step launches, where its layers begin, and which graph each kernel is in.

use super::kernels::{self as k, Kernel};
use super::random::Random;
use super::{Communication, Launching, Model, Phase, Plan, model};
use crate::DeviceWork;
use crate::classify::Class;

/// The streams of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Compute,
    Communication,
    Copy,
}

impl Stream {
    /// The number in the trace.
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Compute => 7,
            Self::Communication => 20,
            Self::Copy => 24,
        }
    }
}

/// A kernel in its step.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) kernel: &'static Kernel,
    pub(super) stream: Stream,
    /// The layer of the model that computes it.
    pub(super) block: Option<u32>,
    /// The layer that it is in, cut where markers are, counted through the step.
    pub(super) layer: Option<u32>,
    /// The replay that launches it; none if a call of its own does.
    pub(super) graph: Option<u32>,
    /// Whether it is launched after the mark of the step has ended.
    pub(super) is_after: bool,
    /// How long it takes, in nanoseconds; random if there is none.
    pub(super) duration_ns: Option<u64>,
}

/// Everything that a step launches, in this order.
pub(super) fn items(plan: &Plan, phase: Phase, random: &mut Random) -> Vec<Item> {
    let mut step = Assembly { plan, items: Vec::new(), graph: 0, in_graph: false };
    if plan.copies {
        step.push(&k::INPUTS, None, None, false);
        step.push(&k::POSITIONS, None, None, false);
    }
    for kernel in model::head(plan) {
        step.push(kernel, None, None, plan.launching() != Launching::LayerGraphs);
    }
    let mut layers = 0;
    for (block, kernels) in model::body(plan, phase, random) {
        step.next_block();
        let marker = block.and_then(|_| marker(&kernels));
        for (index, kernel) in kernels.into_iter().enumerate() {
            layers += u32::from(marker == Some(index));
            let may_replay = block.is_some() || plan.launching() != Launching::LayerGraphs;
            let block = block.map(|block| block as u32);
            step.push(kernel, block, u32::checked_sub(layers, 1), may_replay);
        }
    }
    for kernel in model::tail(plan) {
        step.push(kernel, None, None, plan.launching() != Launching::LayerGraphs);
    }
    for kernel in model::sampling(plan) {
        step.push(kernel, None, None, false);
    }
    if plan.copies {
        step.push(&k::OUTPUTS, None, None, false);
        if let Some(last) = step.items.last_mut() {
            last.is_after = true;
        }
    }
    if let Some(pace) = plan.pace {
        for item in &mut step.items {
            item.duration_ns = Some(pace.duration_ns(plan, item.kernel, phase, random));
        }
    }
    step.items
}

/// Where the layer of a block begins: at the cache write, else at attention, else at the scan. With
/// attention of separate kernels, at the softmax.
fn marker(kernels: &[&Kernel]) -> Option<usize> {
    let first = |class| kernels.iter().position(|kernel| kernel.class == class);
    let is_whole = |kernel: &&Kernel| matches!(kernel.class, Class::Attn | Class::Ssm);
    if !kernels.iter().any(is_whole) {
        return first(Class::Softmax);
    }
    [Class::KvCache, Class::Attn, Class::Ssm].into_iter().find_map(first)
}

struct Assembly<'p> {
    plan: &'p Plan,
    items: Vec<Item>,
    /// The replay that the next kernel would be in.
    graph: u32,
    /// Whether the last kernel was in one.
    in_graph: bool,
}

impl Assembly<'_> {
    fn next_block(&mut self) {
        if self.plan.launching() == Launching::LayerGraphs {
            self.end_graph();
        }
    }

    fn end_graph(&mut self) {
        self.graph += u32::from(self.in_graph);
        self.in_graph = false;
    }

    fn push(
        &mut self,
        kernel: &'static Kernel,
        block: Option<u32>,
        layer: Option<u32>,
        may_replay: bool,
    ) {
        let splits =
            matches!(kernel.class, Class::KvCache | Class::Attn | Class::Conv | Class::Ssm);
        let is_replayed = may_replay
            && match self.plan.launching() {
                Launching::Eager => false,
                Launching::StepGraph | Launching::LayerGraphs => true,
                Launching::Piecewise => !splits,
            };
        if !is_replayed {
            self.end_graph();
        }
        self.in_graph = is_replayed;
        let own = self.plan.communication == Communication::OwnStream;
        let stream = match kernel.class {
            Class::Comm if own => Stream::Communication,
            _ if std::ptr::eq(kernel, &k::INPUTS) => Stream::Copy,
            _ => Stream::Compute,
        };
        let graph = is_replayed.then_some(self.graph);
        self.items.push(Item {
            kernel,
            stream,
            block,
            layer,
            graph,
            is_after: false,
            duration_ns: None,
        });
    }
}

impl Item {
    /// Whether it communicates by a call of its own, on a stream of its own.
    pub(super) fn is_collective(&self) -> bool {
        self.stream == Stream::Communication && self.graph.is_none()
    }

    /// Whether what computes must wait for it: for a sum that the next kernel needs, not for those
    /// of gradients.
    pub(super) fn holds_up(&self, plan: &Plan) -> bool {
        self.stream == Stream::Communication && plan.model != Model::Training
    }

    /// The class of its events.
    pub(super) fn category(&self) -> &'static str {
        match self.kernel.work {
            DeviceWork::Kernel => "kernel",
            DeviceWork::Memcpy => "gpu_memcpy",
            DeviceWork::Memset => "gpu_memset",
        }
    }
}
