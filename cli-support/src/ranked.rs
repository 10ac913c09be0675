//! Tables that fit a width: columns give way by rank, and names are never broken.

use std::fmt::Write;

use crate::markdown;
use crate::width::Width;

/// Between two columns.
const GAP: usize = 2;

/// Each level is indented by this.
const INDENT: usize = 2;

/// Columns give way to names of up to this many characters with their indent. Longer ones stand on
/// a line of their own where they have no room; they are rare, and would cost all others a column.
const LONGEST_NAME: usize = 36;

/// On which side the cells of a column begin or end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A column besides that of the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// What it is called.
    pub head: &'static str,
    /// Which ones give way first: those with the highest rank, all of a rank together. Those of
    /// rank 0 stay.
    pub rank: u8,
    /// Where its cells are.
    pub side: Side,
}

impl Column {
    /// A column of numbers.
    #[must_use]
    pub const fn numbers(head: &'static str, rank: u8) -> Self {
        Self { head, rank, side: Side::Right }
    }

    /// A column of words.
    #[must_use]
    pub const fn words(head: &'static str, rank: u8) -> Self {
        Self { head, rank, side: Side::Left }
    }
}

#[derive(Debug, Clone)]
enum Line {
    Heading(String),
    Row { name: String, cells: Vec<String> },
}

/// A line of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown<'t> {
    /// What the names of the next rows have in common.
    Heading(&'t str),
    /// A name and its cells.
    Row(&'t str, &'t [String]),
}

/// A table with a title, named rows, and headings between them.
#[derive(Debug, Clone)]
pub struct RankedTable {
    title: String,
    columns: Vec<Column>,
    heads: Vec<String>,
    lines: Vec<Line>,
}

impl RankedTable {
    /// One without rows.
    #[must_use]
    pub fn new(title: impl Into<String>, columns: &[Column]) -> Self {
        let heads = columns.iter().map(|column| column.head.to_owned()).collect();
        Self { title: title.into(), columns: columns.to_vec(), heads, lines: Vec::new() }
    }

    /// The same table with other heads of its columns, such as names that are known only now.
    #[must_use]
    pub fn with_heads(self, heads: impl IntoIterator<Item = String>) -> Self {
        Self { heads: heads.into_iter().collect(), ..self }
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows().next().is_none()
    }

    /// Adds what the names of the next rows have in common.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.lines.push(Line::Heading(text.into()));
    }

    /// Adds a row with a cell for every column.
    pub fn row(&mut self, name: impl Into<String>, cells: impl IntoIterator<Item = String>) {
        self.lines.push(Line::Row { name: name.into(), cells: cells.into_iter().collect() });
    }

    /// The table as text.
    #[must_use]
    pub fn render(&self, width: Width) -> String {
        let indent = if self.lines.iter().any(|line| matches!(line, Line::Heading(_))) {
            2 * INDENT
        } else {
            INDENT
        };
        let layout = Layout::new(self, indent, width);
        let heads: Vec<&str> = self.heads.iter().map(String::as_str).collect();
        let mut text = layout.row(&self.title, 0, &heads);
        for line in &self.lines {
            match line {
                Line::Heading(heading) => {
                    let _ = writeln!(text, "{:INDENT$}{heading}", "");
                }
                Line::Row { name, cells } => {
                    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
                    text.push_str(&layout.row(name, indent, &cells));
                }
            }
        }
        text
    }

    /// The title, and the heads of the columns.
    #[must_use]
    pub fn head(&self) -> (&str, Vec<(&str, Side)>) {
        let sides = self.columns.iter().map(|column| column.side);
        (&self.title, self.heads.iter().map(String::as_str).zip(sides).collect())
    }

    /// What is below them.
    pub fn lines(&self) -> impl Iterator<Item = Shown<'_>> {
        self.lines.iter().map(|line| match line {
            Line::Heading(heading) => Shown::Heading(heading),
            Line::Row { name, cells } => Shown::Row(name, cells),
        })
    }

    /// The table in Markdown, with every column.
    #[must_use]
    pub fn markdown(&self) -> String {
        let line = |name: &str, cells: &mut dyn Iterator<Item = &str>| {
            let cells: String = cells.map(|cell| format!(" {} |", markdown::cell(cell))).collect();
            format!("| {} |{cells}\n", markdown::cell(name))
        };
        let mut text = line(&self.title, &mut self.heads.iter().map(String::as_str));
        text.push_str("|---|");
        for column in &self.columns {
            text.push_str(match column.side {
                Side::Left => "---|",
                Side::Right => "---:|",
            });
        }
        text.push('\n');
        let nothing = vec![""; self.columns.len()];
        for one in &self.lines {
            text.push_str(&match one {
                Line::Heading(heading) => {
                    line(&format!("**{heading}**"), &mut nothing.iter().copied())
                }
                Line::Row { name, cells } => line(name, &mut cells.iter().map(String::as_str)),
            });
        }
        text
    }

    fn rows(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.lines.iter().filter_map(|line| match line {
            Line::Row { name, cells } => Some((name.as_str(), cells.as_slice())),
            Line::Heading(_) => None,
        })
    }
}

/// Which columns there is room for, and how wide they are.
struct Layout<'a> {
    columns: &'a [Column],
    width: Width,
    /// Of the names with their indent.
    name: usize,
    /// Of every column; `None` for one that gave way.
    cells: Vec<Option<usize>>,
}

