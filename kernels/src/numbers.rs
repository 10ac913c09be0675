//! Numbers as a GPU has them in memory, and a runtime in its files.

use fusion_cost_model::DType;
use half::{bf16, f16};

/// The bytes of numbers in a format, rounded to the nearest.
pub(crate) fn encode(dtype: DType, numbers: &[f32]) -> Vec<u8> {
    match dtype {
        DType::F16 => numbers.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect(),
        DType::Bf16 => numbers.iter().flat_map(|&x| bf16::from_f32(x).to_le_bytes()).collect(),
        _ => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}

/// The numbers of bytes in a format.
pub(crate) fn decode(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let halves = bytes.as_chunks::<2>().0.iter();
    match dtype {
        DType::F16 => halves.map(|&x| f16::from_le_bytes(x).to_f32()).collect(),
        DType::Bf16 => halves.map(|&x| bf16::from_le_bytes(x).to_f32()).collect(),
        _ => bytes.as_chunks::<4>().0.iter().map(|&x| f32::from_le_bytes(x)).collect(),
    }
}

/// Four bytes that are NaN in every format, as one number or two.
pub(crate) const NAN_PATTERN: u32 = 0xFFFF_FFFF;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_near_as_the_format_allows() {
        let numbers = [0.0, -1.5, 1.0 / 3.0, 65504.0, f32::INFINITY, -2e-5];
        for (dtype, error) in [(DType::F32, 0.0), (DType::F16, 5e-4), (DType::Bf16, 4e-3)] {
            let back = decode(dtype, &encode(dtype, &numbers));
            for (x, y) in numbers.iter().zip(back) {
                let same = *x == y;
                assert!(same || (x - y).abs() <= error * x.abs() + 3e-8, "{dtype}: {x} {y}");
            }
        }
    }

    #[test]
    fn the_pattern_is_nan() {
        let bytes = NAN_PATTERN.to_le_bytes();
        for dtype in [DType::F32, DType::F16, DType::Bf16] {
            assert!(decode(dtype, &bytes).iter().all(|x| x.is_nan()), "{dtype}");
        }
    }
}
