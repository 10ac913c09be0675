//! Numbers, verdicts and names of a comparison.

use cli_support::units::{milliseconds, ratio};
use fusion_cost_model::compare::{ComparedSide, Figure, Pair, PairVerdict, Relation};

/// A column without a value.
pub(super) fn nothing() -> String {
    "-".to_owned()
}

/// A number with its interval.
pub(super) fn figure(figure: &Figure) -> String {
    match figure.interval {
        Some([low, high]) => ratio(figure.value, low, high),
        None => format!("{:.3}", figure.value),
    }
}

/// A chance.
pub(super) fn chance(p: Option<f64>) -> String {
    match p {
        None => nothing(),
        Some(p) if p < 1e-9 => "<1e-9".to_owned(),
        Some(p) if p < 1e-3 => format!("{p:.0e}"),
        Some(p) if p < 1e-2 => format!("{p:.3}"),
        Some(p) => format!("{p:.2}"),
    }
}

/// A ratio minus 1, in per cent.
pub(super) fn hidden(share: Option<f64>) -> String {
    share.map_or_else(nothing, |share| format!("{:.1} %", 100.0 * share))
}

/// What a ratio changed by: `12 % slower`.
pub(super) fn slower(ratio: f64) -> String {
    if (ratio - 1.0).abs() < 5e-4 {
        "as fast".to_owned()
    } else if ratio >= 1.0 {
        format!("{:.1} % slower", 100.0 * (ratio - 1.0))
    } else {
        format!("{:.1} % faster", 100.0 * (1.0 / ratio - 1.0))
    }
}

/// Two times.
pub(super) fn change(before: &Figure, after: &Figure) -> String {
    format!("{} -> {}", milliseconds(before.value), milliseconds(after.value))
}

/// A verdict, where sides have names.
pub(super) fn verdict(verdict: PairVerdict, sides: [&ComparedSide; 2]) -> String {
    match (sides[1].relation, verdict) {
        (Relation::Same, PairVerdict::MoreOnFirst) => "REGRESSION".to_owned(),
        (Relation::Same, PairVerdict::MoreOnSecond) => "IMPROVEMENT".to_owned(),
        (_, PairVerdict::MoreOnFirst) => format!("MORE ON {}", sides[0].facts.label),
        (_, PairVerdict::MoreOnSecond) => format!("MORE ON {}", sides[1].facts.label),
        (_, PairVerdict::Same) => "SAME".to_owned(),
        (_, PairVerdict::Undecided) => "UNDECIDED".to_owned(),
    }
}

/// What to do on both sides.
pub(super) fn choices(pair: &Pair) -> String {
    match pair.choices {
        [first, second] if first == second => first.to_string(),
        [first, second] => format!("{first} -> {second}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_have_few_digits() {
        let words = [Some(0.5), Some(0.0123), Some(0.00123), Some(1.2e-5), Some(0.0), None];
        assert_eq!(words.map(chance), ["0.50", "0.01", "0.001", "1e-5", "<1e-9", "-"]);
    }

    #[test]
    fn changes_are_said_in_words() {
        assert_eq!([1.12, 0.8, 1.0].map(slower), ["12.0 % slower", "25.0 % faster", "as fast"]);
        assert_eq!(change(&Figure::bare(0.5), &Figure::bare(1.5)), "500 us -> 1.50 ms");
    }
}
