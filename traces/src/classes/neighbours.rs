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
    /// What comes before it.
    after: ClassSet,
    /// What may stand between that and the place, and between the place and what follows.
    between: ClassSet,
    /// What comes after it.
    before: ClassSet,
    class: Class,
}

const PLACES: [Place; 2] = [
    Place {
        after: ClassSet::of(&[Class::KvCache]),
        between: ClassSet::of(&[Class::Quant]),
        before: ClassSet::of(&[Class::Gemm]),
        class: Class::Attn,
    },
    Place {
        after: ClassSet::of(&[Class::MoeRouting]),
        // Not known GEMMs: then what is between them is their activation.
        between: ClassSet::of(&[Class::Quant, Class::Act]),
        before: ClassSet::of(&[Class::MoeFinalize]),
        class: Class::MoeGemm,
    },
];

/// The classes that follow for some kernels without a class, and for which of them.
pub(super) fn settled(
    trace: &Trace,
    classes: &Classes,
    unknown: &[usize],
) -> Vec<(Classification, Vec<usize>)> {
    let mut by_name: FxHashMap<NameId, (Vec<usize>, Option<Class>)> = FxHashMap::default();
    for stream in streams(trace, unknown) {
        for (place, &kernel) in stream.iter().enumerate() {
            if classes.get(kernel).main != Class::Unclassified {
                continue;
            }
            let class = class_at(trace, classes, &stream, place);
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
fn class_at(trace: &Trace, classes: &Classes, stream: &[usize], place: usize) -> Option<Class> {
    let name = trace.kernels.name[stream[place]];
    PLACES.iter().find_map(|known| {
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
