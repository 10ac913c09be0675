//! Colours on a terminal. They never carry a meaning alone: the words stay.

use std::borrow::Cow;
use std::env;
use std::io::{IsTerminal, stderr, stdout};
use std::sync::atomic::{AtomicU8, Ordering};

/// When a text has colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum When {
    /// On a terminal that knows colours, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Also in a pipe or a file.
    Always,
    /// Not at all.
    Never,
}

/// What the program was told; set once, when it begins.
static WHEN: AtomicU8 = AtomicU8::new(0);

/// Words that stand out, with the codes of their colours: green, yellow and red.
const WORDS: [(&str, &str); 8] = [
    ("FASTER", "32"),
    ("IMPROVEMENT", "32"),
    ("AMBIGUOUS", "33"),
    ("UNDECIDED", "33"),
    ("SLOWER", "31"),
    ("REGRESSION", "31"),
    ("INVALID", "31"),
    ("WRONG", "31"),
];

/// Beginnings of lines on stderr that stand out.
const BEGINNINGS: [(&str, &str); 2] = [("error:", "1;31"), ("warning:", "1;33")];

/// Says when this program's texts have colours.
pub fn choose(when: When) {
    WHEN.store(when as u8, Ordering::Relaxed);
}

/// A text for stdout, with colours where they are wanted.
#[must_use]
pub fn on_stdout(text: &str) -> Cow<'_, str> {
    if is_wanted(stdout().is_terminal()) { Cow::Owned(words(text)) } else { Cow::Borrowed(text) }
}

/// A message for stderr, with colours where they are wanted.
#[must_use]
pub fn on_stderr(text: &str) -> Cow<'_, str> {
    if is_wanted(stderr().is_terminal()) {
        Cow::Owned(beginning(text))
    } else {
        Cow::Borrowed(text)
    }
}

fn is_wanted(is_terminal: bool) -> bool {
    let variable = |name: &str| env::var(name).ok();
    match WHEN.load(Ordering::Relaxed) {
        code if code == When::Always as u8 => true,
        code if code == When::Never as u8 => false,
        _ => is_terminal && knows_colours(variable("NO_COLOR"), variable("TERM")),
    }
}

/// An empty `NO_COLOR` asks for nothing (no-color.org).
fn knows_colours(no_color: Option<String>, term: Option<String>) -> bool {
    no_color.is_none_or(|value| value.is_empty()) && term.is_none_or(|term| term != "dumb")
}

fn painted(text: &str, code: &str) -> String {
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let is_part = |character: char| character.is_alphanumeric() || "_-.+/".contains(character);
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_part(c)).unwrap_or(from.len()));
        out += before;
        match WORDS.iter().find(|(known, _)| *known == word) {
            Some((_, code)) => out += &painted(word, code),
            None => out += word,
        }
        rest = after;
    }
    out + rest
}

fn beginning(text: &str) -> String {
    let known = BEGINNINGS.iter().find(|(known, _)| text.starts_with(known));
    known.map_or_else(
        || text.to_owned(),
        |(known, code)| painted(known, code) + &text[known.len()..],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_painted_and_stay_words() {
        let text = "m8.k8  1.00  FASTER\nSLOWER, not-SLOWER, SLOWERs; 3 SAME";
        let expected = "m8.k8  1.00  \u{1b}[32mFASTER\u{1b}[0m\n\u{1b}[31mSLOWER\u{1b}[0m, not-SLOWER, \
                        SLOWERs; 3 SAME";
        assert_eq!(words(text), expected);
        assert_eq!(beginning("error: no"), "\u{1b}[1;31merror:\u{1b}[0m no");
        assert_eq!(beginning("no error: here"), "no error: here");
        assert_eq!(words(""), "");
    }

    #[test]
    fn colours_can_be_declined() {
        let set = |text: &str| Some(text.to_owned());
        assert!(knows_colours(None, None) && knows_colours(set(""), set("xterm")));
        assert!(!knows_colours(set("1"), None) && !knows_colours(None, set("dumb")));
    }
}
