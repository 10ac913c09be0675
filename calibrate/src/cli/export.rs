//! The command line of `calibrate export`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::FileArgs;

/// Calibrations whose records other programs are to read.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate export xeon.toml epyc.toml -o records.parquet
  calibrate export xeon.toml > records.csv
  calibrate export shards/*.toml --format jsonl | jq 'select(.verdict == \"SLOWER\") | .problem'
  duckdb -c \"SELECT fusion_pattern, avg(ln(speedup_factor)) FROM 'records.parquet' GROUP BY 1\"

A row is a record. Columns have the names of the calibration file, nested keys joined with dots: \
unfused_timing.median_ms, extra_params.n, tool.version, fingerprint.cpu_model. Lists are JSON in CSV \
and Parquet.")]
pub struct ExportArgs {
    /// Calibration files
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// How to write it [default: what the name of the output ends with, else csv]
    #[arg(long, value_enum)]
    pub format: Option<ExportFormat>,
    /// Where it goes.
    #[command(flatten)]
    pub file: FileArgs,
    /// Do not put an apostrophe before cells of CSV that a spreadsheet would take for formulas
    #[arg(long)]
    pub raw_cells: bool,
}

impl ExportArgs {
    /// The format that was asked for, else the one that the name of the output says.
    #[must_use]
    pub fn format(&self) -> ExportFormat {
        let ending = self.file.output.as_deref().and_then(Path::extension);
        let by_name = || match ending?.to_str()? {
            "jsonl" | "ndjson" => Some(ExportFormat::Jsonl),
            "parquet" => Some(ExportFormat::Parquet),
            _ => None,
        };
        self.format.or_else(by_name).unwrap_or(ExportFormat::Csv)
    }
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// RFC 4180, with a header
    Csv,
    /// One JSON object on each line
    Jsonl,
    /// Apache Parquet; wants a build with --features parquet
    Parquet,
}
