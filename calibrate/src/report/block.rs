//! What pages are made of, as text and as Markdown.

use cli_support::markdown::plain;
use cli_support::ranked::RankedTable;
use cli_support::width::Width;

/// The width of the labels.
const LABEL: usize = 12;

/// A part of a page.
pub(super) enum Block {
    /// A line with a label, or without one after another.
    Line { label: String, text: String },
    /// An item of a list.
    Item(String),
    /// A sentence of its own.
    Sentence(String),
    /// An empty line.
    Gap,
    /// A table.
    Table(RankedTable),
}

impl Block {
    pub(super) fn line(label: &str, text: impl Into<String>) -> Self {
        Self::Line { label: label.to_owned(), text: text.into() }
    }

    pub(super) fn text(&self, width: Width) -> String {
        match self {
            Self::Line { label, text } => width.wrap(&format!("{label:<LABEL$}"), text, LABEL),
            Self::Item(text) => width.wrap("- ", text, 2),
            Self::Sentence(text) => width.wrap("", text, 0),
            Self::Gap => "\n".to_owned(),
            Self::Table(table) => table.render(width),
        }
    }

    pub(super) fn markdown(&self) -> String {
        match self {
            Self::Line { label, text } if label.is_empty() => format!("- {}\n", plain(text)),
            Self::Line { label, text } => format!("- **{}** {}\n", plain(label), plain(text)),
            Self::Item(text) => format!("- {}\n", plain(text)),
            // A line right below a table would be a row of it.
            Self::Sentence(text) => format!("\n{}\n", plain(text)),
            Self::Gap => "\n".to_owned(),
            Self::Table(table) => table.markdown(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_says_is_no_html_and_no_link() {
        for block in [
            Block::line("<b>", "<script>alert(1)</script> ![](x:y)"),
            Block::Item("<b> [a](x:y)".to_owned()),
            Block::Sentence("<b> [a](x:y)".to_owned()),
        ] {
            let markdown = block.markdown();
            assert!(!markdown.contains('<') && !markdown.contains("]("), "{markdown}");
        }
    }
}
