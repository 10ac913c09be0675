//! Problems from numbers are those of the text form, and so is what is wrong with them.

use proptest::prelude::*;

use fusion_cost_model::kernel::Form;
use fusion_cost_model::{
    AttentionSizes, Chain, ConvSizes, DType, Error, ImageSizes, LinearSizes, MlpSizes, Op,
    Pointwise, PoolWindow, Problem, RowsSizes,
};

/// A chain of each form.
const CHAINS: [(Form, &str); 8] = [
    (Form::Rows, "add_relu"),
    (Form::Linear, "linear_bias_relu"),
    (Form::Mlp, "mlp"),
    (Form::Conv, "conv_bn_relu"),
    (Form::ConvPool, "conv_bn_relu_maxpool"),
    (Form::Pool, "max_pool"),
    (Form::Attention, "attention_head"),
    (Form::MultiheadLinear, "multihead_linear"),
];

/// The most sizes of a form.
const MOST: usize = 13;

/// Where attention has its mask, which is there or not.
const CAUSAL: usize = 6;

fn chain_of(form: Form) -> Chain {
    CHAINS.iter().find(|(of, _)| *of == form).unwrap().1.parse().unwrap()
}

/// The constructor of a form, with its sizes in the order of the text form.
fn from_numbers(form: Form, chain: Chain, dtype: DType, v: [u64; MOST]) -> Result<Problem, Error> {
    let [s0, s1, s2, s3, s4, s5, s6, s7, ..] = v;
    let [n, c, h, w, k, r, s, stride, pad, groups, size, pool_stride, pool_pad] = v;
    let conv = ConvSizes { n, c, h, w, k, r, s, stride, pad, groups };
    let pool = PoolWindow { size, stride: pool_stride, pad: pool_pad };
    let attention = AttentionSizes { b: s0, h: s1, q: s2, kv: s3, d: s4, kvh: s5, causal: s6 == 1 };
    match form {
        Form::Rows => Problem::rows(chain, dtype, RowsSizes { m: s0, n: s1 }),
        Form::Linear => Problem::linear(chain, dtype, LinearSizes { m: s0, k: s1, n: s2 }),
        Form::Mlp => Problem::mlp(chain, dtype, MlpSizes { m: s0, k: s1, n: s2, o: s3 }),
        Form::Conv => Problem::conv(chain, dtype, conv),
        Form::ConvPool => Problem::conv_pool(chain, dtype, conv, pool),
        Form::Pool => {
            let window = PoolWindow { size: s4, stride: s5, pad: s6 };
            Problem::pool(chain, dtype, ImageSizes { n: s0, c: s1, h: s2, w: s3 }, window)
        }
        Form::Attention => Problem::attention(chain, dtype, attention),
        Form::MultiheadLinear => Problem::multihead_linear(chain, dtype, attention, s7),
    }
}

/// Sizes of any kind as those of a form: only numbers of attention are more than numbers.
fn as_sizes(form: Form, mut values: [u64; MOST]) -> [u64; MOST] {
    if matches!(form, Form::Attention | Form::MultiheadLinear) {
        values[CAUSAL] %= 2;
    }
    values
}

/// All sizes of a form as text, those with a default too.
fn text_of(form: Form, values: [u64; MOST]) -> String {
    let parts = form.size_keys().iter().zip(values);
    parts.map(|(key, value)| format!("{}{value}", key.key)).collect::<Vec<_>>().join(".")
}

fn assert_as_text(form: Form, chain: Chain, values: [u64; MOST]) -> Result<(), TestCaseError> {
    let text = format!("{}/f32/{}", chain.name(), text_of(form, values));
    match (from_numbers(form, chain, DType::F32, values), text.parse::<Problem>()) {
        (Ok(numbers), Ok(text)) => {
            prop_assert_eq!(numbers, text);
            prop_assert_eq!(numbers.to_string().parse::<Problem>().unwrap(), numbers);
        }
        (Err(numbers), Err(text)) => {
            prop_assert!(numbers.is_invalid_sizes());
            prop_assert_eq!(numbers.to_string(), text.to_string());
        }
        (numbers, parsed) => prop_assert!(false, "{}: {:?}, but {:?}", text, numbers, parsed),
    }
    Ok(())
}

