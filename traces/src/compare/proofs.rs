//! What names and operators prove of the kernels at a place beyond their classes.

use fusion_cost_model::Problem;

use super::addends::Addend;
use super::places::Place;
use super::side::Chosen;
use super::work::Work;
use crate::NameId;
use crate::classify::{Activations, Class, Words, proven_by_op, proven_by_words};
use crate::rates::problems::problem_of;
use crate::shapes::Shape;

/// How the names of the framework's own operators begin. Those of other libraries may do more by
/// what they are called with.
const FRAMEWORK: &str = "aten::";

/// The framework's operators that are a ReLU, and what its kernel is called. The class of the kernel
/// is that of other limits.
const RELUS: [&str; 4] = ["aten::relu", "aten::relu_", "aten::clamp_min", "aten::clamp_min_"];
const CLAMP: &str = "launch_clamp_scalar";

/// The framework's GEMM with an activation, and which of its inputs says that it is GELU, not ReLU.
const ADDMM_ACTIVATION: &str = "aten::_addmm_activation";
const USE_GELU: usize = 5;

/// What names and operators prove of a kernel beyond its class.
pub(super) struct Proofs<'s> {
    sides: &'s [Chosen<'s>; 2],
}

impl<'s> Proofs<'s> {
    pub(super) fn of(sides: &'s [Chosen<'s>; 2]) -> Self {
        Self { sides }
    }

    /// What a side's kernel does: what its class says, but a ReLU is an activation.
    pub(super) fn work(&self, side: usize, place: &Place<'_>) -> Option<Work> {
        let work = place.works[side]?;
        let is_plain = work.main == Class::Elementwise && work.also.is_empty();
        let is_relu = is_plain && self.is_relu(side, place);
        Some(if is_relu { Work { main: Class::Act, ..work } } else { work })
    }

    fn is_relu(&self, side: usize, place: &Place<'_>) -> bool {
        match self.operator(side, place) {
            Some(op) => RELUS.contains(&op) && self.is_at_zero(side, place),
            None => place.name(side, self.sides[side].side.trace).contains(CLAMP),
        }
    }

    /// Whether the second input of an operator is zero, or not known.
    fn is_at_zero(&self, side: usize, place: &Place<'_>) -> bool {
        let limit = self.value(side, place, 1);
        limit.is_none_or(|limit| limit.parse::<f64>().is_ok_and(|limit| limit == 0.0))
    }

    /// The value of an input of the operator that launched a side's kernel, if the trace has it.
    fn value(&self, side: usize, place: &Place<'_>, input: usize) -> Option<&str> {
        let trace = self.sides[side].side.trace;
        let shape = *trace.ops.shape.get(self.row(side, place)?)?;
        let inputs = Shape::of(trace.shapes.text(NameId(shape))).inputs;
        inputs.get(input).map(|input| input.value).filter(|value| !value.is_empty())
    }

    /// Which activations a side's kernel may compute, if it computes one.
    pub(super) fn activations(&self, side: usize, place: &Place<'_>) -> Activations {
        match self.work(side, place) {
            Some(work) if place.works[side] != Some(work) => Activations::RELU,
            Some(work) if work.parts().contains(Class::Act) => {
                let by_name = Activations::of(place.name(side, self.sides[side].side.trace));
                let op = self.operator(side, place).filter(|_| by_name == Activations::ANY);
                op.map_or(by_name, Activations::of)
            }
            _ => Activations::NONE,
        }
    }

    /// Which activations a side's kernel may compute on the way, by its operator.
    fn activations_of_operator(&self, side: usize, place: &Place<'_>) -> Activations {
        match self.operator(side, place) {
            Some(ADDMM_ACTIVATION) => match self.value(side, place, USE_GELU) {
                Some("True") => Activations::GELU,
                Some("False") => Activations::RELU,
                _ => Activations::ANY,
            },
            Some(op) => Activations::of(op),
            None => Activations::ANY,
        }
    }

    /// Whether a side's kernel that both sides have also does what the other side's kernel at `of`
    /// does, which is of this class: by its operator, or by its name.
    pub(super) fn prove(
        &self,
        places: &[Place<'_>],
        side: usize,
        at: usize,
        (class, of): (Class, usize),
    ) -> bool {
        let added = self.addend(1 - side, &places[of]);
        let is_added = |words: &str| class != Class::Elementwise || may_add(words, added);
        let computes = |activations: Activations| {
            class != Class::Act || activations.meet(self.activations(1 - side, &places[of]))
        };
        let by_operator = || {
            let op = self.operator(side, &places[at]);
            let op = op.filter(|op| class != Class::Elementwise || !op.starts_with(FRAMEWORK));
            op.is_some_and(|op| is_added(&Words::of(op).base))
                && computes(self.activations_of_operator(side, &places[at]))
                && self.only_operator_proves(places, side, at, class)
        };
        let by_name = || {
            let name = places[at].name(side, self.sides[side].side.trace);
            self.may_do_more(side, &places[at])
                && computes(Activations::of(name))
                && self.by_words(places, side, at, class, &is_added)
        };
        by_operator() || by_name()
    }

    /// Whether the operator of a side's kernel says that it does what the other side's kernel at
    /// `of` does, and the operator of the other side's kernel at the same place does not.
    pub(super) fn operator_proves(
        &self,
        places: &[Place<'_>],
        side: usize,
        at: usize,
        of: usize,
    ) -> bool {
        let Some(work) = self.work(1 - side, &places[of]) else { return false };
        let is_alike = || match work.main {
            Class::Act => {
                let own = self.activations_of_operator(side, &places[at]);
                own.meet(self.activations(1 - side, &places[of]))
            }
            Class::Elementwise => {
                let added = self.addend(1 - side, &places[of]);
                added.is_some() && added == self.addend(side, &places[at])
            }
            _ => false,
        };
        self.only_operator_proves(places, side, at, work.main) && is_alike()
    }

    /// Whether a side's kernel may do more than its operator says: what those of the framework
    /// compute is defined, whatever computes it.
    pub(super) fn may_do_more(&self, side: usize, place: &Place<'_>) -> bool {
        !self.operator(side, place).is_some_and(|op| op.starts_with(FRAMEWORK))
    }

    /// The operator of this side's kernel says so, and that of the other side's does not.
    fn only_operator_proves(
        &self,
        places: &[Place<'_>],
        side: usize,
        at: usize,
        class: Class,
    ) -> bool {
        let proves = |side: usize| {
            self.operator(side, &places[at]).is_some_and(|op| proven_by_op(op).contains(class))
        };
        proves(side) && !proves(1 - side)
    }

    /// A word of the name says so, which neither the other side's kernel has nor any other kernel
    /// of this side's layer: libraries have words in the names of all kernels of a family.
    fn by_words(
        &self,
        places: &[Place<'_>],
        side: usize,
        at: usize,
        class: Class,
        is_added: &dyn Fn(&str) -> bool,
    ) -> bool {
        // Of a wrapper, as those of CUTLASS, the arguments are the name.
        let words = |side: usize, place: &Place<'_>| {
            let words = Words::of(place.name(side, self.sides[side].side.trace));
            words.base + &words.arguments.replace(' ', "_")
        };
        let proves = |side: usize, place: &Place<'_>| {
            let words = words(side, place);
            proven_by_words(&words).contains(class) && is_added(&words)
        };
        let is_gemm = |place: &Place<'_>| place.works[side].is_some_and(|work| work.is_gemm());
        let others =
            || places.iter().enumerate().filter(|(other, one)| *other != at && is_gemm(one));
        is_gemm(&places[at])
            && proves(side, &places[at])
            && !proves(1 - side, &places[at])
            && others().count() > 0
            && !others().any(|(_, place)| proves(side, place))
    }

    /// Whether a side's kernel is one of Inductor's that lists an addition: that of a bias, or one
    /// beside an activation that is not written out, which may contain additions.
    pub(super) fn lists_addition(&self, side: usize, place: &Place<'_>) -> bool {
        let words = Words::of(place.name(side, self.sides[side].side.trace)).base;
        let Some((_, listed)) = words.split_once("_fused_") else { return false };
        let has = |word: &str| listed.split('_').any(|one| one == word);
        let is_written_out = has("erf") || has("tanh");
        words.starts_with("_triton_poi_")
            && (has("addmm") || has("bias") || has("add") && !is_written_out)
    }

    /// Whether the operator of a side's kernel is known, and it adds nothing.
    pub(super) fn is_known_not_to_add(&self, side: usize, place: &Place<'_>) -> bool {
        self.operator(side, place).is_some_and(|op| !proven_by_op(op).contains(Class::Elementwise))
    }

    /// What the operator of a side's kernel adds, if it is an addition.
    pub(super) fn adds(&self, side: usize, place: &Place<'_>) -> Option<Addend> {
        let is_plain = place.works[side].is_some_and(|work| work.main == Class::Elementwise);
        self.addend(side, place).filter(|_| is_plain)
    }

    fn addend(&self, side: usize, place: &Place<'_>) -> Option<Addend> {
        Addend::of(&self.sides[side], place.sums.examples[side]? as usize)
    }

    /// The problem that the operator of a side's kernel solves, if the trace says its sizes.
    pub(super) fn problem(&self, side: usize, place: &Place<'_>) -> Option<Problem> {
        let trace = self.sides[side].side.trace;
        let shape = *trace.ops.shape.get(self.row(side, place)?)?;
        problem_of(self.operator(side, place)?, trace.shapes.text(NameId(shape)))
    }

    fn operator(&self, side: usize, place: &Place<'_>) -> Option<&str> {
        let trace = self.sides[side].side.trace;
        let name = trace.ops.name.get(self.row(side, place)?)?;
        Some(trace.names.text(*name))
    }

    /// The row of the operator that launched a side's kernel.
    fn row(&self, side: usize, place: &Place<'_>) -> Option<usize> {
        self.sides[side].operator(place.sums.examples[side]? as usize)
    }
}

/// Whether the words of a name may mean that what is added is this.
fn may_add(words: &str, added: Option<Addend>) -> bool {
    match added {
        Some(Addend::Row) => words.contains("bias") || words.contains("_add_"),
        Some(Addend::Whole) => words.contains("residual") || words.contains("_add_"),
        None => true,
    }
}