impl<'a> Layout<'a> {
    fn new(table: &'a RankedTable, indent: usize, width: Width) -> Self {
        let columns = &table.columns;
        let length = |text: &str| text.chars().count();
        let wide = |index: usize| {
            let cells = table.rows().filter_map(|(_, cells)| cells.get(index));
            let longest = cells.map(|cell| length(cell)).max().unwrap_or(0);
            longest.max(table.heads.get(index).map_or(0, |head| length(head)))
        };
        let wide: Vec<usize> = (0..columns.len()).map(wide).collect();
        let of_ranks = |most: u8| -> usize {
            let shown = columns.iter().zip(&wide).filter(|(column, _)| column.rank <= most);
            shown.map(|(_, wide)| GAP + wide).sum()
        };
        let names = || table.rows().map(|(name, _)| indent + length(name));
        let longest = names().max().unwrap_or(0).max(length(&table.title));
        let mut ranks: Vec<u8> = columns.iter().map(|column| column.rank).collect();
        ranks.sort_unstable();
        let fits = |rank: &&u8| width.holds(longest.min(LONGEST_NAME) + of_ranks(**rank));
        let most = ranks.iter().take_while(fits).last().copied().unwrap_or(0);
        // All names that have room beside these columns.
        let has_room = |name: &usize| width.holds(name + of_ranks(most));
        let name = names().chain([length(&table.title)]).filter(has_room).max();
        let shown = |(column, wide): (&Column, &usize)| (column.rank <= most).then_some(*wide);
        let cells = columns.iter().zip(&wide).map(shown).collect();
        Self { columns, width, name: name.unwrap_or(indent), cells }
    }

    /// A row, on two lines if the name has no room beside the cells.
    fn row(&self, name: &str, indent: usize, cells: &[&str]) -> String {
        let length = name.chars().count();
        let mut text = String::new();
        if indent + length <= self.name {
            let _ = write!(text, "{:indent$}{name:<rest$}", "", rest = self.name - indent);
        } else {
            let indent = match self.width {
                Width::Columns(columns) => indent.min(columns.saturating_sub(length)),
                Width::Unlimited => indent,
            };
            let _ = write!(text, "{:indent$}{name}\n{:rest$}", "", "", rest = self.name);
        }
        for ((column, wide), cell) in self.columns.iter().zip(&self.cells).zip(cells) {
            let Some(wide) = *wide else { continue };
            let _ = match column.side {
                Side::Left => write!(text, "{:GAP$}{cell:<wide$}", ""),
                Side::Right => write!(text, "{:GAP$}{cell:>wide$}", ""),
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> RankedTable {
        let columns = [
            Column::numbers("time", 1),
            Column::numbers("speedup", 0),
            Column::numbers("rate", 2),
            Column::words("verdict", 0),
        ];
        let mut table = RankedTable::new("linear", &columns);
        table.heading("linear_bias/f32");
        table.row("m8.k8.n8", ["1 us", "1.00", "22.5", "SAME"].map(str::to_owned));
        let long = "m4096.k64.n256.and.much.more.that.is.rare";
        table.row(long, ["699 us", "1.17", "225.7", "FASTER"].map(str::to_owned));
        table
    }

    #[test]
    fn columns_give_way_by_rank_and_names_keep_whole() {
        let wide = "\
linear                                           time  speedup   rate  verdict
  linear_bias/f32
    m8.k8.n8                                     1 us     1.00   22.5  SAME
    m4096.k64.n256.and.much.more.that.is.rare  699 us     1.17  225.7  FASTER
";
        assert_eq!(table().render(Width::Unlimited), wide);
        assert_eq!(table().render(Width::Columns(78)), wide);
        let narrower = "\
linear          time  speedup   rate  verdict
  linear_bias/f32
    m8.k8.n8    1 us     1.00   22.5  SAME
    m4096.k64.n256.and.much.more.that.is.rare
              699 us     1.17  225.7  FASTER
";
        assert_eq!(table().render(Width::Columns(77)), narrower);
        let narrow = "\
linear        speedup  verdict
  linear_bias/f32
    m8.k8.n8     1.00  SAME
   m4096.k64.n256.and.much.more.that.is.rare
                 1.17  FASTER
";
        assert_eq!(table().render(Width::Columns(44)), narrow);
    }

    #[test]
    fn no_line_is_wider_and_fewer_columns_are_shown_on_a_narrower_page() {
        let mut before = usize::MAX;
        for columns in (42..100).rev() {
            let text = table().render(Width::Columns(columns));
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}\n{text}");
            let heads = text.lines().next().unwrap().split_whitespace().count();
            assert!(heads <= before, "{columns}\n{text}");
            before = heads;
        }
    }

    #[test]
    fn markdown_has_every_column() {
        let heads = ["A", "B | A", "rate", "verdict"].map(str::to_owned);
        let mut table = table().with_heads(heads);
        table.row("m1", ["1", "2", "3", "a|b"].map(str::to_owned));
        let expected = "\
| linear | A | B \\| A | rate | verdict |
|---|---:|---:|---:|---|
| **linear_bias/f32** |  |  |  |  |
| m8.k8.n8 | 1 us | 1.00 | 22.5 | SAME |
| m4096.k64.n256.and.much.more.that.is.rare | 699 us | 1.17 | 225.7 | FASTER |
| m1 | 1 | 2 | 3 | a\\|b |
";
        assert_eq!(table.markdown(), expected);
        assert!(!table.is_empty() && RankedTable::new("", &[]).is_empty());
    }

    #[test]
    fn a_table_without_headings_is_indented_once() {
        let mut table = RankedTable::new("", &[Column::words("what", 0)]);
        table.row("name", ["it".to_owned()]);
        assert_eq!(table.render(Width::Unlimited), "        what\n  name  it\n");
    }
}
