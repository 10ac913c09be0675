//! The shell of every page of HTML: one file, without scripts and without anything from elsewhere.
//!
//! Every text goes through the templates, which escape it. What a page adds to the look of all is
//! its own style; colours, type, cards, tables and bars are here.

pub mod bars;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::plain;
use crate::ranked::{RankedTable, Shown, Side};

/// The colours of every page, also for figures that are files of their own: bright and dark.
pub const COLOURS: &str = include_str!("colours.css");

/// The style of every page.
const STYLE: &str = include_str!("style.css");

/// Nothing may be loaded or run, whatever a name in a file says.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A whole page, with a style of its own after that of all.
#[must_use]
pub fn page(title: &str, style: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(COLOURS)) (PreEscaped(STYLE)) (PreEscaped(style)) }
            }
            body { (bars::definitions()) (body) }
        }
    };
    // Control characters are escaped by no template, and a page may not hold them.
    plain::text(&page.into_string()).into_owned()
}

/// A table that scrolls sideways where the screen is narrow.
#[must_use]
pub fn scrolling(name: &str, table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(name) { (table) } }
}

/// A table with every column. What rows have in common is a row of its own above them.
#[must_use]
pub fn table(table: &RankedTable) -> Markup {
    let (title, heads) = table.head();
    let class = |side: Side| if side == Side::Right { "number" } else { "word" };
    let sheet = html! {
        table {
            thead {
                tr {
                    th scope="col" { (title) }
                    @for (head, side) in &heads { th scope="col" class=(class(*side)) { (head) } }
                }
            }
            tbody {
                @for line in table.lines() {
                    @match line {
                        Shown::Heading(heading) => {
                            tr.starts { th colspan=(heads.len() + 1) scope="rowgroup" { code { (heading) } } }
                        }
                        Shown::Row(name, cells) => {
                            tr {
                                th scope="row" { (name) }
                                @for (cell, (_, side)) in cells.iter().zip(&heads) {
                                    td class=(class(*side)) { (cell) }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    scrolling(title, &sheet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranked::Column;

    #[test]
    fn names_are_text() {
        let mut sheet = RankedTable::new("<b>", &[Column::words("&", 0), Column::numbers("n", 0)]);
        sheet.heading("<script>");
        sheet.row("a\u{1b}[2J", ["<i>", "1"].map(str::to_owned));
        let page = page("</title>", "", &table(&sheet));
        for (text, count) in [
            ("&lt;/title&gt;", 1),
            ("&lt;script&gt;", 1),
            ("<script", 0),
            ("a\\u{1b}[2J", 1),
            ("<td class=\"word\">&lt;i&gt;</td><td class=\"number\">1</td>", 1),
            ("colspan=\"3\"", 1),
        ] {
            assert_eq!(page.matches(text).count(), count, "{text}");
        }
    }
}
