//! `calibrate trace kernels --rows`: every row of a table, for other programs.

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;

use cli_support::exit::UsageError;
use cli_support::output::Destination;
use kernel_traces::{Extent, NameClasses, Options, RankFile, RowFormat, RowWriter, Rows, Table};

use super::open::{self, Inputs};
use crate::cli::{OutputFormat, TraceKernelsArgs};

/// Writes the rows of all files, one file after the other.
pub(super) fn rows(args: &TraceKernelsArgs) -> anyhow::Result<()> {
    let format = row_format(args)?;
    let table = Table::from(args.table);
    let target = args.out.target()?;
    let mut inputs = open::find_input(&args.input)?;
    let files = inputs.files.clone();
    // All files have the same columns.
    let extent = if files.iter().any(|file| inputs.must_stream(file)) {
        Extent::Parts
    } else {
        Extent::Whole
    };
    let mut destination = match format {
        RowFormat::Csv => args.out.for_csv(target)?,
        RowFormat::Json => Destination::for_json_lines(target)?,
        #[cfg(feature = "parquet")]
        RowFormat::Parquet => Destination::new(target)?,
    };
    let mut writer = RowWriter::new(table, extent, format, &mut destination)?;
    for file in &files {
        write_file(&mut inputs, file, table, extent, &mut writer)?;
    }
    writer.finish()?;
    destination.finish()
}

fn write_file(
    inputs: &mut Inputs,
    file: &RankFile,
    table: Table,
    extent: Extent,
    writer: &mut RowWriter<'_>,
) -> anyhow::Result<()> {
    let name = file.named.display().to_string();
    if extent == Extent::Whole {
        let trace = inputs.load(file)?;
        return Ok(writer.write(&Rows::whole(&trace, &name, file.rank))?);
    }
    let mut classes = NameClasses::default();
    let mut result = Ok(());
    // Frames are most of a trace with stacks.
    let options = Options { frames: table == Table::Frames, ..Options::default() };
    inputs.stream(file, &options, &mut |part| {
        result = writer.write(&Rows::part(part, &name, file.rank, classes.of(part)));
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(result?)
}

/// The format, if rows can be written so.
fn row_format(args: &TraceKernelsArgs) -> Result<RowFormat, UsageError> {
    match args.format() {
        OutputFormat::Csv => Ok(RowFormat::Csv),
        OutputFormat::Json => Ok(RowFormat::Json),
        OutputFormat::Text => Err(UsageError(
            "--rows writes csv, json or parquet; without --rows --format text prints tables"
                .to_owned(),
        )),
        OutputFormat::Parquet => {
            if args.out.output.is_none() && io::stdout().is_terminal() {
                let message = "Parquet is not for a terminal; name a file with --output";
                return Err(UsageError(message.to_owned()));
            }
            parquet()
        }
    }
}

#[cfg(feature = "parquet")]
fn parquet() -> Result<RowFormat, UsageError> {
    Ok(RowFormat::Parquet)
}

#[cfg(not(feature = "parquet"))]
fn parquet() -> Result<RowFormat, UsageError> {
    Err(UsageError(
        "this program was built without Parquet; build it with --features parquet, or write --format \
         csv or json"
            .to_owned(),
    ))
}
