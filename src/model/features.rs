//! A problem as numbers: where it lies among others, and the work that it is.

use std::hash::{Hash, Hasher};

use crate::vocabulary::{Chain, ConvSizes, DType, Op, PoolSizes, Problem};

/// The most coordinates that a form of chain has: those of attention with a linear op.
pub(super) const MAX_DIMENSIONS: usize = 6;

/// What two problems must have in common before one says anything about the other, however near
/// their sizes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CloudKey {
    pub(super) chain: Chain,
    pub(super) dtype: DType,
    kinds: Kinds,
}

/// Sizes that choose another kernel, or another way through the same one, rather than make the work
/// longer. All are 0 where there is neither a convolution nor attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Kinds {
    stride: u64,
    /// 1 for a dense convolution, [`Self::DEPTHWISE`] for one channel to a group.
    groups: u64,
    is_pointwise: bool,
    /// Window, stride and padding of the max-pool.
    pool: [u64; 3],
    /// Attention that leaves out what a mask hides.
    is_causal: bool,
    /// Attention whose heads share keys and values. How many do is in the bytes.
    shares_keys: bool,
}

impl Kinds {
    const DEPTHWISE: u64 = u64::MAX;
}

/// In two words, since every estimate computes it.
impl Hash for Kinds {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [window, stride, pad] = self.pool;
        state.write_u64(self.stride ^ self.groups.rotate_left(32));
        state.write_u64(
            window
                ^ stride.rotate_left(16)
                ^ pad.rotate_left(32)
                ^ (u64::from(self.is_pointwise) << 63)
                ^ (u64::from(self.is_causal) << 62)
                ^ (u64::from(self.shares_keys) << 61),
        );
    }
}

impl CloudKey {
    pub(super) fn of(problem: &Problem) -> Self {
        let pool = problem.sizes().pool();
        let pool =
            pool.map_or([0; 3], |PoolSizes { window, stride, pad, .. }| [window, stride, pad]);
        // A max-pool by itself has no convolution.
        let mut kinds = Kinds { pool, ..Kinds::default() };
        if let Some(conv) = problem.sizes().conv() {
            let is_depthwise = conv.groups > 1 && conv.groups == conv.c;
            kinds.stride = conv.stride;
            kinds.groups = if is_depthwise { Kinds::DEPTHWISE } else { conv.groups };
            kinds.is_pointwise = conv.r == 1 && conv.s == 1;
        }
        if let Some(attention) = problem.sizes().attention() {
            kinds.is_causal = attention.causal;
            kinds.shares_keys = attention.kvh < attention.h;
        }
        Self { chain: *problem.chain(), dtype: problem.dtype(), kinds }
    }

    /// The key of another chain on the same sizes.
    pub(super) const fn with_chain(self, chain: Chain) -> Self {
        Self { chain, ..self }
    }
}

/// A problem as numbers.
#[derive(Debug, Clone)]
pub(super) struct Features {
    coordinates: [f64; MAX_DIMENSIONS],
    dimensions: u8,
    /// How many of the coordinates are sizes in octaves; the last one may be a class.
    sized: u8,
    pub(super) work: Work,
}

/// What a roofline needs of a problem.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) log2_bytes: f64,
    /// The fused kernel, and the unfused ones behind it.
    kernels: [Pair; PAIRS],
    len: u8,
}

/// Pairs of the fused kernel and as many others as a chain can have.
pub(super) const PAIRS: usize = (Chain::MAX_OPS + 1).div_ceil(2);

/// Flops and bytes of two kernels; 0 where there is none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pair {
    pub(super) flops: [f64; 2],
    pub(super) bytes: [f64; 2],
}

impl Work {
    /// Of the fused kernel, which leaves out what a mask hides.
    pub(super) const fn flops(&self) -> f64 {
        self.kernels[0].flops[0]
    }

    /// Of the fused kernel.
    pub(super) const fn bytes(&self) -> f64 {
        self.kernels[0].bytes[0]
    }

    /// How many unfused kernels there are.
    pub(super) fn steps(&self) -> usize {
        usize::from(self.len)
    }

    /// The fused kernel, and the unfused ones behind it, two at a time.
    pub(super) fn pairs(&self) -> &[Pair] {
        &self.kernels[..(self.steps() + 1).div_ceil(2)]
    }

