//! Where a new file goes.

use std::path::PathBuf;

use clap::Args;
use cli_support::output::{Replace, Target};

use crate::exit::UsageError;

/// Where a new file goes.
#[derive(Debug, Clone, Args)]
pub struct FileArgs {
    /// The file to write instead of stdout, whole or not at all
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace files that are there
    #[arg(long)]
    pub overwrite: bool,
}

impl FileArgs {
    /// Which files may be replaced.
    #[must_use]
    pub fn replace(&self) -> Replace {
        Replace::if_told(self.overwrite)
    }

    /// The file, if one was named and can be written; none for stdout.
    ///
    /// # Errors
    ///
    /// [`UsageError`] when it cannot be written, or is there already.
    pub fn target(&self) -> Result<Option<Target>, UsageError> {
        self.output.as_deref().map(|path| Target::new(path, self.replace())).transpose()
    }
}
