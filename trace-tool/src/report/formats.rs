//! Numbers, names and sentences in texts and tables.

use cli_support::units::milliseconds;

/// A time in the unit that suits it.
#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(super) fn time(ns: u64) -> String {
    milliseconds(ns as f64 / 1e6)
}

/// A part of a whole.
#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    percent(part as f64 / whole as f64)
}

/// A share of one.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A sentence that begins with a capital.
pub(super) fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// The length of a kernel's name in characters, at most: templates go on for lines.
const LONGEST_NAME: usize = 60;

/// A kernel's name as tables have it.
pub(super) fn shortened(name: &str) -> String {
    // A name may hold what a terminal would obey.
    let shown =
        |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    if name.chars().count() <= LONGEST_NAME {
        return name.chars().map(shown).collect();
    }
    let start: String = name.chars().take(LONGEST_NAME - 1).map(shown).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_and_no_commands_for_a_terminal() {
        assert_eq!(shortened("gemm<float, 4>"), "gemm<float, 4>");
        assert_eq!(shortened("gemm\u{1b}[2J\n"), "gemm\u{fffd}[2J\u{fffd}");
        assert_eq!(shortened(&"é".repeat(60)), "é".repeat(60));
        assert_eq!(shortened(&"é".repeat(61)), format!("{}…", "é".repeat(59)));
    }

    #[test]
    fn nouns_have_their_plural() {}
}
