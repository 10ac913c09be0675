//! Prefill, decode or both, by the attention of each pass through the layers.
//!
//! `sizes` reads what attention was called with: one query or a whole prompt is a phase only with a
//! cache of keys and values, which has pages, is written, or grows from pass to pass. Where sizes
//! do not tell sequences apart, `outputs` may: a server predicts a token of each, and its `tables`
//! have a row for each. Names say whether a kernel is made for one query token of each sequence;
//! kernels for prompts also verify drafts and decode large batches, and their names say nothing.
//! Kernels between two passes are of the phase that both have, and otherwise of that whose head or
//! tail they are, as far as looking up tokens shows it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::layers::Layers;
use super::super::marks::Phase;
use super::super::order::StreamOrder;
use super::outputs::{Outputs, only};
use super::sizes::{MOST_DRAFTED, Seen, Statement};
use super::training::moment;
use super::{Found, Known, PhaseEvidence, beside, tables};
use crate::classify::{AttnPhase, Class};
use crate::enclosing::Intervals;
use crate::launched::NONE;
use crate::shapes::base;
use crate::{Classes, NameId, Trace};

/// Causal encoders of text read no more tokens of a sequence.
const LONGEST_ENCODED: u64 = 256;

/// The phases of passes.
pub(super) fn phases(
    trace: &Trace,
    classes: &Classes,
    launches: &[u32],
    operators: &[u32],
    layers: &Layers,
    order: &StreamOrder,
) -> Found {
    let mut statements = Statements { trace, operators, known: FxHashMap::default() };
    let mut looks: Vec<Look> = (0..layers.passes.len())
        .map(|pass| Look::of(trace, classes, layers, pass, &mut statements))
        .collect();
    let outputs = Outputs::of(trace, operators, layers, order);
    for (look, with_output) in looks.iter_mut().zip(&outputs.of_pass) {
        look.with_output = *with_output;
    }
    let sequences = tables::sequences(trace, launches, operators, layers);
    for (look, sequences) in looks.iter_mut().zip(sequences) {
        look.sequences = sequences;
    }
    let cache = Cache::of(&looks, outputs);
    let known: Vec<Known> = looks.iter().map(|look| look.phase(&cache)).collect();
    let mut by_kernel = vec![None; trace.kernels.len()];
    for layer in &layers.list {
        let phase = known.get(layer.pass as usize).copied().flatten();
        for kernel in layers.kernels(layer) {
            if let Some(place) = by_kernel.get_mut(*kernel as usize) {
                *place = phase;
            }
        }
    }
    if known.iter().any(Option::is_some) {
        let around = Around { trace, classes, launches, operators, layers, known: &known };
        around.fill(order, &mut by_kernel);
        beside::fill(trace, launches, layers, order, &known, &mut by_kernel);
    }
    Found { by_kernel, runs: known.into_iter().flatten().collect() }
}

/// What the attention of a pass shows.
#[derive(Debug, Default)]
struct Look {
    /// Whether all of its kernels are made for one query token of each sequence.
    has_decode_kernels: bool,
    /// Whether some are made for prompts.
    has_prompt_kernels: bool,
    sizes: Option<Seen>,
    /// The tokens of all sequences, where they are not told apart.
    queries: Option<u64>,
    /// The tokens that a next one is predicted for.
    with_output: Option<u64>,
    /// The sequences in the table of pages.
    sequences: Option<u64>,
    /// The most tokens that a query may attend to; none with pages of a cache.
    keys: Option<u64>,
    writes_cache: bool,
    /// The most rows that a GEMM with weights has.
    rows: u64,
}

impl Look {
    fn of(
        trace: &Trace,
        classes: &Classes,
        layers: &Layers,
        pass: usize,
        statements: &mut Statements<'_>,
    ) -> Self {
        let mut look = Self::default();
        let Some(pass) = layers.passes.get(pass) else { return look };
        let mut sizes: Vec<Option<Seen>> = Vec::new();
        let mut queries: Vec<Option<u64>> = Vec::new();
        let mut of_layers: Vec<[bool; 3]> = Vec::new();
        for layer in layers.list.get(pass.layers.clone()).unwrap_or_default() {
            let mut names = [false; 3];
            for kernel in layers.kernels(layer).iter().map(|row| *row as usize) {
                let class = classes.get(kernel);
                let statement = statements.of(kernel);
                look.writes_cache |= class.parts().contains(Class::KvCache);
                match class.main {
                    Class::Attn => {
                        names[class.phase as usize] = true;
                        sizes.push(statement.attention);
                        queries.push(statement.queries);
                        look.keys = look.keys.max(statement.keys);
                    }
                    Class::Ssm => names[phase_of_scan(trace, kernel) as usize] = true,
                    _ => look.rows = look.rows.max(statement.rows),
                }
            }
            of_layers.push(names);
        }
        // Some layers of a model may have no attention.
        of_layers.retain(|names| names.iter().any(|has| *has));
        let mut decodes = [false; 3];
        decodes[AttnPhase::Decode as usize] = true;
        look.has_decode_kernels =
            !of_layers.is_empty() && of_layers.iter().all(|names| *names == decodes);
        look.has_prompt_kernels = of_layers.iter().any(|names| names[AttnPhase::Prefill as usize]);
        look.sizes = only(sizes);
        look.queries = only(queries);
        look
    }

