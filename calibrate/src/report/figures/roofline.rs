//! A roofline: both variants of each problem below the measured ceilings, on logarithmic axes.

use maud::{Markup, html};

use super::LogAxis;
use crate::units::three_digits;

/// The size of the drawing, and the edges of what the axes enclose.
const SIZE: [usize; 2] = [760, 470];
const LEFT: f64 = 58.0;
const RIGHT: f64 = 748.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 424.0;

/// A problem: flops per byte and 10^9 flops per second of its variants.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrow {
    /// What it is called.
    pub name: String,
    /// Which of the kinds that the legend lists it is of.
    pub kind: usize,
    /// The unfused variant.
    pub unfused: [f64; 2],
    /// The fused one.
    pub fused: [f64; 2],
}

impl Arrow {
    fn is_drawn(&self) -> bool {
        self.unfused.into_iter().chain(self.fused).all(|value| value.is_finite() && value > 0.0)
    }

    fn spoken(&self) -> String {
        let point = |[intensity, rate]: [f64; 2]| {
            format!("{} GFLOP/s at {} flops per byte", three_digits(rate), three_digits(intensity))
        };
        format!("{}: unfused {}, fused {}", self.name, point(self.unfused), point(self.fused))
    }
}

/// A roofline.
#[derive(Debug, Clone, PartialEq)]
pub struct Roofline {
    /// What it shows.
    pub title: String,
    /// The start of the names that its parts have on the page.
    pub id: String,
    /// 10^9 flops per second at most.
    pub peak_gflops: f64,
    /// 10^9 bytes per second at most, each with where that is.
    pub bandwidths: Vec<(&'static str, f64)>,
    /// The problems.
    pub arrows: Vec<Arrow>,
}

impl Roofline {
    /// How many problems have no place: those without flops.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.arrows.iter().filter(|arrow| !arrow.is_drawn()).count()
    }

    /// The figure of a page.
    #[must_use]
    pub fn html(&self) -> Markup {
        let [width, height] = SIZE;
        html! {
            svg.roofline role="img" aria-label=(self.title) viewBox={ "0 0 " (width) " " (height) } {
                (self.drawing())
            }
        }
    }

    /// The figure as a file.
    #[must_use]
    pub fn svg(&self) -> String {
        super::file(&self.title, SIZE, &self.drawing())
    }

    fn drawing(&self) -> Markup {
        let plot = Plot::of(self);
        html! {
            defs {
                marker id={ (self.id) "-head" } viewBox="0 0 6 6" refX="9" refY="3" markerWidth="6"
                    markerHeight="6" markerUnits="userSpaceOnUse" orient="auto" {
                    path.head d="M0 0L6 3L0 6z" {}
                }
            }
            (plot.frame())
            @for ceiling in plot.ceilings(self) { (ceiling) }
            @for arrow in self.arrows.iter().filter(|arrow| arrow.is_drawn()) {
                g class={ "arrow kind-" (arrow.kind) } {
                    title { (arrow.spoken()) }
                    @let ([x1, y1], [x2, y2]) = (plot.at(arrow.unfused), plot.at(arrow.fused));
                    line x1=(px(x1)) y1=(px(y1)) x2=(px(x2)) y2=(px(y2))
                        marker-end={ "url(#" (self.id) "-head)" } {}
                    circle.unfused cx=(px(x1)) cy=(px(y1)) r="1.8" {}
                    (shape(arrow.kind, [x2, y2]))
                }
            }
        }
    }
}

/// A place in the drawing, to a hundredth.
fn px(place: f64) -> String {
    format!("{place:.2}")
}

/// The fused end: colour is never alone.
fn shape(kind: usize, [x, y]: [f64; 2]) -> Markup {
    let path = match kind % 4 {
        0 => "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z",
        1 => "M-3.3 -3.3h6.6v6.6h-6.6z",
        2 => "M0 -4.2L4 3.2H-4z",
        _ => "M0 -4.6L4.6 0L0 4.6L-4.6 0z",
    };
    html! { path.fused transform={ "translate(" (px(x)) " " (px(y)) ")" } d=(path) {} }
}

/// A sample of a kind of problems, for the legend.
#[must_use]
pub fn sample(kind: usize) -> Markup {
    html! { svg.key aria-hidden="true" { g class={ "arrow kind-" (kind) } { (shape(kind, [15.0, 7.0])) } } }
}

/// The axes of the drawing.
struct Plot {
    x: LogAxis,
    y: LogAxis,
}

impl Plot {
    fn of(roofline: &Roofline) -> Self {
        let drawn = || roofline.arrows.iter().filter(|arrow| arrow.is_drawn());
        let ends = || drawn().flat_map(|arrow| [arrow.unfused, arrow.fused]);
        let rates = ends().map(|[_, rate]| rate).chain([roofline.peak_gflops * 1.2]);
        Self {
            x: LogAxis::of_rates(ends().map(|[intensity, _]| intensity)),
            y: LogAxis::of_rates(rates),
        }
    }

    fn x(&self, intensity: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * self.x.at(intensity)
    }

