//! The kernels of a device or of one of its streams in their order, with what finding layers needs
//! to know of each.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::classify::Class;
use crate::{Classes, NameId, Trace};

/// The kernels of a device or of one of its streams in their order.
pub(super) struct Sequence<'s> {
    /// Rows of the table of kernels.
    pub(super) rows: &'s [u32],
    /// The main class of each.
    pub(super) classes: Vec<Class>,
    hints: Vec<u8>,
    /// When something was sent to one other device, or received from there, in nanoseconds.
    sends: Vec<i64>,
}

/// It writes the key-value cache, whatever else it does.
const CACHE: u8 = 1;
/// It is a GEMM or a convolution.
const PRODUCT: u8 = 2;
/// It belongs to a backward pass.
const BACKWARD: u8 = 4;
/// It is seldom found between the first and the last layer: looking up tokens, choosing tokens,
/// fetching inputs, handing out results, a loss, new weights.
const OUTER: u8 = 8;
/// It is on another stream than most. There, the next step may be prepared in any layer.
const BESIDE: u8 = 16;

impl<'s> Sequence<'s> {
    pub(super) fn new(trace: &Trace, classes: &Classes, rows: &'s [u32]) -> Self {
        let mut of_name: FxHashMap<NameId, u8> = FxHashMap::default();
        let lane = |row: u32| trace.kernels.lane.get(row as usize).copied();
        let busiest = busiest(rows.iter().filter_map(|row| lane(*row)));
        let (mut main, mut hints) = (Vec::new(), Vec::new());
        for row in rows {
            let found = classes.get(*row as usize);
            let mut hint = 0;
            if found.parts().contains(Class::KvCache) {
                hint |= CACHE;
            }
            if matches!(found.main, Class::Gemm | Class::MoeGemm | Class::Conv) {
                hint |= PRODUCT;
            }
            if matches!(found.main, Class::EmbedIndex | Class::ScanSort) {
                hint |= OUTER;
            }
            if let Some(name) = trace.kernels.name.get(*row as usize) {
                hint |= *of_name.entry(*name).or_insert_with(|| by_name(trace.names.text(*name)));
            }
            hint |= if lane(*row) == busiest { 0 } else { BESIDE };
            main.push(found.main);
            hints.push(hint);
        }
        let mut of_name: FxHashMap<NameId, bool> = FxHashMap::default();
        let is_send = |row: &&u32| {
            let kernel = **row as usize;
            trace.kernels.name.get(kernel).is_some_and(|name| {
                classes.get(kernel).main == Class::Comm
                    && *of_name.entry(*name).or_insert_with(|| is_send(trace.names.text(*name)))
            })
        };
        let starts = rows.iter().filter(is_send);
        let sends = starts.filter_map(|row| trace.kernels.start_ns.get(*row as usize).copied());
        let sends = sends.collect();
        Self { rows, classes: main, hints, sends }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn kernel(&self, at: usize) -> usize {
        self.rows.get(at).map_or(usize::MAX, |row| *row as usize)
    }

    pub(super) fn class(&self, at: usize) -> Class {
        self.classes.get(at).copied().unwrap_or(Class::Unclassified)
    }

    /// The classes from a place to another one.
    pub(super) fn between(&self, from: usize, to: usize) -> &[Class] {
        self.classes.get(from..to.max(from)).unwrap_or_default()
    }

    pub(super) fn writes_cache(&self, at: usize) -> bool {
        self.has(at, CACHE)
    }

    pub(super) fn is_gemm(&self, at: usize) -> bool {
        self.has(at, PRODUCT)
    }

    pub(super) fn is_backward(&self, at: usize) -> bool {
        self.has(at, BACKWARD)
    }

    pub(super) fn is_outer(&self, at: usize) -> bool {
        self.has(at, OUTER) && !self.is_beside(at)
    }

    /// The sequence of a stream, with what is sent on all streams of its device.
    pub(super) fn with_sends_of(mut self, device: &Self) -> Self {
        self.sends.clone_from(&device.sends);
        self
    }

    /// When something was sent, in order.
    pub(super) fn sends(&self) -> &[i64] {
        &self.sends
    }

    pub(super) fn is_beside(&self, at: usize) -> bool {
        self.has(at, BESIDE)
    }

    /// Whether any of its kernels is a GEMM or a convolution.
    pub(super) fn computes(&self) -> bool {
        self.hints.iter().any(|hints| hints & PRODUCT != 0)
    }

    /// The durations of some kernels together.
    pub(super) fn total_ns(&self, trace: &Trace, places: Range<usize>) -> u64 {
        let duration = |at: usize| trace.kernels.duration_ns.get(self.kernel(at)).copied();
        places.filter_map(duration).fold(0, u64::saturating_add)
    }

    fn has(&self, at: usize, hint: u8) -> bool {
        self.hints.get(at).is_some_and(|hints| hints & hint != 0)
    }
}

/// The lane with the most kernels, the first of equals. Only lanes that are there are counted: each
/// of many streams may be looked at by itself.
fn busiest(lanes: impl Iterator<Item = u32>) -> Option<u32> {
    let mut kernels: FxHashMap<u32, u64> = FxHashMap::default();
    for lane in lanes {
        *kernels.entry(lane).or_default() += 1;
    }
    let most = kernels.into_iter().max_by_key(|(lane, kernels)| (*kernels, Reverse(*lane)));
    most.map(|(lane, _)| lane)
}

/// What the names of losses and of optimizers have.
const TRAINING: [&str; 8] = [
    "nll_loss",
    "mse_",
    "cross_entropy",
    "fusedoptimizer",
    "adam",
    "fusedsgd",
    "_lamb",
    "optimizer",
];

fn is_send(name: &str) -> bool {
    let lower = name.to_lowercase();
    ["sendrecv", "kernel_send", "kernel_recv"].iter().any(|part| lower.contains(part))
}

fn by_name(name: &str) -> u8 {
    let lower = name.to_lowercase();
    let backward = lower.contains("backward") || lower.contains("bwd");
    // `Memcpy HtoD (Pageable -> Device)`.
    let between_host_and_device = name.contains("HtoD") || name.contains("DtoH");
    let ends_training = TRAINING.iter().any(|part| lower.contains(part));
    u8::from(backward) * BACKWARD + u8::from(between_host_and_device || ends_training) * OUTER
}
