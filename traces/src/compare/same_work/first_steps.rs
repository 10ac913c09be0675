//! First steps that take longer than others with the same work: kernels are loaded, memory is taken,
//! clocks rise. What this adds to the mean of all steps depends on how many were recorded. Where it
//! decides how the sides compare, the times of usual steps are compared.

use rustc_hash::FxHashMap;

use super::super::basis::trains;
use super::super::result::{Answer, Basis, Question, WorkAspect, WorkRate};
use super::super::side::{Chosen, on_both};
use super::super::text::number;
use super::model::near;
use super::{Evidence, SAME_AMOUNT, rate};
use crate::NameId;
use crate::classify::Class;
use crate::ratio::ratio;
use crate::segment::{Pass, Phase, StepSize};

/// A first step is not like the others if it takes this many times as long as three quarters of those
/// behind the first ones.
const LONGER: f64 = 1.1;

/// The same, where there are no more of these than first ones, so that few show how much steps vary.
const LONGER_THAN_FEW: f64 = 1.5;

/// First steps that are this many times as many as the others are what is usual.
const TOO_MANY: usize = 2;

/// First steps that decide.
pub(super) struct FirstSteps {
    pub(super) question: Question,
    /// The times of a step, if the first ones had taken as long as others.
    pub(super) usual: WorkRate,
}

impl Evidence<'_, '_> {
    /// The first steps, if they change what the time of the first side is over that of the second.
    pub(super) fn first_steps(&self) -> Option<FirstSteps> {
        let firsts = on_both(&|side: usize| {
            SlowSteps::of(&self.sides[side], self.steps.basis, self.options.phase)
        });
        let usual_ns = [0, 1].map(|side: usize| {
            let more_ns = firsts[side].as_ref().map_or(0.0, |first| first.more_ns);
            self.step_ns[side] - more_ns / self.steps.counts[side]
        });
        let usual = rate(None, [1.0; 2], usual_ns)?;
        if near(usual.ratio, self.step_ns[0] / self.step_ns[1], SAME_AMOUNT) {
            return None;
        }
        let [first, second] = firsts.map(|first| first.map(|first| first.words()));
        let question = Question {
            about: WorkAspect::Amount,
            phase: None,
            first,
            second,
            answer: Answer::Different,
            evidence: "first steps beside others with the same work".to_owned(),
        };
        Some(FirstSteps { question, usual })
    }
}

/// First steps that take longer than others.
struct SlowSteps {
    count: usize,
    /// How many times as long as usual the longest of them takes.
    times: f64,
    /// By how much longer they take together, in nanoseconds.
    more_ns: f64,
}

impl SlowSteps {
    fn of(side: &Chosen<'_>, basis: Basis, phase: Option<Phase>) -> Option<Self> {
        let marked = || marked(side);
        let units = match basis {
            Basis::Recording => return None,
            Basis::MarkedSteps => marked(),
            Basis::Layers => Some(marked())
                .filter(|marked| marked.len() > 1)
                .unwrap_or_else(|| unmarked(side, phase)),
        };
        let mut timed = Timed::of(side, &units);
        // No step that is hardly longer than one like it is slow, however many are the first.
        let may_be_slow = (0..units.len()).take_while(|at| timed.is_longer_than_one(*at)).count();
        if may_be_slow > 0 {
            timed.works = works(side, &units);
        }
        (1..=may_be_slow).rev().find_map(|count| timed.first(count))
    }

    fn words(&self) -> String {
        let times = number(self.times);
        match self.count {
            1 => format!("a first step {times} times as long"),
            count => format!("{count} first steps up to {times} times as long"),
        }
    }
}

/// Steps in their order, with their times and what they compute.
struct Timed<'u> {
    units: &'u [Unit],
    passed_ns: Vec<u64>,
    works: Vec<Option<usize>>,
}

impl<'u> Timed<'u> {
    fn of(side: &Chosen<'_>, units: &'u [Unit]) -> Self {
        let passed_ns = units.iter().map(|unit| unit.passed_ns(side)).collect();
        Self { units, passed_ns, works: Vec::new() }
    }

