//! The one place that prints to stderr.
//!
//! `eprintln!` panics when stderr cannot be written: its terminal was closed, or it is a file on a
//! full disk. What is said there is said for people, and is no reason to lose a measurement over.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::{colour, plain};

/// Whether every line is an object of JSON; set once, when the program begins.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Prints every further line as an object of JSON: a [`Message`].
pub fn as_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

/// A line for people, as programs read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Message<'t> {
    /// Always `message`.
    event: &'static str,
    /// How serious it is: `error`, `warning`, `note` or `info`.
    pub level: &'static str,
    /// What is said, without its level.
    pub text: &'t str,
}

impl<'t> Message<'t> {
    /// A line, whose level is its first word.
    #[must_use]
    pub fn of(line: &'t str) -> Self {
        let levels = ["error", "warning", "note"].into_iter();
        let mut known = levels.filter_map(|level| {
            Some((level, line.strip_prefix(level)?.strip_prefix(':')?.trim_start()))
        });
        let (level, text) = known.next().unwrap_or(("info", line));
        Self { event: "message", level, text }
    }

    /// The object, on one line without its end.
    #[must_use]
    pub fn json(&self) -> String {
        // A text and two words can always be written.
        plain::json(&serde_json::to_string(self).unwrap_or_default()).into_owned()
    }
}

/// Prints a line to stderr, if it can be written, without what a terminal would obey.
///
/// In one write, so that the lines of threads and processes do not mix.
pub fn line(text: Arguments<'_>) {
    let text = text.to_string();
    let line = if IS_JSON.load(Ordering::Relaxed) {
        Message::of(&text).json()
    } else {
        colour::on_stderr(&plain::text(&one_message(&text))).into_owned()
    };
    let _ = std::io::stderr().write_all((line + "\n").as_bytes());
}

/// A text whose further lines are indented, so that they cannot be taken for other messages: a name in
/// it, of a file or from one, may have lines of its own.
fn one_message(text: &str) -> Cow<'_, str> {
    // Some begin on a new line.
    let begins = text.len() - text.trim_start_matches('\n').len();
    let (begin, text_of_it) = text.split_at(begins);
    let is_further = |line: &str| line.starts_with(|letter: char| !letter.is_whitespace());
    if !text_of_it.lines().skip(1).any(is_further) {
        return Cow::Borrowed(text);
    }
    let lines = text_of_it.lines().enumerate().map(|(index, line)| {
        let indent = if index > 0 && is_further(line) { "  " } else { "" };
        format!("{indent}{line}")
    });
    Cow::Owned(begin.to_owned() + &lines.collect::<Vec<_>>().join("\n"))
}

/// Prints a line to stderr as `eprintln!` does, but never panics.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::stderr::line(format_args!($($text)*))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_people_is_an_object_for_programs() {
        for (line, expected) in [
            ("error: no", r#"{"event":"message","level":"error","text":"no"}"#),
            ("warning: a \"b\"", r#"{"event":"message","level":"warning","text":"a \"b\""}"#),
            ("note: x", r#"{"event":"message","level":"note","text":"x"}"#),
            ("wrote a\nb", r#"{"event":"message","level":"info","text":"wrote a\nb"}"#),
        ] {
            assert_eq!(Message::of(line).json(), expected);
        }
        let named = "error: cannot read a\nerror: b\n  c\n\n[1/2] add_relu: 9.9";
        let plain = "error: cannot read a\n  error: b\n  c\n\n  [1/2] add_relu: 9.9";
        assert_eq!(one_message(named), plain);
        assert_eq!(one_message("\nstopping: a"), "\nstopping: a");
        assert!(!Message::of("\u{1b}[2J\u{202e}").json().contains(['\u{1b}', '\u{202e}']));
    }
}
