//! Figures as inline SVG, for pages and as files: what is drawn is the same in both.
//!
//! In a page, a row of a figure is a row of the page, so that its text wraps and scales as text does;
//! only marks are drawn, in per cent of the width that is left. In a file the same marks stand beside
//! text of SVG.

mod axis;
mod forest;
mod roofline;

use cli_support::page::COLOURS;
use maud::{Markup, PreEscaped, html};

pub use axis::LogAxis;
pub use forest::{Forest, Mark, Row, problem_name};
pub use roofline::{Arrow, Roofline, sample};

/// What figures add to the style of every page.
pub const STYLE: &str = include_str!("figures.css");

/// A figure as a file of its own.
#[must_use]
pub fn file(title: &str, [width, height]: [usize; 2], drawing: &Markup) -> String {
    let svg = html! {
        svg.file xmlns="http://www.w3.org/2000/svg" role="img" aria-label=(title)
            width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } {
            title { (title) }
            style { (PreEscaped(COLOURS)) (PreEscaped(STYLE)) }
            rect.sheet width="100%" height="100%" {}
            (drawing)
        }
    };
    let text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", svg.into_string());
    cli_support::plain::text(&text).into_owned()
}