    fn y(&self, rate: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * self.y.at(rate)
    }

    fn at(&self, [intensity, rate]: [f64; 2]) -> [f64; 2] {
        [self.x(intensity), self.y(rate)]
    }

    fn frame(&self) -> Markup {
        let middle = f64::midpoint(TOP, BOTTOM);
        html! {
            @for tick in self.x.ticks() {
                @let x = px(self.x(*tick));
                line.grid x1=(x) x2=(x) y1=(TOP) y2=(BOTTOM) {}
                text.tick x=(x) y=(BOTTOM + 17.0) text-anchor="middle" { (tick) }
            }
            @for tick in self.y.ticks() {
                @let y = px(self.y(*tick));
                line.grid x1=(LEFT) x2=(RIGHT) y1=(y) y2=(y) {}
                text.tick x=(LEFT - 7.0) y=(y) dy="4" text-anchor="end" { (tick) }
            }
            text.tick x=(f64::midpoint(LEFT, RIGHT)) y=(BOTTOM + 38.0) text-anchor="middle" {
                "flops per modelled byte"
            }
            text.tick text-anchor="middle" transform={ "translate(14 " (middle) ") rotate(-90)" } {
                "GFLOP/s"
            }
        }
    }

    /// The peak, and each bandwidth as far as it is below the peak.
    fn ceilings(&self, roofline: &Roofline) -> Vec<Markup> {
        let peak = roofline.peak_gflops;
        let [left, right, low] = [self.x.value(0.0), self.x.value(1.0), self.y.value(0.0)];
        let ridge = |bandwidth: f64| peak / bandwidth;
        let fastest = roofline.bandwidths.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let from = if fastest > 0.0 { ridge(fastest).clamp(left, right) } else { left };
        let mut lines = vec![html! {
            (roof([self.at([from, peak]), self.at([right, peak])]))
            text.roof x=(RIGHT) y=(px(self.y(peak) - 6.0)) text-anchor="end" {
                "peak " (three_digits(peak)) " GFLOP/s"
            }
        }];
        for (name, bandwidth) in &roofline.bandwidths {
            let (from, to) = (left.max(low / bandwidth), right.min(ridge(*bandwidth)));
            if from >= to {
                continue;
            }
            let ends = [from, to].map(|intensity| self.at([intensity, intensity * bandwidth]));
            let [[x1, y1], [x2, y2]] = ends;
            let angle = (y2 - y1).atan2(x2 - x1).to_degrees();
            let turn = format!("translate({} {}) rotate({angle:.2})", px(x1), px(y1));
            lines.push(html! {
                (roof(ends))
                text.roof x="10" y="-6" transform=(turn) { (name) " " (three_digits(*bandwidth)) " GB/s" }
            });
        }
        lines
    }
}

fn roof([[x1, y1], [x2, y2]]: [[f64; 2]; 2]) -> Markup {
    html! { line.roof x1=(px(x1)) y1=(px(y1)) x2=(px(x2)) y2=(px(y2)) {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roofline() -> Roofline {
        let arrow = |name: &str, kind, unfused, fused| Arrow {
            name: name.to_owned(),
            kind,
            unfused,
            fused,
        };
        Roofline {
            title: "a roofline".to_owned(),
            id: "x".to_owned(),
            peak_gflops: 300.0,
            bandwidths: vec![("in cache", 100.0), ("in memory", 20.0)],
            arrows: vec![
                arrow("<one>", 0, [0.2, 4.0], [0.5, 9.0]),
                arrow("two", 2, [20.0, 250.0], [21.0, 260.0]),
                arrow("no flops", 1, [0.0, 0.0], [0.0, 0.0]),
            ],
        }
    }

    #[test]
    fn a_page_and_a_file_draw_the_same() {
        let roofline = roofline();
        let drawing = roofline.drawing().into_string();
        let (page, file) = (roofline.html().into_string(), roofline.svg());
        assert!(page.contains(&drawing) && file.contains(&drawing));
        assert_eq!(drawing.matches("class=\"arrow kind-").count(), 2);
        assert!(drawing.contains("&lt;one&gt;: unfused 4.00 GFLOP/s at 0.20 flops per byte"));
        assert_eq!((drawing.matches("<line class=\"roof\"").count(), roofline.left_out()), (3, 1));
    }

    #[test]
    fn ceilings_meet_at_the_peak() {
        let roofline = roofline();
        let plot = Plot::of(&roofline);
        let lines: Vec<String> =
            plot.ceilings(&roofline).into_iter().map(Markup::into_string).collect();
        let peak = px(plot.y(300.0));
        assert!(lines[0].contains(&format!("y1=\"{peak}\"")), "{lines:?}");
        // In cache, the peak is reached at 3 flops per byte, in memory at 15.
        for (line, ridge) in lines[1..].iter().zip([3.0, 15.0]) {
            let end = format!("x2=\"{}\" y2=\"{peak}\"", px(plot.x(ridge)));
            assert!(line.contains(&end), "{line}, not {end}");
        }
    }
}
