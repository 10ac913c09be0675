//! What the micro-kernel does to whole sums of a few rows while they are in the first-level cache.

use fusion_cost_model::kernel::Value;
use fusion_cost_model::{DType, Pointwise};
use pulp::{Arch, Simd};

use super::element::Element;
use super::lanes::{LaneMask, Lanes};
use super::tail::{Block, Tail, TailOp, names};

/// A bias or a batch norm, a ReLU, or both: the first ops of most tails. As a list of any ops, which is
/// walked for each tile once a whole panel is done, they take as long as 16 terms of each sum.
#[derive(Clone, Copy)]
pub(crate) struct Epilogue {
    /// What the columns are multiplied with; nothing if null.
    gain: *const f32,
    /// What is added to the columns; nothing if null.
    offset: *const f32,
    relu: bool,
}

/// Where a micro-kernel applies the first ops.
pub(crate) const FEW_ROWS: &str = "on a few rows at a time";

impl Epilogue {
    /// Nothing is done.
    pub(crate) const NONE: Self =
        Self { gain: std::ptr::null(), offset: std::ptr::null(), relu: false };

    pub(crate) fn is_none(&self) -> bool {
        self.gain.is_null() && self.offset.is_null() && !self.relu
    }

    /// Applies it to rows of `V` vectors in place, with `REST` only to the lanes `last` of the last one.
    ///
    /// # Safety
    ///
    /// Its numbers must be valid for the columns, and the rows, `stride` numbers apart, for reads and
    /// writes.
    #[inline(always)]
    pub(crate) unsafe fn apply<S: Simd, const V: usize, const REST: bool>(
        &self,
        simd: S,
        first: *mut f32,
        stride: usize,
        rows: usize,
        last: LaneMask<S>,
    ) {
        let (has_gain, has_offset) = (!self.gain.is_null(), !self.offset.is_null());
        let [mut gain, mut offset] = [Lanes::<S, V>::splat(simd, 0.0); 2];
        // SAFETY: the caller's guarantee.
        unsafe {
            if has_gain {
                gain = Lanes::load_row::<REST>(simd, self.gain, last);
            }
            if has_offset {
                offset = Lanes::load_row::<REST>(simd, self.offset, last);
            }
        }
        for row in 0..rows {
            let row = first.wrapping_add(row * stride);
            // SAFETY: the caller's guarantee.
            unsafe {
                let mut numbers = Lanes::<S, V>::load_row::<REST>(simd, row, last);
                if has_gain {
                    numbers = numbers * gain;
                }
                if has_offset {
                    numbers = numbers + offset;
                }
                if self.relu {
                    numbers = numbers.clamp_min(0.0);
                }
                numbers.store_row::<REST>(row, last);
            }
        }
    }
}

impl Epilogue {
    /// Applies it to sums in registers: those of a vector of columns from `col` on, in `U` rows.
    ///
    /// # Safety
    ///
    /// Its numbers must be valid for the columns.
    #[inline(always)]
    pub(crate) unsafe fn apply_to_sums<S: Simd, const U: usize>(
        &self,
        mut sums: Lanes<S, U>,
        col: usize,
    ) -> Lanes<S, U> {
        let simd = sums.simd;
        // SAFETY: the caller's guarantee.
        unsafe {
            if !self.gain.is_null() {
                sums = sums * Lanes { simd, v: [f32::load(simd, self.gain.add(col)); U] };
            }
            if !self.offset.is_null() {
                sums = sums + Lanes { simd, v: [f32::load(simd, self.offset.add(col)); U] };
            }
        }
        if self.relu { sums.clamp_min(0.0) } else { sums }
    }
}

/// Of a tail on sums of products of numbers `P`.
impl<E: Element> Tail<E> {
    /// How many of the first ops an epilogue does: none where sums do not stay where they are, so that
    /// all ops are applied when they are rounded, and none to sums of integers.
    fn in_epilogue<P: Element>(&self) -> usize {
        if P::DTYPE != DType::F32 {
            return 0;
        }
        let mut ops = self.ops.iter().map(|one| one.op).peekable();
        let columns = ops.next_if(|op| matches!(op, Pointwise::Bias | Pointwise::BatchNorm));
        let relu = ops.next_if_eq(&Pointwise::Relu);
        usize::from(columns.is_some()) + usize::from(relu.is_some())
    }

