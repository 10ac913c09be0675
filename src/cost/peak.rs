//! How much memory the tensors of both variants take at the same time.

use crate::vocabulary::{Problem, Step};

/// The most bytes of tensors that are alive at the same time in each variant.
///
/// The inputs and the output of the chain are there throughout, since what surrounds the chain owns
/// them. The unfused variant also has the intermediate tensors that a kernel reads and writes: one for
/// every op that changes the shape or how numbers are stored, while other pointwise and row ops work in
/// place. What kernels need for themselves is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeakMemory {
    /// Of the unfused variant.
    pub unfused_bytes: u64,
    /// Of the fused one: the inputs and the output.
    pub fused_bytes: u64,
}

impl PeakMemory {
    /// The peak of a problem.
    #[must_use]
    pub fn of(problem: &Problem) -> Self {
        let steps: Vec<_> = problem.steps().collect();
        let in_place = |index: usize| {
            let step = &steps[index];
            let is_stored_alike = step.input_element_bytes() == step.output_element_bytes();
            index > 0 && (step.op.is_pointwise() || step.op.is_row()) && is_stored_alike
        };
        let of_input = |step: &Step| step.input.elements() * step.input_element_bytes();
        let mut boundary = steps.first().map_or(0, of_input);
        boundary += steps.last().map_or(0, Step::output_bytes);
        // The intermediate tensor that the next kernel reads; none while it reads an input, and
        // once the output is written.
        let (mut source, mut most) = (0, 0);
        for (index, step) in steps.iter().enumerate() {
            boundary += step.operand_bytes();
            if in_place(index) {
                continue;
            }
            let writes_output = (index + 1..steps.len()).all(in_place);
            let target = if writes_output { 0 } else { step.output_bytes() };
            most = most.max(source + target);
            source = target;
        }
        Self { unfused_bytes: boundary + most, fused_bytes: boundary }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements: the boundary, and the intermediate tensors that are alive together.
    #[test]
    fn each_kind_of_chain_by_hand() {
        for (text, boundary, intermediate) in [
            // X 12, W 20, b 5, Y 15; bias and ReLU in place.
            ("linear_bias_relu/f32/m3.k4.n5", 52, 0),
            // X 12, W 20, b 5, W2 30, c 6, Y 18; H 15 between the layers.
            ("mlp/f32/m3.k4.n5.o6", 91, 15),
            // Q 30, K 40, V 40, O 30; S 24.
            ("attention_head/f32/b1.h2.q3.kv4.d5", 140, 24),
            // And W 70, Y 21; S 24 with O 30, then O alone.
            ("multihead_linear/f32/b1.h2.q3.kv4.d5.n7", 30 + 40 + 40 + 70 + 21, 54),
            // A 12, B 12, Y 12.
            ("add_relu/f32/m3.n4", 36, 0),
            ("relu/f32/m3.n4", 24, 0),
            // X 96, filter 135, batch norm 20, Y 10; 40 before the pool.
            ("conv_bn_relu_maxpool/f32/n2.c3.h4.w4.k5.r3.s3", 261, 40),
        ] {
            let peak = PeakMemory::of(&text.parse().unwrap());
            assert_eq!(peak.fused_bytes, 4 * boundary, "{text}");
            assert_eq!(peak.unfused_bytes, 4 * (boundary + intermediate), "{text}");
        }
        let half = PeakMemory::of(&"mlp/bf16/m3.k4.n5.o6".parse().unwrap());
        assert_eq!(half.unfused_bytes, 2 * 106);
    }
}
