//! The gap as a waterfall: from the step of the first side over the causes to that of the second.

use cli_support::page::bars::{self, percent};
use kernel_traces::compare::{Cause, Comparison, Gap, Which};
use maud::{Markup, html};

use super::super::{CompareReport, words};
use super::names::Names;
use super::{left_out, look};
use crate::report::counted;

/// The axis begins at 0 unless the bars would then take less than this share of it.
const LEAST_SHARE: f64 = 0.4;

/// How much room an axis that does not begin at 0 leaves, as a share of what the bars take.
const ROOM: f64 = 0.25;

/// Approximate number of intervals between the ticks of the axis.
const TICKS: f64 = 4.0;

pub(super) fn section(report: CompareReport<'_>, names: &Names) -> Markup {
    let CompareReport { comparison, top, .. } = report;
    let Gap { causes, gap_ns, .. } = &comparison.gap;
    let steps = Steps::of(comparison, top);
    let axis = Axis::of(&steps);
    html! {
        section #gap {
            h2 { "Where the gap of " (words::signed(*gap_ns)) " comes from" }
            ul.legend {
                li { (bars::sample(look(Which::First))) " " (names.text(&comparison.first.label)) " takes longer" }
                li { (bars::sample(look(Which::Second))) " " (names.text(&comparison.second.label)) " takes longer" }
            }
            div.heads aria-hidden="true" { div.value { span { "Time" } span { "Of the gap" } } }
            ol.waterfall aria-label="From the first step to the second" {
                @for step in &steps.0 { (row(comparison, step, &axis, names)) }
            }
            (axis.labels())
            @if axis.low > 0.0 {
                p.note { "The axis begins at " (words::time(axis.low)) ", not at 0." }
            }
            ol.causes {
                @for cause in causes.iter().take(top) { li { (names.text(&cause.sentence)) } }
            }
            (left_out(causes.len(), top, "cause"))
        }
    }
}

/// A bar of the waterfall.
struct Step {
    name: String,
    what: &'static str,
    /// The side whose step it is, or that takes longer.
    side: Which,
    /// Whether it is a whole step.
    is_whole: bool,
    from: f64,
    to: f64,
}

struct Steps(Vec<Step>);

impl Steps {
    fn of(comparison: &Comparison, top: usize) -> Self {
        let Gap { first_ns, second_ns, causes, .. } = &comparison.gap;
        let whole = |side, to| Step {
            name: words::label(comparison, side).to_owned(),
            what: comparison.basis.noun(),
            side,
            is_whole: true,
            from: 0.0,
            to,
        };
        let mut steps = vec![whole(Which::First, *first_ns)];
        let mut at = *first_ns;
        let mut add = |name: String, what, gap_ns: f64| {
            let side = if gap_ns < 0.0 { Which::Second } else { Which::First };
            steps.push(Step { name, what, side, is_whole: false, from: at, to: at - gap_ns });
            at -= gap_ns;
        };
        for Cause { name, kind, part, .. } in causes.iter().take(top) {
            add(name.clone(), kind.name(), part.gap_ns);
        }
        let rest = causes.get(top..).unwrap_or_default();
        if !rest.is_empty() {
            let more = counted(rest.len() as u64, "cause");
            add(format!("{more} more"), "", rest.iter().map(|cause| cause.part.gap_ns).sum());
        }
        steps.push(whole(Which::Second, *second_ns));
        Self(steps)
    }
}

/// What the width of a bar's place stands for.
struct Axis {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Axis {
    fn of(Steps(steps): &Steps) -> Self {
        let ends = || {
            steps.iter().flat_map(|step| {
                let from = if step.is_whole { step.to } else { step.from };
                [from, step.to]
            })
        };
        let least = ends().fold(f64::INFINITY, f64::min);
        let most = ends().fold(0.0, f64::max).max(1.0);
        let taken = most - least;
        let torn = least > 0.0 && taken < LEAST_SHARE * most && taken > 0.0;
        let low = if torn { (least - ROOM.max(0.0) * taken).max(0.0) } else { least.min(0.0) };
        let spacing = spacing((most - low) / TICKS);
        let (low, first) = if torn {
            let low = (low / spacing).floor() * spacing;
            (low, low)
        } else {
            (low, (low / spacing).ceil() * spacing)
        };
        let high = most + 0.02 * (most - low);
        let ticks = std::iter::successors(Some(first), |tick| Some(tick + spacing))
            .take_while(|tick| *tick <= high)
            .take(20)
            .collect();
        Self { low, high, ticks }
    }

    fn at(&self, ns: f64) -> f64 {
        (ns - self.low) / (self.high - self.low)
    }

