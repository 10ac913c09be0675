//! How far attention looks back, which its time depends on as much as on how many tokens there are.
//!
//! A cache of keys and values is larger than what is read of it, so the sizes of attention over one
//! say nothing. Marks of steps tell the tokens of all sequences; some operators have the longest
//! sequence as an input. Where nothing does, attention may take any time, and what is said of a
//! step depends on how much of the difference between the sides is attention's. A cache that grows
//! has the sizes of what is read, and `carried` along is what copies it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::result::{Answer, Question, WorkAspect, WorkRate};
use super::super::side::Chosen;
use super::carried::carried;
use super::marks::MarkedSize;
use super::model::near;
use super::workload::Workload;
use super::{Evidence, SAME_AMOUNT, SAME_CALLS, of_numbers};
use crate::NameId;
use crate::classify::Class;
use crate::launched::NONE;
use crate::ratio::ratio;
use crate::segment::Phase;
use crate::shapes::{Pages, Problem, Shape, base};

/// Attention whose context is not known decides which side is faster if it makes more than the
/// first part of the difference, and the second of the longer step: less is left to a reservation.
const MOST_OF_THE_GAP: f64 = 0.5;
const MUCH_OF_A_STEP: f64 = 0.1;

/// The attention of the steps of a phase.
#[derive(Debug, Clone, Default)]
pub(super) struct Context {
    /// The durations of its kernels.
    total_ns: u64,
    /// The part in calls whose sizes do not say how many keys there are.
    open_ns: u64,
    /// The durations of other kernels whose operators have as many keys.
    pub(super) carried_ns: u64,
    calls: u64,
    /// Calls that say how many sequences they have, and the sum.
    counted: (u64, u64),
    /// Calls that say how long the longest sequence is, and the sum.
    told: (u64, u64),
    /// Whether in all of these all sequences are as long.
    are_as_long: bool,
}

/// What a call says of its sequences.
#[derive(Debug, Clone, Copy, Default)]
struct Call {
    has_keys: bool,
    /// The keys, where they are others than the queries.
    kept: Option<u64>,
    sequences: Option<u64>,
    longest: Option<u64>,
    are_as_long: bool,
}

impl Call {
    fn of(op: &str, text: &str) -> Self {
        if text.is_empty() || text.contains('?') {
            return Self::default();
        }
        if let Some([batch, queries, keys]) = lengths(op, text) {
            let (sequences, longest) = (Some(batch), Some(keys));
            let kept = longest.filter(|keys| *keys != queries);
            return Self { has_keys: true, kept, sequences, longest, are_as_long: true };
        }
        Pages::of(op, &Shape::of(text)).map_or_else(Self::default, |pages| Self {
            has_keys: false,
            kept: None,
            sequences: Some(pages.sequences),
            longest: pages.longest_context,
            are_as_long: pages.are_as_long(),
        })
    }
}

/// The sequences of attention, and the queries and keys of each: of one operator, or of the softmax
/// of one that is computed op by op.
fn lengths(op: &str, text: &str) -> Option<[u64; 3]> {
    if let Some(Problem::Attention { batch, queries, keys, .. }) = Problem::of(op, text) {
        return Some([batch, queries, keys]);
    }
    let shape = Shape::of(text);
    let scores = shape.inputs.first().filter(|_| base(op) == "_softmax")?;
    let &[Some(batch), Some(_), Some(queries), Some(keys)] = scores.dims.as_slice() else {
        return None;
    };
    Some([batch, queries, keys])
}

