//! What is generated.

use super::{Annotation, Edit, Oddity, Pace};
use crate::Vendor;

/// What is generated.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Whose names kernels and calls have.
    pub vendor: Vendor,
    /// What kind of model runs.
    pub model: Model,
    /// Layers of the model; of one without layers, how long its steps are.
    pub layers: u64,
    /// In what the layers differ.
    pub variation: Variation,
    /// Steps that it runs.
    pub steps: u64,
    /// What the steps are for, over and over in this order. Without any, all are decode steps.
    pub phases: Vec<Phase>,
    /// How its kernels are launched.
    pub launching: Launching,
    /// When its kernels run, seen from the host.
    pub timing: Timing,
    /// The marks around each step, the outermost first.
    pub annotations: Vec<Annotation>,
    /// Whether the marks are repeated on the time line of the device.
    pub device_annotations: bool,
    /// Where the devices add up what each of them has.
    pub communication: Communication,
    /// Whether steps copy their inputs and outputs, and clear buffers. One copy of each step is
    /// launched after its mark has ended, and belongs to no step.
    pub copies: bool,
    /// Whether the operators that launch kernels are recorded. Those in graphs never are.
    pub operators: bool,
    /// How deep the Python stacks are: 1 gives the module of each layer, `n` above 1 gives `n - 1`
    /// calls around each launch.
    pub frames: u64,
    /// The number of this process.
    pub rank: u64,
    /// How many processes there are.
    pub world_size: u64,
    /// What is unusual.
    pub oddities: Vec<Oddity>,
    /// What the program does in another way than most.
    pub edits: Vec<Edit>,
    /// How long kernels take by what they do, so that two traces can be compared. Without it,
    /// durations are random.
    pub pace: Option<Pace>,
    /// Where the durations come from.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            vendor: Vendor::Nvidia,
            model: Model::Dense,
            layers: 2,
            variation: Variation::None,
            steps: 2,
            phases: vec![Phase::Prefill, Phase::Decode],
            launching: Launching::Eager,
            timing: Timing::Synchronous,
            annotations: vec![Annotation::ProfilerStep],
            device_annotations: true,
            communication: Communication::None,
            copies: false,
            operators: true,
            frames: 1,
            rank: 0,
            world_size: 1,
            oddities: Vec::new(),
            edits: Vec::new(),
            pace: None,
            seed: 1,
        }
    }
}

/// What kind of model runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Model {
    /// A transformer.
    Dense,
    /// A transformer whose feed-forward part is a mixture of experts.
    MixtureOfExperts,
    /// State-space layers only.
    StateSpace,
    /// Every second layer has attention, the others are state-space layers.
    Hybrid,
    /// A transformer that is trained: each step goes forward and then backward through the layers.
    Training,
    /// No layers: kernels of a recommendation model in an order that never repeats.
    Bag,
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Dense,
        Self::MixtureOfExperts,
        Self::StateSpace,
        Self::Hybrid,
        Self::Training,
        Self::Bag,
    ];
}

/// In what the layers of a model differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variation {
    /// In nothing.
    None,
    /// Every fourth layer attends to a window, with another kernel of the same class.
    SlidingWindow,
    /// The first layer of a mixture of experts is dense.
    FirstDense,
    /// The layer in the middle has an additional elementwise kernel.
    OneExtra,
}

/// What a step of serving is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// New sequences only.
    Prefill,
    /// The next token of running sequences only.
    Decode,
    /// Both.
    Mixed,
}

/// How kernels are launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Launching {
    /// Each by a call of its own.
    Eager,
    /// Those of a step by one replay of a graph, except for its sampling.
    StepGraph,
    /// Those of a layer by one replay.
    LayerGraphs,
    /// Those between two attentions by one replay; attention itself eagerly.
    Piecewise,
}

impl Launching {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Eager, Self::StepGraph, Self::LayerGraphs, Self::Piecewise];
}

/// When kernels run, seen from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Timing {
    /// The host waits for the devices before the mark of a step ends.
    Synchronous,
    /// The host goes on and waits for a step in the next one: kernels begin soon after their
    /// launch if the devices keep up, and run beyond the mark of their step if not.
    Overlapping,
    /// Every kernel begins after the mark of its step has ended, most of them inside the next.
    Behind,
}

impl Timing {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Synchronous, Self::Overlapping, Self::Behind];
}

/// Where the devices add up what each of them has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Communication {
    /// Nowhere.
    None,
    /// Between the kernels that compute, on their stream.
    SameStream,
    /// On a stream of its own, partly while others compute. AMD's library gives some of its
    /// kernels the correlation id 0.
    OwnStream,
}

impl Plan {
    pub(super) fn has(&self, oddity: Oddity) -> bool {
        self.oddities.contains(&oddity)
    }

    pub(super) fn is_amd(&self) -> bool {
        self.vendor == Vendor::Amd
    }

    pub(super) fn phase(&self, step: u64) -> Phase {
        let index = step.checked_rem(self.phases.len() as u64).unwrap_or(0);
        self.phases.get(index as usize).copied().unwrap_or(Phase::Decode)
    }

    pub(super) fn launching(&self) -> Launching {
        if self.has(Oddity::Graphs) { Launching::LayerGraphs } else { self.launching }
    }
}
