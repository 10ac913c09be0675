//! Bars as inline SVG, in per cent of the width of their place.
//!
//! The first side is a plain bar above, the second a hatched one below: colour is never alone.

use maud::{Markup, PreEscaped, html};

/// The hatching of the second side, for all bars of the page.
const HATCHING: &str = r#"<svg class="definitions" width="0" height="0" aria-hidden="true" focusable="false"><defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch-ground" width="6" height="6"></rect><rect class="hatch-line" width="2" height="6"></rect></pattern></defs></svg>"#;

/// How what belongs to a side looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The first side.
    Plain,
    /// The second one.
    Hatched,
}

impl Look {
    /// The class of what belongs to the side.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::Plain => "first",
            Self::Hatched => "second",
        }
    }
}

/// What bars refer to.
pub(super) fn definitions() -> Markup {
    PreEscaped(HATCHING.to_owned())
}

/// A share of a place, as SVG writes it.
#[must_use]
pub fn percent(share: f64) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    format!("{:.2}%", 100.0 * share)
}

/// A sample of the bars of a side, for legends.
#[must_use]
pub fn sample(look: Look) -> Markup {
    html! {
        svg.sample width="22" height="12" aria-hidden="true" {
            rect.bar.(look.class()) x="0" y="0" width="22" height="12" {}
        }
    }
}

/// One bar of a share of its place.
#[must_use]
pub fn one(look: Look, share: f64, name: &str) -> Markup {
    html! {
        svg.one role="img" aria-label=(name) height="12" {
            rect.bar.(look.class()) x="0" y="0" width=(percent(share)) height="12" {}
        }
    }
}

/// Two bars on one scale, the first above the second. A side without the thing is marked in words.
#[must_use]
pub fn two(times: [Option<f64>; 2], most: f64, absent: [&str; 2], name: &str) -> Markup {
    let sides = [(Look::Plain, 2, times[0], absent[0]), (Look::Hatched, 19, times[1], absent[1])];
    html! {
        svg.two role="img" aria-label=(name) height="34" {
            @for (look, y, time, absent) in sides {
                @match time {
                    Some(time) => {
                        rect.bar.(look.class()) x="0" y=(y) width=(percent(time / most)) height="13" {}
                    }
                    None => {
                        line.absent x1="0" x2="0" y1=(y) y2=(y + 13) {}
                        text.absent x="6" y=(y + 11) { (absent) }
                    }
                }
            }
        }
    }
}
