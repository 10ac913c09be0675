//! The fast and the strict parser give the same trace, whatever the events look like.

use kernel_traces::{Options, Trace};
use proptest::prelude::*;

/// A piece of space between two tokens.
fn space() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(String::new()), 4 => Just(" ".to_owned()), 1 => "[ \n\r\t]{0,6}"]
}

/// The content of a string, with escapes, brackets, anything.
fn content() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        6 => "[a-zA-Z0-9_:<>(), *&.-]{0,30}",
        1 => "[\\[\\]{}:,]{1,4}",
        1 => Just("\\\"".to_owned()),
        1 => Just("\\\\".to_owned()),
        1 => Just("\\u00e9\\n\\/".to_owned()),
        1 => Just("\\ud83d\\ude00".to_owned()),
        1 => Just("\t\u{1}".to_owned()),
        1 => Just("é漢\u{1f600}".to_owned()),
        1 => Just("}, {\\\"ph\\\": \\\"X\\\"".to_owned()),
    ];
    prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
}

fn string() -> impl Strategy<Value = String> {
    content().prop_map(|content| format!("\"{content}\""))
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0_u64..1 << 53).prop_map(|value| value.to_string()),
        4 => "[1-9][0-9]{9,14}\\.[0-9]{3}",
        2 => "(0|[1-9][0-9]{0,2})(\\.[0-9]{1,3})?",
        1 => "-?(0|[1-9][0-9]{0,29})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,3})?",
        1 => Just("18446744073709551615".to_owned()),
        1 => Just("18446744073709551616".to_owned()),
    ]
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => number(),
        2 => number().prop_map(|number| format!("\"{number}\"")),
        1 => string(),
        1 => Just("null".to_owned()),
        1 => Just("true".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![scalar(), string()];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..4), space()).prop_map(
                |(items, space)| format!("[{space}{}]", items.join(&format!(",{space}")))
            ),
            prop::collection::vec((string(), inner), 0..4).prop_map(|members| {
                let members: Vec<String> =
                    members.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
                format!("{{{}}}", members.join(", "))
            }),
        ]
    })
}

/// An object of some members in any order, perhaps with unknown keys, or the same one twice.
fn object(members: Vec<(&'static str, BoxedStrategy<String>)>) -> impl Strategy<Value = String> {
    let known: Vec<BoxedStrategy<Option<(String, String)>>> = members
        .into_iter()
        .map(|(key, value)| {
            let member = value.prop_map(move |value| (format!("\"{key}\""), value));
            prop::option::weighted(0.92, member).boxed()
        })
        .collect();
    let unknown = prop::collection::vec(
        (prop_oneof![8 => string(), 1 => Just("\"ts\"".to_owned())], value()),
        0..3,
    );
    (known, unknown, prop::bool::weighted(0.6), space(), space(), space()).prop_flat_map(
        |(known, unknown, is_usual, a, b, c)| {
            let members: Vec<_> = known.into_iter().flatten().chain(unknown).collect();
            let order =
                if is_usual { Just(members).boxed() } else { Just(members).prop_shuffle().boxed() };
            order.prop_map(move |members| {
                let members: Vec<String> = members
                    .into_iter()
                    .map(|(key, value)| format!("{key}{a}:{b}{value}{c}"))
                    .collect();
                format!("{{{a}{}{c}}}", members.join(&format!(",{b}")))
            })
        },
    )
}

/// What an operator was called with.
fn dims() -> impl Strategy<Value = String> {
    let size = prop_oneof![4 => (0_u64..5000).prop_map(|size| size.to_string()), 1 => string()];
    let tensor = (prop::collection::vec(size, 0..4), space())
        .prop_map(|(sizes, space)| format!("[{space}{}]", sizes.join(&format!(",{space}"))));
    (prop::collection::vec(tensor, 0..4), space()).prop_map(|(tensors, space)| {
        format!("[{space}{}{space}]", tensors.join(&format!(", {space}")))
    })
}

fn args() -> BoxedStrategy<String> {
    object(vec![
        ("External id", scalar().boxed()),
        ("device", scalar().boxed()),
        ("stream", scalar().boxed()),
        ("correlation", scalar().boxed()),
        ("graph node id", scalar().boxed()),
        ("external id", scalar().boxed()),
        ("Input Dims", prop_oneof![value().boxed(), dims().boxed()].boxed()),
        ("Input type", value().boxed()),
        ("Concrete Inputs", value().boxed()),
    ])
    .boxed()
}

fn event() -> impl Strategy<Value = String> {
    let categories = [
        "kernel",
        "Kernel",
        "cpu_op",
        "Operator",
        "cuda_runtime",
        "Runtime",
        "cuda_driver",
        "gpu_memcpy",
        "gpu_memset",
        "user_annotation",
        "gpu_user_annotation",
        "python_function",
        "ac2g",
        "Trace",
    ];
    let category = prop::sample::select(categories.to_vec());
    object(vec![
        ("ph", prop_oneof![9 => Just("\"X\"".to_owned()), 1 => scalar()].boxed()),
        (
            "cat",
            prop_oneof![9 => category.prop_map(|name| format!("\"{name}\"")), 1 => value()].boxed(),
        ),
        ("name", prop_oneof![9 => string(), 1 => value()].boxed()),
        ("pid", scalar().boxed()),
        ("tid", scalar().boxed()),
        ("ts", scalar().boxed()),
        ("dur", scalar().boxed()),
        ("args", prop_oneof![9 => args(), 1 => value()].boxed()),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn both_parsers_agree(events in prop::collection::vec(event(), 1..8), space in space()) {
        let text = format!("{{\"traceEvents\":{space}[{}]}}", events.join(&format!("{space},{space}")));
        let fast = Trace::from_json(text.as_bytes(), &Options::default()).unwrap();
        let options = Options { strict: true, ..Options::default() };
        let strict = Trace::from_json(text.as_bytes(), &options).unwrap();
        prop_assert_eq!(&fast, &strict);
        prop_assert_eq!(fast.events, events.len() as u64);
    }
}
