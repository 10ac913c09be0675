//! Text from files in pages of Markdown.

/// The text as it reads: what would be HTML or a link in Markdown stays text.
///
/// ```
/// # use cli_support::markdown::plain;
/// assert_eq!(plain("<b>1.2</b> [1.1, 1.3]"), "&lt;b>1.2&lt;/b> [1.1, 1.3]");
/// assert_eq!(plain("![](x:y)"), "![]\\(x:y)");
/// ```
#[must_use]
pub fn plain(text: &str) -> String {
    // `[low, high]` is no link unless a parenthesis or another bracket follows it.
    text.replace('&', "&amp;").replace('<', "&lt;").replace("](", "]\\(").replace("][", "]\\[")
}

/// A cell of a table.
#[must_use]
pub fn cell(text: &str) -> String {
    plain(text).replace('|', "\\|")
}
