//! AMD GPUs: HIP and hiprtc, in three layers.
//!
//! `raw` are the functions as bindgen found them in the headers, loaded at run time. `checked`
//! turns their codes into errors. The rest is safe: `driver` and `compiler` implement what the GPU
//! backend is written against. `hiprtc` is the runtime compiler itself, which only runs in a
//! process of its own.

mod checked;
mod clock;
mod compiler;
mod device;
mod driver;
mod hipblaslt;
mod hiprtc;
mod listing;
mod raw;
#[cfg(test)]
mod tests;

pub(crate) use hipblaslt::gemm_library;
pub(crate) use hiprtc::{HiprtcLibrary, Outcome};
pub(crate) use listing::{open, survey};
