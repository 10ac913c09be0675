//! A comparison of calibrations: as a page of text, Markdown or HTML, as tables of CSV, and as JSON.
//!
//! `page` puts `tables` and sentences in order; `words` has the phrases of both.

mod csv;
mod html;
mod page;
mod tables;
mod words;

use clap::ValueEnum;
use cli_support::width::Width;
use fusion_cost_model::compare::{ComparedSide, Comparison, Relation};
use serde::Serialize;

use super::block::Block;
use page::page;

/// What a report of a comparison shows.
#[derive(Debug, Clone, Copy)]
pub struct CompareReport<'c> {
    /// The comparison.
    pub comparison: &'c Comparison,
    /// How many entries lists for people have; a single table, CSV and JSON have all.
    pub top: usize,
    /// The share of a speedup whose loss is a failure, if one was named.
    pub fail_on: Option<f64>,
}

/// A table of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareTable {
    /// Every problem that was measured on two sides
    Records,
    /// Those of them whose measurements do not decide
    Undecided,
    /// Those of them whose times changed in both variants alike: the machine, not fusion
    Moved,
    /// Families of problems
    Families,
    /// Patterns
    Patterns,
    /// The measured ceilings of the sides
    Ceilings,
    /// Single ops: only their times are compared
    SingleOps,
    /// What is not compared, with the reason
    NotCompared,
}

impl<'c> CompareReport<'c> {
    /// The page, or one of its tables, as text.
    #[must_use]
    pub fn text(self, table: Option<CompareTable>, width: Width) -> String {
        let blocks = self.blocks(table, width == Width::Unlimited);
        blocks.iter().map(|block| block.text(width)).collect()
    }

    /// The same in Markdown.
    #[must_use]
    pub fn markdown(self, table: Option<CompareTable>) -> String {
        self.blocks(table, true).iter().map(Block::markdown).collect()
    }

    /// A table as CSV, with its header also where it has no rows.
    ///
    /// # Errors
    ///
    /// When a value cannot be written as CSV, which none of these is.
    pub fn csv(self, table: CompareTable) -> anyhow::Result<Vec<u8>> {
        Ok(csv::sheet(self.comparison, table).csv()?)
    }

    /// The whole comparison as one object of JSON.
    ///
    /// # Errors
    ///
    /// When it cannot be written as JSON, which no comparison is.
    pub fn json(self) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct Document<'c> {
            kind: &'static str,
            version: u32,
            #[serde(flatten)]
            comparison: &'c Comparison,
        }
        let (kind, version, comparison) = ("calibration-comparison", 1, self.comparison);
        Ok(serde_json::to_string_pretty(&Document { kind, version, comparison })? + "\n")
    }

    /// The whole comparison as one page of HTML, without scripts and without anything from elsewhere.
    #[must_use]
    pub fn html(self) -> String {
        html::html(self.view(false))
    }

    const fn view(self, has_whole_names: bool) -> View<'c> {
        let Self { comparison, top, fail_on } = self;
        View { comparison, top, fail_on, has_whole_names }
    }

    fn blocks(self, table: Option<CompareTable>, has_whole_names: bool) -> Vec<Block> {
        let view = self.view(has_whole_names);
        match table {
            None => page(view),
            Some(table) => tables::all_of(view, table).into_iter().map(Block::Table).collect(),
        }
    }
}

/// What a page shows, and how.
#[derive(Clone, Copy)]
struct View<'c> {
    comparison: &'c Comparison,
    top: usize,
    fail_on: Option<f64>,
    /// Whether a row has the problem's whole name, or stands below its heading.
    has_whole_names: bool,
}

impl<'c> View<'c> {
    /// A side and the one that it is compared with.
    fn both(self, side: usize) -> [&'c ComparedSide; 2] {
        [&self.comparison.sides[0], &self.comparison.sides[side]]
    }

    fn labels(self, side: usize) -> [&'c str; 2] {
        self.both(side).map(|side| side.facts.label.as_str())
    }

    /// `B / A`.
    fn ratio_of(self, side: usize) -> String {
        let [first, second] = self.labels(side);
        format!("{second} / {first}")
    }

    /// Whether a side is the same machine as the first one.
    fn is_check(self, side: usize) -> bool {
        self.comparison.sides[side].relation == Relation::Same
    }

    /// Whether there are only two sides.
    const fn is_pair(self) -> bool {
        self.comparison.sides.len() == 2
    }
}
