//! A forest plot: a row for each of many ratios, with its interval, on one logarithmic axis.

use cli_support::page::bars::percent;
use fusion_cost_model::compare::Figure;
use maud::{Markup, html};

use super::LogAxis;
use crate::units;

/// The height of what is drawn of a row.
const HEIGHT: usize = 20;

/// Of a file: the width of the names, of the marks, and of all.
const NAMES: usize = 380;
const MARKS: usize = 460;
const WIDTH: usize = 1140;

/// How a point is drawn: colour is never alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A filled point: the measurements decide.
    Full,
    /// A ring: no difference, or none that they show.
    Ring,
    /// A cross: not to be used.
    Cross,
}

/// A row of a forest plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What rows below one heading have in common.
    pub heading: String,
    /// What it is called below its heading.
    pub name: String,
    /// The ratio and its interval.
    pub figure: Figure,
    /// What the ratio can be at most.
    pub ceiling: Option<f64>,
    /// How far from 1 noise alone gets, as a ratio minus 1.
    pub noise_floor: Option<f64>,
    /// How its point is drawn.
    pub mark: Mark,
    /// A word about it, which stands beside the ratio.
    pub word: String,
}

impl Row {
    fn number(&self) -> String {
        number(&self.figure)
    }

    /// What it is called without a heading above it.
    #[must_use]
    pub fn whole_name(&self) -> String {
        problem_name(&self.heading, &self.name)
    }

    /// What is read aloud, and shown where a pointer rests.
    fn spoken(&self) -> String {
        let ceiling = self.ceiling.map(|ceiling| format!(", ceiling {ceiling:.2}"));
        let noise = self.noise_floor.map(|floor| format!(", noise {:.1} %", 100.0 * floor));
        let name = self.whole_name();
        let word = &self.word;
        let more = ceiling.unwrap_or_default() + &noise.unwrap_or_default();
        format!("{name}: {} {word}{more}", self.number())
    }
}

/// The name of a problem from a heading, which can end with the rewrite of its chain, and what stands
/// below it.
#[must_use]
pub fn problem_name(heading: &str, name: &str) -> String {
    match heading.split_once(", ") {
        Some((chain, rewrite)) => format!("{chain}/{name}, {rewrite}"),
        None if heading.is_empty() => name.to_owned(),
        None => format!("{heading}/{name}"),
    }
}

fn number(figure: &Figure) -> String {
    match figure.interval {
        Some([low, high]) => units::ratio(figure.value, low, high),
        None => format!("{:.3}", figure.value),
    }
}

