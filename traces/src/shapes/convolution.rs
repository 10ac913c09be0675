//! Convolutions: what their operators were called with.

use super::problem::{Problem, is_of_library, saturating_product};
use super::{Input, Shape};

/// What a convolution computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConvPass {
    /// The output.
    Forward,
    /// The gradients that are wanted. The first layer of a network needs none of its input.
    Backward {
        /// Of the input.
        of_input: bool,
        /// Of the weights.
        of_weights: bool,
    },
}

impl ConvPass {
    /// How many times the arithmetic of the forward pass it does.
    #[must_use]
    pub const fn times(self) -> u64 {
        match self {
            Self::Forward => 1,
            Self::Backward { of_input, of_weights } => of_input as u64 + of_weights as u64,
        }
    }
}

/// How the window goes over an image, in each of its directions.
struct Window {
    stride: Vec<u64>,
    padding: Vec<u64>,
    dilation: Vec<u64>,
}

impl Window {
    fn of(shape: &Shape<'_>, sizes: &[u64], is_of_library: bool) -> Self {
        let lists = shape.inputs.iter().skip(2).map(Input::numbers);
        let mut lists = lists.filter(|list| list.len() == sizes.len());
        // The framework's operator has the stride before the padding, those of libraries behind.
        let (stride, padding) = match (lists.next(), lists.next()) {
            (Some(padding), Some(stride)) if is_of_library => (stride, padding),
            (Some(stride), Some(padding)) => (stride, padding),
            _ => (vec![1; sizes.len()], sizes.iter().map(|size| size / 2).collect()),
        };
        let dilation = lists.next().unwrap_or_else(|| vec![1; sizes.len()]);
        Self { stride, padding, dilation }
    }

    /// The stride and the padding, if they are the same in all directions.
    fn alike(&self) -> Option<[u64; 2]> {
        let one = |list: &[u64]| {
            let first = *list.first()?;
            list.iter().all(|size| *size == first).then_some(first)
        };
        Some([one(&self.stride)?, one(&self.padding)?])
    }

    /// The points of an image that goes out.
    fn points(&self, image: &[u64], sizes: &[u64]) -> u64 {
        let directions = image.iter().zip(sizes).zip(&self.stride).zip(&self.padding);
        let points =
            directions.zip(&self.dilation).map(|((((image, size), stride), padding), gap)| {
                // The points of the window are so far apart.
                let reach = size.saturating_sub(1).saturating_mul(*gap).saturating_add(1);
                let room = image.saturating_add(padding.saturating_mul(2)).saturating_sub(reach);
                (room / (*stride).max(1)).saturating_add(1)
            });
        saturating_product(points)
    }
}

/// Of the input and the weights.
pub(super) fn forward(op: &str, shape: &Shape<'_>) -> Option<Problem> {
    let (image, weights) = (shape.known(0)?, shape.known(1)?);
    let [batch, channels, image @ ..] = &image[..] else { return None };
    let sizes = weights.get(2..)?;
    if image.len() != sizes.len() || is_transposed(shape, 6) {
        return None;
    }
    let window = Window::of(shape, sizes, is_of_library(op));
    Some(Problem::Conv {
        batch: *batch,
        image: image.to_vec(),
        channels: *channels,
        window: window.alike(),
        is_dilated: window.dilation.iter().any(|gap| *gap != 1),
        points: window.points(image, sizes),
        pass: ConvPass::Forward,
        weights,
    })
}

/// Of the gradient of the output, the input, and the weights.
pub(super) fn backward(shape: &Shape<'_>) -> Option<Problem> {
    let (gradient, image, weights) = (shape.known(0)?, shape.known(1)?, shape.known(2)?);
    if is_transposed(shape, 7) {
        return None;
    }
    let points = saturating_product(gradient.get(2..)?.iter().copied());
    let (channels, image) = (*image.get(1)?, image.get(2..)?.to_vec());
    let batch = *gradient.first()?;
    // Which gradients are wanted: of the input, the weights and the bias. Both first ones, if the
    // profiler does not say.
    let mask = shape.inputs.get(10).and_then(Input::truths);
    let [of_input, of_weights] = match mask.as_deref() {
        Some(&[of_input, of_weights, _]) => [of_input, of_weights],
        _ => [true, true],
    };
    let pass = ConvPass::Backward { of_input, of_weights };
    Some(Problem::Conv {
        batch,
        weights,
        image,
        channels,
        window: None,
        is_dilated: false,
        points,
        pass,
    })
}

