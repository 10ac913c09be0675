//! What only tests of the GPU backends need, apart from the code that is shipped.
//!
//! `emulation` runs plans on this machine, and `compile_check` passes them to the vendors' real
//! compilers. `mutations`, `functions`, `matrix_core`, `wide_gemm` and `attention` are tests over the
//! emulation. `forecast` holds the documents against the kernels. `scripted` is a driver that does what
//! a test says, and `stubs` builds small C libraries in place of the vendors'. Tests of one module lie
//! next to that module.

mod attention;
mod compile_check;
pub(crate) mod emulation;
mod forecast;
mod functions;
mod matrix_core;
pub(crate) mod mutations;
#[path = "../../../tests/problems/mod.rs"]
pub(crate) mod problems;
pub(crate) mod scripted;
pub(crate) mod stubs;
mod wide_gemm;
