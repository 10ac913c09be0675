//! How wide a page may be.

use std::env;

/// The room for a line on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// That of a terminal, or one that was asked for.
    Columns(usize),
    /// No end: a pipe or a file, which is searched line by line.
    Unlimited,
}

impl Width {
    /// That of stdout: `COLUMNS` if it is set, else the terminal's.
    #[must_use]
    pub fn of_stdout() -> Self {
        let terminal = terminal_size::terminal_size_of(std::io::stdout());
        let terminal = terminal.map(|(width, _)| usize::from(width.0));
        Self::choose(env::var("COLUMNS").ok().as_deref(), terminal)
    }

    fn choose(columns: Option<&str>, terminal: Option<usize>) -> Self {
        let asked = columns.and_then(|columns| columns.trim().parse().ok());
        // Pseudo-terminals whose size nobody has set report 0.
        let known = |columns: &usize| *columns > 0;
        match asked.filter(known).or(terminal.filter(known)) {
            Some(columns) => Self::Columns(columns),
            None => Self::Unlimited,
        }
    }

    /// Whether a line of this many characters fits.
    #[must_use]
    pub const fn holds(self, characters: usize) -> bool {
        match self {
            Self::Columns(columns) => characters <= columns,
            Self::Unlimited => true,
        }
    }

    /// A paragraph that begins with `lead`. Further lines are indented as far as `hang`, or less
    /// where a word needs the room. A word is never broken: one without enough room even so is
    /// wider than the page. A number and its percent sign are one word.
    #[must_use]
    pub fn wrap(self, lead: &str, text: &str, hang: usize) -> String {
        let mut page = lead.to_owned();
        let mut at = lead.chars().count();
        let mut begins = true;
        for word in words(text) {
            let length = word.chars().count();
            if !self.holds(at + usize::from(!begins) + length) && at > 0 {
                let indent = match self {
                    Self::Columns(columns) => hang.min(columns.saturating_sub(length)),
                    Self::Unlimited => hang,
                };
                page.truncate(page.trim_end().len());
                page.push('\n');
                page.extend(std::iter::repeat_n(' ', indent));
                at = indent;
            } else if !begins {
                page.push(' ');
                at += 1;
            }
            page.push_str(&word);
            at += length;
            begins = false;
        }
        page.push('\n');
        page
    }
}

/// The words of a text, each percent sign with what stands before it.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(number) if word.starts_with('%') => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_asked_for_or_those_of_the_terminal() {
        let choose = Width::choose;
        assert_eq!(choose(Some("60"), Some(80)), Width::Columns(60));
        assert_eq!(choose(None, Some(80)), Width::Columns(80));
        assert_eq!(choose(Some("wide"), Some(80)), Width::Columns(80));
        assert_eq!(choose(Some("0"), None), Width::Unlimited);
        assert_eq!(choose(None, Some(0)), Width::Unlimited);
    }

    #[test]
    fn words_are_wrapped_and_never_broken() {
        let wrap = |text| Width::Columns(20).wrap("noise  ", text, 7);
        assert_eq!(wrap("one two three"), "noise  one two three\n");
        assert_eq!(wrap("one two three four"), "noise  one two three\n       four\n");
        // It fits with less indent, and then not at all.
        assert_eq!(wrap("a seventeen-letters b"), "noise  a\n   seventeen-letters\n       b\n");
        assert_eq!(wrap("twenty-and-one-letter"), "noise\ntwenty-and-one-letter\n");
        assert_eq!(Width::Unlimited.wrap("- ", "one  two", 2), "- one two\n");
        // The number would fit, its sign would not.
        assert_eq!(wrap("up to 1089.4 %"), "noise  up to\n       1089.4 %\n");
        assert_eq!(Width::Columns(1).wrap("", "one two", 0), "one\ntwo\n");
    }
}