    fn is_longer_than_one(&self, at: usize) -> bool {
        let others = self.units.iter().zip(&self.passed_ns).skip(at + 1);
        let mut alike = others.filter(|(unit, _)| unit.is_like(&self.units[at]));
        alike.any(|(_, ns)| ratio(self.passed_ns[at], *ns) > LONGER)
    }

    /// This many first steps, if each takes longer than those with the same work behind all of them.
    fn first(&self, count: usize) -> Option<SlowSteps> {
        let mut found = SlowSteps { count, times: 0.0, more_ns: 0.0 };
        // The last of them is the shortest one as a rule.
        for at in (0..count).rev() {
            let work = Some(self.works[at]?);
            let is_alike = |other: &usize| {
                self.units[*other].is_like(&self.units[at]) && self.works[*other] == work
            };
            let alike = (count..self.units.len()).filter(is_alike);
            let mut alike: Vec<u64> = alike.map(|other| self.passed_ns[other]).collect();
            alike.sort_unstable();
            let (middle_ns, long_ns) = (*alike.get(alike.len() / 2)?, alike[alike.len() * 3 / 4]);
            let longer = if alike.len() > count { LONGER } else { LONGER_THAN_FEW };
            let own_ns = self.passed_ns[at];
            if count > TOO_MANY * alike.len() || ratio(own_ns, long_ns) <= longer {
                return None;
            }
            #[expect(clippy::cast_precision_loss, reason = "exact for 104 days")]
            let more_ns = own_ns.saturating_sub(middle_ns) as f64;
            found.more_ns += more_ns;
            found.times = found.times.max(ratio(own_ns, middle_ns));
        }
        Some(found)
    }
}

/// What each step computes, as numbers; none if nothing shows it.
fn works(side: &Chosen<'_>, units: &[Unit]) -> Vec<Option<usize>> {
    let mut known: FxHashMap<Vec<Solved>, usize> = FxHashMap::default();
    let number = |unit: &Unit| {
        let next = known.len();
        Some(*known.entry(unit.work(side)?).or_insert(next))
    };
    units.iter().map(number).collect()
}

/// A step as it was recorded: a marked one, else a pass through all layers with what is around it.
struct Unit {
    phase: Option<Phase>,
    /// What its mark says.
    size: StepSize,
    is_whole: bool,
    /// Whether weights are changed in it.
    has_update: bool,
    rows: Vec<u32>,
}

/// What the operator of a kernel solves, by its shape; without sizes the kernel, by its name.
type Solved = (bool, u32);

/// In place of the operator of a kernel that has none.
const NO_OPERATOR: usize = usize::MAX;

impl Unit {
    fn passed_ns(&self, side: &Chosen<'_>) -> u64 {
        let of = |times: &[u64], row: u32| times.get(row as usize).copied().unwrap_or_default();
        let attribution = &side.attribution;
        let times = self.rows.iter().map(|row| {
            of(&attribution.own_ns, *row).saturating_add(of(&attribution.wait_ns, *row))
        });
        times.fold(0, u64::saturating_add)
    }

    /// Whether nothing tells it from another one but its kernels.
    fn is_like(&self, other: &Self) -> bool {
        let of = |one: &Self| (one.phase, one.size, one.has_update);
        of(self) == of(other) && self.is_whole && other.is_whole
    }

    /// What it computes: each GEMM and convolution with its sizes, or the kernels that are chosen by
    /// size; nothing more if its mark says how much it is. None if nothing shows it.
    fn work(&self, side: &Chosen<'_>) -> Option<Vec<Solved>> {
        if self.size.tokens.is_some() {
            return Some(Vec::new());
        }
        let trace = side.side.trace;
        let shape_of = |op: usize| {
            let shape = trace.ops.shape.get(op).copied();
            shape.filter(|shape| !trace.shapes.text(NameId(*shape)).is_empty())
        };
        let mut found: Vec<(usize, Solved)> = Vec::new();
        let mut are_sized = true;
        for kernel in self.rows.iter().map(|row| *row as usize) {
            let class = side.side.classes.get(kernel).main;
            if !matches!(class, Class::Gemm | Class::MoeGemm | Class::Conv | Class::Attn) {
                continue;
            }
            let op = side.operator(kernel).unwrap_or(NO_OPERATOR);
            match (shape_of(op), trace.kernels.name.get(kernel)) {
                // A context grows with every step.
                (Some(_), _) if class == Class::Attn => {}
                (Some(shape), _) => found.push((op, (true, shape))),
                (None, name) => {
                    are_sized &= class == Class::Attn;
                    found.extend(name.map(|name| (op, (false, name.0))));
                }
            }
        }
        // Libraries try several kernels for an operator at first.
        found.sort_unstable();
        found.dedup_by(|next, one| next.0 != NO_OPERATOR && next.0 == one.0);
        let mut solved: Vec<Solved> = found.into_iter().map(|(_, solved)| solved).collect();
        solved.sort_unstable();
        // Without sizes a step of a server may be of prompts or of single tokens.
        (!solved.is_empty() && (are_sized || !side.has_cache())).then_some(solved)
    }
}