/// The attention of a side, by phase; `operators` are those of its kernels.
pub(super) fn contexts(side: &Chosen<'_>, operators: &[u32]) -> FxHashMap<Option<Phase>, Context> {
    let trace = side.side.trace;
    let op_of = |kernel: usize| operators.get(kernel).copied().unwrap_or(NONE) as usize;
    let mut known: FxHashMap<(NameId, u32), Call> = FxHashMap::default();
    let mut with_keys: FxHashSet<NameId> = FxHashSet::default();
    let is_softmax = |kernel: usize| {
        let text = |op: usize| {
            let (name, shape) = (trace.ops.name.get(op)?, trace.ops.shape.get(op)?);
            Some((trace.names.text(*name), trace.shapes.text(NameId(*shape))))
        };
        text(op_of(kernel)).is_some_and(|(op, text)| lengths(op, text).is_some())
    };
    let is_attention = |kernel: &usize| match side.side.classes.get(*kernel).main {
        Class::Attn => true,
        Class::Softmax => is_softmax(*kernel),
        _ => false,
    };
    let rows: Vec<usize> = side.rows.iter().map(|row| *row as usize).filter(is_attention).collect();
    for &kernel in &rows {
        let op = op_of(kernel);
        let (Some(&name), Some(&shape)) = (trace.ops.name.get(op), trace.ops.shape.get(op)) else {
            continue;
        };
        let call = known
            .entry((name, shape))
            .or_insert_with(|| Call::of(trace.names.text(name), trace.shapes.text(NameId(shape))));
        if call.has_keys {
            with_keys.insert(trace.kernels.name[kernel]);
        }
    }
    let mut is_counted = vec![false; trace.ops.len()];
    let mut found: FxHashMap<Option<Phase>, Context> = FxHashMap::default();
    for kernel in rows {
        let op = op_of(kernel);
        let call = match (trace.ops.name.get(op), trace.ops.shape.get(op)) {
            (Some(&name), Some(&shape)) => known.get(&(name, shape)).copied().unwrap_or_default(),
            // Launched before the recording began, as the others with this name were.
            _ if with_keys.contains(&trace.kernels.name[kernel]) => continue,
            _ => Call::default(),
        };
        let duration_ns = trace.kernels.duration_ns[kernel];
        let context = found
            .entry(side.phase(kernel))
            .or_insert_with(|| Context { are_as_long: true, ..Context::default() });
        context.total_ns = context.total_ns.saturating_add(duration_ns);
        if !call.has_keys {
            context.open_ns = context.open_ns.saturating_add(duration_ns);
        }
        // Several kernels of one call are one call; without an operator each is one.
        if is_counted.get_mut(op).is_none_or(|counted| !std::mem::replace(counted, true)) {
            context.add(call);
        }
    }
    let kept: FxHashSet<u64> = known.values().filter_map(|call| call.kept).collect();
    for (phase, ns) in carried(side, operators, &kept) {
        if let Some(context) = found.get_mut(&phase) {
            context.carried_ns = ns;
        }
    }
    found
}

impl Context {
    fn add(&mut self, call: Call) {
        self.calls += 1;
        let count = |(calls, sum): &mut (u64, u64), value: Option<u64>| {
            if let Some(value) = value {
                (*calls, *sum) = (*calls + 1, sum.saturating_add(value));
            }
        };
        count(&mut self.counted, call.sequences);
        count(&mut self.told, call.longest);
        self.are_as_long &= call.are_as_long;
    }

    /// The mean over calls, if all say it.
    fn mean(&self, (calls, sum): (u64, u64)) -> Option<f64> {
        (calls > 0 && calls == self.calls).then(|| ratio(sum, calls))
    }
}

/// What is known of the context of the steps of a phase.
pub(super) struct Answered {
    pub(super) questions: Vec<Question>,
    phase: Option<Phase>,
    /// Whether nothing shows that it is the same, and it matters.
    is_open: bool,
    /// Whether the sequences are of other lengths, so that a token is other work.
    pub(super) is_other_for_a_token: bool,
    /// The times of attention in a step of the phase, and those of the step.
    attention_ns: [f64; 2],
    step_ns: [f64; 2],
}

impl Answered {
    /// Whether attention, whose context is not known, makes most of a difference that is not small:
    /// that of a step, or of a token or a TFLOP.
    pub(super) fn decides(&self, rates: &[WorkRate]) -> bool {
        let rate = rates.iter().find(|rate| rate.phase.is_none() || rate.phase == self.phase);
        let units = rate.map_or([1.0; 2], |rate| [rate.first_units, rate.second_units]);
        let of_one = |times: [f64; 2]| [times[0] / units[0], times[1] / units[1]];
        let ([first, second], [own, other]) = (of_one(self.step_ns), of_one(self.attention_ns));
        let by_attention = (own - other).abs();
        self.is_open
            && by_attention > MOST_OF_THE_GAP * (first - second).abs()
            && by_attention > MUCH_OF_A_STEP * first.max(second)
    }
}

impl Evidence<'_, '_> {
    /// How far attention looks back, phase by phase.
    pub(super) fn contexts(&self, works: &[Workload; 2]) -> Vec<Answered> {
        let phases = Phase::ALL.into_iter().map(Some).chain([None]);
        phases
            .filter(|phase| self.is_compared(*phase))
            .filter_map(|phase| {
                let both = works.each_ref().map(|work| work.contexts.get(&phase));
                let marked = works.each_ref().map(|work| {
                    let of_phase = work.marked.iter().find(|(of, _)| *of == phase);
                    of_phase.map_or_else(MarkedSize::default, |(_, size)| *size)
                });
                self.answer(phase, both, marked)
            })
            .collect()
    }