/// Whether an operator of the framework goes the other way, by the number of the input that says so.
fn is_transposed(shape: &Shape<'_>, input: usize) -> bool {
    shape.inputs.get(input).is_some_and(|input| input.value == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flops(op: &str, text: &str) -> Option<f64> {
        Problem::of(op, text).map(|problem| problem.flops())
    }

    #[test]
    fn convolutions_and_their_arithmetic() {
        let conv = Problem::of(
            "aten::cudnn_convolution",
            "2x3x224x224 float;64x3x7x7 float; ScalarList=[3, 3]; ScalarList=[2, 2]; \
             ScalarList=[1, 1]; Scalar=1",
        );
        let Some(Problem::Conv { batch, points, .. }) = &conv else { panic!("{conv:?}") };
        assert_eq!((*batch, *points), (2, 112 * 112));
        let flops = conv.unwrap().flops();
        assert_eq!(flops, 2.0 * (64 * 3 * 49) as f64 * (2 * 112 * 112) as f64);
        // The library's order: stride before padding.
        let other = Problem::of(
            "aten::convolution",
            "2x3x224x224;64x3x7x7; =; ScalarList=[2, 2]; ScalarList=[0, 0]",
        );
        assert!(matches!(other, Some(Problem::Conv { points: 11_881, .. })), "{other:?}");
    }

    #[test]
    fn a_dilated_window_reaches_further() {
        // 56 + 2 * 2 - (2 * (3 - 1) + 1) + 1 = 56 points in each direction.
        let lists = "ScalarList=[1, 1]; ScalarList=[2, 2]; ScalarList=[2, 2]";
        let tensors = "8x64x56x56;128x64x3x3";
        let expected = (2_u64 * 128 * 64 * 9 * 8 * 56 * 56) as f64;
        for (op, text) in [
            ("aten::convolution", format!("{tensors}; =; {lists}; Scalar=False; Scalar=1")),
            ("aten::conv2d", format!("{tensors};; {lists}; Scalar=1")),
            // Of these the padding comes first.
            (
                "aten::cudnn_convolution",
                format!(
                    "{tensors}; ScalarList=[2, 2]; ScalarList=[1, 1]; ScalarList=[2, 2]; Scalar=1"
                ),
            ),
            (
                "aten::miopen_convolution",
                format!(
                    "{tensors};; ScalarList=[2, 2]; ScalarList=[1, 1]; ScalarList=[2, 2]; Scalar=1"
                ),
            ),
        ] {
            let problem = Problem::of(op, &text);
            assert!(
                matches!(problem, Some(Problem::Conv { is_dilated: true, .. })),
                "{op}: {problem:?}"
            );
            assert_eq!(problem.unwrap().flops(), expected, "{op}");
        }
        // Different in each direction, and a window that is wider than the image.
        let uneven = "1x1x9x9;1x1x3x3; =; ScalarList=[1, 1]; ScalarList=[0, 0]; ScalarList=[1, 2]";
        assert_eq!(flops("aten::convolution", uneven), Some(f64::from(2 * 9 * 7 * 5)));
        let wide = "1x1x9x9;1x1x3x3; =; ScalarList=[1, 1]; ScalarList=[0, 0]; ScalarList=[9, 9]";
        assert_eq!(flops("aten::convolution", wide), Some(f64::from(2 * 9)));
        let one = "1x4x100;4x1x3; =; ScalarList=[1]; ScalarList=[0]; ScalarList=[4]; Scalar=False";
        assert_eq!(flops("aten::convolution", one), Some(f64::from(2 * 4 * 3 * 92)));
    }

    #[test]
    fn only_the_gradients_that_are_wanted_count() {
        let of = |mask: &str| {
            let text = format!(
                "8x128x28x28;8x64x56x56;128x64x3x3; ScalarList=[0]; ScalarList=[2, 2]; \
                 ScalarList=[1, 1]; ScalarList=[1, 1]; Scalar=False; ScalarList=[0, 0]; Scalar=1;{mask}"
            );
            flops("aten::convolution_backward", &text)
        };
        let one = (2_u64 * 128 * 64 * 9 * 8 * 28 * 28) as f64;
        assert_eq!(of(" =[True, True, False]"), Some(2.0 * one));
        assert_eq!(of(" =[False, True, False]"), Some(one));
        assert_eq!(of(" =[True, False, True]"), Some(one));
        assert_eq!(of(" =[False, False, True]"), Some(0.0));
        // Older profilers do not say.
        for mask in ["", " =", " =[True]", " =7"] {
            assert_eq!(of(mask), Some(2.0 * one), "{mask}");
        }
    }

    #[test]
    fn transposed_convolutions_are_not_known() {
        let text = "1x8x9x9;8x4x3x3; =; ScalarList=[2, 2]; ScalarList=[0, 0]; ScalarList=[1, 1]; \
                    Scalar=True; ScalarList=[0, 0]; Scalar=1";
        assert_eq!(Problem::of("aten::convolution", text), None);
        let text = "1x4x19x19;1x8x9x9;8x4x3x3; ScalarList=[0]; ScalarList=[2, 2]; ScalarList=[0, 0]; \
                    ScalarList=[1, 1]; Scalar=True; ScalarList=[0, 0]; Scalar=1; =[True, True, False]";
        assert_eq!(Problem::of("aten::convolution_backward", text), None);
    }
}
