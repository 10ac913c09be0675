//! Bytes, flops and launches of both variants.

use crate::vocabulary::Problem;

/// The modelled work of a problem: compulsory traffic of both variants, flops credited once.
///
/// Every kernel reads each of its inputs once and writes its output once; a causal softmax reads
/// the scores that it sees. The unfused variant is the sum over its kernels, one per op; the fused
/// one moves what crosses the boundary of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// Floating-point operations of the chain, without those on what a causal mask hides.
    pub flops: u64,
    /// Bytes that the unfused kernels move between them.
    pub unfused_bytes: u64,
    /// Bytes that the fused kernel moves.
    pub fused_bytes: u64,
    /// Kernels of the unfused variant; the fused one has one.
    pub unfused_launches: u64,
}

impl Traffic {
    /// The traffic of a problem.
    #[must_use]
    pub fn of(problem: &Problem) -> Self {
        let mut flops = 0;
        let mut unfused = 0;
        let mut operands = 0;
        let mut first_input = None;
        let mut last_output = 0;
        let mut launches = 0;
        for step in problem.steps() {
            let own = step.operand_bytes();
            flops += step.useful_flops();
            unfused += step.input_bytes() + own + step.output_bytes();
            operands += own;
            first_input.get_or_insert(step.input_bytes());
            last_output = step.output_bytes();
            launches += 1;
        }
        Self {
            flops,
            unfused_bytes: unfused,
            fused_bytes: first_input.unwrap_or(0) + operands + last_output,
            unfused_launches: launches,
        }
    }