    fn phase(&self, cache: &Cache) -> Known {
        match self.sizes {
            Some(Seen::Prompts)
                if self.has_cache() || cache.is_filled_by(self) || cache.is_generator(self) =>
            {
                Some((Phase::Prefill, PhaseEvidence::Sizes))
            }
            Some(Seen::OneToken { .. })
                if self.is_of_one_token() && (self.has_cache() || cache.grows_by(self)) =>
            {
                Some((Phase::Decode, PhaseEvidence::Sizes))
            }
            Some(Seen::Mixed) => Some((Phase::Mixed, PhaseEvidence::Sizes)),
            // Sizes that say something else than names leave it open.
            Some(_) => None,
            None if self.has_decode_kernels => Some((Phase::Decode, PhaseEvidence::Names)),
            None => self.by_outputs().map(|phase| (phase, PhaseEvidence::Outputs)),
        }
    }

    /// A server predicts one token of each sequence: for all tokens of a pass if all are decoded,
    /// and for one of many if they are a prompt. Some predict all tokens of prompts too, or none of
    /// a part of a prompt among tokens that are decoded, so there must be as many sequences.
    fn by_outputs(&self) -> Option<Phase> {
        let (queries, with_output) = (self.queries?, self.with_output?);
        if !self.writes_cache || self.sequences != Some(with_output) {
            return None;
        }
        match with_output {
            1 if queries > MOST_DRAFTED => Some(Phase::Prefill),
            _ if with_output == queries && !self.has_prompt_kernels => Some(Phase::Decode),
            _ => None,
        }
    }

    /// One query attends to all in the last blocks of some encoders: there, other tokens go through
    /// the pass as well.
    fn is_of_one_token(&self) -> bool {
        matches!(self.sizes, Some(Seen::OneToken { sequences }) if self.rows <= sequences)
    }

    /// Whether the pass itself shows a cache of keys and values.
    fn has_cache(&self) -> bool {
        self.writes_cache || self.keys.is_none()
    }
}

/// The lengths of sequences that passes show. A cache is one token longer after each pass that
/// decodes; an encoder, or a query over a fixed list, has the same length every time.
#[derive(Debug, Default)]
struct Cache {
    prompts: FxHashSet<u64>,
    decoded: FxHashSet<u64>,
    outputs: Outputs,
}

impl Cache {
    fn of(looks: &[Look], outputs: Outputs) -> Self {
        let mut cache = Self { outputs, ..Self::default() };
        for look in looks {
            let Some(keys) = look.keys else { continue };
            if look.sizes == Some(Seen::Prompts) {
                cache.prompts.insert(keys);
            } else if look.is_of_one_token() {
                cache.decoded.insert(keys);
            }
        }
        cache
    }

    /// Whether a pass of one token is one of a sequence that becomes longer.
    fn grows_by(&self, look: &Look) -> bool {
        let has = |keys: Option<u64>| keys.is_some_and(|keys| self.decoded.contains(&keys));
        let before = look.keys.and_then(|keys| keys.checked_sub(1));
        let after = look.keys.and_then(|keys| keys.checked_add(1));
        has(before) || has(after) || before.is_some_and(|keys| self.prompts.contains(&keys))
    }

    /// Whether a causal pass without a cache is one of a model that generates.
    fn is_generator(&self, look: &Look) -> bool {
        let is_long = look.keys.is_some_and(|keys| keys > LONGEST_ENCODED);
        let Outputs { predicts_tokens, computes_loss, .. } = self.outputs;
        !computes_loss && !self.outputs.are_scored(look.rows) && (predicts_tokens || is_long)
    }

    /// Whether the first token behind a prompt is decoded in another pass.
    fn is_filled_by(&self, look: &Look) -> bool {
        let next = look.keys.and_then(|keys| keys.checked_add(1));
        next.is_some_and(|keys| self.decoded.contains(&keys))
    }
}

/// What a scan is for: an update is of one token, others are of prompts and in training as well.
fn phase_of_scan(trace: &Trace, kernel: usize) -> AttnPhase {
    let name = trace.kernels.name.get(kernel).map_or("", |name| trace.names.text(*name));
    if name.contains("_update") { AttnPhase::Decode } else { AttnPhase::Unknown }
}

