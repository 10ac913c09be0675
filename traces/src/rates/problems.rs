//! The operators of a trace as problems of the cost model, so that they can be measured.

use std::collections::BTreeMap;

use fusion_cost_model::{AttentionSizes, Chain, ConvSizes, LinearSizes, Problem as Measurable};
use rustc_hash::FxHashSet;
use serde::Serialize;

use super::amount;
use crate::launched::{NONE, launches, operators};
use crate::ratio::ratio;
use crate::shapes::{ConvPass, Problem, Shape, base, has_unknown_groups};
use crate::{NameId, Trace};

/// What of a trace can be measured as it ran.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ModelProblems {
    /// The problems, those with the longest kernels first.
    pub problems: Vec<ModelProblem>,
    /// Operators with known sizes that the vocabulary has no problem for.
    pub left_out: Vec<LeftOut>,
    /// The durations of all kernels, in nanoseconds.
    pub total_ns: u64,
}

/// A problem with the calls that it stands for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ModelProblem {
    /// The problem in its text form.
    pub problem: String,
    /// Its chain.
    pub chain: String,
    /// Its sizes.
    pub sizes: String,
    /// Its dtype.
    pub dtype: &'static str,
    /// Calls of operators.
    pub calls: u64,
    /// The durations of their kernels, in nanoseconds.
    pub total_ns: u64,
    /// The part of the durations of all kernels.
    pub share: f64,
}

/// Calls of an operator that are not a problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// The operator.
    pub operator: String,
    /// Why.
    pub reason: &'static str,
    /// How many calls.
    pub calls: u64,
    /// The durations of their kernels, in nanoseconds.
    pub total_ns: u64,
}

impl ModelProblems {
    /// The GEMMs, convolutions and attentions whose sizes the trace says.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        Self::of_some(trace, |_| true)
    }

    /// Those that launched some kernels, by their rows.
    #[must_use]
    pub fn of_some(trace: &Trace, keep: impl Fn(usize) -> bool) -> Self {
        let mut shapes: BTreeMap<(NameId, u32), (u64, u64)> = BTreeMap::new();
        let mut counted: FxHashSet<u32> = FxHashSet::default();
        let mut total_ns = 0_u64;
        let operators = operators(trace, &launches(trace)).into_iter().enumerate();
        for (row, op) in operators.filter(|(row, _)| keep(*row)) {
            let duration_ns = trace.kernels.duration_ns.get(row).copied().unwrap_or(0);
            total_ns = total_ns.saturating_add(duration_ns);
            let place = op as usize;
            let (Some(&name), Some(&shape)) =
                (trace.ops.name.get(place), trace.ops.shape.get(place))
            else {
                continue;
            };
            if op == NONE {
                continue;
            }
            let (calls, ns) = shapes.entry((name, shape)).or_default();
            *calls += u64::from(counted.insert(op));
            *ns = ns.saturating_add(duration_ns);
        }
        let mut problems: BTreeMap<String, (Measurable, u64, u64)> = BTreeMap::new();
        let mut left_out: BTreeMap<(String, &'static str), (u64, u64)> = BTreeMap::new();
        for ((name, shape), (calls, ns)) in shapes {
            let (op, shape) = (trace.names.text(name), trace.shapes.text(NameId(shape)));
            let problem = Problem::of(op, shape).filter(|one| one.flops() > 0.0);
            let found = match problem {
                Some(problem) => measurable(op, shape, &problem),
                None if has_unknown_groups(op, shape) => Err("groups whose sizes are not recorded"),
                None => continue,
            };
            let sums = match found {
                Ok(problem) => {
                    let (_, calls, ns) =
                        problems.entry(problem.to_string()).or_insert((problem, 0, 0));
                    (calls, ns)
                }
                Err(reason) => {
                    let (calls, ns) = left_out.entry((op.to_owned(), reason)).or_default();
                    (calls, ns)
                }
            };
            *sums.0 += calls;
            *sums.1 = sums.1.saturating_add(ns);
        }
        let mut problems: Vec<ModelProblem> = problems
            .into_iter()
            .map(|(text, (problem, calls, ns))| ModelProblem {
                problem: text,
                chain: problem.chain().name(),
                sizes: problem.sizes().to_string(),
                dtype: problem.dtype().name(),
                calls,
                total_ns: ns,
                share: ratio(ns, total_ns),
            })
            .collect();
        problems.sort_by_key(|problem| std::cmp::Reverse(problem.total_ns));
        let mut left_out: Vec<LeftOut> = left_out
            .into_iter()
            .map(|((operator, reason), (calls, total_ns))| LeftOut {
                operator,
                reason,
                calls,
                total_ns,
            })
            .collect();
        left_out.sort_by_key(|one| std::cmp::Reverse(one.total_ns));
        Self { problems, left_out, total_ns }
    }
}

/// The problem that an operator with this text of its shape is, if there is one.
pub(crate) fn problem_of(op: &str, shape: &str) -> Option<Measurable> {
    measurable(op, shape, &Problem::of(op, shape)?).ok()
}

