//! A problem in words that a program of any language reads.

use std::collections::BTreeMap;

use fusion_cost_model::kernel::{
    DROPOUT_PROBABILITY, LEAKY_SLOPE, Matrix, NORM_EPSILON, OperandKind, RMS_EPSILON, Step,
};
use fusion_cost_model::{Op, Pointwise, Problem};
use serde::Serialize;

use crate::inputs::{InputSpec, attention_scale};

/// A problem: its inputs, and the ops in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Description {
    /// The problem in its text form.
    text: String,
    /// The dtype of every tensor.
    dtype: &'static str,
    /// What is read: first the tensor that flows along the chain.
    inputs: Vec<InputTensor>,
    /// What is done to that tensor.
    ops: Vec<OpWithOperands>,
    /// The shape of the output.
    output: Vec<u64>,
}

/// A tensor that is read.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct InputTensor {
    name: &'static str,
    /// Row-major; images are NHWC.
    shape: Vec<u64>,
    /// Whether it is a weight, which a program has before it runs.
    constant: bool,
}

/// An op of the chain.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct OpWithOperands {
    op: &'static str,
    /// Which inputs it reads in addition to the tensor that flows, by their numbers.
    operands: Vec<usize>,
    /// The shape of its result.
    shape: Vec<u64>,
    /// Its parameters.
    attributes: BTreeMap<&'static str, f64>,
}

impl Description {
    /// That of a problem.
    pub(super) fn of(problem: &Problem) -> Self {
        let steps: Vec<Step> = problem.steps().collect();
        let specs = InputSpec::of(problem);
        let is_flowing = |index: usize| index == 0;
        let inputs = specs.iter().enumerate().map(|(index, spec)| InputTensor {
            name: spec.name,
            shape: if is_flowing(index) {
                first_shape(problem)
            } else {
                operand_shape(problem, &steps, spec)
            },
            constant: !is_flowing(index) && is_constant(steps[spec.step].op, spec.name),
        });
        let ops = steps.iter().enumerate().map(|(index, step)| OpWithOperands {
            op: step.op.name(),
            operands: (1..specs.len()).filter(|&input| specs[input].step == index).collect(),
            shape: shape_after(problem, &steps, index),
            attributes: attributes(problem, step.op),
        });
        Self {
            text: problem.to_string(),
            dtype: problem.dtype().name(),
            inputs: inputs.collect(),
            ops: ops.collect(),
            output: shape_after(problem, &steps, steps.len() - 1),
        }
    }
}

/// Whether an operand is a weight: all but a second tensor that flows, as a residual connection or
/// the keys and values of attention do.
fn is_constant(op: Op, name: &str) -> bool {
    let kind = op.operands().iter().find(|one| one.name == name).map(|one| one.kind);
    match kind {
        Some(OperandKind::Matrix) => matches!(op, Op::Linear | Op::Conv2d),
        Some(OperandKind::PerChannel | OperandKind::Scalar) => true,
        _ => false,
    }
}

/// The shape of the first input: NHWC for an image, batch, head, query and feature for attention.
fn first_shape(problem: &Problem) -> Vec<u64> {
    let shape = problem.input_shape();
    let is_image = problem.sizes().conv().is_some() || problem.sizes().images().is_some();
    match shape[..] {
        [n, c, h, w] if is_image => vec![n, h, w, c],
        _ => shape,
    }
}

/// The shape of the tensor that flows, after an op.
fn shape_after(problem: &Problem, steps: &[Step], index: usize) -> Vec<u64> {
    let sizes = problem.sizes();
    let Matrix { rows, cols } = steps[index].output;
    let has_been = |op: Op| steps[..=index].iter().any(|step| step.op == op);
    if let (true, Some(pool)) = (has_been(Op::MaxPool), sizes.pool()) {
        let (height, width) = (pool.out_h(), pool.out_w());
        return vec![rows / (height * width), height, width, cols];
    }
    if let Some(conv) = sizes.conv() {
        return vec![conv.n, conv.out_h(), conv.out_w(), cols];
    }
    if let Some(images) = sizes.images() {
        return vec![images.n, images.h, images.w, cols];
    }
    match sizes.attention() {
        Some(attention) if has_been(Op::Pv) => vec![attention.b, attention.q, cols],
        Some(attention) => vec![attention.b, attention.h, attention.q, cols],
        None => vec![rows, cols],
    }
}

fn operand_shape(problem: &Problem, steps: &[Step], spec: &InputSpec) -> Vec<u64> {
    let step = &steps[spec.step];
    let operand = step.op.operands().iter().find(|one| one.name == spec.name);
    let Matrix { rows, cols } = spec.shape;
    match (operand.map(|one| one.kind), step.op) {
        (Some(OperandKind::PerElement), _) => shape_after(problem, steps, spec.step),
        (Some(OperandKind::PerChannel), _) => vec![cols],
        (Some(OperandKind::Scalar), _) => vec![1],
        (_, Op::Conv2d) => problem.sizes().conv().map_or_else(
            || vec![rows, cols],
            |conv| vec![conv.r, conv.s, conv.c / conv.groups, conv.k],
        ),
        (_, Op::Qk | Op::Pv) => problem.sizes().attention().map_or_else(
            || vec![rows, cols],
            |attention| vec![attention.b, attention.kvh, attention.kv, attention.d],
        ),
        _ => vec![rows, cols],
    }
}

