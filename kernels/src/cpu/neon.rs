//! The first numbers of a vector of NEON, which has no instructions that leave out lanes.
//!
//! `pulp` asks for each lane whether it is one of them. Such a load in the loop of a micro-kernel costs
//! more than its multiply-adds, and pushes sums out of the registers. How many lanes there are does not
//! change in a loop, so one switch on that is enough.

use std::arch::aarch64::{
    float32x4_t, vget_high_f32, vget_low_f32, vst1_f32, vst1_lane_f32, vst1q_f32, vst1q_lane_f32,
};

use super::element::Element;

/// Bytes of a vector, by which code for any vectors knows these.
pub(super) const VECTOR_BYTES: usize = size_of::<float32x4_t>();

/// Reads the first `count` numbers; the other lanes are zero.
///
/// # Safety
///
/// `source` must be valid for reads of them.
#[inline(always)]
pub(super) unsafe fn load_first<E: Element>(source: *const E, count: usize) -> float32x4_t {
    // SAFETY: the caller's guarantee; a vector consists of four numbers.
    unsafe {
        let number = |lane: usize| source.add(lane).read_unaligned().widen();
        let lanes = match count {
            0 => [0.0; 4],
            1 => [number(0), 0.0, 0.0, 0.0],
            2 => [number(0), number(1), 0.0, 0.0],
            3 => [number(0), number(1), number(2), 0.0],
            _ => [0, 1, 2, 3].map(number),
        };
        std::mem::transmute::<[f32; 4], float32x4_t>(lanes)
    }
}

/// Writes the first `count` lanes.
///
/// # Safety
///
/// `target` must be valid for writes of them.
#[inline(always)]
pub(super) unsafe fn store_first(target: *mut f32, count: usize, v: float32x4_t) {
    // SAFETY: NEON is part of every aarch64; the rest is the caller's guarantee.
    unsafe {
        match count {
            0 => {}
            1 => vst1q_lane_f32::<0>(target, v),
            2 => vst1_f32(target, vget_low_f32(v)),
            3 => {
                vst1_f32(target, vget_low_f32(v));
                vst1_lane_f32::<0>(target.add(2), vget_high_f32(v));
            }
            _ => vst1q_f32(target, v),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lanes_are_read_and_written_and_no_others() {
        for count in 0..=4 {
            let source: Vec<f32> = (1..=count).map(|one| one as f32).collect();
            let mut target = [7.5; 5];
            // SAFETY: there are as many numbers in both.
            unsafe {
                let v = load_first(source.as_ptr(), count);
                let mut lanes = [9.0; 4];
                store_first(lanes.as_mut_ptr(), 4, v);
                assert_eq!(lanes[..count], source[..]);
                assert!(lanes[count..].iter().all(|&lane| lane == 0.0), "{count}: {lanes:?}");
                store_first(target.as_mut_ptr(), count, v);
            }
            assert_eq!(target[..count], source[..]);
            assert_eq!(target[count..], [7.5; 5][count..]);
        }
    }
}