/// A forest plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    /// What it shows.
    pub title: String,
    /// The start of the names that its parts have on the page.
    pub id: String,
    /// The axis.
    pub axis: LogAxis,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Forest {
    /// A plot whose axis holds all of its rows.
    #[must_use]
    pub fn new(title: impl Into<String>, id: impl Into<String>, rows: Vec<Row>) -> Self {
        let values = rows.iter().flat_map(|row| {
            let ends = row.figure.interval.unwrap_or([row.figure.value; 2]);
            [Some(row.figure.value), row.ceiling].into_iter().flatten().chain(ends)
        });
        let axis = LogAxis::of_ratios(values);
        Self { title: title.into(), id: id.into(), axis, rows }
    }

    /// The plot as a list of a page.
    #[must_use]
    pub fn html(&self) -> Markup {
        html! {
            (self.definitions())
            ol.forest aria-label=(self.title) {
                li.ticks aria-hidden="true" { svg height="16" { (self.labels()) } }
                @for (row, heading) in self.headed() {
                    @if let Some(heading) = heading { li.heading { code { (heading) } } }
                    li.row {
                        code.name { (row.name) }
                        svg.marks role="img" aria-label=(row.spoken()) height=(HEIGHT) { (self.marks(row)) }
                        span.figure { span.number { (row.number()) } " " span.word { (row.word) } }
                    }
                }
            }
        }
    }

    /// The plot as a file.
    #[must_use]
    pub fn svg(&self) -> String {
        let headings = self.headed().filter(|(_, heading)| heading.is_some()).count();
        let height = (self.rows.len() + headings + 3) * HEIGHT;
        let mut y = 2 * HEIGHT;
        let mut next = || {
            y += HEIGHT;
            y - HEIGHT
        };
        let drawing = html! {
            text.title x="12" y=(HEIGHT) { (self.title) }
            (self.definitions())
            svg x=(NAMES) y=(HEIGHT + 4) width=(MARKS) height="16" { (self.labels()) }
            @for (row, heading) in self.headed() {
                @if let Some(heading) = heading {
                    text.heading x="12" y=(next() + 15) { (heading) }
                }
                @let y = next();
                text.name x="24" y=(y + 15) { (row.name) }
                svg.marks x=(NAMES) y=(y) width=(MARKS) height=(HEIGHT) { (self.marks(row)) }
                text.number x=(NAMES + MARKS + 14) y=(y + 15) { (row.number()) " " (row.word) }
            }
        };
        super::file(&self.title, [WIDTH, height], &drawing)
    }

    /// The rows, each with its heading where that begins.
    fn headed(&self) -> impl Iterator<Item = (&Row, Option<&str>)> {
        let before = std::iter::once("").chain(self.rows.iter().map(|row| row.heading.as_str()));
        self.rows.iter().zip(before).map(|(row, before)| {
            let is_new = row.heading != before && !row.heading.is_empty();
            (row, is_new.then_some(row.heading.as_str()))
        })
    }

    /// The lines of the ticks, which every row refers to.
    fn definitions(&self) -> Markup {
        let at = |value: f64| percent(self.axis.at(value));
        html! {
            svg.definitions width="0" height="0" aria-hidden="true" focusable="false" {
                defs {
                    g id={ (self.id) "-grid" } {
                        @for tick in self.axis.ticks() {
                            line.grid.one[*tick == 1.0] x1=(at(*tick)) x2=(at(*tick)) y1="0" y2=(HEIGHT) {}
                        }
                    }
                }
            }
        }
    }

    fn labels(&self) -> Markup {
        html! {
            @for tick in self.axis.ticks() {
                text.tick x=(percent(self.axis.at(*tick))) y="12" text-anchor="middle" { (tick) }
            }
        }
    }

    fn marks(&self, row: &Row) -> Markup {
        let at = |value: f64| percent(self.axis.at(value));
        let middle = HEIGHT / 2;
        html! {
            title { (row.spoken()) }
            @if let Some(floor) = row.noise_floor {
                @let (low, high) = (self.axis.at(1.0 / (1.0 + floor)), self.axis.at(1.0 + floor));
                rect.noise x=(percent(low)) y="0" width=(percent(high - low)) height=(HEIGHT) {}
            }
            use href={ "#" (self.id) "-grid" } {}
            @if let Some([low, high]) = row.figure.interval {
                line.whisker x1=(at(low)) x2=(at(high)) y1=(middle) y2=(middle) {}
                @for end in [low, high] {
                    line.whisker x1=(at(end)) x2=(at(end)) y1=(middle - 3) y2=(middle + 3) {}
                }
            }
            @if let Some(ceiling) = row.ceiling {
                line.ceiling x1=(at(ceiling)) x2=(at(ceiling)) y1="2" y2=(HEIGHT - 2) {}
            }
            @match row.mark {
                Mark::Full => { circle.point.full cx=(at(row.figure.value)) cy=(middle) r="4.5" {} }
                Mark::Ring => { circle.point.ring cx=(at(row.figure.value)) cy=(middle) r="4" {} }
                Mark::Cross => {
                    // A path cannot be placed in per cent.
                    svg.point.cross x=(at(row.figure.value)) y=(middle) {
                        path d="M-4 -4L4 4M-4 4L4 -4" {}
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, value: f64, mark: Mark) -> Row {
        Row {
            heading: "linear_bias/f32".to_owned(),
            name: name.to_owned(),
            figure: Figure { value, interval: Some([value / 1.02, value * 1.02]) },
            ceiling: Some(1.2),
            noise_floor: Some(0.02),
            mark,
            word: "FASTER".to_owned(),
        }
    }

    fn forest() -> Forest {
        let rows = [("m1", 1.1, Mark::Full), ("m2", 1.0, Mark::Ring), ("m<3", 0.9, Mark::Cross)];
        let rows = rows.map(|(name, value, mark)| row(name, value, mark));
        Forest::new("a plot", "x", rows.to_vec())
    }

    #[test]
    fn a_page_and_a_file_draw_the_same_marks() {
        let forest = forest();
        let (page, file) = (forest.html().into_string(), forest.svg());
        for row in &forest.rows {
            let marks = forest.marks(row).into_string();
            assert!(page.contains(&marks) && file.contains(&marks), "{marks}");
            let number = row.number();
            assert!(page.contains(&number) && file.contains(&number), "{number}");
        }
        for (text, count) in [
            ("circle", 2),
            ("class=\"point cross\"", 1),
            ("m&lt;3", 3),
            ("<li class=\"heading\"", 1),
        ] {
            let opened = if text == "circle" { "<circle" } else { text };
            assert_eq!(page.matches(opened).count(), count, "{text}\n{page}");
        }
        assert!(file.starts_with("<?xml") && file.trim_end().ends_with("</svg>"));
        assert!(!file.contains("<script") && file.contains("prefers-color-scheme"));
    }

    #[test]
    fn a_problem_is_spoken_by_its_name() {
        let row = row("m1", 1.1, Mark::Full);
        assert!(row.spoken().starts_with("linear_bias/f32/m1: 1.100"), "{}", row.spoken());
        let heading = "conv_bn/f32, bn_folded".to_owned();
        let rewritten = Row { heading, ..row };
        assert!(rewritten.spoken().starts_with("conv_bn/f32/m1, bn_folded: "));
        assert_eq!(rewritten.whole_name(), "conv_bn/f32/m1, bn_folded");
    }

    #[test]
    fn marks_are_where_the_numbers_say() {
        let forest = forest();
        for row in &forest.rows[..2] {
            let marks = forest.marks(row).into_string();
            let place = marks.split("cx=\"").nth(1).and_then(|rest| rest.split('%').next());
            let share = 0.01 * place.unwrap().parse::<f64>().unwrap();
            assert!((forest.axis.value(share) / row.figure.value - 1.0).abs() < 1e-4, "{marks}");
        }
    }
}
