//! Where layers begin: the kernels that every layer has exactly once.
//!
//! Kernels of one kind with no GEMM between them are one marker: attention that is
//! split into parts and put together again is still one attention.

use std::fmt;

use super::sequence::Sequence;
use crate::classify::Class;

/// What the layers of a trace were found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Marker {
    /// Writing the key-value cache, before attention reads it.
    CacheWrite,
    /// Attention.
    Attention,
    /// The scan of a state space, and attention in the layers that have it.
    StateSpace,
    /// The softmax of an attention of separate kernels.
    Softmax,
    /// The call of a module, as `nn.Module: BertLayer_3`.
    Module,
    /// The first kernel of a sequence that repeats.
    Repetition,
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::CacheWrite => "a write of the key-value cache before attention",
            Self::Attention => "attention",
            Self::StateSpace => "a state-space scan",
            Self::Softmax => "a softmax between two GEMMs",
            Self::Module => "a call of a recorded module",
            Self::Repetition => "a sequence that repeats",
        })
    }
}

/// Smallest share of the layers with attention that must write the cache: what comes before the
/// first one may be cut off, and some layers share the cache of others.
const CACHED_SHARE: f64 = 0.8;

/// Layers of a model that look alike: fewer do not show how a layer is built.
const LEAST_LAYERS: usize = 2;

/// Attentions of a layer, over as many axes or sequences. More are of layers whose feed-forward part
/// is not seen.
const MOST_ATTENTIONS: usize = 4;

/// Where the markers of a stream are, and what they are.
pub(super) fn find(sequence: &Sequence<'_>) -> Option<(Marker, Vec<usize>)> {
    let attention = groups(sequence, |at| sequence.class(at) == Class::Attn);
    let scans = groups(sequence, |at| sequence.class(at) == Class::Ssm);
    let writes = cache_writes(sequence, &attention);
    let is_cached = is_in_every_layer(&writes, &attention);
    let attention_markers = if is_cached { writes } else { attention };
    if !scans.is_empty() {
        let mut both = [scans, attention_markers].concat();
        both.sort_unstable();
        return Some((Marker::StateSpace, both));
    }
    if !attention_markers.is_empty() {
        let marker = if is_cached { Marker::CacheWrite } else { Marker::Attention };
        return Some((marker, with_both_halves(sequence, attention_markers)));
    }
    let softmax = unfused_attention(sequence);
    (!softmax.is_empty()).then(|| (Marker::Softmax, with_both_halves(sequence, softmax)))
}

/// Whether every layer writes the cache: there are about as many writes as attentions, or the same
/// number of attentions behind each write. Some models have layers that share the cache of others.
fn is_in_every_layer(writes: &[usize], attention: &[usize]) -> bool {
    if writes.is_empty() {
        return false;
    }
    if writes.len() as f64 >= CACHED_SHARE * attention.len() as f64 {
        return true;
    }
    let behind = |pair: &[usize]| {
        let count = |limit: usize| attention.partition_point(|at| *at < limit);
        count(pair[1]) - count(pair[0])
    };
    let mut counts = writes.windows(2).map(behind);
    let first = counts.next();
    first.is_some_and(|first| first > 1) && counts.all(|count| Some(count) == first)
}

/// The first of each group of kernels of a kind with no GEMM between them.
fn groups(sequence: &Sequence<'_>, is_one: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut firsts = Vec::new();
    let mut is_open = false;
    for at in 0..sequence.len() {
        if is_one(at) {
            if !is_open {
                firsts.push(at);
            }
            is_open = true;
        } else if sequence.is_gemm(at) {
            is_open = false;
        }
    }
    firsts
}

/// Writes of the cache that attention follows before the next write. Others prepare something for
/// the whole pass.
fn cache_writes(sequence: &Sequence<'_>, attention: &[usize]) -> Vec<usize> {
    let mut writes = groups(sequence, |at| sequence.writes_cache(at));
    let nexts: Vec<usize> = writes.iter().copied().skip(1).chain([usize::MAX]).collect();
    let mut next = nexts.into_iter();
    writes.retain(|write| {
        let next = next.next().unwrap_or(usize::MAX);
        let after = attention.partition_point(|at| at < write);
        attention.get(after).is_some_and(|at| *at < next)
    });
    writes
}

/// Softmax kernels that lie between two GEMMs with nothing but arithmetic and copies around
/// them. The softmax of a router is followed by a sort, that of a loss by a reduction.
fn unfused_attention(sequence: &Sequence<'_>) -> Vec<usize> {
    let is_plain = |at: usize| {
        matches!(
            sequence.class(at),
            Class::Elementwise | Class::Copy | Class::Fill | Class::Softmax
        )
    };
    let leads_to_gemm = |mut places: Box<dyn Iterator<Item = usize> + '_>| {
        places
            .find(|at| !is_plain(*at))
            .is_some_and(|at| sequence.is_gemm(at) || sequence.class(at) == Class::GemmEpilogue)
    };
    let between_gemms = |at: &usize| {
        leads_to_gemm(Box::new((0..*at).rev())) && leads_to_gemm(Box::new(*at + 1..sequence.len()))
    };
    let softmax = groups(sequence, |at| sequence.class(at) == Class::Softmax);
    softmax.into_iter().filter(between_gemms).collect()
}

/// Leaves out the markers of a layer after its first one: with attention over two axes, or over
/// two sequences, only the last of a layer is followed by its feed-forward part. That is seen if
/// each such part comes after the same number of markers. Models may follow each other, as an
/// encoder and a decoder: then it is the same number within each. A layer is of one direction.
fn with_both_halves(sequence: &Sequence<'_>, markers: Vec<usize>) -> Vec<usize> {
    let ends = markers.iter().copied().skip(1).chain([sequence.len()]);
    let has_feed_forward: Vec<bool> = markers
        .iter()
        .zip(ends)
        .map(|(&from, to)| {
            sequence
                .between(from, to)
                .iter()
                .any(|class| matches!(class, Class::Act | Class::MoeGemm | Class::MoeRouting))
        })
        .collect();
    // How many markers come before each such part, and how often that is so in a row.
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let (mut run, mut backward) = (0, 0);
    for (marker, has) in markers.iter().zip(&has_feed_forward) {
        run += 1;
        backward += usize::from(sequence.is_backward(*marker));
        if *has {
            if backward > 0 && backward < run {
                return markers;
            }
            match runs.last_mut() {
                Some((markers, times)) if *markers == run => *times += 1,
                _ => runs.push((run, 1)),
            }
            (run, backward) = (0, 0);
        }
    }
    // The recording may begin in a layer, and end in one.
    let inner = runs.get(1..runs.len().saturating_sub(1)).unwrap_or_default();
    let is_of_model =
        |(markers, times): &(usize, usize)| *markers <= MOST_ATTENTIONS && *times >= LEAST_LAYERS;
    let has_several = |run: &(usize, usize)| run.0 > 1 && is_of_model(run);
    if !inner.iter().all(is_of_model) || !runs.iter().any(has_several) {
        return markers;
    }
    let mut kept = Vec::new();
    let mut begins = true;
    for (marker, has) in markers.into_iter().zip(has_feed_forward) {
        if begins {
            kept.push(marker);
        }
        begins = has;
    }
    kept
}
