//! What operators read and write: the bytes that must be moved at least.

use super::amount::{bytes, elements};
use crate::dtypes;
use crate::shapes::{ConvPass, Input, Problem, Shape, base};

/// The bytes of inputs that a problem does not read: the gradient of the input needs no input, that
/// of the weights no weights.
pub(super) fn unread(problem: &Problem, shape: &Shape<'_>) -> f64 {
    let Problem::Conv { pass: ConvPass::Backward { of_input, of_weights }, .. } = problem else {
        return 0.0;
    };
    let size = |input: usize| shape.inputs.get(input).and_then(bytes).unwrap_or(0.0);
    [(of_weights, 1), (of_input, 2)]
        .into_iter()
        .filter(|(is_wanted, _)| !**is_wanted)
        .map(|(_, input)| size(input))
        .sum()
}

/// The bytes of what a problem gives; none if the size of an element is not known.
pub(super) fn results(op: &str, problem: &Problem, shape: &Shape<'_>) -> Option<f64> {
    let first = shape.inputs.iter().find(|input| bytes(input).is_some())?;
    let element = match base(op) {
        "_int_mm" => INT32,
        "_scaled_mm" => scaled_element(shape, first)?,
        _ => dtypes::bytes(first.kind)?,
    };
    #[expect(clippy::cast_precision_loss, reason = "a size of an element")]
    let element = element as f64;
    Some(result_elements(problem, shape) * element)
}

/// The size of an element that a GEMM of scaled matrices writes: of the dtype that it was asked for,
/// else of that of its input. Of a dtype without its number, 16 bits, as models have that use it.
fn scaled_element(shape: &Shape<'_>, first: &Input<'_>) -> Option<u64> {
    let scalars = shape.inputs.iter().skip(2).filter(|input| input.kind == "Scalar");
    let mut asked = scalars.filter(|input| !matches!(input.value, "True" | "False"));
    match asked.next() {
        Some(dtype) => Some(dtypes::bytes_by_number(dtype.value).unwrap_or(BF16)),
        None => dtypes::bytes(first.kind),
    }
}

/// The sizes of an element.
const INT32: u64 = 4;
const BF16: u64 = 2;

/// The elements that a problem writes.
#[expect(clippy::cast_precision_loss, reason = "an amount of work")]
fn result_elements(problem: &Problem, shape: &Shape<'_>) -> f64 {
    let product = |sizes: &[u64]| sizes.iter().map(|size| *size as f64).product::<f64>();
    match problem {
        Problem::Gemm { batch, m, n, .. } => product(&[*batch, *m, *n]),
        Problem::Conv { batch, weights, points, pass: ConvPass::Forward, .. } => {
            product(&[*batch, *points]) * weights.first().map_or(0.0, |outputs| *outputs as f64)
        }
        Problem::Conv {
            batch,
            weights,
            image,
            channels,
            pass: ConvPass::Backward { of_input, of_weights },
            ..
        } => {
            let of_input =
                if *of_input { product(image) * product(&[*batch, *channels]) } else { 0.0 };
            of_input + if *of_weights { product(weights) } else { 0.0 }
        }
        Problem::Attention { batch, queries, values, is_backward: false, .. } => {
            product(&[*batch, *queries, *values])
        }
        // A gradient for each of queries, keys and values.
        Problem::Attention { .. } => shape.inputs.iter().skip(1).take(3).filter_map(elements).sum(),
        Problem::Embedding { .. } => 0.0,
    }
}

/// Operators that write random numbers over their input, and read nothing.
pub(super) fn only_writes(op: &str) -> bool {
    matches!(base(op), "uniform_" | "normal_" | "exponential_" | "bernoulli_" | "random_")
}

/// The bytes that a pointwise operator writes: over its first input, or as many elements as its
/// inputs have when they are broadcast, each of the dtype that they are promoted to, or a truth.
pub(super) fn elements_written(op: &str, shape: &Shape<'_>) -> Option<f64> {
    let mut tensors = shape.inputs.iter().filter(|input| bytes(input).is_some());
    if base(op).ends_with('_') {
        return tensors.next().and_then(bytes);
    }
    let tensors: Vec<&Input<'_>> = tensors.collect();
    let element = match base(op) {
        "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "logical_and" | "logical_or" | "logical_not" => 1,
        _ => {
            let sizes = tensors.iter().map(|input| dtypes::promotion(input.kind));
            sizes.max().map(|(_, size)| size)?
        }
    };
    #[expect(clippy::cast_precision_loss, reason = "a size of an element")]
    let element = element as f64;
    Some(broadcast(&tensors) * element)
}

