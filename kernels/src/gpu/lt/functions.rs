//! The functions of cuBLASLt and hipBLASLt, and what differs between the two.

use std::ffi::{c_int, c_uint, c_void};

use crate::gpu::library::{OpenLibrary, Unusable};

pub(crate) type Code = c_uint;
pub(crate) type Handle = *mut c_void;

/// What differs between the two libraries apart from the names of their functions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flavour {
    /// The name to show.
    pub(crate) name: &'static str,
    /// What the names of functions begin with.
    pub(crate) prefix: &'static str,
    /// f32 sums of f32 products.
    pub(crate) compute_f32: c_uint,
    /// The attributes of a GEMM that are set: epilogue, address and type of the bias.
    pub(crate) desc_epilogue: c_uint,
    pub(crate) desc_bias_pointer: c_uint,
    pub(crate) desc_bias_type: c_uint,
    /// The attribute of a preference that bounds the workspace.
    pub(crate) pref_workspace: c_uint,
}

/// Room for a heuristic's result, which begins with the algorithm: 96 bytes in cuBLASLt, 56 in
/// hipBLASLt.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub(super) struct HeuristicResult(pub(super) [u8; 256]);

type Create = unsafe extern "C" fn(*mut Handle) -> Code;
pub(super) type Destroy = unsafe extern "C" fn(Handle) -> Code;
type Set = unsafe extern "C" fn(Handle, c_uint, *const c_void, usize) -> Code;
type CreateDescription = unsafe extern "C" fn(*mut Handle, c_uint, c_uint) -> Code;
type CreateLayout = unsafe extern "C" fn(*mut Handle, c_uint, u64, u64, i64) -> Code;
type Heuristic = unsafe extern "C" fn(
    Handle,
    Handle,
    Handle,
    Handle,
    Handle,
    Handle,
    Handle,
    c_int,
    *mut HeuristicResult,
    *mut c_int,
) -> Code;
type Matmul = unsafe extern "C" fn(
    Handle,
    Handle,
    *const c_void,
    *const c_void,
    Handle,
    *const c_void,
    Handle,
    *const c_void,
    *const c_void,
    Handle,
    *mut c_void,
    Handle,
    *const HeuristicResult,
    *mut c_void,
    usize,
    *mut c_void,
) -> Code;

/// The functions that are used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Functions {
    pub(super) create: Create,
    pub(super) destroy: Destroy,
    pub(super) create_description: CreateDescription,
    pub(super) destroy_description: Destroy,
    pub(super) set_description: Set,
    pub(super) create_layout: CreateLayout,
    pub(super) destroy_layout: Destroy,
    pub(super) create_preference: Create,
    pub(super) destroy_preference: Destroy,
    pub(super) set_preference: Set,
    pub(super) heuristic: Heuristic,
    pub(super) matmul: Matmul,
}

impl Functions {
    /// Finds them in a library.
    pub(crate) fn resolve(library: &OpenLibrary, flavour: &Flavour) -> Result<Self, Unusable> {
        /// # Safety
        ///
        /// `F` must be the type of the function.
        unsafe fn function<F: Copy>(
            library: &OpenLibrary,
            flavour: &Flavour,
            name: &str,
        ) -> Result<F, Unusable> {
            let name = format!("{}{name}", flavour.prefix);
            // SAFETY: the caller's guarantee.
            unsafe { library.function(&name) }
                .ok_or_else(|| Unusable::Unfit(format!("it has no function {name}")))
        }
        // SAFETY: the types are those of both vendors' headers.
        unsafe {
            Ok(Self {
                create: function(library, flavour, "Create")?,
                destroy: function(library, flavour, "Destroy")?,
                create_description: function(library, flavour, "MatmulDescCreate")?,
                destroy_description: function(library, flavour, "MatmulDescDestroy")?,
                set_description: function(library, flavour, "MatmulDescSetAttribute")?,
                create_layout: function(library, flavour, "MatrixLayoutCreate")?,
                destroy_layout: function(library, flavour, "MatrixLayoutDestroy")?,
                create_preference: function(library, flavour, "MatmulPreferenceCreate")?,
                destroy_preference: function(library, flavour, "MatmulPreferenceDestroy")?,
                set_preference: function(library, flavour, "MatmulPreferenceSetAttribute")?,
                heuristic: function(library, flavour, "MatmulAlgoGetHeuristic")?,
                matmul: function(library, flavour, "Matmul")?,
            })
        }
    }
}
