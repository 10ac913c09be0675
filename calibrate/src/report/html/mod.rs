//! Calibrations as one page of HTML, without scripts and without anything from elsewhere: what
//! fusion gains on a machine, at a glance and in full.
//!
//! A page has a part for each file and each of its targets. Every part goes from the whole to the
//! details: the verdicts, every chain on one axis, the roofline, sizes against patterns, what
//! stands between a chain and its ceiling, and the machine with its checks and settings.

mod forests;
mod heat;
mod index;
mod machine;
mod part;
mod reading;
mod reasons;
mod strip;

use cli_support::page;
use maud::{Markup, html};

pub use index::{IndexPage, IndexRow};
pub use part::Part;

use super::figures;

/// What only this page has.
const STYLE: &str = include_str!("report.css");

/// A page with a part for each target of each file.
#[derive(Debug, Clone)]
pub struct ReportPage<'c> {
    /// The parts, at least one.
    pub parts: Vec<Part<'c>>,
    /// The speedup from which fusing is worth it.
    pub threshold: f64,
}

/// A figure that is a file of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// The name of the file.
    pub name: String,
    /// What is in it.
    pub svg: String,
}

impl ReportPage<'_> {
    /// The page.
    #[must_use]
    pub fn html(&self) -> String {
        let title = self.title();
        let body = html! {
            header {
                h1 { (title) }
                @for part in &self.parts {
                    p.verdict {
                        @if self.parts.len() > 1 { (part.label()) ": " }
                        (strip::sentence(part, self.threshold))
                    }
                }
                @if self.parts.len() > 1 {
                    nav aria-label="Parts of this page" {
                        @for part in &self.parts {
                            a href={ "#" (part.id("chains")) } { (part.label()) ": " (part.name()) }
                        }
                        a href="#reading" { "How to read this" }
                    }
                }
            }
            main {
                @for part in &self.parts { (self.part(part)) }
                (reading::how_to_read(self.threshold))
            }
        };
        page::page(&title, &[figures::STYLE, STYLE].concat(), &body)
    }

    /// The figures of the page.
    #[must_use]
    pub fn plots(&self) -> Vec<Plot> {
        let of_part = |part: &Part<'_>| {
            let plot = |name: &str, svg: String| Plot { name: part.id(name) + ".svg", svg };
            let mut plots = vec![
                plot("chains", forests::by_pattern(part).svg()),
                plot("gains", forests::by_gain(part).svg()),
            ];
            plots.extend(part.roofline().map(|roofline| plot("roofline", roofline.svg())));
            plots.extend(forests::to_ceiling(part).map(|forest| plot("ceilings", forest.svg())));
            plots
        };
        self.parts.iter().filter(|part| !part.chains().is_empty()).flat_map(of_part).collect()
    }

    fn title(&self) -> String {
        let mut machines: Vec<&str> = Vec::new();
        for part in &self.parts {
            if !machines.contains(&part.facts().machine.as_str()) {
                machines.push(&part.facts().machine);
            }
        }
        format!("What fusion gains on {}", machines.join(" and "))
    }

    fn part(&self, part: &Part<'_>) -> Markup {
        let is_one = self.parts.len() == 1;
        let of = if is_one { String::new() } else { format!("{}: ", part.label()) };
        let to_ceiling = forests::to_ceiling(part);
        let roofline = part.roofline();
        html! {
            section id=(part.id("verdicts")) {
                h2 { (of) (part.name()) }
                (strip::strip(part, self.threshold))
                @if !part.chains().is_empty() {
                    nav aria-label={ "Parts of " (part.label()) } {
                        a href={ "#" (part.id("chains")) } { "Every chain, by pattern and size" }
                        a href={ "#" (part.id("gains")) } { "By gain" }
                        @if to_ceiling.is_some() {
                            a href={ "#" (part.id("ceilings")) } { "By distance to the ceiling" }
                        }
                        @if roofline.is_some() { a href={ "#" (part.id("roofline")) } { "Roofline" } }
                        a href={ "#" (part.id("sizes")) } { "Patterns and sizes" }
                        @if reasons::has_any(part) {
                            a href={ "#" (part.id("reasons")) } { "What to know about the records" }
                        }
                        a href={ "#" (part.id("machine")) } { "Machine and run" }
                        @if is_one { a href="#reading" { "How to read this" } }
                    }
                }
            }
            @if !part.chains().is_empty() {
                section id=(part.id("chains")) {
                    h2 { (of) "Every chain" }
                    (forests::legend())
                    (forests::by_pattern(part).html())
                }
                section id=(part.id("gains")) {
                    h2 { (of) "The same by gain" }
                    (forests::by_gain(part).html())
                }
                @if let Some(forest) = to_ceiling {
                    section id=(part.id("ceilings")) {
                        h2 { (of) "What stands between a chain and its ceiling" }
                        p {
                            "The speedup over its ceiling, the furthest first. At 1 every saved byte \
                             and launch is saved time."
                        }
                        (forest.html())
                    }
                }
                @if let Some(roofline) = roofline {
                    section id=(part.id("roofline")) {
                        h2 { (of) "Roofline" }
                        (part.roofline_legend(&roofline))
                        div.scroll tabindex="0" role="region" aria-label="Roofline" { (roofline.html()) }
                    }
                }
                section id=(part.id("sizes")) {
                    h2 { (of) "Patterns and sizes" }
                    (heat::legend())
                    (heat::maps(part))
                }
            }
            @if reasons::has_any(part) {
                section id=(part.id("reasons")) {
                    h2 { (of) "What to know about the records" }
                    (reasons::reasons(part))
                }
            }
            (machine::section(part, &of))
        }
    }
}
