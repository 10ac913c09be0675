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
pub(crate) mod tests {
    use std::ptr::null;

    use super::*;
    use crate::constants::{FCM_DTYPE_BF16, FCM_DTYPE_F32};
    use crate::error::{
        FCM_INVALID_ARGUMENT, FCM_INVALID_QUESTION, FCM_INVALID_SIZES, FCM_NOT_ONE_KERNEL, FCM_OK,
        FCM_UNKNOWN_NAME, fcm_error_message,
    };
    use crate::text::tests::read;

    type Made = Result<Box<Problem>, (Status, String)>;
    type Place<'a> = Option<&'a mut MaybeUninit<Option<Box<Problem>>>>;
    type Failure<'a> = Option<&'a mut MaybeUninit<Option<Box<Error>>>>;

    fn made(by: impl FnOnce(Place<'_>, Failure<'_>) -> Status) -> Made {
        let (mut problem, mut error) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let status = by(Some(&mut problem), Some(&mut error));
        // SAFETY: every call that makes a problem writes both.
        let (problem, error) = unsafe { (problem.assume_init(), error.assume_init()) };
        assert_eq!(problem.is_some(), status == FCM_OK);
        problem.ok_or_else(|| (status, read(fcm_error_message(error.as_deref()))))
    }

    fn parsed(text: &CString) -> Made {
        // SAFETY: a `CString` ends with a NUL.
        made(|problem, error| unsafe { fcm_problem_of_text(text.as_ptr(), problem, error) })
    }

    pub(crate) fn problem(text: &str) -> Box<Problem> {
        parsed(&CString::new(text).unwrap()).unwrap()
    }

    const ATTENTION: AttentionSizes =
        AttentionSizes { b: 1, h: 8, q: 128, kv: 512, d: 64, kvh: 2, causal: true };
    const CONV: ConvSizes =
        ConvSizes { n: 1, c: 64, h: 56, w: 56, k: 32, r: 3, s: 3, stride: 2, pad: 1, groups: 4 };

    #[test]
    fn problems_from_numbers_and_from_text_are_the_same() {
        let f32 = FCM_DTYPE_F32;
        // SAFETY: all chains are literals that end with a NUL.
        let all = unsafe {
            [
                made(|problem, error| {
                    let sizes = RowsSizes { m: 1, n: 2 };
                    fcm_problem_rows(c"Add_ReLU".as_ptr(), FCM_DTYPE_BF16, sizes, problem, error)
                }),
                made(|problem, error| {
                    let sizes = LinearSizes { m: 1, k: 2, n: 3 };
                    fcm_problem_linear(c"nn.Linear+relu".as_ptr(), f32, sizes, problem, error)
                }),
                made(|problem, error| {
                    let sizes = MlpSizes { m: 1, k: 2, n: 3, o: 4 };
                    fcm_problem_mlp(c"mlp".as_ptr(), f32, sizes, problem, error)
                }),
                made(|problem, error| {
                    fcm_problem_conv(c"conv_bn".as_ptr(), f32, CONV, problem, error)
                }),
                made(|problem, error| {
                    let (chain, pool) = (
                        c"conv_bn_relu_maxpool".as_ptr(),
                        PoolWindow { size: 3, stride: 2, pad: 1 },
                    );
                    fcm_problem_conv_pool(chain, f32, CONV, pool, problem, error)
                }),
                made(|problem, error| {
                    let chain = c"attention_head".as_ptr();
                    fcm_problem_attention(chain, f32, ATTENTION, problem, error)
                }),
                made(|problem, error| {
                    let chain = c"multihead_linear".as_ptr();
                    fcm_problem_multihead_linear(chain, f32, ATTENTION, 7, problem, error)
                }),
            ]
        };
        let texts = [
            "add_relu/bf16/m1.n2",
            "linear+relu/f32/m1.k2.n3",
            "mlp/f32/m1.k2.n3.o4",
            "conv_bn/f32/n1.c64.h56.w56.k32.r3.s3.stride2.pad1.groups4",
            "conv_bn_relu_maxpool/f32/n1.c64.h56.w56.k32.r3.s3.stride2.pad1.groups4.pool3.pstride2.ppad1",
            "attention_head/f32/b1.h8.q128.kv512.d64.kvh2.causal1",
            "multihead_linear/f32/b1.h8.q128.kv512.d64.kvh2.causal1.n7",
        ];
        for (made, text) in all.into_iter().zip(texts) {
            let made = made.unwrap();
            assert_eq!(read(fcm_problem_text(Some(&made))), text);
            assert_eq!(problem(text).problem, made.problem);
            fcm_problem_free(Some(made));
        }
    }

    #[test]
    fn two_neighbours_are_one_problem() {
        let (linear, bias) = (problem("linear/f32/m1.k2.n3"), problem("bias/f32/m1.n3"));
        let joined = made(|out, error| fcm_problem_join(Some(&linear), Some(&bias), out, error));
        assert_eq!(read(fcm_problem_text(joined.ok().as_deref())), "linear_bias/f32/m1.k2.n3");
        let swapped = made(|out, error| fcm_problem_join(Some(&bias), Some(&linear), out, error));
        assert_eq!(swapped.unwrap_err().0, FCM_NOT_ONE_KERNEL);
        let one = made(|out, error| fcm_problem_join(Some(&bias), None, out, error));
        assert_eq!(one.unwrap_err(), (FCM_INVALID_ARGUMENT, "second is NULL".to_owned()));
    }

    #[test]
    fn bad_problems_say_what_is_wrong() {
        for (text, expected, words) in [
            (c"linear_bais/f32/m1.k2.n3", FCM_UNKNOWN_NAME, "did you mean `linear_bias`"),
            (c"relu+linear/f32/m1.k2.n3", FCM_NOT_ONE_KERNEL, "linear must be the first op"),
            (c"linear/f32/m1.k2", FCM_INVALID_SIZES, "output features"),
            (c"linear", FCM_INVALID_QUESTION, "expected chain/dtype/sizes"),
            (c"linear/\xff/m1", FCM_INVALID_ARGUMENT, "text is not UTF-8"),
        ] {
            let (status, message) = parsed(&text.to_owned()).unwrap_err();
            assert_eq!(status, expected, "{message}");
            assert!(message.contains(words), "{message}");
        }
        // SAFETY: the chains are null, which is refused, or end with a NUL.
        let refused = unsafe {
            let sizes = RowsSizes { m: 1, n: 0 };
            [
                made(|out, error| fcm_problem_rows(null(), FCM_DTYPE_F32, sizes, out, error)),
                made(|out, error| fcm_problem_rows(c"relu".as_ptr(), 99, sizes, out, error)),
                made(|out, error| {
                    fcm_problem_rows(c"relu".as_ptr(), FCM_DTYPE_F32, sizes, out, error)
                }),
            ]
        };
        let messages = refused.map(|refused| refused.unwrap_err().1);
        assert_eq!(messages[0], "chain is NULL");
        assert_eq!(messages[1], "dtype is 99; use one of the constants FCM_DTYPE_*");
        assert!(messages[2].contains("it must be at least 1"), "{}", messages[2]);
        assert_eq!(read(fcm_problem_text(None)), "");
    }
}
