//! Every chain on one axis, in three orders: by pattern and size, by gain, and by the distance to
//! the ceiling.

use fusion_cost_model::calibration::{FusionRecord, Verdict};
use fusion_cost_model::compare::Figure;
use maud::{Markup, html};

use super::Part;
use super::part::{heading, name};
use super::strip::figure;
use crate::report::figures::{Forest, Mark, Row};

const fn mark(verdict: Verdict) -> Mark {
    match verdict {
        Verdict::Faster | Verdict::Slower => Mark::Full,
        Verdict::Invalid => Mark::Cross,
        Verdict::Same | Verdict::Single | Verdict::Ambiguous => Mark::Ring,
    }
}

fn row(record: &FusionRecord) -> Row {
    Row {
        heading: heading(record),
        name: name(record),
        figure: figure(record),
        ceiling: record.ceiling_speedup,
        noise_floor: Some(record.noise_floor),
        mark: mark(record.verdict),
        word: record.verdict.to_string(),
    }
}

/// A row that stands without a heading.
fn whole(row: Row) -> Row {
    let name = row.whole_name();
    Row { heading: String::new(), name, ..row }
}

/// Patterns and sizes in the order of the file.
pub(super) fn by_pattern(part: &Part<'_>) -> Forest {
    let mut rows: Vec<Row> = part.chains().iter().map(|record| row(record)).collect();
    // Rows with one heading follow each other, in the order of the first of each.
    let headings: Vec<String> = rows.iter().map(|row| row.heading.clone()).collect();
    rows.sort_by_cached_key(|row| headings.iter().position(|known| *known == row.heading));
    Forest::new(format!("Speedups on {}", part.name()), part.id("chains"), rows)
}

/// The largest gain first.
pub(super) fn by_gain(part: &Part<'_>) -> Forest {
    let mut rows: Vec<Row> = part.chains().iter().map(|record| whole(row(record))).collect();
    rows.sort_by(|a, b| b.figure.value.total_cmp(&a.figure.value));
    Forest::new(format!("Speedups on {}, by gain", part.name()), part.id("gains"), rows)
}

/// The speedup over its ceiling, the furthest first; `None` where no ceilings were measured.
pub(super) fn to_ceiling(part: &Part<'_>) -> Option<Forest> {
    let share = |record: &FusionRecord| {
        let ceiling = record.ceiling_speedup?;
        let Figure { value, interval } = figure(record);
        let interval = interval.map(|ends| ends.map(|end| end / ceiling));
        let is_clear = interval.is_some_and(|[low, high]| high < 1.0 || low > 1.0);
        Some(Row {
            figure: Figure { value: value / ceiling, interval },
            ceiling: None,
            noise_floor: None,
            mark: if is_clear { Mark::Full } else { Mark::Ring },
            word: format!("{value:.3} of {ceiling:.2}"),
            ..whole(row(record))
        })
    };
    let mut rows: Vec<Row> = part.valid().filter_map(share).collect();
    rows.sort_by(|a, b| a.figure.value.total_cmp(&b.figure.value));
    let title = format!("Speedups over their ceilings on {}", part.name());
    (!rows.is_empty()).then(|| Forest::new(title, part.id("ceilings"), rows))
}

/// What the marks mean.
pub(super) fn legend() -> Markup {
    html! {
        ul.legend {
            li { (key(&html! { circle.point.full cx="15" cy="7" r="4.5" {} })) " FASTER or SLOWER" }
            li { (key(&html! { circle.point.ring cx="15" cy="7" r="4" {} })) " SAME or AMBIGUOUS" }
            li {
                (key(&html! { g.point.cross { path d="M11 3L19 11M11 11L19 3" {} } }))
                " INVALID"
            }
            li { (key(&html! { line.whisker x1="2" x2="28" y1="7" y2="7" {} })) " 95 % interval" }
            li { (key(&html! { line.ceiling x1="15" x2="15" y1="0" y2="14" {} })) " ceiling" }
            li { (key(&html! { rect.noise x="0" y="0" width="30" height="14" {} })) " noise" }
        }
    }
}

fn key(mark: &Markup) -> Markup {
    html! { svg.key aria-hidden="true" { (mark) } }
}