/// What operators were called with, each name and shape read once.
struct Statements<'t> {
    trace: &'t Trace,
    operators: &'t [u32],
    known: FxHashMap<(NameId, u32), Statement>,
}

impl Statements<'_> {
    fn of(&mut self, kernel: usize) -> Statement {
        let Self { trace, operators, known } = self;
        let op = operators.get(kernel).copied().unwrap_or(NONE) as usize;
        let (Some(&name), Some(&shape)) = (trace.ops.name.get(op), trace.ops.shape.get(op)) else {
            return Statement::default();
        };
        *known.entry((name, shape)).or_insert_with(|| {
            Statement::of(trace.names.text(name), trace.shapes.text(NameId(shape)))
        })
    }
}

/// The kernels before, between and behind passes, on the streams that these are on.
struct Around<'a> {
    trace: &'a Trace,
    classes: &'a Classes,
    launches: &'a [u32],
    operators: &'a [u32],
    layers: &'a Layers,
    known: &'a [Known],
}

impl Around<'_> {
    fn fill(&self, order: &StreamOrder, by_kernel: &mut [Known]) {
        let looks_up = self.lookups();
        let pass_of = |row: u32| {
            let layer = self.layers.list.get(self.layers.layer(row as usize)?)?;
            Some(layer.pass as usize)
        };
        for lane in beside::used_lanes(self.trace, self.layers) {
            let rows = order.of_lane(lane as usize);
            let mut before = None;
            let mut from = 0;
            for (at, &row) in rows.iter().enumerate() {
                let Some(pass) = pass_of(row) else { continue };
                let between = rows.get(from..at).unwrap_or_default();
                self.between(between, [before, Some(pass)], &looks_up, by_kernel);
                (before, from) = (Some(pass), at + 1);
            }
            let behind = rows.get(from..).unwrap_or_default();
            self.between(behind, [before, None], &looks_up, by_kernel);
        }
    }

    /// Kernels between two passes, or at an end of the recording.
    fn between(
        &self,
        rows: &[u32],
        [before, after]: [Option<usize>; 2],
        looks_up: &[bool],
        by_kernel: &mut [Known],
    ) {
        let phase = |pass: Option<usize>| self.known.get(pass?).copied().flatten();
        let [of_before, of_after] = [phase(before), phase(after)];
        let mut put = |rows: &[u32], phase: Known| beside::put(by_kernel, rows, phase);
        if before.is_some()
            && after.is_some()
            && of_before.map(|one| one.0) == of_after.map(|one| one.0)
        {
            put(rows, of_before);
            return;
        }
        let is_lookup = |row: &u32| looks_up.get(*row as usize) == Some(&true);
        // The model begins with looking up tokens, and ends with a GEMM.
        let begins = match before {
            Some(_) => rows.iter().position(is_lookup),
            None => rows.iter().rposition(is_lookup),
        };
        let tail = match (begins, after) {
            (Some(begins), _) => rows.get(..begins),
            // Without a next pass, everything may be of this one.
            (None, None) => Some(rows),
            (None, Some(_)) => None,
        };
        let tail = tail.unwrap_or_default();
        let is_gemm = |row: &u32| self.classes.get(*row as usize).main == Class::Gemm;
        if let Some(last) = tail.iter().rposition(is_gemm).filter(|_| before.is_some()) {
            put(&tail[..=last], of_before);
        }
        if let Some(begins) = begins.filter(|_| after.is_some()) {
            put(&rows[begins..], of_after);
        }
    }

    /// Of each kernel whether it was launched by an operator that looks up tokens.
    fn lookups(&self) -> Vec<bool> {
        let ops = &self.trace.ops;
        let names: Vec<bool> =
            self.trace.names.iter().map(|(_, name)| base(name) == "embedding").collect();
        let rows: Vec<usize> = (0..ops.len())
            .filter(|row| names.get(ops.name[*row].0 as usize) == Some(&true))
            .collect();
        let mut looks_up = vec![false; self.trace.kernels.len()];
        if rows.is_empty() {
            return looks_up;
        }
        let start_ns: Vec<i64> = rows.iter().map(|row| ops.start_ns[*row]).collect();
        let duration_ns: Vec<u64> = rows.iter().map(|row| ops.duration_ns[*row]).collect();
        let thread: Vec<u32> = rows.iter().map(|row| ops.thread[*row]).collect();
        let calls = Intervals { start_ns: &start_ns, duration_ns: &duration_ns, thread: &thread };
        let outside = (0..self.trace.kernels.len()).filter(|row| self.layers.layer(*row).is_none());
        let (kernels, moments): (Vec<usize>, Vec<_>) = outside
            .filter_map(|row| Some((row, moment(self.trace, row, self.launches, self.operators)?)))
            .unzip();
        calls.around(&moments, |place, open| looks_up[kernels[place]] = !open.is_empty());
        looks_up
    }
}
