//! Bars as inline SVG, in per cent of the width of their place.
//!
//! The first side is a plain bar above, the second a hatched one below: colour is never alone.

use kernel_traces::compare::Which;
use maud::{Markup, PreEscaped, html};

/// The hatching of the second side, for all bars of the page.
const HATCHING: &str = r#"<svg class="definitions" width="0" height="0" aria-hidden="true" focusable="false"><defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch-ground" width="6" height="6"></rect><rect class="hatch-line" width="2" height="6"></rect></pattern></defs></svg>"#;

pub(super) fn definitions() -> Markup {
    PreEscaped(HATCHING.to_owned())
}

/// The class of what belongs to a side.
pub(super) const fn class(side: Which) -> &'static str {
    match side {
        Which::First => "first",
        Which::Second => "second",
    }
}

/// A share of a place, as SVG writes it.
pub(super) fn percent(share: f64) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    format!("{:.2}%", 100.0 * share)
}

/// A sample of the bars of a side, for legends.
pub(super) fn sample(side: Which) -> Markup {
    html! {
        svg.sample width="22" height="12" aria-hidden="true" {
            rect.bar.(class(side)) x="0" y="0" width="22" height="12" {}
        }
    }
}

/// One bar of a share of its place.
pub(super) fn one(side: Which, share: f64, name: &str) -> Markup {
    html! {
        svg.one role="img" aria-label=(name) height="12" {
            rect.bar.(class(side)) x="0" y="0" width=(percent(share)) height="12" {}
        }
    }
}

/// Two bars on one scale, the first above the second. A side without the thing is marked in words.
pub(super) fn two(times: [Option<f64>; 2], most: f64, absent: [&str; 2], name: &str) -> Markup {
    let sides = [(Which::First, 2, times[0], absent[0]), (Which::Second, 19, times[1], absent[1])];
    html! {
        svg.two role="img" aria-label=(name) height="34" {
            @for (side, y, time, absent) in sides {
                @match time {
                    Some(time) => {
                        rect.bar.(class(side)) x="0" y=(y) width=(percent(time / most)) height="13" {}
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
