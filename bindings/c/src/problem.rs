//! Problems: a chain of ops, a dtype and sizes.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use fusion_cost_model as fcm;

use crate::constants::{DTYPES, DType, meaning};
use crate::error::{Error, Status, ask, given, make};
use crate::text::{c_string, text};

/// A chain of ops, the dtype of its tensors, and its sizes.
#[derive(Debug)]
pub struct Problem {
    pub(crate) problem: fcm::Problem,
    text: OnceLock<CString>,
}

impl Problem {
    pub(crate) const fn of(problem: fcm::Problem) -> Self {
        Self { problem, text: OnceLock::new() }
    }
}

/// Sizes of a chain of pointwise and row ops: a matrix `[m, n]`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RowsSizes {
    /// Rows.
    pub m: u64,
    /// Columns.
    pub n: u64,
}

/// Sizes of a linear op: X `[m, k]`, W `[k, n]`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct LinearSizes {
    /// Rows.
    pub m: u64,
    /// Input features.
    pub k: u64,
    /// Output features.
    pub n: u64,
}

/// Sizes of two linear ops: X `[m, k]`, W1 `[k, n]`, W2 `[n, o]`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct MlpSizes {
    /// Rows.
    pub m: u64,
    /// Input features.
    pub k: u64,
    /// Hidden features.
    pub n: u64,
    /// Output features.
    pub o: u64,
}

/// Sizes of a convolution, by the letters of cuDNN, MIOpen and CUTLASS.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ConvSizes {
    /// Images.
    pub n: u64,
    /// Input channels.
    pub c: u64,
    /// Input height.
    pub h: u64,
    /// Input width.
    pub w: u64,
    /// Output channels.
    pub k: u64,
    /// Filter height.
    pub r: u64,
    /// Filter width.
    pub s: u64,
    /// Stride of the filter.
    pub stride: u64,
    /// Zero padding on each side.
    pub pad: u64,
    /// Groups of channels.
    pub groups: u64,
}

/// The window of a max-pool over the output of a convolution.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PoolWindow {
    /// Height and width.
    pub size: u64,
    /// Stride.
    pub stride: u64,
    /// Padding on each side.
    pub pad: u64,
}

/// Sizes of attention: Q `[b h, q, d]`, K and V `[b kvh, kv, d]`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct AttentionSizes {
    /// Batch.
    pub b: u64,
    /// Heads.
    pub h: u64,
    /// Queries.
    pub q: u64,
    /// Keys and values.
    pub kv: u64,
    /// Features of a head.
    pub d: u64,
    /// Heads of keys and values: `h`, or fewer, each shared by as many heads of queries.
    pub kvh: u64,
    /// Whether no query sees a key after its own, where the last query is at the last key.
    pub causal: bool,
}

impl From<ConvSizes> for fcm::ConvSizes {
    fn from(sizes: ConvSizes) -> Self {
        let ConvSizes { n, c, h, w, k, r, s, stride, pad, groups } = sizes;
        Self { n, c, h, w, k, r, s, stride, pad, groups }
    }
}

impl From<AttentionSizes> for fcm::AttentionSizes {
    fn from(sizes: AttentionSizes) -> Self {
        let AttentionSizes { b, h, q, kv, d, kvh, causal } = sizes;
        Self { b, h, q, kv, d, kvh, causal }
    }
}

/// Reads a problem from its text form, such as `linear_bias_relu/f32/m128.k256.n512`. Free it with
/// `fcm_problem_free`, as all problems that a call makes.
///
/// # Safety
///
/// `text` ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcm_problem_of_text(
    text: *const c_char,
    problem: Option<&mut MaybeUninit<Option<Box<Problem>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    make(problem, error, || {
        // SAFETY: what the caller of this function promises.
        let text = unsafe { self::text(text, "text") }?;
        Ok(Problem::of(text.parse()?))
    })
}

/// Makes a problem of what is a chain in words, a dtype in a number, and sizes.
///
/// # Safety
///
/// `chain` is null or ends with a NUL.
unsafe fn make_sized(
    chain: *const c_char,
    dtype: DType,
    problem: Option<&mut MaybeUninit<Option<Box<Problem>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
    of_sizes: impl FnOnce(fcm::Chain, fcm::DType) -> Result<fcm::Problem, fcm::Error>,
) -> Status {
    make(problem, error, || {
        // SAFETY: what the caller of this function promises.
        let chain = unsafe { text(chain, "chain") }?;
        let dtype = meaning(DTYPES, dtype, "dtype", "FCM_DTYPE")?;
        Ok(Problem::of(of_sizes(chain.parse()?, dtype)?))
    })
}