    #[expect(clippy::cast_precision_loss, reason = "coordinates of an estimate")]
    fn of(problem: &Problem) -> Self {
        let mut kernels = [Pair::default(); PAIRS];
        let (mut flops, mut bytes, mut last, mut len) = (0.0, 0, 0, 0_u8);
        for (index, step) in (1..).zip(problem.steps()) {
            let (operands, input) = (step.operand_bytes(), step.input_bytes());
            let own = step.flops() as f64;
            last = step.output_bytes();
            let kept: &mut Pair = &mut kernels[index / 2];
            kept.flops[index % 2] = own;
            kept.bytes[index % 2] = (input + operands + last) as f64;
            flops += step.useful_flops() as f64;
            // The fused variant reads the first input, every operand, and writes the last output.
            bytes += operands + if len == 0 { input } else { 0 };
            len += 1;
        }
        let bytes = (bytes + last) as f64;
        (kernels[0].flops[0], kernels[0].bytes[0]) = (flops, bytes);
        Self { log2_bytes: bytes.log2(), kernels, len }
    }
}

/// How far apart, in octaves, are rows that vectors fill and rows that they do not.
const RAGGED_OCTAVES: f64 = 2.0;

/// From so many rows or columns on, pointwise ops do not mind their number, only that of all bytes:
/// there is a row for every thread, and what is left of a row beside whole vectors is little of it.
const WIDE: u64 = 64;

/// Bytes of the widest vectors, and of a line of the caches.
const VECTOR_BYTES: u64 = 64;

impl Features {
    pub(super) fn of(problem: &Problem) -> Self {
        let work = Work::of(problem);
        let mut features =
            Self { coordinates: [0.0; MAX_DIMENSIONS], dimensions: 0, sized: 0, work };
        let sizes = problem.sizes();
        let has_row_op = problem.chain().iter().any(|op: &Op| op.is_row());
        if let Some(rows) = sizes.rows().filter(|_| has_row_op) {
            features.push_sizes([rows.m, rows.n]);
        } else if let Some(rows) = sizes.rows() {
            features.push_sizes([rows.m.min(WIDE), rows.n.min(WIDE)]);
        } else if let Some(linear) = sizes.linear() {
            features.push_sizes([linear.m, linear.k, linear.n]);
        } else if let Some(conv) = sizes.conv() {
            // The GEMM that the convolution is.
            let ConvSizes { n, c, k, r, s, groups, .. } = conv;
            features.push_sizes([n * conv.out_h() * conv.out_w(), r * s * (c / groups), k]);
        } else if let Some(attention) = sizes.attention() {
            features.push_sizes([
                attention.b * attention.h,
                attention.q,
                attention.kv,
                attention.d,
            ]);
        }
        if let Some(second) = sizes.second_linear() {
            features.push_sizes([second]);
        }
        features.push(features.work.log2_bytes);
        features.sized = features.dimensions;
        if let Some(rows) = sizes.rows().filter(|_| has_row_op) {
            let is_ragged = rows.n * problem.dtype().sum_bytes() % VECTOR_BYTES != 0;
            features.push(if is_ragged { RAGGED_OCTAVES } else { 0.0 });
        }
        features
    }

    #[expect(clippy::cast_precision_loss, reason = "coordinates of an estimate")]
    fn push_sizes<const N: usize>(&mut self, sizes: [u64; N]) {
        for size in sizes {
            self.push((size as f64).log2());
        }
    }

    fn push(&mut self, coordinate: f64) {
        self.coordinates[usize::from(self.dimensions)] = coordinate;
        self.dimensions += 1;
    }

    /// The coordinates: sizes and bytes in octaves, then a class where the chain has one.
    pub(super) fn coordinates(&self) -> &[f64] {
        &self.coordinates[..usize::from(self.dimensions)]
    }

