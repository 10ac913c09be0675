//! Tensor maps: what the TMA of sm_90a must know of a matrix.

use cudarc::driver::sys::{
    CUtensorMap, CUtensorMapDataType as DataType, CUtensorMapFloatOOBfill as Fill,
    CUtensorMapInterleave as Interleave, CUtensorMapL2promotion as Promotion,
    CUtensorMapSwizzle as Swizzle,
};

use super::functions::Cuda;
use crate::gpu::{Address, DeviceError, TensorMap};

const BYTES_PER_NUMBER: u64 = 2;

/// The descriptor of the matrices at an address: rank 3, from the innermost dimension on `cols`,
/// `rows` and `batches`, in boxes of `box_cols` x `box_rows` x 1 with a swizzle of 128 bytes.
/// Numbers outside of the matrix are read as zero.
pub(super) fn encode(cuda: &Cuda, map: &TensorMap, at: Address) -> Result<[u8; 128], DeviceError> {
    let Some(function) = cuda.cuTensorMapEncodeTiled else {
        return Err(DeviceError::Unsupported(
            "TMA needs a driver of CUDA 12.0 or later".to_owned(),
        ));
    };
    let data_type = if map.bf16 {
        DataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
    } else {
        DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16
    };
    let dims = [map.cols, map.rows, map.batches];
    let row_bytes = map.cols * BYTES_PER_NUMBER;
    let strides = [row_bytes, row_bytes * map.rows];
    let box_dims = [map.box_cols, map.box_rows, 1];
    let element_strides = [1, 1, 1];
    let mut encoded = CUtensorMap { opaque: [0; 16] };
    // SAFETY: arrays have as many elements as the rank says, strides one less, and the call writes
    // one descriptor. The memory at the address is not accessed.
    let code = unsafe {
        function(
            &raw mut encoded,
            data_type as u32,
            3,
            at.0 as *mut std::ffi::c_void,
            dims.as_ptr(),
            strides.as_ptr(),
            box_dims.as_ptr(),
            element_strides.as_ptr(),
            Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE as u32,
            Swizzle::CU_TENSOR_MAP_SWIZZLE_128B as u32,
            Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B as u32,
            Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE as u32,
        )
    };
    cuda.check("cuTensorMapEncodeTiled", code)?;
    let mut bytes = [0; 128];
    for (word, place) in encoded.opaque.iter().zip(bytes.chunks_exact_mut(8)) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    Ok(bytes)
}
