//! Convolutions: what their operators were called with.

use super::problem::{Problem, base, is_of_library, saturating_product};
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
    fn of(op: &str, shape: &Shape<'_>, sizes: &[u64]) -> Self {
        // The sizes of the window itself come first, behind the weights.
        let first = if is_depthwise_of_framework(op) { 3 } else { 2 };
        let lists = shape.inputs.iter().skip(first).filter(|input| input.is_list());
        let mut lists = lists.map(Input::numbers).filter(|list| list.len() == sizes.len());
        // The framework's operator has the stride before the padding, those of libraries behind,
        // unless an activation follows.
        let has_padding_first = is_of_library(op) && !base(op).ends_with("_relu");
        let (stride, padding) = match (lists.next(), lists.next()) {
            (Some(padding), Some(stride)) if has_padding_first => (stride, padding),
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
    // In an operator of a library, this input is the number of groups or how it chooses a kernel.
    let is_transposed = !is_of_library(op) && is_transposed(shape, 6);
    if image.len() != sizes.len() || is_transposed {
        return None;
    }
    let window = Window::of(op, shape, sizes);
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

/// Whether an operator has the sizes of its window behind the weights.
fn is_depthwise_of_framework(op: &str) -> bool {
    matches!(base(op), "_conv_depthwise2d" | "conv_depthwise3d")
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
    fn what_a_library_is_told_of_choosing_a_kernel_is_no_direction() {
        let lists = "ScalarList=[1, 1]; ScalarList=[2, 2]; ScalarList=[1, 1]; Scalar=1";
        let expected = Some((2_u64 * 128 * 64 * 9 * 8 * 28 * 28) as f64);
        for benchmark in ["True", "False"] {
            // Padding, stride, dilation, groups, benchmark, deterministic, allow_tf32; where it has no
            // bias, benchmark is the input that says of others whether they are transposed.
            let text = format!(
                "8x64x56x56;128x64x3x3; {lists}; Scalar={benchmark}; Scalar=False; Scalar=True"
            );
            assert_eq!(flops("aten::cudnn_convolution", &text), expected, "{benchmark}");
            let text = format!("8x64x56x56;128x64x3x3;; {lists}; Scalar={benchmark}; Scalar=False");
            assert_eq!(flops("aten::miopen_convolution", &text), expected, "{benchmark}");
        }
    }

    #[test]
    fn depthwise_convolutions_of_both_vendors_are_the_same_problem() {
        let of = Problem::of;
        let framework = of(
            "aten::convolution",
            "8x32x56x56;32x1x3x3;32; ScalarList=[2, 2]; ScalarList=[1, 1]; ScalarList=[1, 1]; \
             Scalar=False; ScalarList=[0, 0]; Scalar=32",
        );
        assert_eq!(
            framework.as_ref().map(Problem::flops),
            Some(f64::from(2 * 32 * 9 * 8 * 28 * 28))
        );
        // The window, then the bias, the stride, the padding and the dilation.
        let cuda = of(
            "aten::_conv_depthwise2d",
            "8x32x56x56;32x1x3x3; ScalarList=[3, 3];32; ScalarList=[2, 2]; ScalarList=[1, 1]; \
             ScalarList=[1, 1]",
        );
        assert_eq!(cuda, framework);
        let miopen = of(
            "aten::miopen_depthwise_convolution",
            "8x32x56x56;32x1x3x3;32; ScalarList=[1, 1]; ScalarList=[2, 2]; ScalarList=[1, 1]; \
             Scalar=32; Scalar=True; Scalar=False",
        );
        assert_eq!(miopen, framework);
        let in_space = of(
            "aten::conv_depthwise3d",
            "1x4x9x9x9;4x1x3x3x3; ScalarList=[3, 3, 3];; ScalarList=[2, 2, 2]; \
             ScalarList=[1, 1, 1]; ScalarList=[1, 1, 1]",
        );
        assert_eq!(in_space.map(|one| one.flops()), Some(f64::from(2 * 4 * 27 * 5 * 5 * 5)));
    }

    #[test]
    fn convolutions_with_an_activation_have_the_stride_first() {
        let lists = "ScalarList=[2, 2]; ScalarList=[1, 1]; ScalarList=[1, 1]; Scalar=1";
        let images = "8x64x56x56;128x64x3x3";
        let expected = Some((2_u64 * 128 * 64 * 9 * 8 * 28 * 28) as f64);
        for library in ["cudnn", "miopen"] {
            let op = format!("aten::{library}_convolution_relu");
            assert_eq!(flops(&op, &format!("{images};128; {lists}")), expected);
            // What is added, and times what, comes before the bias.
            let op = format!("aten::{library}_convolution_add_relu");
            let text = format!("{images};8x128x28x28; Scalar=1;128; {lists}");
            assert_eq!(flops(&op, &text), expected);
        }
        // A factor is a number, not a list with one entry.
        let one =
            "1x4x100;4x4x3;1x4x50; Scalar=7;4; ScalarList=[2]; ScalarList=[1]; ScalarList=[1]";
        let expected = Some(f64::from(2 * 4 * 4 * 3 * 50));
        assert_eq!(flops("aten::cudnn_convolution_add_relu", one), expected);
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
