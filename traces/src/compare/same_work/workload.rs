//! The work of a side: its operators with their sizes, and what follows from those.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::side::Chosen;
use super::SAME_AMOUNT;
use super::bags::Bags;
use super::context::{Context, contexts};
use super::experts::Experts;
use super::heads::Heads;
use super::lookups::lookups;
use super::marks::{MarkedSize, marked};
use super::masks::Masks;
use super::votes::Votes;
use crate::NameId;
use crate::classify::{AttnPhase, Class};
use crate::launched::NONE;
use crate::segment::Phase;
use crate::shapes::{Packed, Problem, Shape, base, is_convolution, saturating_product};

/// FLOPs are those of a recording if so much of the time of GEMMs, convolutions and attention is in
/// operators whose arithmetic is known.
const ENOUGH_COUNTED: f64 = 0.9;

/// The sizes of all weights are known if so much of the time of GEMMs and convolutions is in
/// operators with sizes.
const ALL_SIZED: f64 = 0.98;

/// Calls of one operator with one shape.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    pub(super) count: u64,
    /// The durations of the kernels that they launched.
    pub(super) total_ns: u64,
    /// The part in kernels that are GEMMs, convolutions or attention.
    pub(super) main_ns: u64,
    /// The part in kernels that are GEMMs or convolutions.
    dense_ns: u64,
    /// The part in kernels of attention.
    attention_ns: u64,
    /// The part in GEMMs of experts.
    experts_ns: u64,
    /// Whether a kernel shows sizes of experts.
    is_beside_experts: bool,
}

/// What was computed: a problem, whichever operator it is of, else a call with its sizes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Computed {
    Problem(Problem),
    Packed(Packed),
    Call(String, String),
}

/// The durations of GEMMs, convolutions and attention.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MainTime {
    pub(super) all_ns: u64,
    /// The part in attention whose sizes do not say how many keys there are.
    pub(super) open_ns: u64,
}

impl MainTime {
    fn add(&mut self, all_ns: u64, open_ns: u64) {
        self.all_ns = self.all_ns.saturating_add(all_ns);
        self.open_ns = self.open_ns.saturating_add(open_ns);
    }

    /// Without attention over a cache, whose sizes are those of the cache, where a side serves.
    pub(super) fn of_sizes(self, serves: bool) -> u64 {
        if serves { self.all_ns.saturating_sub(self.open_ns) } else { self.all_ns }
    }
}

/// The sizes that the model gives, of an operator with weights.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Weights {
    /// Of a GEMM: the sizes `m`, `n` and `k`; one of them is the number of tokens.
    Gemm([u64; 3]),
    /// Of a convolution.
    Conv(Vec<u64>),
    /// Of a table of tokens.
    Embedding([u64; 2]),
}

/// The work of a side.
#[derive(Debug, Default)]
pub(super) struct Workload {
    /// By operator without its library, and sizes.
    pub(super) calls: FxHashMap<(String, String), Calls>,
    /// The calls of operators with weights.
    pub(super) weights: FxHashMap<Weights, u64>,
    /// The durations of all kernels.
    pub(super) all_ns: u64,
    /// Those of GEMMs, convolutions and attention.
    main: MainTime,
    /// The part of these in operators with a shape.
    pub(super) shaped: MainTime,
    /// By what was computed.
    pub(super) computed: FxHashMap<Computed, MainTime>,
    /// Of the recording, in FLOPs; none if too much of it is not known.
    pub(super) flops: Option<f64>,
    /// The part of GEMMs and convolutions with weights.
    flops_of_weights: f64,
    /// The durations of GEMMs and convolutions.
    dense_ns: u64,
    /// The part of these whose sizes are known.
    sized_ns: u64,
    /// How many tokens calls looked up, or attended from.
    pub(super) tokens_of_calls: FxHashSet<u64>,
    /// Sequences or images at once, of most calls that show it.
    pub(super) batch: Option<u64>,
    /// Tokens of a sequence.
    pub(super) sequence: Option<u64>,
    /// Tokens of the recording, looked up in the largest table.
    pub(super) tokens: Option<u64>,
    /// Tokens of all sequences at once, of most calls of attention.
    pub(super) attended: Option<u64>,
    /// The number type in which most of the time is spent.
    pub(super) dtype: Option<String>,
    /// Convolutions in the recording.
    pub(super) convolutions: u64,
    /// The durations of their kernels.
    pub(super) convolutions_ns: u64,
    /// GEMMs with weights in the recording.
    pub(super) gemms: u64,
    /// Whether gradients are computed; none if operators were not recorded.
    pub(super) is_training: Option<bool>,
    /// The phase of all attention, by the names of its kernels.
    pub(super) attention: Option<AttnPhase>,
    /// What the marks say of the steps of each phase.
    pub(super) marked: Vec<(Option<Phase>, MarkedSize)>,
    /// How far attention looks back in each phase.
    pub(super) contexts: FxHashMap<Option<Phase>, Context>,
    pub(super) heads: Heads,
    pub(super) masks: Masks,
    pub(super) experts: Experts,
    pub(super) bags: Bags,
}

