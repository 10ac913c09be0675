//! Prefill, decode or both, by the attention of each pass through the layers.
//!
//! `sizes` reads what attention was called with; names say whether a kernel is made for one query
//! token of each sequence. Kernels between two passes are of the phase that both have, and
//! otherwise of that whose head or tail they are, as far as looking up tokens shows it.

use rustc_hash::FxHashMap;

use super::super::layers::Layers;
use super::super::marks::Phase;
use super::super::order::StreamOrder;
use super::sizes::{Seen, Statement};
use super::training::moment;
use super::{Found, Known, PhaseEvidence, beside};
use crate::classify::{AttnPhase, Class};
use crate::enclosing::Intervals;
use crate::launched::NONE;
use crate::shapes::base;
use crate::{Classes, NameId, Trace};

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
    let looks: Vec<Look> = (0..layers.passes.len())
        .map(|pass| Look::of(trace, classes, layers, pass, &mut statements))
        .collect();
    // A kernel that is made for prompts is also used to decode, where there is none for that.
    let has_decode_kernels = looks.iter().any(|look| look.names == Some(Names::Decode));
    let known: Vec<Known> = looks.iter().map(|look| look.phase(has_decode_kernels)).collect();
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

/// What the names of all attention kernels of a pass say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Prefill,
    Decode,
    /// Each layer has kernels for both.
    Both,
}

/// What the attention of a pass shows.
#[derive(Debug, Default)]
struct Look {
    names: Option<Names>,
    sizes: Option<Seen>,
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
        let mut of_layers: Vec<[bool; 3]> = Vec::new();
        for layer in layers.list.get(pass.layers.clone()).unwrap_or_default() {
            let mut names = [false; 3];
            for kernel in layers.kernels(layer).iter().map(|row| *row as usize) {
                let class = classes.get(kernel);
                let statement = statements.of(kernel);
                match class.main {
                    Class::Attn => {
                        names[class.phase as usize] = true;
                        sizes.push(statement.attention);
                    }
                    Class::Ssm => names[phase_of_scan(trace, kernel) as usize] = true,
                    _ => look.rows = look.rows.max(statement.rows),
                }
            }
            of_layers.push(names);
        }
        // Some layers of a model may have no attention.
        of_layers.retain(|names| names.iter().any(|has| *has));
        let all = |expected: [bool; 3]| {
            !of_layers.is_empty() && of_layers.iter().all(|names| *names == expected)
        };
        let of_phases = |phases: [AttnPhase; 2]| {
            let mut names = [false; 3];
            phases.into_iter().for_each(|phase| names[phase as usize] = true);
            names
        };
        let (prefill, decode) = (AttnPhase::Prefill, AttnPhase::Decode);
        let kinds = [
            (Names::Prefill, of_phases([prefill; 2])),
            (Names::Decode, of_phases([decode; 2])),
            (Names::Both, of_phases([prefill, decode])),
        ];
        look.names = kinds.into_iter().find(|(_, names)| all(*names)).map(|(kind, _)| kind);
        sizes.dedup();
        look.sizes = match sizes[..] {
            [only] => only,
            _ => None,
        };
        look
    }

    fn phase(&self, has_decode_kernels: bool) -> Known {
        match self.sizes {
            Some(Seen::Prompts) => return Some((Phase::Prefill, PhaseEvidence::Sizes)),
            // One query attends to all in the last blocks of some encoders: there, other tokens go
            // through the pass as well.
            Some(Seen::OneToken { sequences }) if self.rows <= sequences => {
                return Some((Phase::Decode, PhaseEvidence::Sizes));
            }
            // Sizes that say something else than names leave it open.
            Some(Seen::OneToken { .. } | Seen::Several) => return None,
            None => {}
        }
        let phase = match self.names? {
            Names::Decode => Phase::Decode,
            Names::Both => Phase::Mixed,
            Names::Prefill if has_decode_kernels => Phase::Prefill,
            Names::Prefill => return None,
        };
        Some((phase, PhaseEvidence::Names))
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
        let mut lanes: Vec<u32> =
            beside::lanes(self.trace, self.layers).into_iter().flatten().collect();
        lanes.sort_unstable();
        lanes.dedup();
        for lane in lanes {
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
