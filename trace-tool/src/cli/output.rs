//! Where results go.

use std::path::PathBuf;

use clap::Args;
use cli_support::exit::UsageError;
use cli_support::output::{Destination, Replace, Target};

/// Where results go.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// The file to write instead of stdout, whole or not at all
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long, requires = "output")]
    pub overwrite: bool,
    /// Do not put an apostrophe before cells of CSV that a spreadsheet would take for formulas
    #[arg(long)]
    pub raw_cells: bool,
}

impl OutputArgs {
    /// The file, if one was named and can be written; none for stdout.
    ///
    /// # Errors
    ///
    /// [`UsageError`] when it cannot be written, or is there already.
    pub fn target(&self) -> Result<Option<Target>, UsageError> {
        let replace = Replace::if_told(self.overwrite);
        self.output.as_deref().map(|path| Target::new(path, replace)).transpose()
    }

    /// The way there for CSV.
    ///
    /// # Errors
    ///
    /// When no file can be written there.
    pub fn for_csv(&self, target: Option<Target>) -> anyhow::Result<Destination> {
        Destination::for_csv(target, self.raw_cells)
    }
}
