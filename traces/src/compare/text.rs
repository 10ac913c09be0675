//! Words for numbers in sentences.

/// A time in the unit that suits it, with three digits.
pub(super) fn time(ns: f64) -> String {
    let size = ns.abs();
    let (value, unit) = match size {
        _ if size < 999.5 => return format!("{ns:.0} ns"),
        _ if size < 999.5e3 => (ns / 1e3, "us"),
        _ if size < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A number with three digits, from 100 on all of its whole ones.
pub(super) fn three_digits(value: f64) -> String {
    let digits = match value.abs() {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

/// Numbers in ascending order, runs of them as `0-22`.
pub(super) fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| b.checked_sub(*a) == Some(1));
    let runs = runs.filter_map(|run| match run {
        [] => None,
        [one] => Some(one.to_string()),
        [first, .., last] => Some(format!("{first}-{last}")),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// A number with up to two decimals that are not zero; from 10 on with one.
pub(super) fn number(value: f64) -> String {
    let text = if value < 9.995 { format!("{value:.2}") } else { format!("{value:.1}") };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A sentence, which begins with a capital.
pub(super) fn capitalised(sentence: String) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|first| first.to_uppercase());
    first.into_iter().flatten().chain(letters).collect()
}

/// A share in per cent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// `a`, `a and b`, or `a, b and c`.
pub(super) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!(time(12.4), "12 ns");
        assert_eq!(time(-999.7), "-1.00 us");
        assert_eq!(time(29_543_210.0), "29.5 ms");
        assert_eq!(time(999_600.0), "1.00 ms");
        assert_eq!(time(1.5e9), "1.50 s");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
        assert_eq!(ranges(&[]), "");
        assert_eq!(number(1.4583), "1.46");
        assert_eq!(number(2.0), "2");
        assert_eq!(number(10.0), "10");
        assert_eq!(number(22.63), "22.6");
        assert_eq!(capitalised("first and".to_owned()), "First and");
        assert_eq!(capitalised(String::new()), "");
        let items = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(list(&items), "a, b and c");
        assert_eq!(list(&items[..2]), "a and b");
    }
}
