//! How the time of an operator is split, as Python prints it and otherwise.

use proptest::prelude::*;

use crate::predicted::{LiteralError, sub_kernel_durations};

#[test]
fn python_literals() {
    let read = |text: &str| sub_kernel_durations(text).map_err(|error| error.to_string());
    let pairs = |pairs: &[(&str, f64)]| -> Result<Vec<(String, f64)>, String> {
        Ok(pairs.iter().map(|(name, us)| ((*name).to_owned(), *us)).collect())
    };
    for (text, expected) in [
        ("[('A', 22.77), ('B_', 8)]", &[("A", 22.77), ("B_", 8.0)][..]),
        (" \t[ [\"A\" , 1e-05 ] ,\n( 'B' , -.5 , ) , ] ", &[("A", 1e-5), ("B", -0.5)]),
        ("[]", &[]),
        ("([('A', 1)])", &[("A", 1.0)]),
        ("[(('A'), (1.))]", &[("A", 1.0)]),
        (r#"[("it's", 1), ('say "x"', 2)]"#, &[("it's", 1.0), ("say \"x\"", 2.0)]),
        (r"[('\'\\\n\x41\u00e9\U0001f600\101', 1)]", &[("'\\\nAé😀A", 1.0)]),
        ("[('é, [(', +10)]", &[("é, [(", 10.0)]),
        ("[('', 00)]", &[("", 0.0)]),
    ] {
        assert_eq!(read(text), pairs(expected), "{text}");
    }
    for text in [
        "",
        "[",
        "]",
        "[,]",
        "[('A', 1) ('B', 2)]",
        "[('A', 1),, ('B', 2)]",
        "[('A', 1)] x",
        "[('A, 1)]",
        "[('A\n', 1)]",
        "[('A', nan)]",
        "[('A', inf)]",
        "[('A', 1e999)]",
        "[('A', 01)]",
        "[('A', 1e)]",
        "[('A', .)]",
        "[('A', --1)]",
        "[('A', 0x10)]",
        "[('A', 1j)]",
        "[('A', 1_0)]",
        "[(u'A', 1)]",
        "[('''A''', 1)]",
        "[('A' 'B', 1)]",
        r"[('\q', 1)]",
        r"[('\xg1', 1)]",
        r"[('\ud800', 1)]",
        r"[('\",
        "{('A', 1)}",
        "print()",
        "[('A', 1)",
        "[('A', 1]",
        "[('A', 1) # x]",
    ] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with("at byte "), "{text}: {error}");
    }
    for text in [
        "('A', 1)",
        "('A', 1),",
        "'A'",
        "1",
        "None",
        "[1]",
        "[('A',)]",
        "[('A', 'B')]",
        "[(1, 2)]",
        "[('A', True)]",
        "[('A', 1, 2)]",
        "[('A')]",
        "[()]",
        "[(('A', 1),)]",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
    assert_eq!(
        read(&"[".repeat(100_000)).unwrap_err(),
        "at byte 16: expected fewer lists in lists"
    );
    let whole = r#"[('A\x41', 22.77), ("B'", -1e+3), ]"#;
    for end in 0..whole.len() {
        assert!(read(&whole[..end]).is_err(), "{end}");
    }
}

/// A name as Python prints it.
fn printed(name: &str) -> String {
    let mut text = String::from("'");
    for character in name.chars() {
        match character {
            '\'' | '\\' => text.extend(['\\', character]),
            ' '..='~' | '\u{a1}'..='\u{ac}' => text.push(character),
            other => text.push_str(&format!("\\U{:08x}", u32::from(other))),
        }
    }
    text.push('\'');
    text
}

proptest! {
    #[test]
    fn what_python_prints_comes_back(pairs in prop::collection::vec((".{0,6}", -1e12..1e12), 0..6)) {
        let items: Vec<String> =
            pairs.iter().map(|(name, us)| format!("({}, {us:?})", printed(name))).collect();
        let text = format!("[{}]", items.join(", "));
        prop_assert_eq!(sub_kernel_durations(&text), Ok(pairs), "{}", text);
    }

    #[test]
    fn any_text_as_a_literal(text in r#"[\[\](),'" \\a1.e+-]{0,40}"#) {
        if let Err(LiteralError::Syntax { at, .. }) = sub_kernel_durations(&text) {
            prop_assert!(at <= text.len());
        }
    }
}
