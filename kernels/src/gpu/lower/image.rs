//! Images as the left operands of GEMMs: the parts that a filter covers, as rows of a matrix.

use fusion_cost_model::ConvSizes;

use super::phase::Parameters;
use crate::gpu::tensors::TensorId;

/// An image as the left operand of a GEMM.
#[derive(Debug, Clone, Copy)]
pub(super) struct Image {
    /// The image.
    pub(super) tensor: TensorId,
    /// The convolution.
    pub(super) sizes: ConvSizes,
    /// The side of the windows of a max-pool whose pixels follow each other, or 0.
    pub(super) window: u64,
}

impl Image {
    /// The order of its output pixels, in C++.
    pub(super) fn pixels(&self, parameters: &mut Parameters) -> String {
        let (out_h, out_w) =
            (parameters.size(self.sizes.out_h()), parameters.size(self.sizes.out_w()));
        format!("port::Pixels<{}>{{{out_h}, {out_w}}}", self.window)
    }

    /// The fields of `ImageSource` after its rows and columns.
    pub(super) fn fields(&self, parameters: &mut Parameters) -> String {
        let ConvSizes { h, w, c, s, stride, pad, groups, .. } = self.sizes;
        let pixels = self.pixels(parameters);
        let sizes = [h, w, c, stride, pad].map(|size| parameters.size(size)).join(", ");
        let [group, width] = [c / groups, s].map(|by| divisor(by, parameters));
        format!("{pixels}, {sizes}, {group}, {width}")
    }
}

/// Multiplier and shift for the division of numbers below `2^31` by a constant: with `l` the bits
/// of `by - 1` and `m = ceil(2^(31 + l) / by)`, `x / by` is `x m >> (31 + l)` (Granlund and
/// Montgomery, "Division by Invariant Integers using Multiplication", 1994, theorem 4.2).
fn multiplier(by: u64) -> [u64; 2] {
    let bits = u64::BITS - by.saturating_sub(1).leading_zeros();
    let shift = 31 + u64::from(bits);
    let multiplier = (1_u128 << shift).div_ceil(u128::from(by.max(1)));
    [u64::try_from(multiplier).unwrap_or(u64::MAX), shift]
}

fn divisor(by: u64, parameters: &mut Parameters) -> String {
    let [multiplier, shift] = multiplier(by);
    let fields = [by, multiplier, shift].map(|size| parameters.size(size)).join(", ");
    format!("port::Divisor{{{fields}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_are_multiplications() {
        let divisors = (1..400).chain([1 << 20, (1 << 20) + 1, (1 << 31) - 1]);
        for by in divisors {
            let [multiplier, shift] = multiplier(by);
            let near = (0..40).flat_map(|times: u64| [times * by, (times + 1) * by - 1]);
            let last = (1_u64 << 31) - 1;
            for x in near.chain([last, last - 1, last / by * by]).filter(|x| *x <= last) {
                assert_eq!((x * multiplier) >> shift, x / by, "{x} / {by}");
            }
        }
    }
}