impl Workload {
    pub(super) fn of(side: &Chosen<'_>, phase: Option<Phase>) -> Self {
        let recompute_is_asked_for = phase == Some(Phase::Recompute);
        let trace = side.side.trace;
        let operators = side.operators();
        let contexts = contexts(side, operators);
        let mut work = Self { marked: marked(side), contexts, ..Self::default() };
        let lookups = lookups(trace);
        let mut seen: FxHashMap<(NameId, u32), Calls> = FxHashMap::default();
        let mut is_counted = vec![false; trace.ops.len()];
        let mut attention = [0_u64; 2];
        for &row in &side.rows {
            let kernel = row as usize;
            let duration_ns = trace.kernels.duration_ns[kernel];
            let class = side.side.classes.get(kernel);
            work.all_ns = work.all_ns.saturating_add(duration_ns);
            // What a checkpoint runs once more takes time, and is no more work.
            if !recompute_is_asked_for && side.phase(kernel) == Some(Phase::Recompute) {
                continue;
            }
            let is_main = is_main(class.main);
            let is_attention = class.main == Class::Attn;
            let is_of_experts = class.main == Class::MoeGemm;
            if is_main {
                work.main.add(duration_ns, 0);
            }
            if class.main == Class::Conv {
                work.convolutions_ns = work.convolutions_ns.saturating_add(duration_ns);
            }
            let is_dense = matches!(class.main, Class::Gemm | Class::Conv);
            if is_dense {
                work.dense_ns = work.dense_ns.saturating_add(duration_ns);
            }
            match class.phase {
                AttnPhase::Prefill => attention[0] += 1,
                AttnPhase::Decode => attention[1] += 1,
                AttnPhase::Unknown => {}
            }
            let op = operators.get(kernel).copied().unwrap_or(NONE);
            let op = lookups.get(&op).copied().unwrap_or(op) as usize;
            let (Some(&name), Some(&shape)) = (trace.ops.name.get(op), trace.ops.shape.get(op))
            else {
                work.main.add(0, if is_attention { duration_ns } else { 0 });
                if is_of_experts {
                    work.experts.add_unsized(duration_ns);
                }
                continue;
            };
            let calls = seen.entry((name, shape)).or_default();
            if let Some(counted) = is_counted.get_mut(op).filter(|counted| !**counted) {
                *counted = true;
                calls.count += 1;
            }
            calls.total_ns = calls.total_ns.saturating_add(duration_ns);
            if is_main {
                calls.main_ns = calls.main_ns.saturating_add(duration_ns);
            }
            if is_dense {
                calls.dense_ns = calls.dense_ns.saturating_add(duration_ns);
            }
            if is_attention {
                calls.attention_ns = calls.attention_ns.saturating_add(duration_ns);
            }
            if is_of_experts {
                calls.experts_ns = calls.experts_ns.saturating_add(duration_ns);
            }
            calls.is_beside_experts |= Experts::are_shown_by(class.main);
        }
        work.attention = match attention {
            [0, 0] => None,
            [0, _] => Some(AttnPhase::Decode),
            [_, 0] => Some(AttnPhase::Prefill),
            _ => None,
        };
        let text = |id: NameId| trace.names.text(id);
        if !trace.ops.is_empty() {
            let used: FxHashSet<NameId> = trace.ops.name.iter().copied().collect();
            work.is_training = Some(used.into_iter().any(|name| is_of_training(text(name))));
        }
        let mut seen: Vec<_> = seen.into_iter().collect();
        seen.sort_unstable_by_key(|(key, _)| *key);
        work.take(
            seen.iter().map(|((name, shape), calls)| {
                (text(*name), trace.shapes.text(NameId(*shape)), calls)
            }),
        );
        work
    }

