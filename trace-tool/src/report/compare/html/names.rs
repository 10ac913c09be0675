//! Names and sentences at a length that a page can hold.

use std::cell::Cell;

use kernel_traces::compare::Comparison;
use maud::{Markup, html};

use super::super::words;

/// Characters of a name that are shown; its title has all of it.
const SHOWN_NAME: usize = 60;

/// The length of a sentence in characters, at most.
const SHOWN_TEXT: usize = 600;

/// The length of a text next to a bar in characters, at most.
const SHOWN_LABEL: usize = 120;

/// Titles are cut after this many characters once [`TITLE_BYTES`] are spent.
const SHORT_TITLE: usize = 160;

/// Bytes of whole names on a page.
const TITLE_BYTES: usize = 250_000;

/// Writes names and sentences of a page.
pub(super) struct Names {
    /// Bytes that whole names may still take.
    left: Cell<usize>,
}

impl Default for Names {
    fn default() -> Self {
        Self { left: Cell::new(TITLE_BYTES) }
    }
}

impl Names {
    /// The name of a kernel, with the whole of it in its title if it is cut.
    pub(super) fn kernel(&self, name: &str) -> Markup {
        let name = printable(name);
        let shown = cut(&words::kernel(&name), SHOWN_NAME);
        if shown == name {
            return html! { code { (name) } };
        }
        html! { code title=(self.title(&name)) { (shown) } }
    }

    /// A sentence or a word of the comparison.
    #[expect(clippy::unused_self, reason = "every text of the page comes from here")]
    pub(super) fn text(&self, text: &str) -> String {
        cut(&printable(text), SHOWN_TEXT)
    }

    /// What the two sides are called.
    pub(super) fn sides(&self, comparison: &Comparison) -> [String; 2] {
        [&comparison.first.label, &comparison.second.label].map(|label| self.text(label))
    }

    /// The label next to a bar, or a remark about it.
    #[expect(clippy::unused_self, reason = "every text of the page comes from here")]
    pub(super) fn label(&self, text: &str) -> String {
        cut(&printable(text), SHOWN_LABEL)
    }

    fn title(&self, name: &str) -> String {
        let bytes = html! { (name) }.into_string().len();
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                name.to_owned()
            }
            None => cut(name, SHORT_TITLE),
        }
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most - 1).collect();
    format!("{start}…")
}

/// Characters that no page may hold, and those that turn the direction of what follows, are marked.
fn printable(text: &str) -> String {
    let is_unfit = |character: char| {
        character.is_control()
            || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|one| if is_unfit(one) { '\u{fffd}' } else { one }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_whole_in_their_title_while_there_is_room() {
        let names = Names::default();
        let short = names.kernel("a<b>").into_string();
        assert_eq!(short, "<code>a&lt;b&gt;</code>");
        let long = "x".repeat(100_000);
        for _ in 0..2 {
            assert!(names.kernel(&long).into_string().len() > 100_000);
        }
        assert!(names.kernel(&long).into_string().len() < 1000);
    }

    #[test]
    fn control_characters_are_marked() {
        assert_eq!(Names::default().text("a\0b\u{1b}[2J"), "a\u{fffd}b\u{fffd}[2J");
        assert_eq!(Names::default().text("a\u{202e}b"), "a\u{fffd}b");
    }
}