/// Sizes as they are, and those at the ends of what can be.
fn size() -> impl Strategy<Value = u64> {
    prop_oneof![
        12 => 1_u64..40,
        2 => 0_u64..3,
        1 => 1_u64..5000,
        1 => prop::sample::select(vec![u64::from(u32::MAX), 1 << 32, u64::MAX]),
    ]
}

fn sizes() -> impl Strategy<Value = [u64; MOST]> {
    prop::collection::vec(size(), MOST).prop_map(|sizes| sizes.try_into().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_constructor_agrees_with_the_text_form(
        (form, _) in prop::sample::select(CHAINS.to_vec()),
        values in sizes(),
    ) {
        assert_as_text(form, chain_of(form), as_sizes(form, values))?;
    }

    /// A mask and shared keys leave every old key what it was: with their defaults they are not there.
    #[test]
    fn attention_without_a_mask_and_shared_keys_has_its_old_text(
        values in prop::collection::vec(1_u64..40, 5),
        heads_of_keys in 1_u64..8,
        causal in any::<bool>(),
    ) {
        let [b, heads, q, kv, d] = values[..] else { unreachable!() };
        let kvh = heads_of_keys;
        let h = heads * kvh;
        let old = format!("attention_head/f32/b{b}.h{h}.q{q}.kv{kv}.d{d}");
        let old: Problem = old.parse().unwrap();
        prop_assert!(!old.to_string().contains("kvh") && !old.to_string().contains("causal"));
        let chain = chain_of(Form::Attention);
        let sizes = AttentionSizes { b, h, q, kv, d, kvh: h, causal: false };
        prop_assert_eq!(Problem::attention(chain, DType::F32, sizes).unwrap(), old);
        let new = Problem::attention(chain, DType::F32, AttentionSizes { kvh, causal, ..sizes });
        match new {
            Ok(new) => {
                prop_assert_eq!(new == old, kvh == h && (!causal || q == 1));
                let found = new.sizes().attention().unwrap();
                prop_assert_eq!(found.group() * kvh, h);
                let pairs: u64 = (0..q).map(|query| found.seen(query)).sum();
                prop_assert_eq!(found.pairs(), b * h * pairs);
                prop_assert_eq!(found.seen(q - 1), kv);
                prop_assert!(new.steps().map(|step| step.flops()).sum::<u64>()
                    <= old.steps().map(|step| step.flops()).sum());
            }
            Err(error) => {
                prop_assert!(causal && q > kv);
                prop_assert!(error.to_string().contains("would see no key"));
            }
        }
    }

    /// The sizes of another form fail, and say what the text form says wherever that fails too.
    #[test]
    fn the_sizes_of_another_form_are_refused(
        (form, _) in prop::sample::select(CHAINS.to_vec()),
        (other, _) in prop::sample::select(CHAINS.to_vec()),
        values in prop::collection::vec(4_u64..9, MOST),
    ) {
        prop_assume!(form != other);
        let values = as_sizes(form, values.try_into().unwrap());
        let chain = chain_of(other);
        let Err(error) = from_numbers(form, chain, DType::F32, values) else {
            return Err(TestCaseError::fail("it was accepted"));
        };
        prop_assert!(error.is_invalid_sizes());
        let text = format!("{}/f32/{}", chain.name(), text_of(form, values));
        // Only a convolution that pads less than its filter gets as far as this.
        let is_own_sizes = from_numbers(form, chain_of(form), DType::F32, values).is_ok();
        if let (true, Err(parsed)) = (is_own_sizes, text.parse::<Problem>()) {
            prop_assert_eq!(error.to_string(), parsed.to_string());
        }
    }

    /// Wherever a problem is cut into two that can stand alone, they join to it again.
    #[test]
    fn what_was_cut_joins_again(
        ops in prop::collection::vec(0..Op::all().count(), 1..6),
        anchor in prop::sample::select(vec![
            "", "linear+", "conv2d+", "qk+softmax+pv+", "softmax+pv+", "linear+relu+linear+",
            "conv2d+relu+max_pool+", "qk+softmax+pv+linear+", "qk+scale+", "pv+", "pv+linear+",
        ]),
        values in prop::collection::vec(4_u64..9, MOST),
        cut in 0_usize..8,
        causal in any::<bool>(),
    ) {
        let ops: Vec<&str> =
            ops.iter().filter_map(|&index| Op::all().nth(index)).map(Op::name).collect();
        let Ok(chain) = format!("{anchor}{}", ops.join("+")).parse::<Chain>() else {
            return Ok(());
        };
        let mut values: [u64; MOST] = values.try_into().unwrap();
        if matches!(chain.form(), Form::Conv | Form::ConvPool) {
            // Groups, paddings and windows that fit every image here.
            values[5..].copy_from_slice(&[3, 3, 1, 1, 1, 2, 2, 0]);
        }
        if chain.form() == Form::Pool {
            values[4..7].copy_from_slice(&[2, 2, 0]);
        }
        if matches!(chain.form(), Form::Attention | Form::MultiheadLinear) {
            let has_mask = causal && chain.contains(&Op::Softmax);
            values[3] += values[2];
            values[5] = values[1];
            values[CAUSAL] = has_mask.into();
        }
        // Only sums of integers are requantised, at the end of a chain; behind their product all ops are
        // pointwise.
        let requantize = chain.iter().position(|op| *op == Op::Pointwise(Pointwise::Requantize));
        let dtype = if requantize.is_some() { DType::I8 } else { DType::F32 };
        let whole = from_numbers(chain.form(), chain, dtype, values);
        let is_product = matches!(chain[0], Op::Linear | Op::Conv2d);
        let is_of_sums = chain.iter().skip(usize::from(is_product)).all(|op| op.is_pointwise());
        if requantize.is_some_and(|at| at + 1 < chain.len() || !is_of_sums) {
            prop_assert!(whole.is_err());
            return Ok(());
        }
        let whole = whole.unwrap();
        prop_assert_eq!(whole.slice(0..chain.len()), Some(whole));
        let parts = (whole.slice(0..cut), whole.slice(cut..chain.len()));
        if let (Some(first), Some(second)) = parts {
            prop_assert_eq!(first.join(&second).unwrap(), whole);
        }
    }
}

/// The ends of what each size can be, one size at a time.
#[test]
fn zero_one_and_too_much_of_each_size() {
    for (form, _) in CHAINS {
        let usual = match form {
            Form::Attention | Form::MultiheadLinear => [8, 4, 8, 8, 4, 2, 1, 3, 1, 1, 2, 2, 0],
            _ => [8, 4, 8, 8, 4, 3, 3, 1, 1, 1, 2, 2, 0],
        };
        for at in 0..form.size_keys().len() {
            for value in [0, 1, u64::from(u32::MAX), 1 << 32, u64::MAX] {
                let mut values = usual;
                values[at] = value;
                let values = as_sizes(form, values);
                assert_as_text(form, chain_of(form), values).unwrap_or_else(|e| panic!("{e}"));
            }
        }
    }
}

#[test]
fn a_convolution_is_no_convolution_with_a_pool() {
    let sizes =
        ConvSizes { n: 1, c: 3, h: 8, w: 8, k: 4, r: 3, s: 3, stride: 1, pad: 0, groups: 1 };
    let error = Problem::conv(chain_of(Form::ConvPool), DType::F32, sizes).unwrap_err();
    assert!(error.to_string().contains("the chain has more sizes; expected n#.c#"), "{error}");
}