    fn answer(
        &self,
        phase: Option<Phase>,
        both: [Option<&Context>; 2],
        marked: [MarkedSize; 2],
    ) -> Option<Answered> {
        let is_marked = marked.iter().all(|size| size.context.is_some());
        let is_open = |side: Option<&Context>| side.is_some_and(|side| side.open_ns > 0);
        let are_both = both.iter().all(Option::is_some);
        let is_of_cache = is_marked || are_both && both.into_iter().any(is_open);
        if !(are_both || is_marked) || is_of_cache && !self.serves() {
            return None;
        }
        let none = Context::default();
        let both = both.map(|side| side.unwrap_or(&none));
        let told = if is_marked { of_marks(marked) } else { of_inputs(both) };
        let (steps, step_ns) = self.steps_of(phase);
        #[expect(clippy::cast_precision_loss, reason = "counts of calls")]
        let calls = [0, 1].map(|side| both[side].calls as f64 / steps[side]);
        // Where attention is in operators of other kinds, its calls have no mean in common.
        if !is_of_cache && !near(calls[0], calls[1], SAME_CALLS) {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "times")]
        let attention_ns = [0, 1].map(|side| {
            let all_ns = match (is_marked, is_of_cache) {
                (false, true) => both[side].open_ns,
                _ => both[side].total_ns,
            };
            all_ns.saturating_add(both[side].carried_ns) as f64 / steps[side]
        });
        let share = (0..2).map(|side| attention_ns[side] / step_ns[side]).fold(0.0, f64::max);
        let asked = told.question(phase, share);
        // Who does not serve has no context, unless it is another.
        if !self.serves() && asked.answer != Answer::Different {
            return None;
        }
        let mut questions = Vec::new();
        let sequences = both.map(|side| side.mean(side.counted));
        let mut are_as_many = marked.iter().all(|size| size.sequences.is_some());
        if is_of_cache
            && marked.iter().all(|size| size.sequences.is_none())
            && sequences.iter().all(Option::is_some)
        {
            let evidence = "sequences of attention, mean of a call";
            let batch = of_numbers(WorkAspect::Batch, sequences, SAME_AMOUNT, evidence);
            are_as_many = batch.answer == Answer::Same;
            questions.push(Question { phase, ..batch });
        }
        let is_alike = are_as_many && told.are_as_long();
        let is_open = asked.answer == Answer::Unknown && !is_alike;
        let is_other_for_a_token = asked.answer == Answer::Different && !told.are_as_long();
        questions.push(asked);
        Some(Answered { questions, phase, is_open, is_other_for_a_token, attention_ns, step_ns })
    }

    /// The steps of a phase on both sides, and the time of one; of all phases where they are not
    /// told apart.
    fn steps_of(&self, phase: Option<Phase>) -> ([f64; 2], [f64; 2]) {
        let part = self.phases.iter().find(|part| Some(part.phase) == phase);
        let of_part = part.and_then(|part| {
            let times = [part.first_ns?, part.second_ns?];
            Some(([part.first_steps, part.second_steps], times))
        });
        of_part.unwrap_or((self.steps.counts, self.step_ns))
    }
}

/// What both sides say of their contexts.
struct Told {
    /// The tokens that attention looks back at; how many in all, or the most of a sequence.
    tokens: [Option<f64>; 2],
    /// Of a sequence.
    lengths: [Option<f64>; 2],
    /// Whether the numbers are of all sequences, and not of the longest alone.
    is_of_all: bool,
    evidence: &'static str,
}

/// The sums that marks of steps tell.
fn of_marks(marked: [MarkedSize; 2]) -> Told {
    Told {
        tokens: marked.map(|size| size.context),
        lengths: marked.map(|size| Some(size.context? / size.sequences?)),
        is_of_all: true,
        evidence: "marks of steps, mean of a step",
    }
}

/// The longest sequences that operators have as an input.
fn of_inputs(both: [&Context; 2]) -> Told {
    let longest = both.map(|side| side.mean(side.told));
    Told {
        tokens: longest,
        lengths: longest,
        is_of_all: both.iter().all(|side| side.are_as_long),
        evidence: "inputs of attention, mean of a call",
    }
}

impl Told {
    /// Whether both sides say how long their sequences are, and they are as long.
    fn are_as_long(&self) -> bool {
        matches!(self.lengths, [Some(first), Some(second)] if near(first, second, SAME_AMOUNT))
    }

    /// Whether the context is the same; `share` is that of attention in a step.
    fn question(&self, phase: Option<Phase>, share: f64) -> Question {
        let asked = of_numbers(WorkAspect::Context, self.tokens, SAME_AMOUNT, self.evidence);
        let words = |words: Option<String>| match self.is_of_all {
            true => words,
            false => words.map(|words| format!("up to {words}")),
        };
        let [first, second] = [asked.first, asked.second].map(words);
        let answer = match asked.answer {
            Answer::Same if !self.is_of_all => Answer::Unknown,
            answer => answer,
        };
        // Of a context that is not known anything may be missing.
        let off = match (answer, self.tokens) {
            (Answer::Different, [Some(one), Some(other)]) => 1.0 - one.min(other) / one.max(other),
            _ => 1.0,
        };
        let question = Question { phase, first, second, answer, ..asked };
        if answer == Answer::Same || off * share > SAME_AMOUNT {
            return question;
        }
        let evidence = format!("{}; it makes less than 2 % of a step", self.evidence);
        Question { answer: Answer::Same, evidence, ..question }
    }
}