    /// How many of the coordinates are octaves.
    pub(super) fn sized(&self) -> usize {
        usize::from(self.sized)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Traffic;
    use crate::vocabulary::PATTERNS;

    fn problem(text: &str) -> Problem {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn coordinates(text: &str) -> Vec<f64> {
        Features::of(&problem(text)).coordinates().to_vec()
    }

    #[test]
    fn coordinates_are_octaves() {
        // 8 x 16 inputs, 16 x 4 weights and 8 x 4 outputs of 4 bytes.
        let bytes = f64::from((8 * 16 + 16 * 4 + 8 * 4) * 4).log2();
        assert_eq!(coordinates("linear/f32/m8.k16.n4"), [3.0, 4.0, 2.0, bytes]);
        let [.., pixels, depth, channels, _] = coordinates("conv2d/f32/n2.c8.h4.w4.k16.r1.s1")[..]
        else {
            panic!("four")
        };
        assert_eq!([pixels, depth, channels], [5.0, 3.0, 4.0]);
        assert_eq!(coordinates("attention_head/f32/b2.h4.q16.kv32.d8")[..4], [3.0, 4.0, 5.0, 3.0]);
        assert_eq!(coordinates("multihead_linear/f32/b2.h4.q16.kv32.d8.n64")[4], 6.0);
        assert_eq!(coordinates("mlp/f32/m2.k4.n8.o16")[..4], [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn rows_that_vectors_do_not_fill_are_a_class_of_row_ops_alone() {
        assert_eq!(coordinates("layer_norm/f32/m8.n16")[3], 0.0);
        assert_eq!(coordinates("layer_norm/f32/m8.n17")[3], RAGGED_OCTAVES);
        assert_eq!(coordinates("layer_norm/bf16/m8.n16")[3], RAGGED_OCTAVES);
        assert_eq!(coordinates("add_relu/f32/m8.n17").len(), 3);
        assert_eq!(Features::of(&problem("softmax/f32/m8.n17")).sized(), 3);
    }

    #[test]
    fn pointwise_ops_mind_bytes_alone_where_rows_are_wide() {
        assert_eq!(coordinates("add_relu/f32/m64.n1024"), coordinates("add_relu/f32/m1024.n64"));
        assert_eq!(coordinates("relu/f32/m3136.n64"), coordinates("relu/f32/m64.n3136"));
        assert_eq!(coordinates("relu/f32/m4096.n16")[..2], [6.0, 4.0]);
        assert_eq!(coordinates("relu/f32/m1.n65536")[..2], [0.0, 6.0]);
        assert_eq!(coordinates("add_layernorm/f32/m128.n4096")[..2], [7.0, 12.0]);
    }

    #[test]
    fn convolutions_of_another_kind_are_in_another_cloud() {
        let key = |sizes: &str| CloudKey::of(&problem(&format!("conv2d+relu/f32/{sizes}")));
        let dense = key("n1.c8.h9.w9.k8.r3.s3.pad1");
        assert_eq!(dense, key("n2.c16.h5.w9.k8.r5.s5.pad1"));
        for other in [
            "n1.c8.h9.w9.k8.r1.s1",
            "n1.c8.h9.w9.k8.r3.s3.pad1.stride2",
            "n1.c8.h9.w9.k8.r3.s3.pad1.groups2",
            "n1.c8.h9.w9.k8.r3.s3.pad1.groups8",
        ] {
            assert_ne!(dense, key(other), "{other}");
        }
        let depthwise =
            |channels| key(&format!("n1.c{channels}.h9.w9.k{channels}.r3.s3.groups{channels}"));
        assert_eq!(depthwise(8), depthwise(32));
    }

    #[test]
    fn attention_with_a_mask_or_shared_keys_is_in_another_cloud() {
        let key = |sizes: &str| CloudKey::of(&problem(&format!("attention_head/f32/{sizes}")));
        let plain = key("b1.h8.q16.kv32.d8");
        assert_eq!(plain, key("b2.h4.q8.kv32.d16"));
        let causal = key("b1.h8.q16.kv32.d8.causal1");
        let grouped = key("b1.h8.q16.kv32.d8.kvh2");
        let both = key("b1.h8.q16.kv32.d8.kvh2.causal1");
        let all = [plain, causal, grouped, both];
        for (index, one) in all.iter().enumerate() {
            assert!(all[index + 1..].iter().all(|other| other != one), "{index}");
        }
        assert_eq!(grouped, key("b1.h8.q16.kv32.d8.kvh1"));
        // A single query sees everything.
        assert_eq!(key("b1.h8.q1.kv32.d8"), key("b1.h8.q1.kv32.d8.causal1"));
        assert_ne!(
            coordinates("attention_head/f32/b1.h8.q16.d8.kvh2"),
            coordinates("attention_head/f32/b1.h8.q16.d8.kvh4"),
        );
    }

    #[test]
    fn the_work_is_that_of_the_traffic() {
        for pattern in PATTERNS {
            let chain = Chain::new(pattern.ops).unwrap();
            let keys = chain.form().size_keys().iter();
            let sizes: Vec<String> = keys.map(|key| format!("{}4", key.key)).collect();
            let sizes = sizes.join(".").replace("pad4", "pad0").replace("r4.s4", "r1.s1");
            let sizes = sizes.replace("pool4", "pool1").replace("causal4", "causal1");
            let problem = problem(&format!("{}/f32/{sizes}", pattern.name));
            let (work, traffic) = (Work::of(&problem), Traffic::of(&problem));
            assert_eq!(work.flops(), traffic.flops as f64, "{problem}");
            assert_eq!(work.bytes(), traffic.fused_bytes as f64, "{problem}");
            let all: f64 = work.pairs().iter().flat_map(|pair| pair.bytes).sum();
            assert_eq!(all - work.bytes(), traffic.unfused_bytes as f64, "{problem}");
            assert_eq!(work.steps(), problem.chain().len(), "{problem}");
        }
    }
}
