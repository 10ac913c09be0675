//! Pointwise steps as a struct that phases apply to what they have just computed.

use std::fmt::Write as _;
use std::ops::Range;

use fusion_cost_model::Op;
use fusion_cost_model::kernel::OperandKind;

use super::Builder;
use super::expression::{Number, Statements};
use super::phase::Parameters;
use crate::random::{DROPOUT_SEED, MIX_1, MIX_2};

/// Pointwise steps in C++.
#[derive(Debug, Clone)]
pub(super) struct TailText {
    /// The definition of the struct, which needs the type `Args`.
    pub(super) definition: String,
    /// An expression that makes one where `args` is in scope.
    pub(super) construct: String,
}

impl Builder<'_> {
    /// A struct of this name with
    ///
    /// ```c++
    /// template <int V> PORT_DEVICE void apply(float (&x)[V], i64 row, i64 col) const;
    /// ```
    ///
    /// which applies steps, all of them pointwise, to consecutive columns of a row, and does
    /// nothing for no steps. Operands are read `V` at a time: `col` and the number of columns must
    /// be multiples of it.
    pub(super) fn tail_text(
        &self,
        name: &str,
        steps: Range<usize>,
        parameters: &mut Parameters,
    ) -> TailText {
        let apply = if steps.is_empty() {
            "float (&)[V], i64, i64) const {}\n".to_owned()
        } else {
            self.tail_body(steps, parameters)
        };
        TailText {
            definition: format!(
                "struct {name} {{\n    const Args& args;\n    \
                 template <int V> PORT_DEVICE void apply({apply}}};\n"
            ),
            construct: format!("{name}{{args}}"),
        }
    }

    fn tail_body(&self, steps: Range<usize>, parameters: &mut Parameters) -> String {
        let mut loads = String::new();
        if steps.clone().any(|step| self.reads_index(step)) {
            let cols = parameters.size(self.steps[steps.start].output.cols);
            let _ = writeln!(loads, "        const i64 at = row * {cols} + col;");
        }
        let statements = Statements::new("            ");
        let mut x = statements.define("x[i]");
        for step in steps {
            let operands = self.step_operands(step, &statements, parameters, &mut loads);
            let Op::Pointwise(op) = self.steps[step].op else { continue };
            x = match op.fold(|index: usize| operands[index]) {
                Some(folded) => op.apply(x, |index: usize| folded[index]),
                None => op.apply(x, |index: usize| operands[index]),
            };
        }
        format!(
            "float (&x)[V], i64 row, i64 col) const {{\n{loads}#pragma unroll\n        \
             for (int i = 0; i < V; ++i) {{\n{}            x[i] = {};\n        }}\n    }}\n",
            statements.text(),
            x.name()
        )
    }

    /// Whether a step reads something that depends on the index of the element.
    fn reads_index(&self, step: usize) -> bool {
        let by_index = |kind| matches!(kind, OperandKind::PerElement | OperandKind::Random);
        self.steps[step].op.operands().iter().any(|operand| by_index(operand.kind))
    }

    /// The operands of a pointwise step at element `i`, with what must be loaded before.
    fn step_operands<'s>(
        &self,
        step: usize,
        statements: &'s Statements,
        parameters: &mut Parameters,
        loads: &mut String,
    ) -> Vec<Number<'s>> {
        let mut tensors = self.operands[step].iter();
        let kinds = self.steps[step].op.operands().iter().map(|operand| operand.kind);
        let mut number = |(position, kind)| {
            if kind == OperandKind::Random {
                return statements.define(&format!(
                    "port::uniform(static_cast<u32>(at + i), {DROPOUT_SEED:#x}u, {MIX_1:#x}u, \
                     {MIX_2:#x}u)"
                ));
            }
            let tensor = tensors.next().map(|&id| parameters.read(id)).unwrap_or_default();
            let name = format!("s{step}_{position}");
            if kind == OperandKind::Scalar {
                let _ =
                    writeln!(loads, "        const float {name} = port::to_float({tensor}[0]);");
                return statements.define(&name);
            }
            let at = if kind == OperandKind::PerElement { "at" } else { "col" };
            let _ = writeln!(loads, "        float {name}[V];");
            let _ = writeln!(loads, "        port::load<V>({tensor} + {at}, {name});");
            statements.define(&format!("{name}[i]"))
        };
        kinds.enumerate().map(&mut number).collect()
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::Problem;

    use super::*;
    use crate::gpu::tests::emulation::device;

    fn tail(problem: &str, steps: Range<usize>) -> String {
        let problem: Problem = problem.parse().unwrap();
        let device = device("sm_90a");
        let builder = Builder::new(&problem, &device);
        let text = builder.tail_text("tail", steps, &mut Parameters::default());
        assert_eq!(text.construct, "tail{args}");
        text.definition
    }

    #[test]
    fn operands_are_loaded_once_and_where_they_lie() {
        let text = tail("bias+add+scale+dropout/f32/m3.n5", 0..4);
        for (line, count) in [
            ("const i64 at = row * args.p0 + col;", 1),
            ("port::load<V>(args.p1 + col, s0_0);", 1),
            ("port::load<V>(args.p2 + at, s1_0);", 1),
            ("const float s2_0 = port::to_float(args.p3[0]);", 1),
            ("port::uniform(static_cast<u32>(at + i), 0x9e3779b9u, 0x7feb352du, 0x846ca68bu)", 1),
            ("port::load", 2),
        ] {
            assert_eq!(text.matches(line).count(), count, "{line} in {text}");
        }
    }

    #[test]
    fn no_steps_read_nothing() {
        let text = tail("bias+relu/f32/m3.n5", 1..1);
        assert!(!text.contains("args.p") && text.contains("const {}"), "{text}");
        let text = tail("bias+relu/f32/m3.n5", 1..2);
        assert!(!text.contains("args.p") && text.contains("port::max"), "{text}");
    }
}
