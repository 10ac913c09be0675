//! Text from files in pages of Markdown.

/// The text as it reads: what would be HTML or a link in Markdown stays text.
///
/// ```
/// # use cli_support::markdown::plain;
/// assert_eq!(plain("<b>1.2</b> [1.1, 1.3] <1e-9"), "&lt;b>1.2&lt;/b> [1.1, 1.3] <1e-9");
/// assert_eq!(plain("![](x:y)"), "![]\\(x:y)");
/// assert_eq!(plain("a\n\n# b"), "a  # b");
/// ```
#[must_use]
pub fn plain(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied().unwrap_or(' ');
        match letter {
            '<' if next.is_ascii_alphabetic() || "/!?".contains(next) => all.push_str("&lt;"),
            // `[low, high]` is not a link unless one of these follows it.
            ']' if "([".contains(next) => all.push_str("]\\"),
            // A line of its own could be a heading or a row.
            '\n' | '\r' => all.push(' '),
            other => all.push(other),
        }
    }
    all
}

/// A cell of a table.
#[must_use]
pub fn cell(text: &str) -> String {
    plain(text).replace('|', "\\|")
}
