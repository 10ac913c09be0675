//! What an addition adds: a row to every row, as a bias is, or as many numbers as there are, as a
//! residual is.

use super::side::Chosen;
use crate::NameId;
use crate::shapes::Shape;

/// What is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Addend {
    Row,
    Whole,
}

impl Addend {
    /// What the operator adds that launched a kernel of a side, if its sizes, or the operator around
    /// it, say so. Of what else it computes nothing is said.
    pub(super) fn of(side: &Chosen<'_>, kernel: usize) -> Option<Self> {
        let trace = side.side.trace;
        let row = side.operator(kernel)?;
        let name = trace.names.text(*trace.ops.name.get(row)?).strip_prefix("aten::")?;
        let shape = Shape::of(trace.shapes.text(NameId(*trace.ops.shape.get(row)?)));
        let known = |input: usize| shape.known(input);
        match name {
            "add" | "add_" => {
                let of_two = || {
                    let (first, second) = (known(0)?, known(1)?);
                    if first.len() < second.len() {
                        Self::beside(&first, &second)
                    } else {
                        Self::beside(&second, &first)
                    }
                };
                of_two().or_else(|| side.is_in_linear(row).then_some(Self::Row))
            }
            "addmm" | "_addmm_activation" | "baddbmm" => {
                let of_three = || {
                    let (mut sum, right) = (known(1)?, known(2)?);
                    *sum.last_mut()? = *right.last()?;
                    Self::beside(&known(0)?, &sum)
                };
                of_three().or_else(|| side.is_in_linear(row).then_some(Self::Row))
            }
            _ => None,
        }
    }

    /// What something of these sizes is to a sum of those.
    fn beside(added: &[u64], sum: &[u64]) -> Option<Self> {
        let is_one = |size: &u64| *size == 1;
        if added == sum {
            return Some(Self::Whole);
        }
        let is_row = added.iter().skip_while(|size| is_one(size)).count() == 1;
        (is_row && sum.last() == added.last()).then_some(Self::Row)
    }
}
