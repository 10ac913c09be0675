//! One block of a Llama with eight billion parameters: <https://arxiv.org/abs/2407.21783>, in half
//! precision, with its norms in single precision.

use super::model::{FLOAT, FLOAT16, Model, Size, int, ints};

const FEATURES: i64 = 4096;
const HEADS: i64 = 32;
const KEY_HEADS: i64 = 8;
const HEAD: i64 = FEATURES / HEADS;
const HIDDEN: i64 = 14_336;

/// A block of Llama 3 8B with the open dimensions `batch` and `sequence`: seven linear layers, an
/// attention whose 32 heads share eight keys and values, two RMS norms, and SwiGLU.
#[must_use]
pub fn llama_block() -> Vec<u8> {
    let mut model = Model::new("llama-block", FLOAT16, 17);
    let (batch, sequence) = (Size::Open("batch"), Size::Open("sequence"));
    let size = [batch, sequence, Size::Known(FEATURES)];
    let x = model.input("hidden", FLOAT16, &size);
    let angles = [Size::Known(1), sequence, Size::Known(HEAD)];
    let cos = model.input("cos", FLOAT16, &angles);
    let sin = model.input("sin", FLOAT16, &angles);
    let causal = [Size::Known(1), Size::Known(1), sequence, sequence];
    let mask = model.input("mask", FLOAT16, &causal);
    let normal = rms_norm(&mut model, &x);
    let attended = attention(&mut model, &normal, &cos, &sin, &mask);
    let x = model.op("Add", &[&x, &attended]);
    let normal = rms_norm(&mut model, &x);
    let gate = linear(&mut model, &normal, FEATURES, HIDDEN);
    let sigmoid = model.op("Sigmoid", &[&gate]);
    let gate = model.op("Mul", &[&gate, &sigmoid]);
    let up = linear(&mut model, &normal, FEATURES, HIDDEN);
    let hidden = model.op("Mul", &[&gate, &up]);
    let down = linear(&mut model, &hidden, HIDDEN, FEATURES);
    let x = model.op("Add", &[&x, &down]);
    model.output(&x, &size);
    model.finish()
}

fn linear(model: &mut Model, x: &str, from: i64, to: i64) -> String {
    let weight = model.weight(&[from, to]);
    model.op("MatMul", &[x, &weight])
}

fn rms_norm(model: &mut Model, x: &str) -> String {
    let single = model.op_with("Cast", &[x], vec![int("to", i64::from(FLOAT))]);
    let two = model.single(2.0);
    let squared = model.op("Pow", &[&single, &two]);
    let mean = model.op_with("ReduceMean", &[&squared], vec![ints("axes", &[-1])]);
    let epsilon = model.single(1e-5);
    let sum = model.op("Add", &[&mean, &epsilon]);
    let root = model.op("Sqrt", &[&sum]);
    let one = model.single(1.0);
    let inverse = model.op("Div", &[&one, &root]);
    let normal = model.op("Mul", &[&single, &inverse]);
    let normal = model.op_with("Cast", &[&normal], vec![int("to", i64::from(FLOAT16))]);
    let weight = model.weight(&[FEATURES]);
    model.op("Mul", &[&weight, &normal])
}

fn attention(model: &mut Model, x: &str, cos: &str, sin: &str, mask: &str) -> String {
    let axes = model.list(&[1]);
    let cos = model.op("Unsqueeze", &[cos, &axes]);
    let sin = model.op("Unsqueeze", &[sin, &axes]);
    let split = |model: &mut Model, heads| {
        let all = linear(model, x, FEATURES, heads * HEAD);
        let shape = model.list(&[0, 0, -1, HEAD]);
        let split = model.op("Reshape", &[&all, &shape]);
        model.op_with("Transpose", &[&split], vec![ints("perm", &[0, 2, 1, 3])])
    };
    let query = split(model, HEADS);
    let key = split(model, KEY_HEADS);
    let value = split(model, KEY_HEADS);
    let query = rotary(model, &query, &cos, &sin);
    let key = rotary(model, &key, &cos, &sin);
    let key = repeated(model, &key);
    let value = repeated(model, &value);
    let key = model.op_with("Transpose", &[&key], vec![ints("perm", &[0, 1, 3, 2])]);
    let scores = model.op("MatMul", &[&query, &key]);
    #[expect(clippy::cast_precision_loss, reason = "128")]
    let scale = model.number((HEAD as f64).sqrt().recip());
    let scores = model.op("Mul", &[&scores, &scale]);
    let scores = model.op("Add", &[&scores, mask]);
    let single = model.op_with("Cast", &[&scores], vec![int("to", i64::from(FLOAT))]);
    let weights = model.op_with("Softmax", &[&single], vec![int("axis", -1)]);
    let weights = model.op_with("Cast", &[&weights], vec![int("to", i64::from(FLOAT16))]);
    let output = model.op("MatMul", &[&weights, &value]);
    let joined = model.op_with("Transpose", &[&output], vec![ints("perm", &[0, 2, 1, 3])]);
    let shape = model.list(&[0, 0, -1]);
    let joined = model.op("Reshape", &[&joined, &shape]);
    linear(model, &joined, FEATURES, FEATURES)
}

/// `x cos + rotate_half(x) sin`.
fn rotary(model: &mut Model, x: &str, cos: &str, sin: &str) -> String {
    let straight = model.op("Mul", &[x, cos]);
    let half = |model: &mut Model, start: i64, end: i64| {
        let (starts, ends, axes) = (model.list(&[start]), model.list(&[end]), model.list(&[3]));
        model.op("Slice", &[x, &starts, &ends, &axes])
    };
    let first = half(model, 0, HEAD / 2);
    let second = half(model, HEAD / 2, i64::MAX);
    let negative = model.op("Neg", &[&second]);
    let rotated = model.op_with("Concat", &[&negative, &first], vec![int("axis", -1)]);
    let crossed = model.op("Mul", &[&rotated, sin]);
    model.op("Add", &[&straight, &crossed])
}

/// Keys or values for every head of queries.
fn repeated(model: &mut Model, x: &str) -> String {
    let axes = model.list(&[2]);
    let apart = model.op("Unsqueeze", &[x, &axes]);
    let shape = model.list(&[1, 1, HEADS / KEY_HEADS, 1, 1]);
    let copies = model.op("Expand", &[&apart, &shape]);
    let shape = model.list(&[0, HEADS, -1, HEAD]);
    model.op("Reshape", &[&copies, &shape])
}
