//! A comparison as text.
//!
//! From the whole to the parts: the head with the verdict, what the gap comes from, fusions and
//! differences of implementation, the layers, the kernels, and what a reader must know.

mod findings;
mod gap;
mod head;
mod kernels;
mod layers;
mod rates;

use std::fmt::{Display, Write};

use cli_support::tables::styled;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};

use super::CompareReport;
use crate::report::collectives::{rank_sentences, rank_table};

/// Tables are at most this wide, in characters, and narrower on a narrow terminal.
const WIDTH: u16 = 120;

/// A comparison, with lists of at most `top` entries.
#[must_use]
pub fn trace_compare(report: CompareReport<'_>) -> String {
    let mut text = head::head(report.comparison);
    head::write_matched(&mut text, report);
    write_ranks(&mut text, report);
    gap::write(&mut text, report);
    rates::write(&mut text, report);
    findings::write(&mut text, report);
    layers::write(&mut text, report);
    kernels::write(&mut text, report);
    findings::write_warnings(&mut text, report.comparison);
    text
}

/// All ranks of the sides that have several.
fn write_ranks(text: &mut String, report: CompareReport<'_>) {
    let sides = [&report.comparison.first, &report.comparison.second];
    for (side, survey) in sides.into_iter().zip(report.ranks) {
        let Some(survey) = survey else { continue };
        heading(text, format_args!("The ranks of {}", side.label));
        let _ = writeln!(text, "{}", rank_table(survey));
        for sentence in rank_sentences(survey) {
            write_sentence(text, sentence);
        }
    }
}

/// A table in the width that there is.
fn sized() -> Table {
    let mut table = styled();
    table.set_width(width(&table));
    table
}

fn width(table: &Table) -> u16 {
    table.width().map_or(WIDTH, |width| width.min(WIDTH))
}

/// A column keeps its words in lines, up to a width in characters.
fn at_most(table: &mut Table, column: usize, characters: u16) {
    if let Some(column) = table.column_mut(column) {
        column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(characters)));
    }
}

/// A heading, with an empty line around it.
fn heading(text: &mut String, title: impl Display) {
    let title = title.to_string();
    let _ = writeln!(text, "\n{title}\n{}", "=".repeat(title.chars().count()));
}

/// A table, and a line about what it leaves out.
fn write_table(text: &mut String, table: &Table, left_out: &str) {
    let _ = writeln!(text, "{table}");
    if !left_out.is_empty() {
        let _ = writeln!(text, "{left_out}");
    }
}

/// Sentences with what stands before them, wrapped.
fn write_sentences(text: &mut String, sentences: impl IntoIterator<Item = (String, String)>) {
    let mut table = bare();
    for (mark, sentence) in sentences {
        table.add_row([mark, sentence]);
    }
    if let Some(mark) = table.column_mut(0) {
        mark.set_padding((0, 0)).set_constraint(ColumnConstraint::ContentWidth);
    }
    write_lines(text, &table);
}

/// A sentence on its own, wrapped.
fn write_sentence(text: &mut String, sentence: String) {
    let mut table = bare();
    table.add_row([sentence]);
    if let Some(column) = table.column_mut(0) {
        column.set_padding((0, 0));
    }
    write_lines(text, &table);
}

/// A table without lines, for wrapping.
fn bare() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width(&table));
    table
}

fn write_lines(text: &mut String, table: &Table) {
    for line in table.lines() {
        let _ = writeln!(text, "{}", line.trim_end());
    }
}