/// The marked steps that have kernels.
fn marked(side: &Chosen<'_>) -> Vec<Unit> {
    let trace = side.side.trace;
    let steps = &side.side.segments.steps;
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); steps.list.len()];
    for row in &side.rows {
        if let Some(of_step) = steps.step(*row as usize).and_then(|step| rows.get_mut(step)) {
            of_step.push(*row);
        }
    }
    let used = steps.list.iter().zip(rows).filter(|(_, rows)| !rows.is_empty());
    used.map(|(step, rows)| Unit {
        phase: step.phase,
        size: StepSize::of(trace.names.text(step.name)),
        is_whole: true,
        has_update: has_update(side, &rows),
        rows,
    })
    .collect()
}

/// The passes that count as steps, of the phase that is asked for: of training those forward, with
/// all that follows before the next one.
fn unmarked(side: &Chosen<'_>, wanted: Option<Phase>) -> Vec<Unit> {
    let layers = &side.side.segments.layers;
    let phase_of = |pass: &Pass| side.layer_phase(pass.layers.start);
    let is_training = trains(side);
    let is_step = |pass: &&Pass| match wanted.filter(|wanted| !wanted.is_part_of_step()) {
        Some(wanted) => phase_of(pass) == Some(wanted),
        None => !is_training || phase_of(pass) == Some(Phase::Forward),
    };
    let here = layers.passes.iter().filter(|pass| pass.device == side.device && !pass.is_backward);
    let passes: Vec<&Pass> = here.filter(is_step).collect();

    let starts = &side.side.trace.kernels.start_ns;
    let start = |row: u32| starts.get(row as usize).copied().unwrap_or_default();
    let class = |row: u32| side.side.classes.get(row as usize).main;
    let mut order = side.rows.clone();
    order.sort_by_key(|row| start(*row));
    // Where its layers begin.
    let layers_from = |pass: &Pass| {
        let first = *layers.kernels(layers.list.get(pass.layers.start)?).first()?;
        Some(order.partition_point(|row| start(*row) < start(first)))
    };
    let stream = passes.first().and_then(|pass| pass.stream);
    let on_stream = passes.into_iter().filter(|pass| pass.stream == stream);
    let places: Vec<(usize, &Pass)> =
        on_stream.filter_map(|pass| Some((layers_from(pass)?, pass))).collect();
    let before = |at: usize| order.get(..at).unwrap_or_default();
    // What a pass has before its layers is what the first one has.
    let lead = before(places.first().map_or(0, |(at, _)| *at));
    let begin = |at: usize| {
        let both = lead.iter().rev().zip(before(at).iter().rev());
        at - both.take_while(|(own, other)| class(**own) == class(**other)).count()
    };
    let begins = places.iter().map(|(at, _)| begin(*at)).chain([order.len()]);
    let begins: Vec<usize> = begins.collect();
    let units = places.iter().zip(begins.windows(2)).map(|((_, pass), range)| {
        let rows = order.get(range[0]..range[1]).unwrap_or_default().to_vec();
        Unit {
            phase: phase_of(pass),
            size: StepSize::default(),
            is_whole: pass.layers.len() == layers.count as usize && !pass.is_cut,
            has_update: has_update(side, &rows),
            rows,
        }
    });
    units.filter(|unit| !unit.rows.is_empty()).collect()
}

fn has_update(side: &Chosen<'_>, rows: &[u32]) -> bool {
    rows.iter().any(|row| side.phase(*row as usize) == Some(Phase::Optimizer))
}