/// The parameters of an op that are not tensors.
#[expect(clippy::cast_precision_loss, reason = "sizes of windows")]
fn attributes(problem: &Problem, op: Op) -> BTreeMap<&'static str, f64> {
    let sizes = problem.sizes();
    let mut all = BTreeMap::new();
    match op {
        Op::Conv2d => {
            if let Some(conv) = sizes.conv() {
                all.insert("stride", conv.stride as f64);
                all.insert("pad", conv.pad as f64);
                all.insert("groups", conv.groups as f64);
            }
        }
        Op::MaxPool => {
            if let Some(pool) = sizes.pool() {
                all.insert("window", pool.window as f64);
                all.insert("stride", pool.stride as f64);
                all.insert("pad", pool.pad as f64);
            }
        }
        Op::Qk => {
            let has_own = problem.chain().contains(&Op::Pointwise(Pointwise::Scale));
            let of_head = sizes.attention().map_or(1.0, |one| f64::from(attention_scale(one.d)));
            all.insert("scale", if has_own { 1.0 } else { of_head });
        }
        Op::Softmax if sizes.attention().is_some_and(|attention| attention.causal) => {
            all.insert("causal", 1.0);
        }
        Op::LayerNorm | Op::Pointwise(Pointwise::BatchNorm) => {
            all.insert("epsilon", NORM_EPSILON);
        }
        Op::RmsNorm => {
            all.insert("epsilon", RMS_EPSILON);
        }
        Op::Pointwise(Pointwise::LeakyRelu) => {
            all.insert("slope", LEAKY_SLOPE);
        }
        Op::Pointwise(Pointwise::Dropout) => {
            all.insert("probability", DROPOUT_PROBABILITY);
        }
        _ => {}
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(text: &str) -> serde_json::Value {
        serde_json::to_value(Description::of(&text.parse().unwrap())).unwrap()
    }

    #[test]
    fn images_are_nhwc_and_weights_are_constant() {
        let found = described("conv_bn_relu_maxpool/f32/n2.c3.h13.w10.k17.r3.s3.pad1");
        let shapes: Vec<_> =
            found["ops"].as_array().unwrap().iter().map(|op| &op["shape"]).collect();
        assert_eq!(shapes[0], &serde_json::json!([2, 13, 10, 17]));
        assert_eq!(shapes[3], &serde_json::json!([2, 6, 5, 17]));
        assert_eq!(found["output"], serde_json::json!([2, 6, 5, 17]));
        assert_eq!(found["inputs"][0]["shape"], serde_json::json!([2, 13, 10, 3]));
        assert_eq!(found["inputs"][1]["shape"], serde_json::json!([3, 3, 3, 17]));
        assert_eq!(found["inputs"][0]["constant"], false);
        assert_eq!(found["inputs"][1]["constant"], true);
        assert_eq!(found["ops"][1]["operands"], serde_json::json!([2, 3, 4, 5]));
        assert_eq!(found["ops"][3]["attributes"]["window"], 2.0);
    }

    #[test]
    fn attention_has_its_axes_and_its_scale() {
        let found = described("multihead_linear/f32/b2.h3.q5.kv7.d4.n9");
        assert_eq!(found["inputs"][1]["shape"], serde_json::json!([2, 3, 7, 4]));
        assert_eq!(found["inputs"][1]["constant"], false);
        assert_eq!(found["ops"][0]["attributes"]["scale"], 0.5);
        assert_eq!(found["ops"][2]["shape"], serde_json::json!([2, 5, 12]));
        assert_eq!(found["output"], serde_json::json!([2, 5, 9]));
        assert_eq!(found["ops"][1]["attributes"], serde_json::json!({}));
        let masked = described("attention_head/f32/b2.h6.q5.kv7.d4.kvh3.causal1");
        assert_eq!(masked["inputs"][1]["shape"], serde_json::json!([2, 3, 7, 4]));
        assert_eq!(masked["inputs"][2]["shape"], serde_json::json!([2, 3, 7, 4]));
        assert_eq!(masked["ops"][1]["attributes"], serde_json::json!({"causal": 1.0}));
        let scaled = described("attention_scores/f32/b2.h3.q5.kv7.d4");
        assert_eq!(scaled["ops"][0]["attributes"]["scale"], 1.0);
        assert_eq!(scaled["inputs"][2]["shape"], serde_json::json!([1]));
    }

    /// Each norm has the constant that its reference has.
    #[test]
    fn norms_have_their_own_epsilons() {
        for (text, epsilon) in [
            ("layer_norm/f32/m3.n4", NORM_EPSILON),
            ("rms_norm/f32/m3.n4", RMS_EPSILON),
            ("batch_norm/f32/m3.n4", NORM_EPSILON),
        ] {
            assert_eq!(described(text)["ops"][0]["attributes"]["epsilon"], epsilon, "{text}");
        }
        assert_ne!(NORM_EPSILON, RMS_EPSILON);
    }

    #[test]
    fn random_numbers_are_not_inputs() {
        let found = described("linear_bias_relu_dropout/f32/m3.k4.n5");
        assert_eq!(found["inputs"].as_array().unwrap().len(), 3);
        assert_eq!(found["ops"][3]["operands"], serde_json::json!([]));
        let added = described("linear+add/f32/m3.k4.n5");
        assert_eq!(added["inputs"][2]["shape"], serde_json::json!([3, 5]));
        assert_eq!(added["inputs"][2]["constant"], false);
    }
}
