//! What a reader of a synthetic trace must find.

use super::{Model, Phase};
use crate::DeviceWork;
use crate::classify::Class;

/// What a reader must find.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// How many events of each kind there are.
    pub counts: Counts,
    /// What kind of model runs.
    pub model: Model,
    /// Layers of the model; 0 of one without.
    pub layers: u64,
    /// Every kernel, copy and fill, in the order of the file.
    pub kernels: Vec<KernelTruth>,
    /// The time in which at least one of them ran, in nanoseconds.
    pub busy_ns: u64,
    /// The time from the first beginning to the last end in which none ran, in nanoseconds.
    pub idle_ns: u64,
    /// The time in which only collectives ran, in nanoseconds.
    pub exposed_communication_ns: u64,
}

/// How many events of each kind there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Kernels, copies and fills.
    pub kernels: u64,
    /// Their durations together.
    pub kernel_ns: u128,
    /// Calls of the runtime.
    pub launches: u64,
    /// Operators that are not broken.
    pub ops: u64,
    /// Annotations.
    pub annotations: u64,
    /// Python frames.
    pub frames: u64,
    /// All events that are not broken.
    pub events: u64,
    /// Broken events.
    pub broken: u64,
    /// Events with an id that is too large.
    pub bad_ids: u64,
}

/// What is true of a kernel, a copy or a fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelTruth {
    /// What it does.
    pub class: Class,
    /// What it is for in its layer.
    pub role: &'static str,
    /// Kernel, copy or fill.
    pub work: DeviceWork,
    /// The number of its stream.
    pub stream: u64,
    /// When it began, in nanoseconds since the zero of the trace.
    pub start_ns: u64,
    /// How long it took, in nanoseconds.
    pub duration_ns: u64,
    /// The step that launches it, whether that is marked or not; none if it is launched between
    /// two steps.
    pub step: Option<u32>,
    /// What that step is for; `None` in training, between steps, and where no mark says so.
    pub phase: Option<Phase>,
    /// The layer of the model that computes it, from its first norm to before the next one's. Its
    /// backward pass has the number of the forward one.
    pub block: Option<u32>,
    /// The layer that it is in when layers are cut at their markers, counted through the step: from
    /// the cache write, else attention, else the scan of one block to before that of the next.
    /// None before the first marker, and from the end of the last block.
    pub layer: Option<u32>,
    /// Whether its correlation id leads to the call that launched it.
    pub is_linked: bool,
}

/// Layers that are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The classes of its kernels on the stream that computes, without copies and fills.
    pub classes: Vec<Class>,
    /// How many layers of all steps are so.
    pub count: u64,
}

impl Truth {
    /// The distinct layers, cut at their markers, in the order in which they first come.
    #[must_use]
    pub fn layer_patterns(&self) -> Vec<Pattern> {
        self.patterns(|kernel| kernel.layer)
    }

    /// The distinct blocks, in the order in which they first come.
    #[must_use]
    pub fn block_patterns(&self) -> Vec<Pattern> {
        self.patterns(|kernel| kernel.block)
    }

    fn patterns(&self, part: impl Fn(&KernelTruth) -> Option<u32>) -> Vec<Pattern> {
        // The first kernel computes: copies of inputs are of no layer, and before a collective is
        // what it adds up.
        let stream = self.kernels.iter().find(|kernel| part(kernel).is_some());
        let stream = stream.map(|kernel| kernel.stream);
        let is_pattern = |kernel: &&KernelTruth| {
            Some(kernel.stream) == stream && kernel.work == DeviceWork::Kernel
        };
        let mut patterns: Vec<Pattern> = Vec::new();
        let kernels: Vec<&KernelTruth> = self.kernels.iter().filter(is_pattern).collect();
        for run in kernels.chunk_by(|a, b| (a.step, part(a)) == (b.step, part(b))) {
            if run.first().is_none_or(|first| part(first).is_none()) {
                continue;
            }
            let classes: Vec<Class> = run.iter().map(|kernel| kernel.class).collect();
            match patterns.iter_mut().find(|pattern| pattern.classes == classes) {
                Some(pattern) => pattern.count += 1,
                None => patterns.push(Pattern { classes, count: 1 }),
            }
        }
        patterns
    }

    pub(super) fn new(
        counts: Counts,
        model: Model,
        layers: u64,
        kernels: Vec<KernelTruth>,
    ) -> Self {
        let (busy_ns, span_ns) = union(&kernels, |_| true);
        let (others_ns, _) = union(&kernels, |kernel| kernel.class != Class::Comm);
        Self {
            counts,
            model,
            layers,
            kernels,
            busy_ns,
            idle_ns: span_ns - busy_ns,
            exposed_communication_ns: busy_ns - others_ns,
        }
    }
}

/// The time in which at least one of some kernels ran, and that from the first beginning to the
/// last end.
fn union(kernels: &[KernelTruth], takes: impl Fn(&KernelTruth) -> bool) -> (u64, u64) {
    let of = |kernel: &KernelTruth| (kernel.start_ns, kernel.start_ns + kernel.duration_ns);
    let mut times: Vec<(u64, u64)> = kernels.iter().filter(|k| takes(k)).map(of).collect();
    times.sort_unstable();
    let first = times.first().map_or(0, |&(start, _)| start);
    let (mut busy, mut reached) = (0, first);
    for (start, end) in times {
        busy += end.saturating_sub(start.max(reached));
        reached = reached.max(end);
    }
    (busy, reached - first)
}
