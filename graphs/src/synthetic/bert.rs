//! BERT-base: <https://arxiv.org/abs/1810.04805>, exported before ONNX had layer norm and GELU.

use super::model::{FLOAT, INT64, Model, Size, int, ints};

const FEATURES: i64 = 768;
const HEADS: i64 = 12;

/// BERT-base with the open dimensions `batch` and `sequence`: twelve layers of an attention and six
/// linear layers, and one linear layer behind them.
#[must_use]
pub fn bert_base() -> Vec<u8> {
    let mut model = Model::new("bert-base", FLOAT, 13);
    let size = [Size::Open("batch"), Size::Open("sequence")];
    let tokens = model.input("input_ids", INT64, &size);
    let types = model.input("token_type_ids", INT64, &size);
    let attended = model.input("attention_mask", FLOAT, &size);
    let mask = mask(&mut model, &attended);
    let mut x = embedding(&mut model, &tokens, &types);
    for _ in 0..12 {
        let attention = attention(&mut model, &x, &mask);
        let sum = model.op("Add", &[&attention, &x]);
        let normal = layer_norm(&mut model, &sum);
        let hidden = linear(&mut model, &normal, FEATURES, 4 * FEATURES);
        let hidden = gelu(&mut model, &hidden);
        let hidden = linear(&mut model, &hidden, 4 * FEATURES, FEATURES);
        let sum = model.op("Add", &[&hidden, &normal]);
        x = layer_norm(&mut model, &sum);
    }
    let features = Size::Known(FEATURES);
    model.output(&x, &[size[0], size[1], features]);
    // The first token stands for the sequence.
    let first = model.list(&[0]);
    let token = model.op_with("Gather", &[&x, &first], vec![int("axis", 1)]);
    let axes = model.list(&[1]);
    let token = model.op("Squeeze", &[&token, &axes]);
    let (weight, bias) = (model.weight(&[FEATURES, FEATURES]), model.weight(&[FEATURES]));
    let pooled = model.op_with("Gemm", &[&token, &weight, &bias], vec![int("transB", 1)]);
    let pooled = model.op("Tanh", &[&pooled]);
    model.output(&pooled, &[size[0], features]);
    model.finish()
}

/// A large negative number for every token that is not attended to, `[batch, 1, 1, sequence]`.
fn mask(model: &mut Model, attended: &str) -> String {
    let axes = model.list(&[1, 2]);
    let attended = model.op("Unsqueeze", &[attended, &axes]);
    let (one, low) = (model.number(1.0), model.number(-10_000.0));
    let missing = model.op("Sub", &[&one, &attended]);
    model.op("Mul", &[&missing, &low])
}

fn embedding(model: &mut Model, tokens: &str, types: &str) -> String {
    let table = |model: &mut Model, rows, ids: &str| {
        let table = model.weight(&[rows, FEATURES]);
        model.op("Gather", &[&table, ids])
    };
    let words = table(model, 30_522, tokens);
    let kinds = table(model, 2, types);
    let sum = model.op("Add", &[&words, &kinds]);
    // The positions are the first ones of a table, as many as there are tokens.
    let shape = model.op("Shape", &[tokens]);
    let second = model.list(&[1]);
    let end = model.op("Gather", &[&shape, &second]);
    let (positions, start, axis) =
        (model.weight(&[512, FEATURES]), model.list(&[0]), model.list(&[0]));
    let positions = model.op("Slice", &[&positions, &start, &end, &axis]);
    let sum = model.op("Add", &[&sum, &positions]);
    layer_norm(model, &sum)
}

/// A linear layer, whose bias exporters write first.
fn linear(model: &mut Model, x: &str, from: i64, to: i64) -> String {
    let (weight, bias) = (model.weight(&[from, to]), model.weight(&[to]));
    let product = model.op("MatMul", &[x, &weight]);
    model.op("Add", &[&bias, &product])
}

fn attention(model: &mut Model, x: &str, mask: &str) -> String {
    let [query, key, value] = [(); 3].map(|()| linear(model, x, FEATURES, FEATURES));
    let heads = |model: &mut Model, x: &str, order: &[i64]| {
        let shape = model.list(&[0, 0, HEADS, FEATURES / HEADS]);
        let split = model.op("Reshape", &[x, &shape]);
        model.op_with("Transpose", &[&split], vec![ints("perm", order)])
    };
    let query = heads(model, &query, &[0, 2, 1, 3]);
    let key = heads(model, &key, &[0, 2, 3, 1]);
    let value = heads(model, &value, &[0, 2, 1, 3]);
    let scores = model.op("MatMul", &[&query, &key]);
    let root = model.number(8.0);
    let scores = model.op("Div", &[&scores, &root]);
    let scores = model.op("Add", &[&scores, mask]);
    let weights = model.op_with("Softmax", &[&scores], vec![int("axis", 3)]);
    let output = model.op("MatMul", &[&weights, &value]);
    let joined = model.op_with("Transpose", &[&output], vec![ints("perm", &[0, 2, 1, 3])]);
    let shape = model.list(&[0, 0, FEATURES]);
    let joined = model.op("Reshape", &[&joined, &shape]);
    linear(model, &joined, FEATURES, FEATURES)
}

fn layer_norm(model: &mut Model, x: &str) -> String {
    let last = || vec![ints("axes", &[-1])];
    let mean = model.op_with("ReduceMean", &[x], last());
    let centred = model.op("Sub", &[x, &mean]);
    let two = model.number(2.0);
    let squared = model.op("Pow", &[&centred, &two]);
    let variance = model.op_with("ReduceMean", &[&squared], last());
    let epsilon = model.number(1e-12);
    let sum = model.op("Add", &[&variance, &epsilon]);
    let root = model.op("Sqrt", &[&sum]);
    let normal = model.op("Div", &[&centred, &root]);
    let (weight, shift) = (model.weight(&[FEATURES]), model.weight(&[FEATURES]));
    let scaled = model.op("Mul", &[&normal, &weight]);
    model.op("Add", &[&scaled, &shift])
}

fn gelu(model: &mut Model, x: &str) -> String {
    let root = model.number(std::f64::consts::SQRT_2);
    let inner = model.op("Div", &[x, &root]);
    let erf = model.op("Erf", &[&inner]);
    let one = model.number(1.0);
    let sum = model.op("Add", &[&erf, &one]);
    let product = model.op("Mul", &[x, &sum]);
    let half = model.number(0.5);
    model.op("Mul", &[&product, &half])
}