    fn labels(&self) -> Markup {
        html! {
            div.axis aria-hidden="true" {
                svg height="20" {
                    @for tick in &self.ticks {
                        @let anchor = match self.at(*tick) {
                            at if at < 0.05 => "start",
                            at if at > 0.95 => "end",
                            _ => "middle",
                        };
                        text x=(percent(self.at(*tick))) y="14" text-anchor=(anchor) {
                            (words::time(*tick))
                        }
                    }
                }
            }
        }
    }
}

/// 1, 2 or 5 times a power of ten that is at least so much.
fn spacing(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1e-3).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= least).unwrap_or(least)
}

fn row(comparison: &Comparison, step: &Step, axis: &Axis, names: &Names) -> Markup {
    let Step { name, what, side, is_whole, from, to } = step;
    let gap_ns = from - to;
    let label = words::label(comparison, *side);
    let (value, note) = match is_whole {
        true => (words::time(*to), String::new()),
        false if words::signed(gap_ns) == "0" => ("0".to_owned(), String::new()),
        false => (words::signed(gap_ns), format!("{label} takes longer")),
    };
    let share = (!is_whole).then(|| words::share_of_gap(&comparison.gap, gap_ns)).flatten();
    let mut spoken = format!("{}: {value}", names.label(name));
    if !note.is_empty() {
        spoken.push_str(&format!(", {note}"));
    }
    if let Some(share) = &share {
        spoken.push_str(&format!(", {share} of the gap"));
    }
    let (left, right) = (axis.at(from.min(*to)), axis.at(from.max(*to)));
    html! {
        li.whole[*is_whole].cause[!*is_whole] {
            div.label { span.name { (names.label(name)) } " " span.what { (what) } }
            svg.step role="img" aria-label=(names.text(&spoken)) height="32" {
                title { (names.text(&spoken)) }
                @for tick in &axis.ticks {
                    @let at = percent(axis.at(*tick));
                    line.grid x1=(at) x2=(at) y1="0" y2="32" {}
                }
                @if !is_whole {
                    @let at = percent(axis.at(*from));
                    line.link x1=(at) x2=(at) y1="0" y2="5" {}
                }
                rect.bar.(look(*side).class()) x=(percent(left)) y="5" height="22"
                    width=(percent(right.max(left + 0.002) - left.max(0.0))) {}
                @if *is_whole && axis.low > 0.0 {
                    path.tear d="M9 3 l5 6.5 l-5 6.5 l5 6.5 l-5 6.5" {}
                }
                @if !is_whole || *side == Which::First {
                    @let at = percent(axis.at(*to));
                    line.link x1=(at) x2=(at) y1="27" y2="32" {}
                }
            }
            div.value {
                span.number { (value) }
                span.what { (share.unwrap_or_default()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(wholes: [f64; 2], between: &[f64]) -> Axis {
        let step = |is_whole, from, to| Step {
            name: String::new(),
            what: "",
            side: Which::First,
            is_whole,
            from,
            to,
        };
        let mut at = wholes[0];
        let mut steps = vec![step(true, 0.0, wholes[0])];
        for gap in between {
            steps.push(step(false, at, at - gap));
            at -= gap;
        }
        steps.push(step(true, 0.0, wholes[1]));
        Axis::of(&Steps(steps))
    }

    #[test]
    fn an_axis_begins_at_zero_unless_the_causes_are_small_beside_the_steps() {
        let wide = axis([100.0, 40.0], &[60.0]);
        assert_eq!(wide.low, 0.0);
        let narrow = axis([1000.0, 990.0], &[30.0, -20.0]);
        assert!(narrow.low > 900.0 && narrow.low <= 970.0, "{}", narrow.low);
        let below = axis([10.0, 5.0], &[25.0, -20.0]);
        assert_eq!(below.low, -15.0);
    }

    #[test]
    fn everything_is_on_the_axis() {
        for (wholes, between) in [
            ([100.0, 40.0], &[60.0][..]),
            ([1000.0, 990.0], &[30.0, -20.0]),
            ([10.0, 5.0], &[25.0, -20.0]),
            ([0.0, 0.0], &[]),
            ([5e9, 5e9], &[0.0]),
        ] {
            let axis = axis(wholes, between);
            let mut at = wholes[0];
            for gap in between {
                assert!((0.0..=1.0).contains(&axis.at(at)), "{wholes:?}");
                at -= gap;
            }
            assert!((0.0..=1.0).contains(&axis.at(at)), "{wholes:?}");
            assert!(!axis.ticks.is_empty() && axis.ticks.len() <= 20, "{:?}", axis.ticks);
        }
    }
}
