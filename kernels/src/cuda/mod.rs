//! NVIDIA GPUs: CUDA's driver interface, NVRTC and NVML, in three layers.
//!
//! `functions` are the raw ones, loaded at run time. `checked` turns their codes into errors. The
//! rest is safe: `driver` and `nvrtc` implement what the GPU backend is written against.

mod checked;
mod cublaslt;
mod device;
mod driver;
mod functions;
mod listing;
mod nvml;
mod nvrtc;
mod tensor_map;
#[cfg(test)]
mod tests;

pub(crate) use cublaslt::gemm_library;
pub(crate) use listing::{open, survey};
