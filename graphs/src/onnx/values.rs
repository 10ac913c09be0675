//! The elements of small tensors.

use half::{bf16, f16};
use prost::bytes::Bytes;
use prost::encoding::decode_varint;

use super::messages::{EXTERNAL, TensorProto};
use crate::tensor::MAX_VALUES;

/// The elements of a tensor in order, if they are few, in the file, and numbers.
pub(crate) fn of(tensor: &TensorProto) -> Option<Vec<f64>> {
    let count = tensor.dims.iter().try_fold(1_usize, |product, &dim| {
        product.checked_mul(usize::try_from(dim).ok()?).filter(|&product| product <= MAX_VALUES)
    })?;
    if tensor.data_location == EXTERNAL {
        return None;
    }
    let values = if tensor.raw_data.is_empty() {
        from_fields(tensor, count)?
    } else {
        from_raw(&tensor.raw_data, tensor.data_type)?
    };
    (values.len() == count).then_some(values)
}

/// Elements of a fixed width, in little-endian order.
fn fixed<const N: usize>(bytes: &[u8], value: impl Fn([u8; N]) -> f64) -> Option<Vec<f64>> {
    let (elements, rest) = bytes.as_chunks::<N>();
    rest.is_empty().then(|| elements.iter().take(MAX_VALUES + 1).map(|&one| value(one)).collect())
}

#[expect(clippy::cast_precision_loss, reason = "a dimension or index is far below 2^53")]
fn from_raw(bytes: &[u8], data_type: i32) -> Option<Vec<f64>> {
    match data_type {
        1 => fixed(bytes, |bytes| f64::from(f32::from_le_bytes(bytes))),
        2 | 9 => fixed(bytes, |[byte]: [u8; 1]| f64::from(byte)),
        3 => fixed(bytes, |bytes| f64::from(i8::from_le_bytes(bytes))),
        4 => fixed(bytes, |bytes| f64::from(u16::from_le_bytes(bytes))),
        5 => fixed(bytes, |bytes| f64::from(i16::from_le_bytes(bytes))),
        6 => fixed(bytes, |bytes| f64::from(i32::from_le_bytes(bytes))),
        7 => fixed(bytes, |bytes| i64::from_le_bytes(bytes) as f64),
        10 => fixed(bytes, |bytes| f16::from_le_bytes(bytes).to_f64()),
        11 => fixed(bytes, f64::from_le_bytes),
        12 => fixed(bytes, |bytes| f64::from(u32::from_le_bytes(bytes))),
        16 => fixed(bytes, |bytes| bf16::from_le_bytes(bytes).to_f64()),
        _ => None,
    }
}

/// Elements in the field of their type.
#[expect(clippy::cast_precision_loss, reason = "a dimension or index is far below 2^53")]
fn from_fields(tensor: &TensorProto, count: usize) -> Option<Vec<f64>> {
    let varints = |bytes: &Bytes, value: &dyn Fn(u64) -> f64| {
        let mut rest = bytes.clone();
        let mut values = Vec::with_capacity(count);
        while !rest.is_empty() && values.len() <= count {
            values.push(value(decode_varint(&mut rest).ok()?));
        }
        Some(values)
    };
    match tensor.data_type {
        1 => fixed(&tensor.float_data, |bytes| f64::from(f32::from_le_bytes(bytes))),
        11 => fixed(&tensor.double_data, f64::from_le_bytes),
        7 => varints(&tensor.int64_data, &|bits| bits.cast_signed() as f64),
        2..=6 | 9 => varints(&tensor.int32_data, &|bits| bits.cast_signed() as f64),
        // The bits of the number are in the lower half.
        10 => varints(&tensor.int32_data, &|bits| f16::from_bits(low_half(bits)).to_f64()),
        16 => varints(&tensor.int32_data, &|bits| bf16::from_bits(low_half(bits)).to_f64()),
        _ => None,
    }
}

const fn low_half(bits: u64) -> u16 {
    let [low, high, ..] = bits.to_le_bytes();
    u16::from_le_bytes([low, high])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(data_type: i32, dims: &[i64]) -> TensorProto {
        TensorProto { dims: dims.to_vec(), data_type, ..TensorProto::default() }
    }

    #[test]
    fn elements_are_read_in_every_form_that_they_have() {
        let raw = |bytes: &'static [u8]| Bytes::from_static(bytes);
        let cases = [
            (TensorProto { raw_data: raw(b"\0\0\0\x40"), ..tensor(1, &[]) }, vec![2.0]),
            (TensorProto { float_data: raw(b"\0\0\0\x40"), ..tensor(1, &[1]) }, vec![2.0]),
            (TensorProto { raw_data: raw(b"\0\x3c\0\xc0"), ..tensor(10, &[2]) }, vec![1.0, -2.0]),
            (TensorProto { raw_data: raw(b"\x80\x3f"), ..tensor(16, &[1]) }, vec![1.0]),
            (TensorProto { int32_data: raw(b"\x80\x78"), ..tensor(10, &[1]) }, vec![1.0]),
            (TensorProto { raw_data: raw(&[255; 16]), ..tensor(7, &[2]) }, vec![-1.0, -1.0]),
            (
                TensorProto {
                    int64_data: raw(b"\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
                    ..tensor(7, &[2])
                },
                vec![3.0, -1.0],
            ),
            (TensorProto { raw_data: raw(b"\x01\x00"), ..tensor(9, &[2]) }, vec![1.0, 0.0]),
            (tensor(7, &[0]), vec![]),
        ];
        for (tensor, values) in cases {
            assert_eq!(of(&tensor), Some(values), "{tensor:?}");
        }
    }

    #[test]
    fn elements_that_are_not_there_are_not_made_up() {
        let short = TensorProto { raw_data: Bytes::from_static(&[0; 6]), ..tensor(1, &[2]) };
        assert_eq!(of(&short), None);
        let few = TensorProto { raw_data: Bytes::from_static(&[0; 4]), ..tensor(1, &[2]) };
        assert_eq!(of(&few), None);
        let outside = TensorProto {
            raw_data: Bytes::from_static(&[0; 4]),
            data_location: EXTERNAL,
            ..tensor(1, &[1])
        };
        assert_eq!(of(&outside), None);
        assert_eq!(of(&tensor(1, &[i64::MAX, i64::MAX])), None);
        assert_eq!(of(&tensor(1, &[-1])), None);
        assert_eq!(of(&tensor(7, &[1])), None);
    }
}