/// The problem that an operator is, or why it is none.
fn measurable(op: &str, text: &str, problem: &Problem) -> Result<Measurable, &'static str> {
    let shape = Shape::of(text);
    let tensor = |place: usize| shape.inputs.get(place).is_some_and(|input| !input.dims.is_empty());
    let operands = shape.inputs.iter().find(|input| input.dims.len() >= 2);
    let dtype =
        operands.and_then(|input| amount::dtype(input.kind)).ok_or("its dtype is not known")?;
    let of_chain = |name: &str| name.parse::<Chain>().map_err(|_| "there is no such chain");
    let too_large = |_| "its sizes are too large";
    match *problem {
        Problem::Gemm { batch: 1, m, n, k } => {
            let has_bias = match base(op) {
                "addmm" => true,
                "linear" => tensor(2),
                _ => false,
            };
            let chain = match (base(op), shape.inputs.get(5).map(|input| input.value)) {
                ("_addmm_activation", Some("True")) => "linear_bias_gelu",
                ("_addmm_activation", Some("False")) => "linear_bias_relu",
                ("_addmm_activation", _) => return Err("its activation is not known"),
                _ if has_bias => "linear_bias",
                _ => "matmul",
            };
            let chain = of_chain(chain)?;
            Measurable::linear(chain, dtype, LinearSizes { m, k, n }).map_err(too_large)
        }
        Problem::Gemm { .. } => Err("several GEMMs at once"),
        Problem::Conv { is_dilated: true, .. } => Err("it is dilated"),
        Problem::Conv {
            batch,
            ref weights,
            ref image,
            pass: ConvPass::Forward,
            channels,
            ref window,
            ..
        } => {
            let (&[k, of_group, r, s], &[h, w]) = (&weights[..], &image[..]) else {
                return Err("not of two dimensions");
            };
            let Some(&[stride, pad]) = window.as_ref() else {
                return Err("its stride or its padding is not the same in both directions");
            };
            let groups = channels.checked_div(of_group).filter(|groups| *groups > 0);
            let groups = groups.ok_or("its channels are not those of its weights")?;
            let chain = match (base(op), tensor(2)) {
                ("convolution_relu", true) => "conv2d+bias+relu",
                ("convolution_relu", false) => "conv_relu",
                ("convolution_add_relu", _) => return Err("what is added may be scaled"),
                // The sizes of the window come before the bias.
                ("_conv_depthwise2d", _) if tensor(3) => "conv_bias",
                (_, true) => "conv_bias",
                (_, false) => "conv2d",
            };
            let chain = of_chain(chain)?;
            let sizes = ConvSizes { n: batch, c: channels, h, w, k, r, s, stride, pad, groups };
            Measurable::conv(chain, dtype, sizes).map_err(too_large)
        }
        Problem::Attention { width, values, is_backward: false, .. } if width != values => {
            Err("its values are not as long as its keys")
        }
        Problem::Attention {
            batch,
            queries,
            keys,
            width,
            heads,
            key_heads,
            is_backward: false,
            ..
        } => {
            if key_heads == 0 || !heads.is_multiple_of(key_heads) {
                return Err("its heads cannot share their keys");
            }
            let sizes = AttentionSizes {
                b: batch,
                h: heads,
                q: queries,
                kv: keys,
                d: width / heads.max(1),
                kvh: key_heads,
                // Shapes do not say whether there is a mask.
                causal: false,
            };
            Measurable::attention(of_chain("attention_head")?, dtype, sizes).map_err(too_large)
        }
        Problem::Conv { .. } | Problem::Attention { .. } => Err("gradients"),
        Problem::Embedding { .. } => Err("looking up"),
    }
}

/// The dtypes of problems, that with the most time first.
#[must_use]
pub fn dtypes(problems: &[ModelProblem]) -> Vec<&'static str> {
    let mut times: BTreeMap<&'static str, u64> = BTreeMap::new();
    for problem in problems {
        let ns = times.entry(problem.dtype).or_default();
        *ns = ns.saturating_add(problem.total_ns);
    }
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    times.into_iter().map(|(dtype, _)| dtype).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_with_an_activation_is_a_longer_chain() {
        let bf16 = "c10::BFloat16";
        let problem = |scalars: &str| {
            let text = format!("32 {bf16};16x64 {bf16};64x32 {bf16}{scalars}");
            problem_of("aten::_addmm_activation", &text).map(|problem| problem.to_string())
        };
        for (activation, chain) in [("True", "linear_bias_gelu"), ("False", "linear_bias_relu")] {
            let found = problem(&format!("; Scalar=1; Scalar=1; Scalar={activation}"));
            assert_eq!(found.as_deref(), Some(&*format!("{chain}/bf16/m16.k64.n32")));
        }
        assert_eq!(problem(""), None);
    }

    #[test]
    fn what_a_convolution_does_besides_is_in_its_chain() {
        let of = |op: &str, behind: &str| {
            let text = format!("8x32x56x56 float;32x{behind}");
            problem_of(&format!("aten::{op}"), &text).map(|problem| problem.to_string())
        };
        let lists = "ScalarList=[1, 1]; ScalarList=[1, 1]; ScalarList=[1, 1]; Scalar=1";
        let dense = "f32/n8.c32.h56.w56.k32.r3.s3.pad1";
        for (op, bias, chain) in [
            ("cudnn_convolution_relu", "32 float", "conv2d+bias+relu"),
            ("cudnn_convolution_relu", "", "conv_relu"),
            ("convolution", "32 float", "conv_bias"),
            ("convolution", "", "conv2d"),
        ] {
            let found = of(op, &format!("32x3x3 float;{bias}; {lists}"));
            assert_eq!(found.as_deref(), Some(&*format!("{chain}/{dense}")), "{op} {bias}");
        }
        assert_eq!(of("cudnn_convolution_add_relu", &format!("32x3x3 float;; ; {lists}")), None);
        for (bias, chain) in [("32 float", "conv_bias"), ("", "conv2d")] {
            let text = format!("1x3x3 float; ScalarList=[3, 3];{bias}; {lists}");
            let expected = format!("{chain}/{dense}.groups32");
            assert_eq!(of("_conv_depthwise2d", &text).as_deref(), Some(&*expected));
        }
    }
}
