//! Results in the format and at the place that were asked for.

use std::io::Write;

use cli_support::output::{Destination, Target, write_json};
use cli_support::sheet::Sheet;
use cli_support::width::Width;
use serde::Serialize;

use crate::cli::{OutputArgs, OutputFormat};

/// A result that is written in several formats.
pub(super) trait Formats: Serialize {
    /// Tables for people, as wide as the page.
    fn text(&self, width: Width) -> String;

    /// A table for programs.
    fn sheet(&self) -> Sheet;
}

/// Writes a result to the place that [`OutputArgs::target`] found before the work began.
///
/// # Errors
///
/// When it cannot be written.
pub(super) fn write(
    result: &impl Formats,
    args: &OutputArgs,
    target: Option<Target>,
) -> anyhow::Result<()> {
    let mut out = match args.format() {
        OutputFormat::Csv => Destination::for_csv(target, args.raw_cells)?,
        OutputFormat::Text | OutputFormat::Json => Destination::new(target)?,
    };
    match args.format() {
        OutputFormat::Text => {
            let width = match args.output {
                Some(_) => Width::Unlimited,
                None => Width::of_stdout(),
            };
            out.write_text(&result.text(width))?;
        }
        OutputFormat::Csv => out.write_all(&result.sheet().csv()?)?,
        OutputFormat::Json => write_json(&mut out, result)?,
    }
    out.finish()
}
