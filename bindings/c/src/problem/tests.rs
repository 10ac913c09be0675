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
            made(|problem, error| fcm_problem_conv(c"conv_bn".as_ptr(), f32, CONV, problem, error)),
            made(|problem, error| {
                let (chain, pool) =
                    (c"conv_bn_relu_maxpool".as_ptr(), PoolWindow { size: 3, stride: 2, pad: 1 });
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
            made(|out, error| fcm_problem_rows(c"relu".as_ptr(), FCM_DTYPE_F32, sizes, out, error)),
        ]
    };
    let messages = refused.map(|refused| refused.unwrap_err().1);
    assert_eq!(messages[0], "chain is NULL");
    assert_eq!(messages[1], "dtype is 99; use one of the constants FCM_DTYPE_*");
    assert!(messages[2].contains("it must be at least 1"), "{}", messages[2]);
    assert_eq!(read(fcm_problem_text(None)), "");
}