    /// Whether there are ops after the epilogue.
    pub(crate) fn goes_on_after_epilogue<P: Element>(&self) -> bool {
        self.in_epilogue::<P>() < self.ops.len()
    }

    /// Where each of the ops is applied, for the name of a kernel: the first ones in this place.
    pub(crate) fn places<P: Element>(&self, first: &str) -> String {
        let (epilogue, rest) = self.ops.split_at(self.in_epilogue::<P>());
        let at = |ops: &[TailOp<E>], place: &str| match ops {
            [] => String::new(),
            _ => format!(", {} {place}", names(ops)),
        };
        at(epilogue, first) + &at(rest, "on tiles in cache")
    }

    /// The first ops, as far as the micro-kernel applies them, from a column on.
    pub(crate) fn epilogue<P: Element>(&self, col: usize) -> Epilogue {
        let mut epilogue = Epilogue::NONE;
        for one in &self.ops[..self.in_epilogue::<P>()] {
            match (one.op, one.folded) {
                (Pointwise::Relu, _) => epilogue.relu = true,
                // Its gain and its offset, a row each.
                (_, Some(folded)) => {
                    epilogue.gain = folded.at(col);
                    epilogue.offset = folded.at(one.cols + col);
                }
                (_, None) => {
                    epilogue.offset = E::as_f32(one.operands[0].at(col))
                        .map_or(std::ptr::null(), |at| at.cast_const());
                }
            }
        }
        epilogue
    }

    /// Applies the ops after the epilogue to a block in place.
    ///
    /// # Safety
    ///
    /// As for [`Tail::apply_to_block`].
    pub(crate) unsafe fn apply_after_epilogue<P: Element>(&self, arch: Arch, block: &Block) {
        // SAFETY: the caller's guarantee.
        unsafe { self.apply_from(self.in_epilogue::<P>(), arch, block) };
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::conforms::{conforms, cpus};

    /// Whole panels and rests, sums of one part and of several, blocks of six rows and less.
    #[test]
    fn the_first_ops_are_applied_to_a_few_rows_at_a_time() {
        let (few, tile) = (" on a few rows at a time", " on tiles in cache");
        for mut cpu in cpus() {
            for (chain, places) in [
                ("linear", String::new()),
                ("linear+bias", format!(", bias{few}")),
                ("linear+relu", format!(", relu{few}")),
                ("linear+bias+relu", format!(", bias+relu{few}")),
                ("linear+batch_norm+relu", format!(", batch_norm+relu{few}")),
                ("linear+bias+gelu", format!(", bias{few}, gelu{tile}")),
                ("linear+relu+bias", format!(", relu{few}, bias{tile}")),
                ("linear+add+relu", format!(", add+relu{tile}")),
            ] {
                for size in ["m1.k1.n1", "m7.k300.n83", "m65.k1031.n64", "m13.k5.n129"] {
                    let text = format!("{chain}/f32/{size}");
                    let [_, fused] = conforms(&mut cpu, &text);
                    assert_eq!(fused, [format!("linear: packed panels{places}")], "{text}");
                }
            }
        }
    }

    #[test]
    fn convolutions_conform_with_what_is_applied_to_a_few_rows_at_a_time() {
        for mut cpu in cpus() {
            for chain in ["conv_bn_relu", "conv_bias", "conv+batch_norm+add+relu"] {
                for size in ["n1.c3.h9.w7.k5.r3.s3.pad1", "n2.c17.h6.w11.k67.r3.s3.stride2.pad1"] {
                    let text = format!("{chain}/f32/{size}");
                    let [_, fused] = conforms(&mut cpu, &text);
                    assert!(fused[0].contains("on a few rows at a time"), "{text}: {fused:?}");
                }
            }
        }
    }
}
