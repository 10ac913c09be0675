//! How and where a result is written.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
}

impl OutputArgs {
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
