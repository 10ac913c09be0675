//! How and where a result is written.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cli_support::output::{Replace, Target};

use crate::exit::UsageError;

/// How and where a result is written.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// How to write it
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub format: OutputFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// The file to write instead of stdout, whole or not at all
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file that has the name of --output, if there is one
    #[arg(long, requires = "output")]
    pub overwrite: bool,
    /// Do not put an apostrophe before cells of CSV that a spreadsheet would take for formulas
    #[arg(long)]
    pub raw_cells: bool,
}

impl OutputArgs {
    /// Where the result goes; stdout where no file is named.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, or is there already and may not be replaced.
    pub fn target(&self) -> Result<Option<Target>, UsageError> {
        let replace = Replace::if_told(self.overwrite);
        self.output.as_deref().map(|path| Target::new(path, replace)).transpose()
    }

    /// The format that was asked for.
    #[must_use]
    pub fn format(&self) -> OutputFormat {
        if self.json { OutputFormat::Json } else { self.format }
    }
}

/// How a result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Tables for people
    Text,
    /// RFC 4180, with a header
    Csv,
    /// One object
    Json,
}