    fn take<'t>(&mut self, calls: impl Iterator<Item = (&'t str, &'t str, &'t Calls)>) {
        let (mut flops, mut counted_ns) = (0.0, 0_u64);
        let (mut batches, mut sequences) = (Votes::default(), Votes::default());
        let mut dtypes: FxHashMap<String, u64> = FxHashMap::default();
        let mut tables: FxHashMap<[u64; 2], u64> = FxHashMap::default();
        let (mut images, mut attended) = (Votes::default(), Votes::default());
        for (op, shape, calls) in calls {
            match base(op) {
                base if is_convolution(base) => self.convolutions += calls.count,
                "mm" | "addmm" | "linear" => self.gemms += calls.count,
                _ => {}
            }
            // Symbols may stand for anything.
            if shape.is_empty() || shape.contains('?') {
                self.main.add(0, calls.attention_ns);
                self.experts.add_unsized(calls.experts_ns);
                continue;
            }
            self.bags.add(op, shape, (calls.count, calls.total_ns));
            if calls.is_beside_experts {
                self.experts.add_beside(op, shape, calls.count);
            }
            let problem = Problem::of(op, shape);
            self.heads.add(op, shape, problem.as_ref());
            self.masks.add(op, shape, problem.as_ref(), calls.attention_ns);
            let has_keys = matches!(problem, Some(Problem::Attention { .. }));
            let open_ns = if has_keys { 0 } else { calls.attention_ns };
            self.main.add(0, open_ns);
            let are_sized =
                calls.experts_ns == 0 || Experts::are_sized(op, problem.as_ref(), shape);
            let unsized_ns = if are_sized { 0 } else { calls.experts_ns };
            self.experts.add_unsized(unsized_ns);
            let sized_ns = calls.main_ns.saturating_sub(unsized_ns);
            self.shaped.add(sized_ns, open_ns);
            let key = (base(op).to_owned(), Shape::sizes(shape));
            let computed = match &problem {
                // Some libraries have the weights first.
                Some(Problem::Gemm { batch, m, n, k }) => {
                    let [m, n] = [*m.min(n), *m.max(n)];
                    Computed::Problem(Problem::Gemm { batch: *batch, m, n, k: *k })
                }
                Some(problem) => Computed::Problem(problem.clone()),
                None => match Packed::of(op, &Shape::of(shape)).filter(|_| open_ns > 0) {
                    Some(packed) => Computed::Packed(packed),
                    None => Computed::Call(key.0.clone(), key.1.clone()),
                },
            };
            self.computed.entry(computed).or_default().add(sized_ns, open_ns);
            let all = self.calls.entry(key).or_default();
            all.count += calls.count;
            all.total_ns = all.total_ns.saturating_add(calls.total_ns);
            all.main_ns = all.main_ns.saturating_add(calls.main_ns);
            if let Some(dtype) = Shape::of(shape).dtype().filter(|_| calls.main_ns > 0) {
                *dtypes.entry(dtype).or_default() += calls.main_ns;
            }
            let Some(problem) = problem else { continue };
            #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
            let count = calls.count as f64;
            flops += problem.flops() * count;
            counted_ns = counted_ns.saturating_add(calls.main_ns);
            self.sized_ns = self.sized_ns.saturating_add(calls.dense_ns);
            if matches!(problem, Problem::Gemm { batch: 1, .. } | Problem::Conv { .. }) {
                self.flops_of_weights += problem.flops() * count;
            }
            match problem {
                Problem::Gemm { batch: 1, m, n, k } => {
                    *self.weights.entry(Weights::Gemm([m, n, k])).or_default() += calls.count;
                }
                Problem::Gemm { .. } => {}
                Problem::Conv { batch, weights, .. } => {
                    images.add(batch, calls.count);
                    *self.weights.entry(Weights::Conv(weights)).or_default() += calls.count;
                }
                Problem::Attention { batch, queries, .. } => {
                    let tokens = batch.saturating_mul(queries);
                    self.tokens_of_calls.insert(tokens);
                    attended.add(tokens, calls.count);
                    batches.add(batch, calls.count);
                    sequences.add(queries, calls.count);
                }
                Problem::Embedding { vocabulary, width, tokens } => {
                    let table = [vocabulary, width];
                    *self.weights.entry(Weights::Embedding(table)).or_default() += calls.count;
                    let all = saturating_product(tokens.iter().copied().chain([calls.count]));
                    self.tokens_of_calls.insert(saturating_product(tokens.iter().copied()));
                    let of_table = tables.entry(table).or_default();
                    *of_table = of_table.saturating_add(all);
                    if let [batch, sequence] = tokens[..] {
                        batches.add(batch, calls.count);
                        sequences.add(sequence, calls.count);
                    }
                }
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let is_enough = counted_ns as f64
            >= ENOUGH_COUNTED * self.main.all_ns.saturating_add(self.bags.total_ns) as f64;
        self.flops = (flops > 0.0 && is_enough).then_some(flops);
        self.batch = batches.most().or(images.most());
        self.sequence = sequences.most();
        self.attended = attended.most();
        self.put_tokens_first();
        self.heads.read_scores();
        self.tokens = tables.into_iter().max().map(|(_, tokens)| tokens).filter(|all| *all > 0);
        let most = dtypes.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
        self.dtype = most.map(|(dtype, _)| dtype);
    }

    /// Some libraries have the weights of a GEMM first and its tokens second.
    fn put_tokens_first(&mut self) {
        let is_tokens = |size: &u64| self.tokens_of_calls.contains(size);
        let weights = std::mem::take(&mut self.weights);
        for (weights, count) in weights {
            let weights = match weights {
                // The gradient of weights is a sum over tokens, whose number may be that of columns.
                Weights::Gemm([m, n, k])
                    if is_tokens(&n)
                        && !is_tokens(&m)
                        && !(self.is_training == Some(true) && is_tokens(&k)) =>
                {
                    Weights::Gemm([n, m, k])
                }
                weights => weights,
            };
            *self.weights.entry(weights).or_default() += count;
        }
    }

    /// The FLOPs of GEMMs and convolutions with weights; none if the sizes of some are not known.
    pub(super) fn flops_of_weights(&self) -> Option<f64> {
        let is_known = crate::ratio::ratio(self.sized_ns, self.dense_ns) >= ALL_SIZED;
        (is_known && self.flops_of_weights > 0.0).then_some(self.flops_of_weights)
    }

    /// Whether GEMMs of experts whose sizes are not known make a difference.
    pub(super) fn has_unsized(&self) -> bool {
        crate::ratio::ratio(self.experts.unsized_ns, self.all_ns) > SAME_AMOUNT
    }

    /// The share of the main work whose shapes are known.
    pub(super) fn shaped_share(&self, serves: bool) -> f64 {
        crate::ratio::ratio(self.shaped.of_sizes(serves), self.main.of_sizes(serves))
    }
}

/// Whether kernels of a class are what most of the arithmetic is in.
fn is_main(class: Class) -> bool {
    matches!(class, Class::Gemm | Class::MoeGemm | Class::Conv | Class::Attn)
}

/// Whether an operator is of the backward pass.
fn is_of_training(op: &str) -> bool {
    op.starts_with("autograd::engine") || op.contains("Backward") || op.ends_with("_backward")
}