/// Pointwise and row ops (softmax, layer norm, RMS norm) on a matrix. A chain is ops joined with `+`,
/// such as `add+relu`, or the name of a pattern, also by the names of frameworks.
///
/// # Safety
///
/// `chain` ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcm_problem_rows(
    chain: *const c_char,
    dtype: DType,
    sizes: RowsSizes,
    problem: Option<&mut MaybeUninit<Option<Box<Problem>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    let RowsSizes { m, n } = sizes;
    let of_sizes = |chain, dtype| fcm::Problem::rows(chain, dtype, fcm::RowsSizes { m, n });
    // SAFETY: what the caller of this function promises.
    unsafe { make_sized(chain, dtype, problem, error, of_sizes) }
}

/// One linear op and what follows it, such as `linear+bias+relu`.
///
/// # Safety
///
/// `chain` ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcm_problem_linear(
    chain: *const c_char,
    dtype: DType,
    sizes: LinearSizes,
    problem: Option<&mut MaybeUninit<Option<Box<Problem>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    let LinearSizes { m, k, n } = sizes;
    let of_sizes = |chain, dtype| fcm::Problem::linear(chain, dtype, fcm::LinearSizes { m, k, n });
    // SAFETY: what the caller of this function promises.
    unsafe { make_sized(chain, dtype, problem, error, of_sizes) }
}

/// Two linear ops and what follows each of them, such as `linear+bias+gelu+linear+bias`.
///
/// # Safety
///
/// `chain` ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcm_problem_mlp(
    chain: *const c_char,
    dtype: DType,
    sizes: MlpSizes,
    problem: Option<&mut MaybeUninit<Option<Box<Problem>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    let MlpSizes { m, k, n, o } = sizes;
    let of_sizes = |chain, dtype| fcm::Problem::mlp(chain, dtype, fcm::MlpSizes { m, k, n, o });
    // SAFETY: what the caller of this function promises.
    unsafe { make_sized(chain, dtype, problem, error, of_sizes) }
}

/// A convolution and the pointwise ops that follow it, such as `conv2d+batch_norm+relu`.
///
/// # Safety
///
/// `chain` ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcm_problem_conv(
    chain: *const c_char,
    dtype: DType,
    sizes: ConvSizes,
    problem: Option<&mut MaybeUninit<Option<Box<Problem>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    let of_sizes = |chain, dtype| fcm::Problem::conv(chain, dtype, sizes.into());
    // SAFETY: what the caller of this function promises.
    unsafe { make_sized(chain, dtype, problem, error, of_sizes) }
}

/// A convolution with a max-pool among the ops that follow it, such as `conv2d+relu+max_pool`.
///
/// # Safety
///
/// `chain` ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcm_problem_conv_pool(
    chain: *const c_char,
    dtype: DType,
    sizes: ConvSizes,
    pool: PoolWindow,
    problem: Option<&mut MaybeUninit<Option<Box<Problem>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    let PoolWindow { size, stride, pad } = pool;
    let pool = fcm::PoolWindow { size, stride, pad };
    let of_sizes = |chain, dtype| fcm::Problem::conv_pool(chain, dtype, sizes.into(), pool);
    // SAFETY: what the caller of this function promises.
    unsafe { make_sized(chain, dtype, problem, error, of_sizes) }
}

/// Scaled dot-product attention, or its part before or after the softmax, such as `qk+softmax+pv`.
///
/// # Safety
///
/// `chain` ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcm_problem_attention(
    chain: *const c_char,
    dtype: DType,
    sizes: AttentionSizes,
    problem: Option<&mut MaybeUninit<Option<Box<Problem>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    let of_sizes = |chain, dtype| fcm::Problem::attention(chain, dtype, sizes.into());
    // SAFETY: what the caller of this function promises.
    unsafe { make_sized(chain, dtype, problem, error, of_sizes) }
}

/// Attention and a linear op with `features` outputs on the joined heads.
///
/// # Safety
///
/// `chain` ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcm_problem_multihead_linear(
    chain: *const c_char,
    dtype: DType,
    sizes: AttentionSizes,
    features: u64,
    problem: Option<&mut MaybeUninit<Option<Box<Problem>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    let of_sizes =
        |chain, dtype| fcm::Problem::multihead_linear(chain, dtype, sizes.into(), features);
    // SAFETY: what the caller of this function promises.
    unsafe { make_sized(chain, dtype, problem, error, of_sizes) }
}

/// Makes one problem of two neighbours, where the second reads what the first writes.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_problem_join(
    first: Option<&Problem>,
    second: Option<&Problem>,
    problem: Option<&mut MaybeUninit<Option<Box<Problem>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    make(problem, error, || {
        let (first, second) = (given(first, "first")?, given(second, "second")?);
        Ok(Problem::of(first.problem.join(&second.problem)?))
    })
}

/// The text form of a problem: equal problems have equal text. Belongs to the problem; empty of NULL.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_problem_text(problem: Option<&Problem>) -> *const c_char {
    ask(c"".as_ptr(), || {
        let Problem { problem, text } = problem?;
        Some(text.get_or_init(|| c_string(problem.to_string())).as_ptr())
    })
}

/// Frees a problem.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_problem_free(problem: Option<Box<Problem>>) {
    drop(problem);
}

#[cfg(test)]
pub(crate) mod tests;
