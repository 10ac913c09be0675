//! What an unknown kernel must be because of what always stands around it.
//!
//! What a layer does between its kernels of known class is not free: what reads the cache that was
//! just written, before the GEMM that follows, is attention; what works on tokens that were
//! sorted by expert, before they are brought together, is the experts' GEMM. This is believed
//! only where it repeats: every kernel of the name must stand so, and there must be several.

use rustc_hash::FxHashMap;

use super::Classes;
use crate::classify::{Class, ClassSet, Classification};
use crate::{DeviceWork, NameId, Trace};

/// A name must stand at the same place so often.
const LEAST_REPETITIONS: usize = 3;

/// How many kernels on each side count as the neighbours of a kernel.
const REACH: usize = 8;

/// A place in a layer that only one class can have.
struct Place {
    /// What is known of the kernel there: [`Classification::why`].
    known_as: &'static str,
    /// No kernel of the trace is of it.
    absent: ClassSet,
    /// What comes before it.
    after: ClassSet,
    /// What may stand between that and the place, and between the place and what follows.
    between: ClassSet,
    /// What comes after it.
    before: ClassSet,
    class: Class,
}

const PLACES: [Place; 3] = [
    Place {
        known_as: UNKNOWN,
        absent: ClassSet::EMPTY,
        after: ClassSet::of(&[Class::KvCache]),
        between: ClassSet::of(&[Class::Quant]),
        before: ClassSet::of(&[Class::Gemm]),
        class: Class::Attn,
    },
    Place {
        known_as: UNKNOWN,
        absent: ClassSet::EMPTY,
        after: ClassSet::of(&[Class::MoeRouting]),
        // Not known GEMMs: then what is between them is their activation.
        between: ClassSet::of(&[Class::Quant, Class::Act]),
        before: ClassSet::of(&[Class::MoeFinalize]),
        class: Class::MoeGemm,
    },
    // What joins the rotated halves of queries and keys computes them, though only the joining is
    // in its name. Latent attention joins other parts, and rotates them before.
    Place {
        known_as: "inductor.joined",
        absent: ClassSet::of(&[Class::Rope]),
        after: ClassSet::of(&[Class::Gemm]),
        between: ClassSet::of(&[Class::Norm, Class::Quant, Class::Copy]),
        before: ClassSet::of(&[Class::KvCache]),
        class: Class::Rope,
    },
];

/// What no rule knows.
const UNKNOWN: &str = Classification::UNCLASSIFIED.why;

/// Whether a place may say more of a kernel than what is known.
pub(super) fn may_settle(known: Classification) -> bool {
    PLACES.iter().any(|place| place.known_as == known.why)
}

/// The classes that follow for some kernels without a class, and for which of them.
pub(super) fn settled(
    trace: &Trace,
    classes: &Classes,
    unknown: &[usize],
) -> Vec<(Classification, Vec<usize>)> {
    let mut present = ClassSet::EMPTY;
    if !unknown.is_empty() {
        present = classes.known().iter().fold(present, |present, one| present.union(one.parts()));
    }
    let mut by_name: FxHashMap<NameId, (Vec<usize>, Option<Class>)> = FxHashMap::default();
    for stream in streams(trace, unknown) {
        for (place, &kernel) in stream.iter().enumerate() {
            if !may_settle(classes.get(kernel)) {
                continue;
            }
            let class = class_at(trace, classes, present, &stream, place);
            let (kernels, agreed) =
                by_name.entry(trace.kernels.name[kernel]).or_insert((Vec::new(), class));
            kernels.push(kernel);
            if *agreed != class {
                *agreed = None;
            }
        }
    }
    let settled = by_name.into_values().filter(|(kernels, _)| kernels.len() >= LEAST_REPETITIONS);
    settled
        .filter_map(|(kernels, class)| {
            let found = Classification { main: class?, ..Classification::UNCLASSIFIED };
            Some((Classification { why: "neighbours", ..found }, kernels))
        })
        .collect()
}

/// The kernels of each stream that has unknown ones, in the order in which they began.
fn streams(trace: &Trace, unknown: &[usize]) -> Vec<Vec<usize>> {
    let kernels = &trace.kernels;
    let mut streams: FxHashMap<u32, Vec<usize>> =
        unknown.iter().map(|&kernel| (kernels.lane[kernel], Vec::new())).collect();
    if streams.is_empty() {
        return Vec::new();
    }
    for (kernel, lane) in kernels.lane.iter().enumerate() {
        if let Some(stream) = streams.get_mut(lane)
            && kernels.work[kernel] == DeviceWork::Kernel
        {
            stream.push(kernel);
        }
    }
    let mut streams: Vec<Vec<usize>> = streams.into_values().collect();
    for stream in &mut streams {
        stream.sort_by_key(|&kernel| kernels.start_ns[kernel]);
    }
    streams
}

/// The only class that the kernel at a place of a stream can have, if there is one.
fn class_at(
    trace: &Trace,
    classes: &Classes,
    present: ClassSet,
    stream: &[usize],
    place: usize,
) -> Option<Class> {
    let name = trace.kernels.name[stream[place]];
    let known_as = classes.get(stream[place]).why;
    let is_possible =
        |place: &&Place| place.known_as == known_as && !place.absent.intersects(present);
    PLACES.iter().filter(is_possible).find_map(|known| {
        // Attention may be several kernels of one name, and so may experts.
        let passes = |kernel: &usize| {
            trace.kernels.name[*kernel] == name || known.between.contains(classes.get(*kernel).main)
        };
        let stops = |kernel: &&usize| !passes(kernel);
        let before = classes.get(*stream[..place].iter().rev().take(REACH).find(stops)?);
        let after = classes.get(*stream[place + 1..].iter().take(REACH).find(stops)?);
        // What rotates and writes the cache in one is a rotation by its main class.
        let follows = before.parts().iter().any(|class| known.after.contains(class));
        (follows && known.before.contains(after.main)).then_some(known.class)
    })
}
