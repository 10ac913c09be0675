//! Patterns against sizes: a table for each form, its cells coloured by the speedup.

use fusion_cost_model::Rewrite;
use fusion_cost_model::calibration::{FusionRecord, Verdict};
use maud::{Markup, html};

use super::Part;
use super::part::name;
use super::strip::figure;

/// From which change on a cell has the next deeper colour, as a ratio minus 1.
const DEPTHS: [f64; 4] = [0.02, 0.05, 0.15, 0.4];

/// The sizes and the patterns of a form of chains, each in the order of the file.
struct Map<'c> {
    /// The sizes that a problem of the form has, as text.
    sizes: String,
    columns: Vec<String>,
    rows: Vec<(String, Vec<Option<&'c FusionRecord>>)>,
}

pub(super) fn maps(part: &Part<'_>) -> Markup {
    let mut maps: Vec<Map<'_>> = Vec::new();
    for record in part.chains() {
        let sizes = record.problem.chain().form().size_syntax();
        let make = |sizes| Map { sizes, columns: Vec::new(), rows: Vec::new() };
        let map = position(&mut maps, sizes, |map| &map.sizes, make);
        maps[map].add(record);
    }
    html! { @for map in maps { (map.html()) } }
}

impl<'c> Map<'c> {
    fn add(&mut self, record: &'c FusionRecord) {
        let column = position(&mut self.columns, column(record), |one| one, |name| name);
        let row = position(&mut self.rows, name(record), |(one, _)| one, |one| (one, Vec::new()));
        let cells = &mut self.rows[row].1;
        if cells.len() <= column {
            cells.resize(column + 1, None);
        }
        cells[column] = Some(record);
    }

    fn html(&self) -> Markup {
        let title = format!("Speedups by {}", self.sizes);
        let table = html! {
            table.heat {
                thead {
                    tr {
                        th scope="col" { (self.sizes) }
                        @for column in &self.columns { th scope="col" { (breakable(column)) } }
                    }
                }
                tbody {
                    @for (name, cells) in &self.rows {
                        tr {
                            th scope="row" { code { (name) } }
                            @for column in 0..self.columns.len() { (cell_of(cells.get(column).copied().flatten())) }
                        }
                    }
                }
            }
        };
        cli_support::page::scrolling(&title, &table)
    }
}

/// A name that can be broken behind its words.
fn breakable(name: &str) -> Markup {
    html! { @for word in name.split_inclusive(['_', '+']) { (word) wbr; } }
}

/// The place of a name in a list, at whose end it is put if it is new.
fn position<T>(
    list: &mut Vec<T>,
    name: String,
    name_of: impl Fn(&T) -> &String,
    make: impl FnOnce(String) -> T,
) -> usize {
    list.iter().position(|one| *name_of(one) == name).unwrap_or_else(|| {
        list.push(make(name));
        list.len() - 1
    })
}

fn column(record: &FusionRecord) -> String {
    let rewrite = record.rewrite.map(Rewrite::name).map(|name| format!(", {name}"));
    record.problem.chain().name() + &rewrite.unwrap_or_default()
}

/// `gain-2`, `loss-1` or `even`.
pub(super) fn class(speedup: f64) -> String {
    let change = speedup.max(1.0 / speedup) - 1.0;
    match DEPTHS.iter().filter(|depth| change >= **depth).count() {
        0 => "even".to_owned(),
        depth if speedup > 1.0 => format!("gain-{depth}"),
        depth => format!("loss-{depth}"),
    }
}

fn cell_of(record: Option<&FusionRecord>) -> Markup {
    let Some(record) = record else { return html! { td {} } };
    let figure = figure(record);
    let spoken = format!(
        "{}{}: {} {}",
        record.problem,
        record.cache_state.mark(),
        crate::units::ratio(figure.value, record.speedup_low, record.speedup_high),
        record.verdict
    );
    let class = match record.verdict {
        Verdict::Invalid => "invalid".to_owned(),
        Verdict::Ambiguous => class(figure.value) + " open",
        _ => class(figure.value),
    };
    html! { td class=(class) title=(spoken) { (format!("{:.3}", figure.value)) } }
}

/// What the colours mean.
pub(super) fn legend() -> Markup {
    html! {
        ul.legend.heat-key {
            (scale())
            li { span class="box even open" {} " AMBIGUOUS" }
            li { span class="box invalid" {} " INVALID" }
        }
    }
}

/// The colours of changes, as entries of a legend.
pub(super) fn scale() -> Markup {
    let percent = |depth: usize| format!("{:.0}", 100.0 * DEPTHS[depth]);
    let range = |depth: usize| match DEPTHS.get(depth) {
        Some(next) => format!("{} to {:.0} %", percent(depth - 1), 100.0 * next),
        None => format!("{} % and more", percent(depth - 1)),
    };
    html! {
        @for depth in (1..=DEPTHS.len()).rev() {
            li { span class={ "box loss-" (depth) } {} " " (range(depth)) " slower" }
        }
        li { span class="box even" {} " within " (percent(0)) " %" }
        @for depth in 1..=DEPTHS.len() {
            li { span class={ "box gain-" (depth) } {} " " (range(depth)) " faster" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn colours_follow_the_change_to_both_sides() {
        let classes = [1.0, 1.019, 1.02, 1.2, 3.0, 0.99, 0.95, 0.5].map(class);
        let expected = ["even", "even", "gain-1", "gain-3", "gain-4", "even", "loss-2", "loss-4"];
        assert_eq!(classes, expected);
    }
}