/// The elements of tensors that are broadcast to each other: of each dimension, counted from the
/// last, the largest.
#[expect(clippy::cast_precision_loss, reason = "an amount of work")]
fn broadcast(tensors: &[&Input<'_>]) -> f64 {
    let most = tensors.iter().map(|input| input.dims.len()).max().unwrap_or(0);
    let sizes = (0..most).map(|from_last| {
        let sizes = tensors.iter().filter_map(|input| {
            let dims = input.dims.iter().rev();
            dims.copied().nth(from_last).flatten()
        });
        // What is empty stays so.
        let (mut least, mut largest) = (u64::MAX, 0);
        for size in sizes {
            least = least.min(size);
            largest = largest.max(size);
        }
        if least == 0 { 0.0 } else { largest as f64 }
    });
    sizes.product()
}

#[cfg(test)]
mod tests {
    use crate::rates::amount::Amount;

    fn moved(op: &str, text: &str) -> f64 {
        Amount::of(op, text).unwrap().bytes
    }

    #[test]
    fn what_pointwise_operators_write() {
        let bf16 = "c10::BFloat16";
        // A comparison writes a byte for each element.
        assert_eq!(moved("aten::gt", &format!("64x32 {bf16}; Scalar=0")), 2048.0 * (2.0 + 1.0));
        // A column and a row give a matrix.
        let outer = format!("64x1 {bf16};1x32 {bf16}; Scalar=1");
        assert_eq!(moved("aten::add", &outer), 2.0 * (64.0 + 32.0 + 2048.0));
        let bias = format!("4x64x32 {bf16};32 float");
        assert_eq!(moved("aten::mul", &bias), 2.0 * 8192.0 + 4.0 * 32.0 + 4.0 * 8192.0);
        // Floating point wins over whole numbers, whatever their size.
        let mixed = format!("64 {bf16};64 long int");
        assert_eq!(moved("aten::mul", &mixed), 64.0 * (2.0 + 8.0 + 2.0));
        let chosen = format!("64x1 bool;64x32 {bf16};64x32 {bf16}");
        assert_eq!(moved("aten::where", &chosen), 64.0 + 3.0 * 2.0 * 2048.0);
        // In place, and without reading.
        assert_eq!(moved("aten::add_", "64 c10::Half;64 float"), 64.0 * (2.0 + 4.0 + 2.0));
        assert_eq!(moved("aten::normal_", "64 float; Scalar=0; Scalar=1"), 256.0);
        assert_eq!(moved("aten::add", "64 float;0x64 float"), 256.0);
    }

    #[test]
    fn what_gemms_write() {
        let inputs = 64.0 * 32.0 + 32.0 * 48.0;
        let fp8 = "64x32 c10::Float8_e4m3fn;32x48 c10::Float8_e4m3fn";
        let scaled = |rest: &str| moved("aten::_scaled_mm", &format!("{fp8};{rest}")) - inputs;
        let results = 64.0 * 48.0;
        // bf16, f32, what is not said, and what was not asked for.
        for (rest, element) in [
            (" float; float;;; Scalar=15; Scalar=True", 2.0),
            (" float; float;;; Scalar=6; Scalar=False", 4.0),
            (" float; float;;; Scalar; Scalar", 2.0),
            (" float; float;;;; Scalar=True", 1.0),
            // An older order.
            ("; Scalar=5; float; float;; Scalar=True", 2.0),
        ] {
            assert_eq!(scaled(rest), element * results, "{rest}");
        }
        let ints = "64x32 signed char;32x48 signed char";
        assert_eq!(moved("aten::_int_mm", ints), inputs + 4.0 * results);
        let bf16 = "64x32 c10::BFloat16;32x48 c10::BFloat16";
        assert_eq!(moved("aten::mm", bf16), 2.0 * (inputs + results));
    }

    #[test]
    fn gradients_that_are_not_wanted_are_not_moved() {
        let of = |mask: &str| {
            let text = format!(
                "2x8x5x5 float;2x4x5x5 float;8x4x3x3 float; ScalarList=[0]; ScalarList=[1, 1]; \
                 ScalarList=[1, 1]; ScalarList=[1, 1]; Scalar=False; ScalarList=[0, 0]; Scalar=1; =[{mask}]"
            );
            moved("aten::convolution_backward", &text) / 4.0
        };
        let (gradient, image, weights) = (400.0, 200.0, 288.0);
        assert_eq!(of("True, True, True"), gradient + 2.0 * image + 2.0 * weights);
        assert_eq!(of("False, True, True"), gradient + image + weights);
        assert_eq!(of("True, False, True"), gradient + image + weights);
    }

    #[test]
    fn attention_writes_as_many_values_as_queries() {
        let text = "2x16x8x192 float;2x4x10x192 float;2x4x10x128 float";
        let inputs = 4.0 * f64::from(2 * 16 * 8 * 192 + 2 * 4 * 10 * (192 + 128));
        let results = 4.0 * f64::from(2 * 16 * 8 * 128);
        let forward = "aten::_scaled_dot_product_efficient_attention";
        assert_eq!(moved(forward, text), inputs + results);
        let backward = "aten::_scaled_dot_product_efficient_attention_backward";
        let text = format!("2x16x8x128 float;{text}");
        assert_eq!(moved(backward, &text), results + 2.0 * inputs);
    }
}