    /// The share of the unfused bytes that fusion saves: `1 - fused / unfused`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub fn memory_reduction(&self) -> f64 {
        1.0 - self.fused_bytes as f64 / self.unfused_bytes as f64
    }

    /// Flops per byte of the unfused variant.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub fn unfused_intensity(&self) -> f64 {
        self.flops as f64 / self.unfused_bytes as f64
    }

    /// Flops per byte of the fused variant.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub fn fused_intensity(&self) -> f64 {
        self.flops as f64 / self.fused_bytes as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::PeakMemory;
    use crate::vocabulary::PATTERNS;

    /// Bytes: X 12 and W 20 of one each; sums, a bias and a scale of four each.
    #[test]
    fn integers_take_a_byte_and_their_sums_four() {
        let problem = "linear+bias+relu+requantize/i8/m3.k4.n5".parse().unwrap();
        let traffic = Traffic::of(&problem);
        let (x, w, vector, sums, y) = (12, 20, 20, 60, 15);
        let unfused = (x + w + sums) + (sums + vector + sums) + 2 * sums + (sums + vector + y);
        assert_eq!(traffic.unfused_bytes, unfused);
        assert_eq!(traffic.fused_bytes, x + w + 2 * vector + y);
        assert_eq!(traffic.flops, 2 * 60 + 15 + 15);
        let peak = PeakMemory::of(&problem);
        assert_eq!(peak.fused_bytes, traffic.fused_bytes);
        assert_eq!(peak.unfused_bytes, traffic.fused_bytes + sums);
        // Without the last op, the sums are the result.
        let problem = "linear+bias/i8/m3.k4.n5".parse().unwrap();
        assert_eq!(Traffic::of(&problem).fused_bytes, x + w + vector + sums);
        let peak = PeakMemory::of(&problem);
        assert_eq!(peak.unfused_bytes, peak.fused_bytes);
    }

    /// Elements, not bytes; every figure worked out by hand from the rules above.
    struct Expected {
        problem: &'static str,
        flops: u64,
        unfused: u64,
        fused: u64,
    }

    const EXPECTED: &[Expected] = &[
        // M=3, K=4, N=5: X 12, W 20, Y 15; 60 multiply-adds, one addition an element
        Expected {
            problem: "linear_bias/f32/m3.k4.n5",
            flops: 2 * 60 + 15,
            unfused: (12 + 20 + 15) + (15 + 5 + 15),
            fused: 12 + 20 + 5 + 15,
        },
        Expected {
            problem: "linear_bias_relu/f32/m3.k4.n5",
            flops: 2 * 60 + 15,
            unfused: 47 + 35 + (15 + 15),
            fused: 52,
        },
        Expected {
            // dropout: one multiplication an element, its random numbers are computed
            problem: "linear_bias_relu_dropout/f32/m3.k4.n5",
            flops: 2 * 60 + 15 + 15,
            unfused: 47 + 35 + 30 + 30,
            fused: 52,
        },
        Expected {
            problem: "linear_bias_gelu/f32/m3.k4.n5",
            flops: 2 * 60 + 15 + 5 * 15,
            unfused: 47 + 35 + 30,
            fused: 52,
        },
        Expected {
            // second layer: H 15, W2 5x6=30, Y 18
            problem: "mlp/f32/m3.k4.n5.o6",
            flops: 2 * 60 + 15 + 2 * 90 + 18,
            unfused: 47 + 35 + 30 + (15 + 30 + 18) + (18 + 6 + 18),
            fused: 12 + 20 + 5 + 30 + 6 + 18,
        },
        Expected {
            // X 2*4*4*3=96, filter 3*3*3*5=135, Y 2*2*2*5=40, depth 27
            problem: "conv_bias/f32/n2.c3.h4.w4.k5.r3.s3",
            flops: 2 * 40 * 27 + 40,
            unfused: (96 + 135 + 40) + (40 + 5 + 40),
            fused: 96 + 135 + 5 + 40,
        },
        Expected {
            // batch norm: multiply and add an element, four vectors of 5
            problem: "conv_bn/f32/n2.c3.h4.w4.k5.r3.s3",
            flops: 2 * 40 * 27 + 80,
            unfused: 271 + (40 + 20 + 40),
            fused: 96 + 135 + 20 + 40,
        },
        Expected {
            problem: "conv_bn_relu/f32/n2.c3.h4.w4.k5.r3.s3",
            flops: 2 * 40 * 27 + 80,
            unfused: 271 + 100 + 80,
            fused: 291,
        },
        Expected {
            problem: "conv_relu/f32/n2.c3.h4.w4.k5.r3.s3",
            flops: 2 * 40 * 27,
            unfused: 271 + 80,
            fused: 271,
        },
        Expected {
            // pool 2x2: 2 images of 1x1x5
            problem: "conv_bn_relu_maxpool/f32/n2.c3.h4.w4.k5.r3.s3",
            flops: 2 * 40 * 27 + 80,
            unfused: 271 + 100 + 80 + (40 + 10),
            fused: 96 + 135 + 20 + 10,
        },
        Expected {
            // two heads: Q 2*3*5=30, K 2*4*5=40, S 2*3*4=24; one scale, softmax 4 an element
            problem: "attention_scores/f32/b1.h2.q3.kv4.d5",
            flops: 2 * 24 * 5 + 24 + 4 * 24,
            unfused: (30 + 40 + 24) + (24 + 1 + 24) + 48,
            fused: 30 + 40 + 1 + 24,
        },
        Expected {
            // P 24, V 40, O 3x10=30
            problem: "attention_output/f32/b1.h2.q3.kv4.d5",
            flops: 4 * 24 + 2 * 30 * 4,
            unfused: 48 + (24 + 40 + 30),
            fused: 24 + 40 + 30,
        },
        Expected {
            problem: "attention_head/f32/b1.h2.q3.kv4.d5",
            flops: 240 + 96 + 240,
            unfused: 94 + 48 + 94,
            fused: 30 + 40 + 40 + 30,
        },
        Expected {
            // joined heads 3x10, weights 10x7, Y 3x7
            problem: "multihead_linear/f32/b1.h2.q3.kv4.d5.n7",
            flops: 576 + 2 * 21 * 10,
            unfused: 236 + (30 + 70 + 21),
            fused: 30 + 40 + 40 + 70 + 21,
        },
        Expected { problem: "add_relu/f32/m3.n4", flops: 12, unfused: 36 + 24, fused: 36 },
        Expected {
            // layer norm: 8 an element, two vectors of 4
            problem: "add_layernorm/f32/m3.n4",
            flops: 12 + 8 * 12,
            unfused: 36 + (12 + 8 + 12),
            fused: 36 + 8,
        },
        Expected { problem: "mul_add_relu/f32/m3.n4", flops: 24, unfused: 36 + 36 + 24, fused: 48 },
        Expected {
            problem: "sigmoid_mul/f32/m3.n4",
            flops: 3 * 12 + 12,
            unfused: 24 + 36,
            fused: 36,
        },
    ];

    #[test]
    fn every_pattern_by_hand() {
        assert_eq!(EXPECTED.len(), PATTERNS.len());
        for (expected, pattern) in EXPECTED.iter().zip(PATTERNS) {
            let problem: Problem = expected.problem.parse().unwrap();
            assert_eq!(problem.chain().pattern(), Some(pattern));
            let traffic = Traffic::of(&problem);
            assert_eq!(traffic.flops, expected.flops, "{problem} flops");
            assert_eq!(traffic.unfused_bytes, 4 * expected.unfused, "{problem} unfused");
            assert_eq!(traffic.fused_bytes, 4 * expected.fused, "{problem} fused");
            assert_eq!(traffic.unfused_launches, pattern.ops.len() as u64, "{problem}");
        }
    }

    #[test]
    fn half_the_bytes_in_half_precision() {
        let single = Traffic::of(&"mlp/f32/m3.k4.n5.o6".parse().unwrap());
        let half = Traffic::of(&"mlp/bf16/m3.k4.n5.o6".parse().unwrap());
        assert_eq!(single.unfused_bytes, 2 * half.unfused_bytes);
        assert_eq!(single.fused_bytes, 2 * half.fused_bytes);
    }

    #[test]
    fn a_square_linear_bias_relu_saves_57_percent() {
        let problem: Problem = "linear_bias_relu/f32/m4096.k4096.n4096".parse().unwrap();
        let reduction = Traffic::of(&problem).memory_reduction();
        assert!((reduction - (1.0 - 3.0 / 7.0)).abs() < 1e-3, "{reduction}");
    }

    /// Grouped heads read fewer keys and values, and a causal softmax fewer scores.
    #[test]
    fn attention_with_a_mask_and_shared_keys_by_hand() {
        for (text, flops, unfused, fused) in [
            // Four heads, two of keys: Q 60, K 40, V 40, O 60, S 48.
            (
                "attention_head/f32/b1.h4.q3.kv4.d5.kvh2",
                (10 + 4 + 10) * 48,
                (60 + 40 + 48) + 96 + (48 + 40 + 60),
                60 + 40 + 40 + 60,
            ),
            // Of 12 pairs in a head, 9 are seen.
            (
                "attention_head/f32/b1.h4.q3.kv4.d5.causal1",
                (10 + 4 + 10) * 36,
                (60 + 80 + 48) + (36 + 48) + (48 + 80 + 60),
                60 + 80 + 80 + 60,
            ),
            (
                "attention_output/f32/b1.h4.q3.kv4.d5.kvh1.causal1",
                (4 + 10) * 36,
                (36 + 48) + (48 + 20 + 60),
                36 + 20 + 60,
            ),
        ] {
            let traffic = Traffic::of(&text.parse().unwrap());
            assert_eq!(traffic.flops, flops, "{text}");
            assert_eq!(traffic.unfused_bytes, 4 * unfused, "{text}");
            assert_eq!(traffic.fused_bytes, 4 * fused, "{text}");
        }
    }

    #[test]
    fn a_grouped_convolution_is_cheaper_by_the_groups() {
        let dense = Traffic::of(&"conv_relu/f32/n1.c8.h4.w4.k8.r3.s3.pad1".parse().unwrap());
        let grouped =
            Traffic::of(&"conv_relu/f32/n1.c8.h4.w4.k8.r3.s3.pad1.groups4".parse().unwrap());
        assert_eq!(dense.flops, 4 * grouped.flops);
    }
}
